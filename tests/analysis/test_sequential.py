"""What looking at pairs of processes while they come may say, on simulated pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice, pairwise, takewhile

import numpy as np
import pytest

from gpubench.analysis.comparison import ComparisonVerdict
from gpubench.analysis.sequential import (
    ERROR,
    doubt_of,
    interval_at_last_look,
    plan_looks,
    verdict_in_turn,
)

Draw = Callable[[np.random.Generator], float]
"""The logarithm of the ratio of a pair of processes that do not differ."""


def two_modes(random: np.random.Generator) -> float:
    """Every second process is a fifth slower, whichever commit it is of."""
    slower = random.integers(0, 2, 2)
    return float((slower[0] - slower[1]) * math.log(1.2) + random.normal(0, 0.005))


def disturbed(random: np.random.Generator) -> float:
    """Every tenth pair met other work on the machine."""
    size = random.exponential(0.5) if random.random() < 0.1 else 0.0
    return float(random.choice([-1, 1]) * size + random.normal(0, 0.01))


UNCHANGED: dict[str, Draw] = {
    "normal": lambda random: float(random.normal(0, 0.05)),
    "heavy tails": lambda random: 0.03 * float(random.standard_t(1.5)),
    "two modes": two_modes,
    "disturbed": disturbed,
}


def look_often(
    draw: Draw, random: np.random.Generator, *, shift: float = 0.0, cases: int = 1, most: int = 60
) -> ComparisonVerdict:
    """Return the first verdict that is sure, or that after so many pairs, looking at each look."""
    logs = [draw(random) + shift for _ in range(most)]
    dates = {
        pairs
        for error in (ERROR, ERROR / cases)
        for pairs, _ in takewhile(lambda look: look[0] <= most, plan_looks(error))
    }
    for pairs in sorted(dates):
        verdict, _ = verdict_in_turn(logs[:pairs], cases)
        if verdict != "unclear":
            return verdict
    return "unclear"


def is_alarm(verdict: ComparisonVerdict) -> bool:
    return verdict in ("slower", "faster")


@pytest.mark.slow
@pytest.mark.parametrize("noise", UNCHANGED)
def test_looking_often_does_not_raise_the_error(noise: str) -> None:
    random = np.random.default_rng(34)
    verdicts = [look_often(UNCHANGED[noise], random) for _ in range(300)]
    assert sum(map(is_alarm, verdicts)) <= ERROR * len(verdicts)


@pytest.mark.slow
def test_of_many_unchanged_cases_not_one_is_an_alarm() -> None:
    random = np.random.default_rng(2)
    comparisons = [
        [look_often(UNCHANGED["heavy tails"], random, cases=20, most=24) for _ in range(20)]
        for _ in range(20)
    ]
    assert not any(is_alarm(verdict) for verdicts in comparisons for verdict in verdicts)


@pytest.mark.parametrize(
    ("draw", "found"),
    [
        (lambda random: float(random.normal(0, 0.015)), 1.0),
        (lambda random: 0.015 * float(random.standard_t(2)), 0.95),
        (disturbed, 0.95),
    ],
    ids=["normal", "heavy tails", "disturbed"],
)
def test_10_percent_in_one_of_20_cases_is_found(draw: Draw, found: float) -> None:
    random = np.random.default_rng(3)
    verdicts = [look_often(draw, random, shift=-math.log(1.1), cases=20) for _ in range(100)]
    assert verdicts.count("slower") >= found * len(verdicts)
    assert "faster" not in verdicts


def test_10_percent_are_found_among_500_cases_whose_processes_scatter_by_1_percent() -> None:
    random = np.random.default_rng(4)
    shift = -math.log(1.1)
    verdicts = [
        look_often(lambda r: float(r.normal(0, 0.014)), random, shift=shift, cases=500)
        for _ in range(100)
    ]
    assert verdicts.count("slower") >= 95


def test_unchanged_cases_are_soon_the_same() -> None:
    random = np.random.default_rng(5)
    few = [
        look_often(lambda r: float(r.normal(0, 0.015)), random, cases=20, most=11)
        for _ in range(100)
    ]
    assert few.count("same") >= 99


# --- the plan of looks


@pytest.mark.parametrize("error", [ERROR, ERROR / 20, ERROR / 500])
def test_the_looks_share_the_error_and_each_can_be_reached(error: float) -> None:
    looks = [*islice(plan_looks(error), 30)]
    assert sum(share for _, share in looks) <= error
    assert all(2 / 2**pairs <= share for pairs, share in looks)
    assert all(one < other for (one, _), (other, _) in pairwise(looks))


def test_between_two_looks_the_interval_is_that_of_the_last_one() -> None:
    (first, _), (second, _) = islice(plan_looks(ERROR), 2)
    logs = [0.1 + place / 1000 for place in range(second - 1)]
    before, after = interval_at_last_look(logs[:first], ERROR), interval_at_last_look(logs, ERROR)
    assert (before.low, before.high) == (after.low, after.high)
    assert before.value < after.value
    assert not interval_at_last_look(logs[: first - 1], ERROR).has_interval


def in_a_row(value: float, pairs: int) -> Sequence[float]:
    return [value] * pairs


def test_verdicts_of_pairs_that_all_agree() -> None:
    assert verdict_in_turn([], 1)[0] == "unclear"
    assert verdict_in_turn(in_a_row(-0.5, 8), 1)[0] == "unclear"
    assert verdict_in_turn(in_a_row(-0.5, 9), 1)[0] == "slower"
    assert verdict_in_turn(in_a_row(0.5, 9), 1)[0] == "faster"
    assert verdict_in_turn(in_a_row(0.0, 9), 1)[0] == "same"
    # It may become slower, once there are enough pairs for 20 cases: it is not the same yet.
    assert verdict_in_turn(in_a_row(-0.03, 9), 20)[0] == "unclear"
    assert verdict_in_turn(in_a_row(-0.03, 13), 20)[0] == "slower"
    assert verdict_in_turn(in_a_row(-0.01, 13), 20)[0] == "same"


def test_a_factor_that_the_user_asks_for() -> None:
    assert verdict_in_turn(in_a_row(math.log(1.3), 20), 1, 1.5)[0] == "same"
    assert verdict_in_turn(in_a_row(math.log(1.6), 20), 1, 1.5)[0] == "faster"


def test_what_scatters_more_is_more_in_doubt() -> None:
    assert doubt_of([], 1) == doubt_of([0.1], 1) == math.inf
    assert doubt_of([0.3, -0.3], 1) > doubt_of([0.1, -0.1], 1) > 0
    assert doubt_of(in_a_row(-0.5, 8), 1) > 0
    assert doubt_of(in_a_row(-0.5, 9), 1) == 0
