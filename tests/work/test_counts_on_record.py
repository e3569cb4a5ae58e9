"""Counts of launches, merged, on record, and read back."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpubench import record
from gpubench.errors import GpubenchError
from gpubench.record import (
    CaseRecord,
    CountsRecord,
    LaunchRecord,
    LineRecord,
    RunRecord,
    finished_runs,
    parse_line,
    to_line,
)
from gpubench.results.records import RecordReader
from gpubench.tables.counts import launch_title
from gpubench.work.counting import (
    MAX_LAUNCHES,
    NO_LAUNCH,
    counts_record,
    difference_between,
    merged,
)
from softcuda.counts import LaunchCounts, LineCounts

BENCHMARK = "suites.saxpy__numba_cuda.time_kernel"


def launch(kernel: str = "m.f", grid: int = 4, loads: int = 8, **other: object) -> LaunchCounts:
    counts = {"warps": grid, "global_load_sectors": loads, "barriers": 0}
    return LaunchCounts(kernel, (grid, 1, 1), (32, 1, 1), 0, (9, 0), None, counts, **other)  # type: ignore[arg-type]


def record_of(*launches: LaunchCounts) -> CountsRecord:
    return counts_record(BENCHMARK, "n=128", 1, launches)


def test_equal_launches_are_one_with_how_often_it_was_made() -> None:
    first, second = record_of(launch(), launch("m.g"), launch()).launches
    assert (first.kernel, first.times) == ("m.f", 2)
    assert (second.kernel, second.times) == ("m.g", 1)


@pytest.mark.parametrize(
    ("launches", "title"),
    [
        ([launch()], "m.f, 4 blocks of 32"),
        ([launch(), launch()], "m.f, 4 blocks of 32, 2 times"),
        (
            [launch(loads=number) for number in range(MAX_LAUNCHES + 1)],
            f"m.f, 4 blocks of 32, the sum of {MAX_LAUNCHES + 1:,} launches",
        ),
    ],
)
def test_a_title_says_how_many_launches_counts_are_of(
    launches: list[LaunchCounts], title: str
) -> None:
    (kept,) = record_of(*launches).launches
    assert launch_title(kept) == title


def test_launches_that_counted_otherwise_stay_apart_and_add_up_in_the_total() -> None:
    made = record_of(launch(loads=8), launch(loads=9), launch(loads=9))
    assert [one.times for one in made.launches] == [1, 2]
    assert made.totals == {"warps": 12, "global_load_sectors": 26}


def test_of_many_launches_of_one_shape_the_sum_is_kept() -> None:
    launches = [launch(loads=number) for number in range(MAX_LAUNCHES + 1)]
    (kept,) = record_of(*launches).launches
    assert (kept.times, kept.summed) == (1, MAX_LAUNCHES + 1)
    assert kept.counts["global_load_sectors"] == sum(range(MAX_LAUNCHES + 1))


def test_of_many_shapes_the_kernels_sum_is_kept_under_its_largest_launch() -> None:
    launches = [launch(grid=number) for number in range(1, MAX_LAUNCHES + 2)]
    made = record_of(*launches, launch("m.g"), launch("m.g"))
    kept, other = made.launches
    assert (kept.grid, kept.summed) == ((MAX_LAUNCHES + 1, 1, 1), MAX_LAUNCHES + 1)
    assert (other.kernel, other.times, other.summed) == ("m.g", 2, 1)
    assert made.totals["warps"] == sum(range(1, MAX_LAUNCHES + 2)) + 8


def test_merging_what_is_merged_changes_nothing() -> None:
    launches = [launch(loads=number % 3) for number in range(9)]
    once = record_of(*launches).launches
    assert merged(once) == once


def test_one_launch_without_counts_leaves_the_case_without() -> None:
    ended = replace(launch(), missing="it ended with a fault", counts={})
    made = record_of(launch(), ended)
    assert (made.missing, made.launches, made.totals) == ("it ended with a fault", (), {})


def test_a_run_without_launches_says_so() -> None:
    assert record_of().missing == NO_LAUNCH


def test_code_has_the_name_by_which_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "site-packages"
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(inner), *sys.path])
    files = [str(tmp_path / "project/kernels.py"), str(inner / "numba/x.py"), "<string>"]
    made = record_of(launch(lines=tuple(LineCounts(file, 3, {"warps": 1}) for file in files)))
    assert [line.file for line in made.launches[0].lines] == [
        *("<string>", "numba/x.py", "project/kernels.py"),
    ]


def test_two_runs_that_counted_otherwise_differ_by_their_largest_difference() -> None:
    one, another = (record_of(launch(loads=loads)).totals for loads in (8, 1200))
    assert difference_between(one, dict(one)) is None
    said = difference_between(one, another)
    assert said == "global_load_sectors is 8 in one and 1,200 in another"


COUNTED = CountsRecord(
    BENCHMARK,
    "n=128",
    1,
    launches=(
        LaunchRecord(
            "m.f",
            (4, 1, 1),
            (32, 1, 1),
            times=3,
            architecture=(9, 0),
            counts={"warps": 4},
            resources={"registers": 20},
            lines=(LineRecord("m.py", 7, {"global_load_sectors": 16}),),
        ),
        LaunchRecord("m.g", (1, 1, 1), (1, 1, 1)),
    ),
)


@pytest.mark.parametrize(
    "counted", [COUNTED, CountsRecord(BENCHMARK, "n=128", 1, "it ended with a fault")]
)
def test_a_line_reads_as_it_was_written(counted: CountsRecord) -> None:
    assert parse_line(to_line(counted)) == counted


def test_of_a_line_that_is_too_long_the_lines_of_code_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record, "MAX_LINE", len(to_line(COUNTED)) - 5)
    read = parse_line(to_line(COUNTED))
    assert isinstance(read, CountsRecord)
    assert read.totals == COUNTED.totals
    assert [launch.lines for launch in read.launches] == [(), ()]


@pytest.mark.parametrize("count", [-1, 2**63])
def test_a_count_that_no_launch_can_have_is_refused(count: int) -> None:
    line = to_line(COUNTED).replace('"global_load_sectors": 16', f'"global_load_sectors": {count}')
    with pytest.raises(GpubenchError, match="it holds a count that is not between 0 and 9,223"):
        parse_line(line)


def test_a_record_with_counts_has_the_cases_that_it_has_without(tmp_path: Path) -> None:
    begun = RunRecord("2026-01-01T00:00:00+00:00", {"run": "1-1"})
    case = CaseRecord(BENCHMARK, "n=128", "verified", "2026-01-01T00:00:01+00:00")
    path = tmp_path / "r.gpubench.jsonl"
    path.write_text(to_line(begun) + to_line(case) + to_line(COUNTED))
    read = RecordReader().read(path)
    assert read.faults == ()
    assert list(read.stories) == [BENCHMARK]
    finished = finished_runs([begun, case, COUNTED])
    assert [one.outcome for one in finished["1-1"][BENCHMARK, "n=128"]] == [case]
