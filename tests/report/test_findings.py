"""Parts that several pages show: times, changes, and why a case has no time."""

# ruff: noqa: RUF001 (the pages write multiplication signs and en dashes)

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from histories import NUMBA, NUMPY, history_of, snapshot, timed
from test_sparkline import points_of

from gpubench.analysis.changes import Change
from gpubench.report.findings import (
    case_words,
    change_view,
    claim,
    counts_in_words,
    deciding_command,
    history_spark,
    not_judged_words,
    reason_views,
)
from gpubench.results import CaseName, History, Ratio, Row
from gpubench.statuses import Status

NARROW = "\N{NARROW NO-BREAK SPACE}"
SITE: Any = SimpleNamespace(
    unit=lambda *_: "seconds",
    address=lambda *_: "kernel-add.html",
    table=SimpleNamespace(asv_names={}),
)
SLOWER = Change("step", 0, 2, 1.0, 2.0, Ratio(0.5, 0.4, 0.6), commits=2)


def history() -> History:
    """``numba`` has times at the first, the third and the fourth of five commits and fails at the
    last; the second does not know it."""
    seconds = ({NUMBA: 1.0}, {NUMPY: 1.0}, {NUMBA: 2.0}, {NUMBA: 2.0}, {NUMBA: None})
    return history_of(
        [
            (snapshot(index), {name: timed(name, value) for name, value in commit.items()})
            for index, commit in enumerate(seconds)
        ]
    )


def timed_history(*seconds: float | None) -> History:
    """Of ``numba`` at each commit."""
    return history_of(
        [(snapshot(i), {NUMBA: timed(NUMBA, time)}) for i, time in enumerate(seconds)]
    )


def test_a_change_is_said_with_its_factor_and_its_two_commits() -> None:
    words = change_view(history(), NUMBA, SLOWER, SITE)

    assert (words.slower, words.factor) == (True, 2.0)
    assert words.claim == "step: slower by 2.00×; by times alone; rests on 2 commits"
    assert (words.before.date, words.after.date) == ("unknown date", "1970-01-01")


def test_one_commit_alone_is_no_step() -> None:
    check = replace(SLOWER, kind="check", new=0.5, ratio=Ratio(2, 1, 3))

    assert claim(check, "seconds") == "one commit alone, to be checked: faster by 2.00×"


def test_the_command_that_decides_is_of_gpubench_for_its_suites_and_of_asv_for_others() -> None:
    table = SimpleNamespace(asv_names={}, asv_name=lambda _: "bench.time_add")
    check = replace(SLOWER, kind="check")

    def command(change: Change) -> str:
        return deciding_command(table, history(), NUMBA, change)  # type: ignore[arg-type]

    assert command(SLOWER).startswith("gpubench since --good 00000000 --bad 00000000 add -a ")
    assert command(check).startswith("gpubench compare --measure 00000000 00000000 add -a ")
    table.asv_names = {NUMBA.benchmark: "bench.time_add"}
    assert command(SLOWER) == "asv find 00000000..00000000 bench.time_add"
    assert command(check).startswith("asv continuous 00000000 00000000 --bench ")


def test_a_history_is_drawn_over_the_commits_that_know_its_case() -> None:
    spark = history_spark(history(), NUMBA, (SLOWER,))

    assert spark.label == (
        f"3 commits with a time, first 1.00{NARROW}s, last 2.00{NARROW}s; 1 change"
    )
    (line,) = spark.lines
    first, second, third = points_of(line)
    assert first[1] > second[1] == third[1]
    assert spark.marks == (second,)
    assert spark.last == third


def test_a_case_without_any_time_has_an_empty_picture_that_says_so() -> None:
    of = history_of([(snapshot(), {NUMBA: timed(NUMBA, None)})])

    spark = history_spark(of, NUMBA, ())

    assert (spark.lines, spark.last) == ((), None)
    assert spark.label == "0 commits with a time; 0 changes"


def test_a_change_carries_its_case_and_its_history() -> None:
    view = change_view(history(), NUMBA, SLOWER, SITE)

    assert (view.name, view.old, view.new) == (NUMBA, 1.0, 2.0)
    assert view.spark == history_spark(history(), NUMBA, (SLOWER,))


def without_a_time(status: Status, reason: str, *cases: str) -> list[Row]:
    return [Row(CaseName("add", "add", "cuda", "kernel", case), status, reason) for case in cases]


def test_cases_with_the_same_reason_are_one_line_that_names_some_of_them() -> None:
    cases = [f"n={n}" for n in range(7)]

    (view,) = reason_views(without_a_time("failed", "broken", *cases))

    assert (view.count, view.reason) == (7, "broken")
    assert view.examples == ("add cuda n=0", "add cuda n=1", "add cuda n=2", "add cuda n=3")


@pytest.mark.parametrize(
    ("status", "command"),
    [
        ("wrong", "gpubench verify add -a implementation=cuda -a n=1"),
        ("failed", "gpubench verify add -a implementation=cuda -a n=1"),
        ("killed", "gpubench verify add -a implementation=cuda -a n=1"),
        ("timed_out", "gpubench verify add -a implementation=cuda -a n=1"),
        ("verified", "asv run --bench add__cuda"),
        ("skipped", "gpubench devices"),
    ],
)
def test_every_status_without_a_time_has_a_next_step(status: Status, command: str) -> None:
    (view,) = reason_views(without_a_time(status, "why", "n=1"))

    assert view.command == command


def test_benchmarks_of_a_pair_are_run_by_their_own_name() -> None:
    row = replace(without_a_time("failed", "why", "n=1")[0], bench="sums.time_fast")

    (view,) = reason_views([row])

    assert view.command == "asv run --quick --show-stderr --bench sums.time_fast"


def test_what_has_a_time_has_no_reason() -> None:
    assert reason_views([timed(NUMPY, 1.0)]) == ()


def test_a_case_is_named_without_what_says_itself() -> None:
    assert case_words(NUMPY) == "add numpy n=4"
    other = CaseName("sums", "norm", "cuda", "end_to_end", "")
    assert case_words(other) == "sums.norm cuda (end to end)"


def test_counts_are_a_list_for_people() -> None:
    counts = {"faster": 1_400, "not compared": 2, "timed_out": 1}

    assert counts_in_words(counts) == "1,400 faster, 2 not compared and 1 timed out"


def test_what_is_not_judged_says_what_that_takes() -> None:
    assert not_judged_words(5, 0) is None
    assert (not_judged_words(0, 5) or "").startswith("No case is judged yet: ")
    assert (not_judged_words(3, 2) or "").startswith("2 of 5 cases are not judged yet: ")
