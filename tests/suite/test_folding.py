"""Values put into formulas: computed as far as that changes neither a value nor its kind."""

from __future__ import annotations

import pytest

from gpubench.suite.expressions import MAX_LENGTH, Expression
from gpubench.suite.folding import Folding

KINDS = {"n": "whole", "m": "whole", "x": "number", "flag": "any", "dt": "any"}
VALUES = {"one": 1, "zero": 0, "two": 2, "three": 3, "real": 1.0, "minus": -1, "row": "row"}


def folded(text: str) -> object:
    return Folding({**VALUES, "yes": True}, kind_of=KINDS.__getitem__).fold(Expression(text))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("two", 2),
        ("real", 1.0),
        ("yes", True),
        ("row", "'row'"),
        ("8 * two", 16),
        ("1 / two", 0.5),
        ("1 / three", "1 / 3"),
        ("n * one", "n"),
        ("one * n * m", "n * m"),
        ("n + 2 * zero", "n"),
        ("n + 2 * one", "n + 2"),
        ("n - zero", "n"),
        ("n / one + zero", "n"),
        ("n // one", "n"),
        ("cdiv(n, one)", "n"),
        ("ceil(n * one)", "n"),
        ("n ** one", "n"),
        ("n * m * zero + 4", 4),
        ("n + minus", "n + -1"),
        ("minus ** n", "(-1) ** n"),
        ("n if row == 'row' else m", "n"),
        ("n if two > 2 else m", "m"),
        ("yes and n > 3", "n > 3"),
        ("n > 3 or yes", "n > 3 or true"),
        ("yes or n > 3", True),
        ("itemsize(a) * one", "itemsize(a)"),
    ],
)
def test_a_value_is_put_in_and_what_it_decides_is_computed(written: str, expected: object) -> None:
    found = folded(written)

    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("x // one", "x // 1"),  # rounds down
        ("flag * one", "flag * 1"),  # 1, not true
        ("x * zero", "x * 0"),  # 0.0, not 0
        ("n * real", "n * 1.0"),  # a number with a fraction
        ("n * (one / three)", "n * (1 / 3)"),  # exact
        ("2 * 8 * n + zero", "2 * 8 * n"),  # as written
        ("n / zero", "n / 0"),  # has no value, as before
        ("1 / zero", "1 / 0"),
        ("two < n < 9", "2 < n < 9"),
        ("zero - n", "0 - n"),
    ],
)
def test_what_could_change_a_value_or_its_kind_is_kept(written: str, kept: str) -> None:
    assert folded(written) == kept


def test_a_formula_may_become_longer_than_one_that_is_written() -> None:
    text = "+".join(["count"] * 80 + ["k"])
    found = Folding({"k": 2**100}, kind_of=lambda name: "whole").fold(Expression(text))

    assert len(text) < MAX_LENGTH < len(str(found))


def test_names_become_other_names() -> None:
    folding = Folding({"one": 1}, {"size": "n"}, kind_of=lambda name: "whole")

    assert folding.fold(Expression("size_of * size(a) + m * one")) == "size_of * size(a) + m"
    assert (
        Folding({}, {"rows": "n"}).fold(Expression("2*rows + size(rows)")) == "2 * n + size(rows)"
    )
