"""Why a time changed, on small histories made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from histories import NUMBA, NUMPY, beside_numpy, history_of, snapshot, timed

from gpubench.analysis.causes import ExplainedChange, FactChange, explained_changes
from gpubench.analysis.changes import changes_of
from gpubench.names import Value
from gpubench.results import CaseName

SIX = (1.0,) * 6
Facts = Mapping[str, Value | None]
Concerns = Mapping[str, tuple[str, ...]]


def all_explained(
    times: Mapping[CaseName, Sequence[float]],
    facts: Sequence[Facts] = (),
    device: str = "cpu",
    concerns: Concerns | None = None,
) -> tuple[ExplainedChange, ...]:
    """Changes of a history with these times at its commits."""
    measured = []
    for index in range(len(next(iter(times.values())))):
        commit = snapshot(index, facts=facts[index] if facts else {}, concerns=concerns or {})
        rows = (
            timed(name, values[index], backend=name.implementation, device=device)
            for name, values in times.items()
        )
        measured.append((commit, beside_numpy(rows)))
    history, rows_of = history_of(measured), {one.id: rows for one, rows in measured}
    changes, _ = changes_of(history, {})
    return explained_changes(history, changes, lambda one: rows_of[one.id])


def explained(
    times: Mapping[CaseName, Sequence[float]],
    facts: Sequence[Facts] = (),
    device: str = "cpu",
    concerns: Concerns | None = None,
) -> dict[CaseName, list[ExplainedChange]]:
    """The same by case, oldest first."""
    by_case: dict[CaseName, list[ExplainedChange]] = {name: [] for name in times}
    for item in reversed(all_explained(times, facts, device, concerns)):
        by_case[item.name].append(item)
    return by_case


def updated(**fact: tuple[Value | None, Value | None]) -> list[Facts]:
    """Facts that change at the seventh of twelve commits."""
    old, new = ({name: pair[side] for name, pair in fact.items()} for side in (0, 1))
    return [old] * 6 + [new] * 6


def test_a_step_of_the_kernel_alone_is_the_kernel_s() -> None:
    (found,) = explained({NUMPY: SIX * 2, NUMBA: SIX + (2.0,) * 6})[NUMBA]

    assert (found.cause, found.facts, found.recovered) == ("kernel", None, None)
    assert (found.before.date, found.after.date) == (5.0, 6.0)


def test_a_step_of_the_baseline_names_those_whose_speedup_moved() -> None:
    changes = explained({NUMPY: SIX + (0.5,) * 6, NUMBA: SIX * 2})

    (found,) = changes[NUMPY]
    assert (found.cause, found.dependents) == ("baseline", (NUMBA,))
    assert changes[NUMBA] == []


def test_a_fact_that_changed_with_the_step_makes_it_the_environment_s() -> None:
    (found,) = explained({NUMBA: SIX + (2.0,) * 6}, updated(numba=("0.65", "0.68")))[NUMBA]

    assert found.cause == "environment"
    assert found.facts == (FactChange("numba", "0.65", "0.68"),)


def test_a_fact_that_changed_elsewhere_explains_nothing() -> None:
    (found,) = explained({NUMBA: SIX[:3] + (2.0,) * 9}, updated(numba=("0.65", "0.68")))[NUMBA]

    assert (found.cause, found.facts) == ("kernel", ())


@pytest.mark.parametrize(
    ("name", "device", "fact", "cause"),
    [
        (NUMBA, "cpu", "driver", "kernel"),
        (NUMBA, "cuda:0", "driver", "environment"),
        (NUMBA, "cpu", "numba_cuda", "kernel"),
        (NUMPY, "cpu", "numba", "baseline"),
        (NUMPY, "cpu", "blas_version", "environment"),
        (NUMBA, "cpu", "run", "kernel"),
        (NUMBA, "cpu", "host", "kernel"),
        (NUMBA, "cpu", "copy_bytes_per_second", "kernel"),
    ],
)
def test_only_facts_that_a_case_depends_on_count(
    name: CaseName, device: str, fact: str, cause: str
) -> None:
    (found,) = explained({name: SIX + (2.0,) * 6}, updated(**{fact: ("1", "2")}), device)[name]

    assert found.cause == cause


@pytest.mark.parametrize(
    ("name", "fact", "cause"),
    [
        (NUMBA, "llvm", "environment"),
        (NUMPY, "llvm", "baseline"),
        (NUMPY, "python", "environment"),
    ],
)
def test_a_record_says_which_facts_concern_which_backend(
    name: CaseName, fact: str, cause: str
) -> None:
    concerns = {"numba": ("llvm", "tbb"), "other": ("opencl",)}
    facts = updated(**{fact: ("1", "2")})

    (found,) = explained({name: SIX + (2.0,) * 6}, facts, "cpu", concerns)[name]

    assert found.cause == cause


def test_a_fact_recorded_before_and_after_a_gap_counts_within_it() -> None:
    facts = updated(numba=("0.65", "0.68"))
    facts[5] = facts[6] = {}

    (found,) = explained({NUMBA: SIX + (2.0,) * 6}, facts)[NUMBA]

    assert found.cause == "environment"


def test_kernel_and_baseline_moving_alike_share_the_cause() -> None:
    found = explained({NUMPY: SIX + (2.0,) * 6, NUMBA: SIX + (2.0,) * 6})

    assert [item.cause for items in found.values() for item in items] == ["shared", "shared"]


def test_a_baseline_that_moved_otherwise_is_said_beside() -> None:
    (found,) = explained({NUMPY: SIX + (0.5,) * 6, NUMBA: SIX + (2.0,) * 6})[NUMBA]

    assert found.cause == "kernel"
    assert found.baseline_change is not None
    assert found.baseline_change.ratio.value == pytest.approx(2.0)


def test_a_step_that_was_undone_says_where_it_recovered() -> None:
    slower, faster = explained({NUMBA: SIX + (2.0,) * 6 + SIX})[NUMBA]

    assert slower.recovered == faster.after
    assert faster.recovered is None


def test_half_a_recovery_is_none() -> None:
    slower, _ = explained({NUMBA: SIX + (2.0,) * 6 + (1.5,) * 6})[NUMBA]

    assert slower.recovered is None


def test_the_newest_change_comes_first() -> None:
    changes = all_explained({NUMBA: SIX + (2.0,) * 6 + (4.0,) * 6})

    assert [item.after.date for item in changes] == [12.0, 6.0]


def test_a_gap_at_either_end_leaves_the_facts_unknown() -> None:
    facts: list[Facts] = [{}] * 6 + [{"numba": "0.68"}] * 6

    (found,) = explained({NUMBA: SIX + (2.0,) * 6}, facts)[NUMBA]

    assert (found.cause, found.facts) == ("kernel", None)


def test_speedups_before_and_after_stand_beside_a_change() -> None:
    (found,) = explained({NUMPY: SIX * 2, NUMBA: SIX + (2.0,) * 6})[NUMBA]

    assert [ratio and ratio.value for ratio in found.speedups] == [1.0, 0.5]
    assert found.baseline == NUMPY
