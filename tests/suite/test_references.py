"""A function is named by ``module:name``; what people write in its place is proposed as that."""

from __future__ import annotations

import pytest

from gpubench.suite.types import meant_reference


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("imgtool.cpu.box", "imgtool.cpu:box"),
        ("imgtool/cpu.py:box", "imgtool.cpu:box"),
        ("./imgtool/cpu.py::box", "imgtool.cpu:box"),
        ("mine.total()", "mine:total"),
        ("box", None),
        ("imgtool.cpu:box", None),
        ("two words.f", None),
        ("", None),
    ],
)
def test_what_is_near_a_reference_is_proposed(written: str, meant: str | None) -> None:
    assert meant_reference(written) == meant
