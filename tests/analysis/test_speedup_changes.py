"""Where a case was measured in turn with its baseline, the series of the ratio decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from histories import NUMBA, NUMPY, beside_numpy, history_of, snapshot, timed

from gpubench.analysis import speedup_changes
from gpubench.analysis.causes import explained_changes
from gpubench.analysis.changes import Change
from gpubench.analysis.shared import JudgedHistory, judge_history
from gpubench.results import CaseHistories, Ratio

COMMITS = 60


def history(
    *,
    kernel: Sequence[float],
    baseline: Sequence[float],
    process: float = 0.05,
    machine: Sequence[float] | None = None,
    paired: Sequence[bool] | None = None,
) -> CaseHistories:
    """A case and its baseline that take these seconds, with noise of each process.

    ``machine`` slows both down; where ``paired``, the speedup knows nothing of either noise.
    """
    chance, commits = np.random.default_rng(5), len(kernel)
    slow = np.ones(commits) if machine is None else np.asarray(machine)
    noise = np.exp(chance.normal(0, process, (2, commits))) * slow
    ratios = np.asarray(baseline) / kernel * np.exp(chance.normal(0, 0.005, commits))
    measured = []
    for place in range(commits):
        rows = beside_numpy(
            [
                timed(NUMPY, float(baseline[place] * noise[0, place])),
                timed(NUMBA, float(kernel[place] * noise[1, place])),
            ]
        )
        if paired is None or paired[place]:
            value = float(ratios[place])
            ratio = Ratio(value, value * 0.99, value * 1.01)
            rows[NUMBA] = replace(rows[NUMBA], speedup=ratio, pairs=20)
        measured.append((snapshot(place), rows))
    return history_of(measured)


def judged(of: CaseHistories) -> JudgedHistory:
    return judge_history(lambda: [of])


def found(of: CaseHistories) -> list[tuple[int, str, bool]]:
    return [(one.after, one.basis, one.slower) for one in judged(of).changes[NUMBA]]


def levels(*lengths: tuple[int, float]) -> list[float]:
    return [level for count, level in lengths for _ in range(count)]


STEADY = [1.0] * COMMITS
STEP = levels((30, 1.0), (30, 1.12))
DOUBLE = levels((30, 1.0), (30, 2.0))


def test_two_speedups_without_company_are_not_judged() -> None:
    of = history(kernel=[1.0, 2.0], baseline=[1.0, 1.0])

    assert judged(of).not_judged == {NUMPY, NUMBA}


def test_a_step_that_times_alone_do_not_show_is_found_by_the_speedup() -> None:
    noisy = {"process": 0.25, "kernel": STEP, "baseline": STEADY}

    assert found(history(**noisy, paired=[False] * COMMITS)) == []
    assert found(history(**noisy)) == [(30, "speedup", True)]


def test_levels_are_seconds_and_the_factor_is_that_of_the_speedup() -> None:
    (change,) = judged(history(kernel=STEP, baseline=STEADY)).changes[NUMBA]

    assert change.ratio.factor == pytest.approx(1.12, rel=0.01)
    assert change.new / change.old == pytest.approx(1.12, rel=0.01)
    assert change.old == pytest.approx(1, rel=0.05)


def test_without_pairs_times_alone_decide_and_say_so() -> None:
    of = history(kernel=DOUBLE, baseline=STEADY, paired=[False] * COMMITS)

    assert found(of) == [(30, "time", True)]


def test_a_slower_machine_is_no_change_of_the_kernel_where_its_speedup_stays() -> None:
    # The baseline's own noise hides it, so that times alone call it the kernel's.
    of = history(kernel=STEADY, baseline=STEADY, machine=STEP, process=0.01)
    hidden = np.exp(np.random.default_rng(3).normal(0, 0.4, COMMITS))
    of.times[:, of.rows_of[NUMPY]] *= hidden

    assert found(of) == []


@pytest.mark.parametrize("process", [0.01, 0.05])
def test_a_baseline_that_changed_itself_is_no_change_of_the_kernel(process: float) -> None:
    of = judged(history(kernel=STEADY, baseline=DOUBLE, process=process))

    assert of.changes[NUMBA] == ()
    assert [one.after for one in of.changes[NUMPY]] == [30]


def test_a_baseline_that_changed_at_the_same_commit_hides_no_change_of_the_kernel() -> None:
    assert found(history(kernel=DOUBLE, baseline=DOUBLE)) == [(30, "time", True)]


def test_a_change_of_the_kernel_beside_another_one_of_the_baseline_is_its_speedups() -> None:
    of = history(kernel=levels((45, 1.0), (15, 1.2)), baseline=DOUBLE)

    assert found(of) == [(45, "speedup", True)]


def test_pairs_that_began_later_leave_older_changes_to_the_times() -> None:
    kernel = levels((20, 1.0), (25, 2.0), (15, 2.3))
    of = history(kernel=kernel, baseline=STEADY, paired=[place >= 30 for place in range(COMMITS)])

    assert found(of) == [(20, "time", True), (45, "speedup", True)]


def test_a_kernel_that_became_too_slow_for_pairs_is_found_by_its_times() -> None:
    kernel = levels((58, 1.0), (2, 90.0))
    of = history(kernel=kernel, baseline=STEADY, paired=[place < 58 for place in range(COMMITS)])

    assert found(of) == [(58, "time", True)]


def test_speedups_of_a_short_history_are_held_against_each_other() -> None:
    of = history(kernel=[1, 1, 1, 1.3, 1.3], baseline=[1.0] * 5, process=0.0)

    assert found(of) == [(3, "speedup", True)]


def test_a_speedup_that_moved_alone_may_be_of_the_baseline() -> None:
    # Between processes the baseline scatters too much for a change of 12 % to show in its times.
    of = history(kernel=STEADY, baseline=STEP, process=0.0)
    of.times[:, of.rows_of[NUMPY]] *= np.exp(np.random.default_rng(3).normal(0, 0.4, COMMITS))

    changes = judged(of).changes
    rows = {NUMPY: timed(NUMPY, 1, is_baseline=True), NUMBA: timed(NUMBA, 1)}
    (item,) = explained_changes(of, changes, lambda _, names: rows)

    assert (item.name, item.cause, item.change.slower) == (NUMBA, "either", False)


def test_the_baseline_is_known_where_it_stands_in_another_part() -> None:
    of = history(kernel=STEADY, baseline=DOUBLE)
    parts = [of.part([row]) for row in range(2)]

    assert judge_history(lambda: parts, of).changes[NUMBA] == ()


def test_a_threshold_of_the_project_counts_for_speedups_too() -> None:
    of = history(kernel=levels((30, 1.0), (30, 1.03)), baseline=STEADY)

    def changes(threshold: float | None) -> Sequence[Change]:
        return judge_history(lambda: [of], threshold=lambda _: threshold).changes[NUMBA]

    assert changes(None) == ()
    assert [one.after for one in changes(1.02)] == [30]
    assert changes(1.1) == ()


@pytest.mark.parametrize(("factor", "is_its_own"), [(1.2, False), (1.3, True)])
def test_beside_a_change_of_all_a_case_changes_by_what_no_machine_makes(
    factor: float, is_its_own: bool
) -> None:
    def change(by: float) -> Change:
        return Change("step", 29, 30, 1.0, by, Ratio(1 / by, 0.99 / by, 1.01 / by))

    timed = np.arange(COMMITS)

    of_machine = speedup_changes._is_of_the_machine(change(factor), [change(2.0)], timed)

    assert of_machine is not is_its_own
