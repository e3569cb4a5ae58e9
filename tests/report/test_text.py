"""Numbers as text: units, digits, intervals."""

# ruff: noqa: RUF001 (the pages write multiplication signs and en dashes)

from __future__ import annotations

import math

import pytest

from gpubench.analysis.speedup import Speedup
from gpubench.report import text


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
    assert text.level(Speedup(value, value, value)) == step


def test_an_unknown_interval_is_said() -> None:
    assert text.interval(Speedup(2.0, 0.0, math.inf)) == "no interval"
    assert text.interval(Speedup(2.0, 1.9, 2.1)) == "1.90–2.10×"


def test_rates_need_an_amount() -> None:
    assert text.rate(4_000_000_000, 2.0) == "2.00"
    assert text.rate(None, 2.0) == ""


def test_plurals_and_lists() -> None:
    assert text.plural(1, "case") == "1 case"
    assert text.plural(1_000, "case") == "1,000 cases"
    assert text.join(["a", "b", "c"]) == "a, b and c"
    assert text.join([]) == ""
