"""A small picture of a long series leaves out what it cannot show, and nothing else."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gpubench.report.sparkline import HEIGHT, MARGIN, MAX_POINTS, PARTS_OF_UNIT, Values, sparkline


def points_of(line: str) -> list[tuple[float, float]]:
    """Return the points of a path: the first, and from each the way to the next one."""
    start, _, ways = line.removesuffix("h0").partition("l")
    numbers = re.findall(r"-?(?:\d+\.?\d*|\.\d+)", f"{start} {ways}")
    points = np.array([*map(float, numbers)]).reshape(-1, 2).cumsum(axis=0) / PARTS_OF_UNIT
    return [(x, y) for x, y in points.round(1).tolist()]


def drawn(values: Values) -> list[list[tuple[float, float]]]:
    return [points_of(line) for line in sparkline(values, "times").lines]


def noisy(count: int, *gaps: int) -> Values:
    values = np.exp(np.random.default_rng(1).normal(0.0, 0.02, count))
    values[list(gaps)] = np.nan
    return values


def test_every_point_of_a_short_series_is_drawn() -> None:
    assert [len(line) for line in drawn(noisy(MAX_POINTS, 10, 50))] == [10, 39, MAX_POINTS - 51]


@pytest.mark.parametrize("gaps", [range(0), range(500, 540)])
def test_a_long_series_keeps_its_extremes_ends_and_gaps(gaps: range) -> None:
    values = noisy(1000, *gaps)
    values[123], values[877] = 2.0, 0.5

    lines = drawn(values)

    assert len(lines) == 1 + bool(gaps)
    assert sum(map(len, lines)) < 2 * MAX_POINTS
    heights = [y for line in lines for _, y in line]
    assert (min(heights), max(heights)) == (MARGIN, HEIGHT - MARGIN)
    for line in lines:
        assert [x for x, _ in line] == sorted(x for x, _ in line)
    assert [lines[0][0][0], lines[-1][-1][0]] == [4.0, 116.0]


def test_a_gap_that_is_narrower_than_the_line_is_none() -> None:
    assert len(drawn(noisy(1000, *range(90, 1000, 90)))) == 1


@pytest.mark.parametrize("measured", [slice(2593, None), slice(1300, 1310), slice(0, None, 50)])
def test_series_of_a_page_have_one_axis_of_time(measured: slice) -> None:
    values = np.full(2606, np.nan)
    values[measured] = noisy(2606)[measured]
    present = np.flatnonzero(~np.isnan(values))

    xs = [x for line in drawn(values) for x, _ in line]

    assert xs[0] == pytest.approx(4 + 112 * present[0] / 2605, abs=0.5)
    assert xs[-1] == pytest.approx(4 + 112 * present[-1] / 2605, abs=0.5)


def test_noise_of_a_tenth_looks_like_noise_beside_a_step() -> None:
    heights = [y for line in drawn(noisy(40)) for _, y in line]

    assert max(heights) - min(heights) < (HEIGHT - 2 * MARGIN) / 3


def test_marks_that_would_lie_on_each_other_are_one_the_newest() -> None:
    marks = sparkline(noisy(1000), "times", [10, 500, 510, 520, 990]).marks

    assert [x for x, _ in marks] == [115.0, 62.3, 5.1]
