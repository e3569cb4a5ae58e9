"""What most cases share is one row of its own, and no change of theirs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from histories import history_of, snapshot, timed

from gpubench.analysis import together
from gpubench.analysis.changes import slower_than_best
from gpubench.analysis.shared import JudgedHistory, judge_history
from gpubench.analysis.together import gather, without_noise
from gpubench.results import CaseHistories, CaseName

NAMES = [CaseName("add", f"k{index}", "numba", "kernel", "n=4") for index in range(20)]
COMMITS = 60


def history(factors: np.ndarray) -> CaseHistories:
    """Cases over commits that take ``factors`` seconds, shape (cases, commits), and noise of 1 %;
    NaN where they fail."""
    scatter = np.random.default_rng(1).normal(0, 0.01, factors.shape)
    seconds = factors * np.exp(scatter)
    return history_of(
        [
            (
                snapshot(place),
                {
                    name: timed(name, None if np.isnan(time) else float(time))
                    for name, time in zip(NAMES, seconds[:, place], strict=False)
                },
            )
            for place in range(factors.shape[1])
        ]
    )


def judged(of: CaseHistories) -> JudgedHistory:
    return judge_history(lambda: [of])


def without(of: CaseHistories) -> np.ndarray:
    """Times without the noise of their runs."""
    return without_noise(of.judged, gather(lambda: [(of.names, of.judged)]).noise)


def test_a_step_that_most_cases_share_is_one_row() -> None:
    factors = np.ones((20, COMMITS))
    factors[:18, 30:] = 1.4
    factors[3, 45:] *= 2

    of = judged(history(factors))

    (shared,) = of.shared
    assert (shared.after, len(shared.changes), shared.measured) == (30, 18, 20)
    assert shared.ratio.factor == pytest.approx(1.4, rel=0.02)
    assert {name: [c.after for c in own] for name, own in of.changes.items() if own} == {
        NAMES[3]: [45]
    }


@pytest.mark.parametrize("cases", [6, 9])
def test_few_cases_share_nothing(cases: int) -> None:
    factors = np.ones((cases if cases == 9 else 20, COMMITS))
    factors[:cases, 30:] = 1.4

    of = judged(history(factors))

    assert of.shared == ()
    assert sum(map(len, of.changes.values())) == cases


def test_slower_runs_are_taken_out_of_the_noise_of_the_cases_that_share_them() -> None:
    factors = np.ones((20, COMMITS))
    factors[:15, 7:50:5] = 1.3
    of = history(factors)

    cleaned = np.log(without(of)[0])

    assert cleaned[0, :50].std() < 0.03
    assert (cleaned[16] == np.log(of.judged[0, 16])).all()


def test_what_lasts_and_what_is_new_stays_in_the_times() -> None:
    factors = np.ones((20, COMMITS))
    factors[:, 30:] = 1.3
    factors[:, -3:] = 2.0

    cleaned = without(history(factors))[0]

    assert np.median(cleaned[0, 35:50]) == pytest.approx(1.3, rel=0.02)
    assert np.median(cleaned[0, -3:]) == pytest.approx(2.0, rel=0.02)


def test_a_case_whose_noise_could_hide_a_doubling_is_unstable_and_claims_nothing() -> None:
    factors = np.ones((12, COMMITS))
    factors[0] = np.exp(np.random.default_rng(2).normal(0, 0.4, COMMITS))

    of = judged(history(factors))

    assert [*of.unstable] == [NAMES[0]]
    assert of.unstable[NAMES[0]] == pytest.approx(0.4, rel=0.3)
    assert of.changes[NAMES[0]] == ()


def test_a_case_that_fails_and_is_fixed_has_both_changes_with_its_good_times() -> None:
    factors = np.ones((1, 12))
    factors[0, 4:9] = np.nan

    lost, back = judged(history(factors)).statuses

    assert (lost.before, lost.after, lost.new, lost.is_worse) == (3, 4, "failed", True)
    assert (back.before, back.after, back.new, back.is_worse) == (8, 9, "ok", False)
    assert lost.seconds == pytest.approx(1, rel=0.05)
    assert back.seconds == pytest.approx(1, rel=0.05)


def test_one_failure_among_times_is_told_only_where_it_is_the_newest() -> None:
    once, now = np.ones((1, 12)), np.ones((1, 12))
    once[0, 5] = now[0, 11] = np.nan

    assert judged(history(once)).statuses == []
    assert [change.after for change in judged(history(now)).statuses] == [11]


def test_the_best_level_is_what_a_case_is_held_against() -> None:
    factors = np.repeat([[2.0, 1.0, 3.0, 2.5]], 15, axis=1)

    (changes,) = judged(history(factors)).changes.values()
    worse = slower_than_best(changes)

    assert worse is not None
    assert (worse.largest.before, worse.largest.after) == (29, 30)
    assert worse.ratio.factor == pytest.approx(2.5, rel=0.03)
    assert slower_than_best(changes[:1]) is None
    assert slower_than_best([]) is None


def test_memory_that_moves_with_times_is_no_part_of_what_they_share() -> None:
    factors = np.ones((20, COMMITS))
    factors[:, 30:] = 1.4
    of = history(factors)
    memory = replace(NAMES[0], time="memory")
    mixed = replace(of, names=(memory, *of.names[1:]))

    judged_of = judged(mixed)

    (shared,) = judged_of.shared
    assert (shared.measured, memory in shared.changes) == (19, False)
    assert [change.after for change in judged_of.changes[memory]] == [30]


def test_a_regression_is_put_on_the_largest_step_of_its_chain() -> None:
    factors = np.repeat([[1.0, 1.8, 7.2]], 12, axis=1)

    (changes,) = judged(history(factors)).changes.values()
    worse = slower_than_best(changes)

    assert worse is not None
    assert [change.after for change in worse.chain] == [12, 24]
    assert worse.largest.after == 24
    assert worse.ratio.factor == pytest.approx(7.2, rel=0.03)


@pytest.mark.parametrize("commits", [4, 12, COMMITS])
def test_a_whole_run_that_is_off_is_a_row_and_no_change_of_a_case(commits: int) -> None:
    factors = np.ones((20, commits))
    factors[:18, -1] = 1.4
    factors[3, -1] = 5.0

    of = judged(history(factors))

    (run,) = of.shared
    assert (run.after, run.runs, run.measured) == (commits - 1, 1, 20)
    assert run.ratio.factor == pytest.approx(1.4, rel=0.03)
    assert {name: [c.kind for c in own] for name, own in of.changes.items() if own} == {
        NAMES[3]: ["check"]
    }


def test_two_runs_in_a_row_that_are_off_alike_are_one_row() -> None:
    factors = np.ones((20, 8))
    factors[:, 4:6] = 1.4

    of = judged(history(factors))

    assert [(run.after, run.runs) for run in of.shared] == [(4, 2)]
    assert not any(of.changes.values())


def test_cases_of_one_commit_are_not_judged() -> None:
    assert judged(history(np.ones((20, 1)))).not_judged == {*NAMES}
    assert judged(history(np.ones((20, 5)))).not_judged == frozenset()


def test_a_case_without_a_time_is_neither_judged_nor_waits_for_it() -> None:
    factors = np.ones((20, 1))
    factors[3] = np.nan

    of = judged(history(factors))

    assert of.judged == frozenset()
    assert of.not_judged == {*NAMES} - {NAMES[3]}


@pytest.mark.parametrize("commits", [6, COMMITS])
@pytest.mark.parametrize("size", [1, 7, 19])
def test_verdicts_do_not_depend_on_how_many_cases_are_read_at_a_time(
    commits: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "MAX_TIMES", 12 * COMMITS)  # every second case tells the noise
    factors = np.ones((20, commits))
    factors[:15, 7:50:5] = 1.3
    factors[:16, -2] *= 2
    factors[17, -1] = 5
    of = history(factors)

    in_parts = judge_history(
        lambda: [of.part([*range(20)[start : start + size]]) for start in range(0, 20, size)]
    )

    whole = judged(of)
    assert in_parts == whole
    assert [one.runs for one in whole.shared] == [1]
    assert [change.kind for change in whole.changes[NAMES[17]]] == ["check"]
