"""What axes, grids and blocks stand for, however they are written."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gpubench.names import parse_identity
from gpubench.suite.arrays import axis_default, axis_values
from gpubench.suite.model import DeclaredAxis, DeclaredLaunch

AXIS: TypeAdapter[Any] = TypeAdapter(DeclaredAxis)


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ([3, 1, 2], (3, 1, 2)),
        (["float32", 1.5, True], ("float32", 1.5, True)),
        ({"values": [1, 2]}, (1, 2)),
        ({"pow2": [3, 5]}, (8, 16, 32)),
        ({"pow2": [10, 14, 2]}, (1024, 4096, 16384)),
        ({"geometric": [1, 1000, 10]}, (1, 10, 100, 1000)),
        ({"geometric": [3, 20, 2]}, (3, 6, 12)),
        ({"linear": [1, 4]}, (1, 2, 3, 4)),
        ({"linear": [0, 100, 25]}, (0, 25, 50, 75, 100)),
        ({"linear": [5, 5]}, (5,)),
    ],
)
def test_an_axis_stands_for_its_values(written: Any, values: tuple[object, ...]) -> None:
    assert axis_values(AXIS.validate_python(written)) == values


TEXTS = (
    *("5pt", "2d", "100%", "1e3x", "3x3", "0x", "1_000_a", "8-bit", "1.2.3", "0x10", "1:30"),
    *("2026-11-25", "+5pt", ".5pt", "-", "1e", "0b", "12h", "info", "nano", "5²"),
)
"""Texts that no part of gpubench reads as a number."""


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_begins_like_a_number_is_a_value(text: str) -> None:
    assert axis_values(AXIS.validate_python([text])) == (text,)
    assert parse_identity(f"stencil={text}") == {"stencil": text}


@pytest.mark.parametrize(
    "text", ["5", "017", "-1", "1.5", ".5", "1e3", "1_000", "inf", "-Infinity", "nan", "true", "٣"]
)
def test_a_text_that_a_name_of_a_case_gives_back_as_something_else_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="reads as a number or boolean in a case's name"):
        AXIS.validate_python([text])


def test_only_an_axis_written_as_a_mapping_has_a_default() -> None:
    assert axis_default(AXIS.validate_python({"values": [1, 2], "default": 2})) == 2
    assert axis_default(AXIS.validate_python([1, 2])) is None


@pytest.mark.parametrize(
    ("written", "grids"),
    [
        ("cover", ("cover",)),
        (256, ((256,),)),
        ("cdiv(n, 2)", (("cdiv(n, 2)",),)),
        ([1, 2], ((1,), (2,))),
        (["n"], (("n",),)),
        (["n", "m"], (("n", "m"),)),
        (["cdiv(n, 16)", 1], (("cdiv(n, 16)", 1),)),
        (["cover", "n"], ("cover", ("n",))),
        (["cover", ["n"]], ("cover", ("n",))),
        ([[1, 2], [4]], ((1, 2), (4,))),
        ([["n", 2, 1], 8], (("n", 2, 1), (8,))),
        (2**50, ((2**50,),)),
    ],
)
def test_grids_have_one_normal_form(written: Any, grids: tuple[object, ...]) -> None:
    launch = DeclaredLaunch.model_validate({"grid": written})
    shown = tuple(
        grid if grid == "cover" else tuple(e if isinstance(e, int) else str(e) for e in grid)
        for grid in launch.grids()
    )
    assert shown == grids


def test_blocks_have_one_normal_form() -> None:
    launch = DeclaredLaunch.model_validate({"block": [4, [8, 8], [1, 2, 3]]})
    assert launch.blocks() == ((4,), (8, 8), (1, 2, 3))
