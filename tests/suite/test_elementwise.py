"""Formulas over the indices of an array give what loops over them would."""

# ruff: noqa: E501 -- a table with one case a line

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from gpubench.suite.elementwise import elements
from gpubench.suite.expressions import Expression, ExpressionError


def filled(text: str, shape: tuple[int, ...], dtype: str = "float64", piece: int = 5) -> Any:
    """An array by a formula over ``i``, ``j``, ``k`` and the constants ``N`` and ``mode``."""
    scope = {"N": 10, "mode": "fast"}
    parts = elements(
        Expression(text), scope, {}, "ijk"[: len(shape)], shape, np.dtype(dtype), piece
    )
    array = np.full(shape, 77, dtype)
    for start, part in parts:
        assert part.dtype == array.dtype
        assert part.size <= piece
        array.reshape(-1)[start : start + part.size] = part
    return array


@pytest.mark.parametrize(
    "text",
    [
        "20.0 / N",
        "i * j % 7 / N",
        "i - 2 * j + N // 3",
        "-i / (j + 1)",
        "i ** 2 + 2 ** j - (i + 1) ** -1",
        "(i + j) // 3 + cdiv(j, 4)",
        "min(i, j, 2) - max(i, 1) + abs(i - j)",
        "floor(i / 2) + ceil(j / 4)",
        "i == j",
        "0 < i <= j < 4",
        "N < 0 < j // (N - 10)",
        "i if j < 3 else -j",
        "1 if mode == 'fast' else i",
        "i and j or N",
        "not (i > 1 and j > 1)",
        "true + (i > 1) * 3",
        "2**70 * i",
        "1 / 3 + i",
    ],
)
def test_each_element_is_what_the_formula_gives_at_its_indices(text: str) -> None:
    expected = np.empty((4, 6))
    for i, j in itertools.product(range(4), range(6)):
        scope = {"i": i, "j": j, "N": 10, "mode": "fast"}
        expected[i, j] = Expression(text).evaluate(scope)

    np.testing.assert_allclose(filled(text, (4, 6)), expected, rtol=1e-15)


def test_of_a_choice_only_the_side_that_is_taken_needs_a_value() -> None:
    np.testing.assert_array_equal(filled("1 / i if i > 0 else 0", (4,)), [0, 1, 0.5, 1 / 3])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex64"])
def test_elements_are_of_the_dtype(dtype: str) -> None:
    np.testing.assert_array_equal(filled("i % 2", (7,), dtype), np.arange(7) % 2)


def test_a_piece_may_end_anywhere_and_an_array_may_be_empty_or_a_single_number() -> None:
    expected = np.arange(24).reshape(2, 3, 4)
    for piece in (1, 7, 24, 1000):
        np.testing.assert_array_equal(
            filled("12 * i + 4 * j + k", (2, 3, 4), piece=piece), expected
        )
    assert filled("i", (0,)).shape == (0,)
    assert filled("N", ()) == 10


@pytest.mark.parametrize(
    ("text", "dtype", "problem"),
    [
        ("j / 2", "int32", "is 0.5 at [0, 1]; int32 takes whole numbers from -2147483648 to 2147483647: write // or floor()"),
        ("300 * j", "uint8", "is 300 at [0, 1]; uint8 takes whole numbers from 0 to 255: write // or floor()"),
        ("j - 1", "uint64", "is -1 at [0, 0]; uint64 takes whole numbers from 0 to 18446744073709551615: write // or floor()"),
        ("j", "bool", "is 2 at [0, 2]; a bool array takes true and false: write a comparison"),
        ("1 / j", "float64", "is inf at [0, 0]; float64 takes finite numbers up to 1.7976931348623157e+308: change the formula"),
        ("j % j", "int64", "is nan at [0, 0]; int64 takes whole numbers from -9223372036854775808 to 9223372036854775807: write // or floor()"),
        ("100000 * j", "float16", "is 100000 at [0, 1]; float16 takes finite numbers up to 65504.0: change the formula"),
        ("(10 + j) ** 19", "float64", "whole numbers of indices stay below 2**63; write 1.0 * for float64"),
        ("(2**62 + j) * 2", "float64", "whole numbers of indices stay below 2**63; write 1.0 * for float64"),
        ("1 / (N - 10)", "float64", "division by zero"),
        ("mode", "float64", "a number is needed here, found 'fast'"),
        ("j + mode", "float64", "a number is needed here, found 'fast'"),
        ("j if j > 1 else mode", "float64", "a number is needed here, found 'fast'"),
    ],
)  # fmt: skip
def test_an_element_without_a_value_is_named(text: str, dtype: str, problem: str) -> None:
    with pytest.raises(ExpressionError) as error:
        filled(text, (2, 40), dtype)

    assert error.value.problem == problem
