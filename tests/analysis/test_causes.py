"""Why a time changed, on small histories made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from histories import NUMBA, NUMPY, beside_numpy, history_of, snapshot, timed

from gpubench.analysis.causes import ExplainedChange, FactChange, explained_changes
from gpubench.analysis.changes import changes_of
from gpubench.names import Value
from gpubench.results import CaseName

SIX = (1.0,) * 6
CUDA = replace(NUMBA, implementation="numba_cuda")
Facts = Mapping[str, Value | None]
Concerns = Mapping[str, tuple[str, ...]]


def all_explained(
    times: Mapping[CaseName, Sequence[float]],
    facts: Sequence[Facts] = (),
    concerns: Concerns | None = None,
    conditions: Mapping[str, Value] | None = None,
) -> tuple[ExplainedChange, ...]:
    """Changes of a history with these times at its commits."""
    measured = []
    for index in range(len(next(iter(times.values())))):
        commit = snapshot(index, facts=facts[index] if facts else {}, concerns=concerns or {})
        rows = (
            timed(name, values[index], backend=name.implementation, conditions=conditions or {})
            for name, values in times.items()
        )
        measured.append((commit, beside_numpy(rows)))
    history, rows_of = history_of(measured), {one.id: rows for one, rows in measured}
    changes = changes_of(history)
    return explained_changes(history, changes, lambda one, names: rows_of[one.id])


def explained(
    times: Mapping[CaseName, Sequence[float]],
    facts: Sequence[Facts] = (),
    concerns: Concerns | None = None,
    conditions: Mapping[str, Value] | None = None,
) -> dict[CaseName, list[ExplainedChange]]:
    """The same by case, oldest first."""
    by_case: dict[CaseName, list[ExplainedChange]] = {name: [] for name in times}
    for item in reversed(all_explained(times, facts, concerns, conditions)):
        by_case[item.name].append(item)
    return by_case


def updated(**fact: tuple[Value | None, Value | None]) -> list[Facts]:
    """Facts that change at the seventh of twelve commits."""
    old, new = ({name: pair[side] for name, pair in fact.items()} for side in (0, 1))
    return [old] * 6 + [new] * 6


def test_a_step_of_the_kernel_alone_is_the_kernel_s() -> None:
    (found,) = explained({NUMPY: SIX * 2, NUMBA: SIX + (2.0,) * 6})[NUMBA]

    assert (found.cause, found.facts, found.recovered) == ("kernel", None, None)
    assert (found.change.before, found.change.after) == (5, 6)


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
    ("name", "fact", "cause"),
    [
        (NUMBA, "driver", "kernel"),
        (CUDA, "driver", "environment"),
        (NUMBA, "numba_cuda", "kernel"),
        (CUDA, "numba", "environment"),
        (NUMPY, "numba", "baseline"),
        (NUMBA, "run", "kernel"),
        (NUMBA, "host", "kernel"),
        (NUMBA, "copy_bytes_per_second", "kernel"),
    ],
)
def test_only_facts_that_a_case_depends_on_count(name: CaseName, fact: str, cause: str) -> None:
    concerns = {"numba": ("numba",), "numba_cuda": ("numba", "numba_cuda", "driver")}
    facts = updated(**{fact: ("1", "2")})

    (found,) = explained({name: SIX + (2.0,) * 6}, facts, concerns)[name]

    assert found.cause == cause


@pytest.mark.parametrize(
    ("fact", "loaded", "cause"),
    [
        ("numpy_blas", ("numpy_blas",), "environment"),
        ("scipy_blas", ("numpy_blas",), "kernel"),
        ("scipy_blas", ("numpy_blas", "scipy_blas"), "environment"),
        ("scipy_blas_threads", ("numpy_blas_threads", "scipy_blas_threads"), "environment"),
        ("scipy_blas", (), "kernel"),
    ],
)
def test_a_blas_is_a_cause_for_cases_that_had_loaded_it(
    fact: str, loaded: Sequence[str], cause: str
) -> None:
    conditions = dict.fromkeys(loaded, "openblas 0.3.31")
    facts = updated(**{fact: ("openblas 0.3.30", "openblas 0.3.31")})

    (found,) = explained({NUMBA: SIX + (2.0,) * 6}, facts, conditions=conditions)[NUMBA]

    assert found.cause == cause


def test_a_blas_that_only_some_runs_had_loaded_did_not_change() -> None:
    """SciPy's is loaded where the first case of a run happens to need it."""
    both = {"numpy_blas": "openblas 0.3.31", "scipy_blas": "openblas 0.3.30"}
    facts: list[Facts] = [both] * 6 + [{"numpy_blas": "openblas 0.3.31"}] * 6

    (found,) = explained({NUMBA: SIX + (2.0,) * 6}, facts, conditions=both)[NUMBA]

    assert (found.cause, found.facts) == ("kernel", ())


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

    (found,) = explained({name: SIX + (2.0,) * 6}, facts, concerns)[name]

    assert found.cause == cause


def test_a_fact_of_which_no_record_says_whom_it_concerns_concerns_all() -> None:
    (found,) = explained({NUMPY: SIX + (2.0,) * 6}, updated(numba=("1", "2")))[NUMPY]

    assert found.cause == "environment"


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

    assert slower.recovered is not None
    assert slower.recovered.date == faster.change.after == 12
    assert faster.recovered is None


def test_half_a_recovery_is_none() -> None:
    slower, _ = explained({NUMBA: SIX + (2.0,) * 6 + (1.5,) * 6})[NUMBA]

    assert slower.recovered is None


def test_the_newest_change_comes_first() -> None:
    changes = all_explained({NUMBA: SIX + (2.0,) * 6 + (4.0,) * 6})

    assert [item.change.after for item in changes] == [12, 6]


def test_a_gap_at_either_end_leaves_the_facts_unknown() -> None:
    facts: list[Facts] = [{}] * 6 + [{"numba": "0.68"}] * 6

    (found,) = explained({NUMBA: SIX + (2.0,) * 6}, facts)[NUMBA]

    assert (found.cause, found.facts) == ("kernel", None)


def test_speedups_before_and_after_stand_beside_a_change() -> None:
    (found,) = explained({NUMPY: SIX * 2, NUMBA: SIX + (2.0,) * 6})[NUMBA]

    assert [ratio and ratio.value for ratio in found.speedups] == [1.0, 0.5]
    assert found.baseline == NUMPY
