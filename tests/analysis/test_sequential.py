"""What e-values of pairs may say while they come, by known values and simulated pairs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from gpubench.analysis.sequential import (
    CALLED_AT,
    CHANGES,
    FIRST_PAIRS,
    MIN_CALLED_PAIRS,
    NU,
    SCATTERS,
    CaseEvidence,
    Evidence,
    default_prior,
    estimate_pairs_needed,
    find_detectable_factor,
    learn_priors,
    likeliest_change,
    likeliest_scatter,
    log_likelihood,
    select_sure,
)

Draw = Callable[[np.random.Generator], float]
"""The logarithm of the ratio of a pair of processes that do not differ."""


def density(z: float) -> float:
    """Student's t with 4 degrees of freedom, in closed form."""
    return 3 / 8 * (1 + z * z / 4) ** -2.5


def evidence_of(*logs: float, factor: float = 1.0) -> CaseEvidence:
    case = CaseEvidence(factor)
    for log in logs:
        case.add(log)
    return case


def tails(random: np.random.Generator, scatter: float, count: int) -> list[float]:
    return [float(log) for log in scatter * random.standard_t(NU, count)]


# --- known values


def test_the_likelihood_is_that_of_student_s_t() -> None:
    logs, changes = [0.1, -0.02], np.array([0.0, 0.3])
    expected = [
        [sum(math.log(density((log - change) / s) / s) for log in logs) for s in SCATTERS]
        for change in changes
    ]
    np.testing.assert_allclose(log_likelihood(logs, changes), expected)


def test_the_e_value_is_the_ratio_of_two_averages_over_one_prior() -> None:
    logs = [-0.3, -0.25, -0.4]
    prior = np.exp(default_prior())

    def averaged(change: float) -> float:
        densities = [math.prod(density((log - change) / s) / s for log in logs) for s in SCATTERS]
        return float(prior @ densities)

    expected = np.mean([averaged(change) for change in CHANGES]) / averaged(0.0)
    assert math.exp(evidence_of(*logs).log_e) == pytest.approx(expected)


def test_changes_and_their_signs_weigh_alike() -> None:
    assert evidence_of(0.2, 0.3, 0.1).log_e == pytest.approx(evidence_of(-0.2, -0.3, -0.1).log_e)


@pytest.mark.parametrize(
    ("log_e", "sure"),
    [
        ([], set()),
        ([99.0], {0}),
        ([math.log(99)], set()),  # one case needs 100
        ([math.log(101)], {0}),
        ([math.log(101), 0.0], set()),  # one of two needs 200
        ([math.log(201), 0.0], {0}),
        ([math.log(101), math.log(101)], {0, 1}),  # two of two need 100 each
        ([math.log(90), math.log(9999)], {1}),
    ],
)
def test_e_benjamini_hochberg(log_e: list[float], sure: set[int]) -> None:
    assert select_sure(log_e) == sure


# --- verdicts


def test_no_verdict_of_too_few_pairs() -> None:
    assert CaseEvidence().verdict == "unclear"
    assert CaseEvidence().ratio is None
    assert evidence_of(*[-0.7] * (MIN_CALLED_PAIRS - 1)).verdict == "unclear"
    assert evidence_of(*[-0.7] * MIN_CALLED_PAIRS).verdict == "slower"
    assert evidence_of(*[0.7] * MIN_CALLED_PAIRS).verdict == "faster"
    assert evidence_of(*[0.0] * (FIRST_PAIRS - 1)).verdict == "unclear"
    assert evidence_of(*[0.0] * 5).verdict == "same"


def test_one_pair_that_leaps_among_three_is_no_change() -> None:
    assert evidence_of(0.01, 0.0, 1.2).verdict == "unclear"


def test_a_small_change_is_not_the_same() -> None:
    random = np.random.default_rng(1)
    logs = [log - math.log(1.05) for log in tails(random, 0.005, 12)]
    assert evidence_of(*logs).verdict == "slower"


def test_a_factor_that_the_user_asks_for() -> None:
    logs = [math.log(1.3) + 0.001 * place for place in range(12)]
    assert evidence_of(*logs).verdict == "faster"
    assert evidence_of(*logs, factor=1.5).verdict == "same"
    assert evidence_of(*[log + math.log(1.3) for log in logs], factor=1.5).verdict == "faster"


def test_the_interval_leaves_1_out_exactly_where_the_case_is_called() -> None:
    random = np.random.default_rng(7)
    for change, scatter, count in (
        (0.1, 0.05, 12),
        (0.0, 0.05, 12),
        (0.3, 0.2, 20),
        (0.05, 0.02, 9),
    ):
        case = evidence_of(*(change + log for log in tails(random, scatter, count)))
        ratio = case.ratio
        assert ratio is not None
        assert ratio.low < ratio.value < ratio.high
        assert (not ratio.low <= 1 <= ratio.high) == (case.log_e >= math.log(CALLED_AT))


def test_the_interval_becomes_narrower_with_pairs() -> None:
    random = np.random.default_rng(2)
    logs = tails(random, 0.05, 64)
    widths = []
    for count in (1, 4, 16, 64):
        ratio = evidence_of(*logs[:count]).ratio
        assert ratio is not None
        widths.append(math.log(ratio.high / ratio.low))
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.08


def test_the_likeliest_change_bears_an_outlier() -> None:
    logs = [0.10, 0.11, 0.09, 0.10, 2.0]
    assert likeliest_change(logs, default_prior()) == pytest.approx(0.10, abs=0.01)


# --- what is unclear


def test_what_could_have_been_found_would_have_been_called() -> None:
    case = evidence_of(*tails(np.random.default_rng(3), 0.1, 6))
    factor = find_detectable_factor(case)
    assert factor is not None
    assert case.shifted(-math.log(factor * 1.001)).verdict == "slower"
    assert case.shifted(-math.log(factor / 1.05)).verdict != "slower"


def test_of_one_pair_nothing_could_have_been_found() -> None:
    assert find_detectable_factor(CaseEvidence()) is None
    assert find_detectable_factor(evidence_of(0.4)) is None


def test_pairs_needed_grow_with_the_scatter_and_shrink_with_the_change() -> None:
    random = np.random.default_rng(4)
    noise = tails(random, 1.0, 6)

    def needed(change: float, scatter: float) -> int:
        pairs = estimate_pairs_needed(evidence_of(*(change + scatter * one for one in noise)))
        assert pairs is not None
        return pairs

    assert needed(0.1, 0.3) > needed(0.1, 0.1) > 6
    assert needed(0.1, 0.3) > needed(0.4, 0.3)
    assert estimate_pairs_needed(CaseEvidence()) is None


# --- the scatter of a kind


def test_the_prior_is_learned_from_the_other_cases_of_the_kind() -> None:
    random = np.random.default_rng(5)
    evidence = Evidence(12)
    for _ in range(FIRST_PAIRS):
        for place in range(12):
            scatter = 0.01 if place < 6 else 0.3
            evidence.add(place, *tails(random, scatter, 1), kind="quiet" if place < 6 else "loud")

    def median(place: int) -> float:
        weights = np.exp(evidence.cases[place].prior)
        return float(SCATTERS[np.searchsorted(weights.cumsum() / weights.sum(), 0.5)])

    assert median(0) < 0.03 < 0.1 < median(11)


def test_a_case_alone_keeps_the_default_prior() -> None:
    firsts = log_likelihood([0.5, 0.1, -0.4], np.concatenate([[0.0], CHANGES]))
    (prior,) = learn_priors([firsts], ["kind"])
    np.testing.assert_allclose(prior, default_prior(), atol=1e-6)


def test_a_change_does_not_pass_for_scatter() -> None:
    random = np.random.default_rng(6)
    evidence = Evidence(10)
    for _ in range(FIRST_PAIRS):
        for place in range(10):
            evidence.add(place, tails(random, 0.02, 1)[0] - (0.7 if place < 3 else 0.0))
    assert likeliest_scatter(evidence.cases[9]) < 0.05
    assert all(case.log_e > math.log(CALLED_AT) for case in evidence.cases[:3])


# --- false calls, by looking after every pair


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
    "heavy tails": lambda random: 0.03 * float(random.standard_t(2)),
    "two modes": two_modes,
    "disturbed": disturbed,
}


def count_called(
    draw: Draw, cases: int, most: int, least_log_e: float, least_pairs: int = MIN_CALLED_PAIRS
) -> int:
    """Count the cases whose e-value ever reaches so much, looking after each pair."""
    random = np.random.default_rng(34)
    called = 0
    for _ in range(cases):
        case = CaseEvidence()
        for _ in range(most):
            case.add(draw(random))
            if len(case.logs) >= least_pairs and case.log_e >= least_log_e:
                called += 1
                break
    return called


@pytest.mark.parametrize("noise", UNCHANGED)
def test_looking_after_every_pair_calls_no_unchanged_case(noise: str) -> None:
    assert count_called(UNCHANGED[noise], 15, 15, math.log(CALLED_AT)) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("noise", UNCHANGED)
def test_looking_often_calls_one_in_a_hundred_at_most(noise: str) -> None:
    assert count_called(UNCHANGED[noise], 300, 20, math.log(CALLED_AT)) <= 3


def test_e_values_keep_the_bound_of_ville() -> None:
    """Without a change an e-value ever reaches 10 in one of 10 cases at most, by the model's own
    noise."""

    def draw(random: np.random.Generator) -> float:
        return 0.05 * float(random.standard_t(NU))

    assert count_called(draw, 60, 12, math.log(10), 1) <= 6


def test_a_change_beyond_the_limit_is_hardly_ever_the_same() -> None:
    random = np.random.default_rng(9)
    same = 0
    for _ in range(40):
        case = CaseEvidence()
        for log in tails(random, 0.05, 12):
            case.add(log - math.log(1.1))
            if case.is_same:
                same += 1
                break
    assert same <= 1


@pytest.mark.parametrize(
    ("factor", "scatter", "pairs"), [(1.3, 0.03, 5), (1.3, 0.07, 9), (2.0, 0.07, 5), (2.0, 0.2, 9)]
)
def test_changes_are_found_in_so_many_pairs(factor: float, scatter: float, pairs: int) -> None:
    random = np.random.default_rng(10)
    cases = [
        evidence_of(*(log - math.log(factor) for log in tails(random, scatter, pairs)))
        for _ in range(20)
    ]
    assert sum(case.verdict == "slower" for case in cases) >= 10
    assert not any(case.verdict == "faster" for case in cases)
