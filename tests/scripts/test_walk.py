"""The walk of one case in docs/how-it-works.md is the one that it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


def test_the_walk_of_a_case_is_as_it_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(CHECKOUT / "scripts"))
    import walk  # type: ignore[import-not-found]

    page = walk.PAGE.read_text()
    _, _, rest = page.partition(walk.START)
    drawn, _, _ = rest.partition(walk.END)

    ran = walk.walk()

    modules = [module for stage in ran.values() for module in stage]
    assert len(modules) == len(set(modules)) > 80
    assert drawn == walk.draw(ran), "draw it anew with `.venv/bin/python scripts/walk.py`"
