"""Why a time changed, on small histories made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from gpubench.analysis.causes import Explained, explained_changes
from gpubench.analysis.environment import FactChange
from gpubench.analysis.history import by_setup
from gpubench.names import Value
from gpubench.record import CaseRecord
from gpubench.results import CaseName, Commit, Outcome, Results, Snapshot, Timing

NUMPY = CaseName("add", "add", "numpy", "kernel", "n=4")
NUMBA = CaseName("add", "add", "numba", "kernel", "n=4")
SIX = (1.0,) * 6
Facts = Mapping[str, Value | None]


def explained(
    times: Mapping[CaseName, Sequence[float]], facts: Sequence[Facts] = (), device: str = "cpu"
) -> dict[CaseName, list[Explained]]:
    """Changes of each case, oldest first, of a history with these times at its commits."""
    length = len(next(iter(times.values())))
    commits = tuple(Commit(f"{index:040x}", float(index)) for index in range(length))
    snapshots = []
    for index, commit in enumerate(commits):
        outcomes = {name: timed(name, values[index], device) for name, values in times.items()}
        told = facts[index] if facts else {}
        snapshots.append(Snapshot("runner", "env", commit.hash, commit.date, outcomes, told))
    (history,) = by_setup(Results(tuple(snapshots), commits))
    found: dict[CaseName, list[Explained]] = {name: [] for name in times}
    for item in reversed(explained_changes(history)):
        found[item.name].append(item)
    return found


def timed(name: CaseName, median: float, device: str) -> Outcome:
    record = CaseRecord("", "", "ok", "", backend=name.implementation, device=device)
    return Outcome(name, "ok", timing=Timing(median, median * 0.99, median * 1.01), record=record)


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


def test_a_fact_told_before_and_after_a_gap_counts_within_it() -> None:
    told = updated(numba=("0.65", "0.68"))
    told[5] = told[6] = {}

    (found,) = explained({NUMBA: SIX + (2.0,) * 6}, told)[NUMBA]

    assert found.cause == "environment"


def test_kernel_and_baseline_moving_alike_share_the_cause() -> None:
    found = explained({NUMPY: SIX + (2.0,) * 6, NUMBA: SIX + (2.0,) * 6})

    assert [item.cause for items in found.values() for item in items] == ["shared", "shared"]


def test_a_baseline_that_moved_otherwise_is_told_beside() -> None:
    (found,) = explained({NUMPY: SIX + (0.5,) * 6, NUMBA: SIX + (2.0,) * 6})[NUMBA]

    assert found.cause == "kernel"
    assert found.baseline_change is not None
    assert found.baseline_change.factor == pytest.approx(2.0)


def test_a_step_that_was_undone_says_where_it_recovered() -> None:
    slower, faster = explained({NUMBA: SIX + (2.0,) * 6 + SIX})[NUMBA]

    assert slower.recovered == faster.after
    assert faster.recovered is None


def test_half_a_recovery_is_none() -> None:
    slower, _ = explained({NUMBA: SIX + (2.0,) * 6 + (1.5,) * 6})[NUMBA]

    assert slower.recovered is None


def test_the_newest_change_comes_first() -> None:
    commits = tuple(Commit(f"{index:040x}", float(index)) for index in range(18))
    times = SIX + (2.0,) * 6 + (4.0,) * 6
    snapshots = tuple(
        Snapshot("m", "e", c.hash, c.date, {NUMBA: timed(NUMBA, t, "cpu")})
        for c, t in zip(commits, times, strict=True)
    )
    (history,) = by_setup(Results(snapshots, commits))

    assert [item.after.date for item in explained_changes(history)] == [12.0, 6.0]
