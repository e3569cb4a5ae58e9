"""Two snapshots side by side: verdicts by the ratio's interval, and what cannot be compared."""

from __future__ import annotations

import math

import pytest

from gpubench.analysis.comparison import Comparison, Difference, compare_snapshots, verdict_of
from gpubench.analysis.speedup import Speedup
from gpubench.record import CaseRecord
from gpubench.results import CaseName, Outcome, Snapshot, Status, Timing

NUMPY = CaseName("add", "add", "numpy", "kernel", "n=4")
NUMBA = CaseName("add", "add", "numba", "kernel", "n=4")


def timed(
    name: CaseName, median: float, width: float = 0.01, version: str | None = "v1"
) -> Outcome:
    low, high = median * (1 - width), median * (1 + width)
    return Outcome(name, "ok", timing=Timing(median, low, high, version=version))


def untimed(name: CaseName, status: Status, reason: str = "because") -> Outcome:
    return Outcome(name, status, reason)


def snapshot(*outcomes: Outcome, superseded: tuple[str, ...] = (), **facts: str) -> Snapshot:
    named = {outcome.name: outcome for outcome in outcomes}
    return Snapshot("runner", "env", "a" * 40, 1.0, named, facts, superseded=superseded)


def only(comparison: Comparison, name: CaseName = NUMBA) -> Difference:
    (found,) = [item for item in comparison.differences if item.name == name]
    return found


@pytest.mark.parametrize(
    ("low", "value", "high", "verdict"),
    [
        (1.2, 1.3, 1.4, "faster"),
        (0.7, 0.8, 0.9, "slower"),
        (0.98, 1.0, 1.02, "same"),
        (1.01, 1.03, 1.045, "same"),
        (1 / 1.05, 1.0, 1.05, "same"),
        (0.9, 1.0, 1.1, "unclear"),
        (0.99, 1.1, 1.2, "unclear"),
        (1.01, 1.04, 1.08, "unclear"),
        (0.92, 0.96, 0.99, "unclear"),
        (0.0, 2.0, math.inf, "unclear"),
    ],
)
def test_the_interval_of_the_ratio_gives_the_verdict(
    low: float, value: float, high: float, verdict: str
) -> None:
    assert verdict_of(Speedup(value, low, high)) == verdict


def test_the_implementation_s_own_time_is_compared_and_its_baseline_s_change_is_told() -> None:
    old = snapshot(timed(NUMPY, 4.0), timed(NUMBA, 1.0))
    new = snapshot(timed(NUMPY, 2.0), timed(NUMBA, 1.0))

    found = only(compare_snapshots(old, new))

    assert found.verdict == "same"
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(1.0)
    assert found.baseline is not None
    assert found.baseline.value == pytest.approx(2.0)


def test_what_differs_comes_first_the_largest_before_the_others() -> None:
    names = [CaseName("add", "add", "numba", "kernel", f"n={n}") for n in range(1, 7)]
    old = snapshot(*(timed(name, 1.0) for name in names))
    new = snapshot(
        timed(names[0], 1.0),
        timed(names[1], 1.5),
        timed(names[2], 0.5),
        timed(names[3], 3.0),
        untimed(names[4], "wrong"),
        timed(names[5], 1.0, width=0.3),
    )

    found = compare_snapshots(old, new)

    verdicts = [(item.name.case, item.verdict) for item in found.differences]
    assert verdicts == [
        ("n=4", "slower"),
        ("n=2", "slower"),
        ("n=5", "failed"),
        ("n=3", "faster"),
        ("n=6", "unclear"),
        ("n=1", "same"),
    ]
    assert found.counts == {"slower": 2, "failed": 1, "faster": 1, "unclear": 1, "same": 1}
    assert [item.name.case for item in found.differing] == ["n=4", "n=2", "n=5", "n=3"]


@pytest.mark.parametrize("status", ["wrong", "failed", "timed_out", "killed"])
def test_a_case_that_lost_its_time_has_failed_with_its_reason(status: Status) -> None:
    found = only(
        compare_snapshots(snapshot(timed(NUMBA, 1.0)), snapshot(untimed(NUMBA, status, "overflow")))
    )

    assert (found.verdict, found.note, found.ratio) == ("failed", "overflow", None)


def test_a_case_that_failed_before_and_has_a_time_again_is_mended() -> None:
    found = only(
        compare_snapshots(snapshot(untimed(NUMBA, "wrong", "off")), snapshot(timed(NUMBA, 1.0)))
    )

    assert (found.verdict, found.note) == ("mended", "wrong before: off")


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        ("skipped", "skipped", "skipped on both sides"),
        ("failed", "failed", "failed on both sides"),
        ("wrong", "failed", "wrong before, failed after"),
        ("verified", "verified", "verified on both sides"),
        ("wrong", "skipped", "wrong before, skipped after"),
    ],
)
def test_without_times_nothing_is_compared(old: Status, new: Status, note: str) -> None:
    found = only(compare_snapshots(snapshot(untimed(NUMBA, old)), snapshot(untimed(NUMBA, new))))

    assert (found.verdict, found.note, found.ratio) == ("not compared", note, None)


def test_a_wrong_case_shows_no_ratio_though_its_record_holds_a_time() -> None:
    record = CaseRecord("suites.add__numba.time_kernel", "n=4", "wrong", "2026-01-01")
    wrong = Outcome(NUMBA, "wrong", "off", record=record)

    assert only(compare_snapshots(snapshot(timed(NUMBA, 1.0)), snapshot(wrong))).ratio is None


def test_times_of_two_versions_are_not_comparable() -> None:
    old, new = snapshot(timed(NUMBA, 1.0)), snapshot(timed(NUMBA, 3.0, version="v2"))

    found = only(compare_snapshots(old, new))

    assert (found.verdict, found.ratio) == ("not comparable", None)
    assert found.note == "what it measures has changed between the two"


def test_a_version_that_was_left_out_on_one_side_is_not_comparable_there() -> None:
    old = snapshot(superseded=(NUMBA.benchmark.asv_name,))

    found = compare_snapshots(old, snapshot(timed(NUMBA, 1.0)))

    assert only(found).verdict == "not comparable"
    assert (only(found).old, found.only_new) == (None, ())


def test_a_missing_version_is_comparable_with_any() -> None:
    old, new = snapshot(timed(NUMBA, 1.0, version=None)), snapshot(timed(NUMBA, 1.0))

    assert only(compare_snapshots(old, new)).verdict == "same"


def test_too_few_samples_are_unclear_and_say_so() -> None:
    sparse = Outcome(NUMBA, "ok", timing=Timing(1.0, -math.inf, math.inf))

    found = only(compare_snapshots(snapshot(timed(NUMBA, 9.0)), snapshot(sparse)))

    assert (found.verdict, found.note) == ("unclear", "too few samples for an interval")


def test_cases_of_one_side_only_are_listed() -> None:
    found = compare_snapshots(snapshot(timed(NUMPY, 1.0)), snapshot(timed(NUMBA, 1.0)))

    assert (found.only_old, found.only_new, found.differences) == ((NUMPY,), (NUMBA,), ())


def test_facts_that_differ_are_told_and_passing_ones_are_not() -> None:
    old = snapshot(numba="0.65.0", driver="580", run="1", host="a")
    new = snapshot(numba="0.68.1", driver="580", run="2", host="b")

    assert [(f.name, f.old, f.new) for f in compare_snapshots(old, new).facts] == [
        ("numba", "0.65.0", "0.68.1")
    ]
