"""Two snapshots side by side: verdicts by the ratio's interval, and what cannot be compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from histories import NUMBA, NUMPY, SETUP, beside_numpy, snapshot, timed
from hypothesis import given
from hypothesis import strategies as st

from gpubench.analysis.causes import changed_facts
from gpubench.analysis.comparison import (
    DISTURBED,
    NO_RUNS,
    NO_SPEEDUP,
    OTHER_BASELINE,
    OTHER_DEVICE,
    OTHER_THREADS,
    PAIRED_NOTE,
    UNTIMED,
    EarlierRuns,
    compare_rows,
    time_ratio,
)
from gpubench.analysis.differences import Difference, SnapshotComparison
from gpubench.names import Value
from gpubench.results import CaseName, Ratio, Row, Setup
from gpubench.results.ratio import quotient
from gpubench.statuses import STATUSES, Status


class _Every(dict[CaseName, tuple[float, int]]):
    """The same for whatever case."""

    def get(self, name: CaseName, default: Any = None) -> Any:
        return (40 * 0.001**2, 40)


QUIET = EarlierRuns(_Every(), _Every())
"""Processes of one run differ by 0.1 %, and there were ten runs of five processes."""


def spread(middle: float, count: int) -> tuple[float, ...]:
    """Return values of so many processes, which differ by 0.1 %."""
    return tuple(middle * (1 + 0.001 * (place - (count - 1) / 2)) for place in range(count))


def untimed(name: CaseName, status: Status, reason: str = "because") -> Row:
    return Row(name, status, reason)


def versioned(
    name: CaseName,
    seconds: float,
    width: float = 0.01,
    version: str | None = "v1",
    processes: int = 4,
) -> Row:
    row = timed(name, seconds, width, version=version)
    return replace(row, processes=spread(seconds, processes))


def compared(
    old: Row | tuple[Row, ...],
    new: Row | tuple[Row, ...],
    left_out: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    facts: tuple[Mapping[str, Value], Mapping[str, Value]] = ({}, {}),
    setups: tuple[Setup, Setup] = (SETUP, SETUP),
    factor: float = 1.0,
) -> SnapshotComparison:
    """One snapshot against another."""
    before, after = (
        beside_numpy((side,) if isinstance(side, Row) else side) for side in (old, new)
    )
    one, other = (snapshot(i, setups[i], superseded=left_out[i], facts=facts[i]) for i in (0, 1))
    return compare_rows(one, other, before, after, factor, QUIET)


def only(comparison: SnapshotComparison, name: CaseName = NUMBA) -> Difference:
    (found,) = [item for item in comparison.differences if item.name == name]
    return found


def test_the_implementation_s_own_time_is_compared_and_its_baseline_s_change_is_said() -> None:
    found = only(
        compared(
            (versioned(NUMPY, 4.0), versioned(NUMBA, 1.0)),
            (versioned(NUMPY, 2.0), versioned(NUMBA, 1.0)),
        )
    )

    assert found.verdict == "same"
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(1.0)
    assert found.baseline is not None
    assert found.baseline.value == pytest.approx(2.0)


def in_turn(seconds: float, speedup: float) -> Row:
    """Numba by so many pairs with NumPy; the interval of the speedup is 1 %."""
    ratio = Ratio(speedup, speedup * 0.995, speedup * 1.005, least=1.0)
    row = versioned(NUMBA, seconds)
    return replace(row, speedup=ratio, pairs=60, process_speedups=spread(speedup, 4))


def compared_in_turn(numpy: float, new: Row, numba: str = "0.68") -> SnapshotComparison:
    """Against a commit at which NumPy took four times as long as Numba."""
    sides = []
    for baseline, row in ((4.0, in_turn(1.0, 4.0)), (numpy, new)):
        rows = beside_numpy((versioned(NUMPY, baseline), row))
        sides.append({**rows, NUMBA: replace(rows[NUMBA], speedup=row.speedup)})
    one, other = (snapshot(i, facts={"numba": v}) for i, v in enumerate(("0.68", numba)))
    return compare_rows(one, other, sides[0], sides[1], earlier=QUIET)


@pytest.mark.parametrize(
    ("seconds", "speedup", "verdict"),
    [
        pytest.param(1.08, 4.0, "same", id="a slow moment"),
        pytest.param(1.0, 3.84, "slower", id="a change that a fast moment hides"),
        pytest.param(1.0, 3.98, "same", id="half a percent"),
    ],
)
def test_what_was_measured_in_turn_is_compared_by_its_speedups(
    seconds: float, speedup: float, verdict: str
) -> None:
    found = only(compared_in_turn(4.0, in_turn(seconds, speedup)))

    assert found.verdict == verdict
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(speedup / 4.0)
    assert found.note == (PAIRED_NOTE if verdict == "slower" else "")


def test_where_the_baseline_changed_too_the_own_times_are_compared() -> None:
    found = only(compared_in_turn(2.0, in_turn(1.0, 2.0)))

    assert (found.verdict, found.note) == ("same", "")
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(1.0)


@pytest.mark.parametrize(("baseline", "by_speedup"), [(4.6, True), (5.0, False)])
def test_a_baseline_that_a_slow_moment_met_is_no_baseline_that_changed(
    baseline: float, by_speedup: bool
) -> None:
    """15 % is what medians over memory scatter by."""
    found = only(compared_in_turn(baseline, in_turn(1.0, 3.8)))

    assert (found.note == PAIRED_NOTE) is by_speedup
    assert (found.verdict == "slower") is by_speedup


def test_with_other_software_the_own_times_are_compared() -> None:
    found = only(compared_in_turn(4.0, in_turn(1.0, 3.8), numba="0.69"))

    assert found.ratio is not None
    assert (found.verdict, found.ratio.value) == ("same", pytest.approx(1.0))


def cases_that_changed(
    *factors: float, processes: int = 4, earlier: EarlierRuns = QUIET
) -> SnapshotComparison:
    """As many cases on both sides, whose times changed by these factors."""
    names = [CaseName("add", "add", "numba", "kernel", f"n={n}") for n in range(len(factors))]
    sides = [
        {
            name: versioned(name, seconds, processes=processes)
            for name, seconds in zip(names, of_side, strict=True)
        }
        for of_side in ([1.0] * len(factors), factors)
    ]
    return compare_rows(snapshot(0), snapshot(1), sides[0], sides[1], earlier=earlier)


def test_where_nothing_is_known_a_change_has_to_exceed_what_other_machines_showed() -> None:
    found = cases_that_changed(1.03, 20.0, earlier=NO_RUNS)

    assert found.counts == {"slower": 1, "unclear": 1}
    assert [item.name.case for item in found.differing] == ["n=1"]


def test_what_a_verdict_rests_on_is_said() -> None:
    times = cases_that_changed(1.3).differences[0]
    pairs = only(compared_in_turn(4.0, in_turn(1.0, 2.0)))

    assert (times.rests_on, pairs.rests_on) == ("between runs", "same run")


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_one_process_on_a_side_gives_a_suspect_and_more_a_verdict(processes: int) -> None:
    found = cases_that_changed(3.0, processes=processes).differences[0]

    assert found.verdict == ("suspect" if processes == 1 else "slower")
    assert found.is_sure is (processes > 1)
    assert found.processes == (processes, processes)
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(1 / 3, rel=0.01)
    assert found.ratio.low < found.ratio.value < found.ratio.high


def test_an_unclear_case_says_what_would_have_shown() -> None:
    few, many = (
        cases_that_changed(1.02, processes=count, earlier=NO_RUNS).differences[0]
        for count in (2, 4)
    )

    assert few.verdict == many.verdict == "unclear"
    assert few.detectable is not None and many.detectable is not None
    assert 1.02 < many.detectable < few.detectable < 3


def test_a_change_of_the_code_does_not_widen_what_is_known_of_a_case() -> None:
    """Its scatter is that within each side."""
    small, large = (cases_that_changed(factor).differences[0].ratio for factor in (1.1, 30.0))

    assert small is not None and large is not None
    assert math.log(small.high / small.low) == pytest.approx(math.log(large.high / large.low))


def test_what_most_cases_of_a_kind_share_is_taken_out_of_all() -> None:
    found = cases_that_changed(*[1.2] * 12, 1.0001)

    (shared,) = found.shared
    assert shared.cases == 13
    assert shared.log == pytest.approx(math.log(1.2), abs=0.01)
    assert found.counts == {"faster": 1, "same": 12}
    assert found.differing[0].ratio is not None
    assert found.differing[0].ratio.value == pytest.approx(1.2, rel=0.01)


def test_half_of_all_cases_may_change_without_being_taken_for_the_machine() -> None:
    found = cases_that_changed(*[1.0001] * 10, *[1.5] * 10)

    assert not found.shared
    assert found.counts["slower"] == 10
    assert "faster" not in found.counts


def test_a_machine_that_is_much_slower_is_no_change_of_its_cases() -> None:
    """Nothing is sure then, and a case that stayed as it was is not called faster."""
    found = cases_that_changed(*[1.38] * 12, 1.0001, 5.0)

    assert [one.is_large for one in found.shared] == [True]
    assert [(one.verdict, one.name.case) for one in found.differing] == [("slower", "n=13")]
    assert found.sure == {}


def test_a_measurement_that_both_sides_have_tells_nothing_of_what_they_share() -> None:
    found = cases_that_changed(*[1.0] * 12, 1.5)

    assert not found.shared
    assert found.counts == {"slower": 1, "same": 12}


def test_a_disturbed_time_is_not_compared() -> None:
    lost = replace(versioned(NUMBA, 2.0), low=None, high=None, disturbed=0.9)

    found = only(compared(versioned(NUMBA, 1.0), lost))

    assert (found.verdict, found.note) == ("unclear", DISTURBED)


def test_disturbed_pairs_are_not_compared_either() -> None:
    lost = replace(in_turn(1.1, 2.0), low=None, high=None, disturbed=0.9)

    found = only(compared_in_turn(4.0, lost))

    assert (found.verdict, found.note) == ("unclear", DISTURBED)


def test_what_differs_comes_first_the_largest_before_the_others() -> None:
    names = [CaseName("add", "add", "numba", "kernel", f"n={n}") for n in range(1, 7)]

    found = compared(
        tuple(versioned(name, 1.0) for name in names),
        (
            versioned(names[0], 1.0),
            versioned(names[1], 1.5),
            versioned(names[2], 0.5),
            versioned(names[3], 3.0),
            untimed(names[4], "wrong"),
            versioned(names[5], 1.0, width=0.3),
        ),
    )

    verdicts = [(item.name.case, item.verdict) for item in found.differences]
    assert verdicts == [
        ("n=4", "slower"),
        ("n=2", "slower"),
        ("n=5", "failed"),
        ("n=3", "faster"),
        ("n=1", "same"),
        ("n=6", "same"),
    ]
    assert found.counts == {"slower": 2, "failed": 1, "faster": 1, "same": 2}
    assert [item.name.case for item in found.differing] == ["n=4", "n=2", "n=5", "n=3"]


def test_differences_of_one_size_come_in_the_natural_order_of_their_names() -> None:
    names = [CaseName("add", "add", "numba", "kernel", f"n={n}") for n in (64, 1024, 8)]
    rows = tuple(versioned(name, 1.0) for name in names)

    found = compared(rows, rows)

    assert [item.name.case for item in found.differences] == ["n=8", "n=64", "n=1024"]


@pytest.mark.parametrize("status", ["wrong", "failed", "timed_out", "killed"])
def test_a_case_that_lost_its_time_has_failed_with_its_reason(status: Status) -> None:
    found = only(compared(versioned(NUMBA, 1.0), untimed(NUMBA, status, "overflow {n}")))

    assert (found.verdict, found.note, found.ratio) == ("failed", "overflow {n}", None)


def test_a_case_that_failed_before_and_has_a_time_again_is_mended() -> None:
    found = only(compared(untimed(NUMBA, "wrong", "off"), versioned(NUMBA, 1.0)))

    assert (found.verdict, found.note) == ("mended", "wrong before: off")


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        ("skipped", "skipped", "skipped on both sides"),
        ("failed", "failed", "failed on both sides"),
        ("wrong", "failed", "wrong before, failed after"),
        ("verified", "verified", "verified on both sides"),
        ("wrong", "skipped", "wrong before, skipped after"),
        ("timed_out", "killed", "timed out before, killed after"),
    ],
)
def test_without_times_nothing_is_compared(old: Status, new: Status, note: str) -> None:
    found = only(compared(untimed(NUMBA, old), untimed(NUMBA, new)))

    assert (found.verdict, found.note, found.ratio) == ("not compared", note, None)


def test_every_pair_of_statuses_without_two_times_has_a_verdict() -> None:
    pairs = set(product(STATUSES, STATUSES)) - {("ok", "ok")}

    assert set(UNTIMED) == pairs
    assert UNTIMED["ok", "skipped"] == (
        "not compared", "measured before, skipped after"
    )  # fmt: skip


def test_times_of_two_versions_are_not_comparable() -> None:
    found = only(compared(versioned(NUMBA, 1.0), versioned(NUMBA, 3.0, version="v2")))

    assert (found.verdict, found.ratio) == ("not comparable", None)
    assert found.note == "what it measures has changed between the two"


@pytest.mark.parametrize("side", [0, 1])
def test_a_version_that_was_left_out_on_one_side_is_not_comparable_there(side: int) -> None:
    sides: list[tuple[Row, ...]] = [(versioned(NUMBA, 1.0),), (versioned(NUMBA, 1.0),)]
    left_out: list[tuple[str, ...]] = [(), ()]
    sides[side], left_out[side] = (), (NUMBA.benchmark.asv_name,)

    found = compared(sides[0], sides[1], left_out=(left_out[0], left_out[1]))

    assert only(found).verdict == "not comparable"
    assert (only(found).old, only(found).new)[side] is None
    assert (found.only_old, found.only_new) == ((), ())


def test_a_missing_version_is_comparable_with_any() -> None:
    found = compared(versioned(NUMBA, 1.0, version=None), versioned(NUMBA, 1.0))

    assert only(found).verdict == "same"


def test_a_baseline_of_another_version_says_nothing() -> None:
    old = versioned(NUMPY, 4.0), versioned(NUMBA, 1.0)
    new = versioned(NUMPY, 2.0, version="v2"), versioned(NUMBA, 1.0)

    assert only(compared(old, new)).baseline is None


def test_a_time_without_processes_on_record_is_one_process() -> None:
    sparse = replace(versioned(NUMBA, 1.0), processes=())

    found = only(compared(versioned(NUMBA, 9.0), sparse))

    assert (found.verdict, found.processes) == ("suspect", (4, 1))


def test_cases_of_one_side_only_are_listed() -> None:
    found = compared(versioned(NUMPY, 1.0), versioned(NUMBA, 1.0))

    assert (found.only_old, found.only_new, found.differences) == ((NUMPY,), (NUMBA,), ())


def test_facts_that_differ_are_said_and_passing_ones_are_not() -> None:
    old = {"numba": "0.65.0", "driver": "580", "run": "1", "host": "a"}
    new = {"numba": "0.68.1", "driver": "580", "run": "2", "host": "b"}

    found = compared((), (), facts=(old, new))

    assert [(f.name, f.old, f.new) for f in found.facts] == [("numba", "0.65.0", "0.68.1")]


def test_what_asv_says_of_the_environment_counts_where_no_record_does() -> None:
    old = snapshot(0, facts={"numpy": "2.3"}, params={"numpy": "2.2", "cpu": "A", "machine": "x"})
    new = snapshot(1, facts={"numpy": "2.3"}, params={"numpy": "2.4", "cpu": "B", "machine": "y"})

    assert [(f.name, f.old, f.new) for f in changed_facts(old, new)] == [("cpu", "A", "B")]


ELSEWHERE = ({"cpu": "A"}, {"cpu": "B"})


def timed_pair(numpy: float, numba: float, **fields: Any) -> tuple[Row, Row]:
    return versioned(NUMPY, numpy), replace(versioned(NUMBA, numba), **fields)


@pytest.mark.parametrize(
    ("facts", "setups"),
    [
        pytest.param(ELSEWHERE, (SETUP, SETUP), id="processor"),
        pytest.param(({}, {}), (SETUP, Setup("other", "env")), id="machine"),
        pytest.param(({}, {}), (SETUP, Setup("runner", "py3.14")), id="environment"),
    ],
)
def test_between_two_setups_speedups_are_compared_and_baselines_are_not(
    facts: tuple[Mapping[str, Value], Mapping[str, Value]], setups: tuple[Setup, Setup]
) -> None:
    old = timed_pair(4.0, 1.0)

    alike = compared(old, timed_pair(5.6, 1.4), facts=facts, setups=setups)
    lost = compared(old, timed_pair(5.6, 2.8), facts=facts, setups=setups)
    won = compared(old, timed_pair(5.6, 1.0), facts=facts, setups=setups)

    assert alike.counts == {"not judged": 1, "same": 1}
    assert (only(alike, NUMPY).verdict, only(alike, NUMPY).note) == ("not judged", NO_SPEEDUP)
    assert (only(alike).basis, only(alike).baseline) == ("speedups", None)
    assert (only(lost).verdict, only(won).verdict) == ("slower", "faster")
    ratio = only(lost).ratio
    assert ratio is not None
    assert ratio.value == pytest.approx(0.5)


def test_one_processor_and_unknown_ones_are_compared_by_times() -> None:
    for facts in (({"cpu": "A"}, {"cpu": "A"}), ({}, {}), ({"cpu": "A"}, {})):
        found = only(compared(timed_pair(4.0, 1.0), timed_pair(5.6, 1.4), facts=facts))

        assert (found.verdict, found.basis) == ("slower", "times")


def test_what_asv_says_of_the_processor_counts_where_no_record_does() -> None:
    rows = [beside_numpy(timed_pair(numpy, numba)) for numpy, numba in ((4.0, 1.0), (5.6, 1.4))]
    sides = [snapshot(place, params={"cpu": cpu}) for place, cpu in enumerate("AB")]

    assert only(compare_rows(sides[0], sides[1], rows[0], rows[1])).basis == "speedups"


@pytest.mark.parametrize("name", ["gpu", "driver"])
def test_another_gpu_concerns_cases_on_it_alone(name: str) -> None:
    cuda = replace(NUMBA, implementation="numba_cuda")
    sides = [
        (*timed_pair(4.0, numba), replace(versioned(cuda, seconds), device="cuda:0"))
        for numba, seconds in ((1.0, 0.1), (2.0, 0.2))
    ]

    found = compared(sides[0], sides[1], facts=({name: "X"}, {name: "Y"}))

    assert (only(found).verdict, only(found).basis) == ("slower", "times")
    # The driver does not change the baseline on the processor. Another GPU changes the speedup.
    expected = ("not judged", OTHER_DEVICE) if name == "gpu" else ("slower", "")
    assert (only(found, cuda).verdict, only(found, cuda).note) == expected


def test_with_another_number_of_threads_only_pairs_tell_which_are_of_one_thread() -> None:
    facts = {"cpu_threads": 8}, {"cpu_threads": 2}
    old, new = timed_pair(4.0, 1.0), timed_pair(4.0, 3.0)

    parallel = only(compared(old, new, facts=facts))
    serial = only(
        compared(
            (old[0], replace(old[1], pairs=60)), (new[0], replace(new[1], pairs=60)), facts=facts
        )
    )

    assert (parallel.verdict, parallel.note) == ("not judged", OTHER_THREADS)
    assert serial.verdict == "slower"


def test_speedups_over_another_baseline_are_not_judged() -> None:
    new = versioned(NUMPY, 4.0, version="v2"), versioned(NUMBA, 2.0)

    found = only(compared(timed_pair(4.0, 1.0), new, facts=ELSEWHERE))

    assert (found.verdict, found.note) == ("not judged", OTHER_BASELINE)


def test_failures_count_on_another_processor_too() -> None:
    found = compared(timed_pair(4.0, 1.0), (versioned(NUMPY, 4.0), untimed(NUMBA, "wrong")),
                     facts=ELSEWHERE)  # fmt: skip

    assert only(found).verdict == "failed"


def test_a_disturbed_time_has_no_verdict_on_another_processor() -> None:
    lost = replace(in_turn(2.0, 2.0), low=None, high=None, disturbed=0.9)
    found = only(compared(timed_pair(4.0, 1.0), (versioned(NUMPY, 4.0), lost), facts=ELSEWHERE))

    assert (found.verdict, found.note) == ("unclear", DISTURBED)


@pytest.mark.parametrize(
    ("seconds", "factor", "verdict"),
    [(1.06, 1.0, "slower"), (1.06, 1.1, "same"), (1.2, 1.1, "slower"), (0.8, 1.5, "same")],
)
def test_ratios_within_a_factor_are_neither_slower_nor_faster(
    seconds: float, factor: float, verdict: str
) -> None:
    found = compared(versioned(NUMBA, 1.0), versioned(NUMBA, seconds), factor=factor)

    assert only(found).verdict == verdict


def test_a_factor_does_not_lower_what_counts_anyway() -> None:
    found = compared(versioned(NUMBA, 1.0), versioned(NUMBA, 1.003), factor=1.001)

    assert only(found).verdict == "same"


KNOWN = [1e-9, 0.5, 1.0, 2.0, 3.0]
TIMED = st.builds(
    Row,
    st.just(NUMPY),
    st.just("ok"),
    seconds=st.sampled_from([None, *KNOWN]),
    low=st.sampled_from([None, -1.0, 0.0, *KNOWN]),
    high=st.sampled_from([None, math.inf, *KNOWN]),
)


@given(TIMED, TIMED)
def test_the_ratio_of_two_rows_is_that_of_the_one_rule(old: Row, new: Row) -> None:
    ends = [
        np.array([[row.seconds or math.nan], [row.low or 0.0], [row.high or math.inf]])
        for row in (old, new)
    ]
    expected = quotient(*ends)[:, 0].tolist()

    ratio = time_ratio(old, new)

    if ratio is None:
        assert math.isnan(expected[0])
    else:
        assert [ratio.value, ratio.low, ratio.high] == expected


def test_a_side_that_is_not_there_has_no_ratio() -> None:
    assert time_ratio(None, timed(NUMPY, 1.0)) is None
    assert time_ratio(timed(NUMPY, 1.0), None) is None
