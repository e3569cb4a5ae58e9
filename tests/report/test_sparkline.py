"""A small picture of a long series leaves out what it cannot show, and nothing else."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gpubench.report.sparkline import HEIGHT, MARGIN, MOST_POINTS, Values, sparkline


def drawn(values: Values) -> list[list[tuple[float, float]]]:
    lines = sparkline(values, "times").lines
    return [[tuple(map(float, pair.split(","))) for pair in line.split()] for line in lines]


def noisy(count: int, *gaps: int) -> Values:
    values = np.exp(np.random.default_rng(1).normal(0.0, 0.02, count))
    values[list(gaps)] = np.nan
    return values


def test_every_point_of_a_short_series_is_drawn() -> None:
    assert [len(line) for line in drawn(noisy(MOST_POINTS, 10, 50))] == [10, 39, MOST_POINTS - 51]


@pytest.mark.parametrize("gaps", [(), tuple(range(90, 1000, 90)), (500, 502)])
def test_a_long_series_keeps_its_extremes_ends_and_gaps(gaps: tuple[int, ...]) -> None:
    values = noisy(1000, *gaps)
    values[123], values[877] = 2.0, 0.5

    lines = drawn(values)

    alone = sum(b - a == 2 for a, b in pairwise(gaps))
    assert len(lines) == len(gaps) + 1 - alone
    assert sum(map(len, lines)) < 2 * MOST_POINTS
    heights = [y for line in lines for _, y in line]
    assert (min(heights), max(heights)) == (MARGIN, HEIGHT - MARGIN)
    for line in lines:
        assert [x for x, _ in line] == sorted({x for x, _ in line})
    assert [lines[0][0][0], lines[-1][-1][0]] == [4.0, 116.0]
