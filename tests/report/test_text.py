"""Numbers as text: units, digits, intervals."""

# ruff: noqa: RUF001 (the pages write multiplication signs and en dashes)

from __future__ import annotations

import math

import pytest

from gpubench.report import text
from gpubench.results import Ratio


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, "1.00 s"),
        (0.9999, "1.00 s"),
        (0.0123456, "12.3 ms"),
        (999.6e-6, "1.00 ms"),
        (1.5e-7, "150 ns"),
        (2e-11, "0.0200 ns"),
        (4321.0, "4,321 s"),
        (None, "unknown"),
        (math.inf, "unknown"),
    ],
)
def test_times_have_three_digits_and_a_fitting_unit(value: float | None, expected: str) -> None:
    assert text.seconds(value).replace("\N{NARROW NO-BREAK SPACE}", " ") == expected


def test_an_interval_shares_the_unit_of_its_upper_end() -> None:
    found = text.seconds_interval(0.9e-3, 1.1e-3)

    assert found.replace("\N{NARROW NO-BREAK SPACE}", " ") == "0.900–1.10 ms"
    assert text.seconds_interval(-math.inf, math.inf) == "no interval"
    assert text.seconds_interval(None, None) == "no interval"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0123, "0.0123×"), (1.0, "1.00×"), (34.56, "34.6×"), (1234.5, "1,234×")],
)
def test_factors_have_three_digits(value: float, expected: str) -> None:
    assert text.ratio(value) == expected


@pytest.mark.parametrize(
    ("value", "step"),
    [(1.0, 0), (1.02, 0), (1.2, 1), (1.9, 2), (2.0, 3), (5, 4), (16, 5), (1 / 2, -3), (1 / 17, -5)],
)
def test_the_colour_scale_is_symmetric_around_1x(value: float, step: int) -> None:
    assert text.level(Ratio(value, value, value)) == step


def test_an_unknown_interval_is_said() -> None:
    assert text.interval(Ratio(2.0, 0.0, math.inf)) == "no interval"
    assert text.interval(Ratio(2.0, 1.9, 2.1)) == "1.90–2.10×"


def test_a_rate_is_in_billions_a_second_and_may_be_unknown() -> None:
    assert text.rate(2e9) == "2.00"
    assert text.rate(None) == ""


def test_lanes_that_are_on_are_those_that_are_not_off() -> None:
    assert text.lanes_on(0.25) == text.percent(0.75)
    assert text.lanes_on(None) == ""


def test_sizes_are_named_and_grouped_by_thousands() -> None:
    assert text.sizes({"n": 1_048_576.0, "width": 2.5}) == "n = 1,048,576, width = 2.50"
    assert text.sizes({}) == ""


def test_plurals_and_lists() -> None:
    assert text.plural(1, "case") == "1 case"
    assert text.plural(1_000, "case") == "1,000 cases"
    assert text.join(["a", "b", "c"]) == "a, b and c"
    assert text.join([]) == ""


def test_of_many_names_the_first_few_are_named() -> None:
    assert text.some(["a", "b", "c", "d"]) == "a, b, c and d"
    assert text.some(["a", "b", "c", "d", "e"]) == "a, b, c and 2 others"
