"""An asv project's stored results become kernels with a baseline and a candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from stored_asv_project import (
    PAIR,
    PARAMETERS,
    write_benchmarks,
    write_format_1,
    write_format_2,
)

from gpubench.names import BenchmarkName
from gpubench.results import CaseName, Pair, Problem, Row, open_table

Write = Callable[[Path, int, Mapping[str, list[float | None]]], None]

BASELINE: list[float | None] = [1.0, 2.0, 10.0, 20.0]
"""n=64 float32, n=64 float64, n=1024 float32, n=1024 float64."""
CANDIDATE: list[float | None] = [2.0, 5.0, 1.0, 2.5, 4.0, 10.0, 2.0, 5.0]
"""float32: 1 thread n=64, n=1024; 2 threads ...; float64 the same."""
VALUES = {PAIR.baseline: BASELINE, PAIR.candidate: CANDIDATE}


def rows(directory: Path, *pairs: Pair) -> dict[CaseName, Row]:
    table = open_table(directory, pairs=pairs or (PAIR,))
    (snapshot,) = table.snapshots(table.setups[0])
    return table.rows(snapshot)


def speedups(rows: Mapping[CaseName, Row]) -> dict[str, float]:
    return {name.case: row.speedup.value for name, row in rows.items() if row.speedup}


@pytest.mark.parametrize("write", [write_format_1, write_format_2])
def test_parameters_match_by_name_and_value_in_both_formats(tmp_path: Path, write: Write) -> None:
    write_benchmarks(tmp_path)
    write(tmp_path, 1, VALUES)

    found = speedups(rows(tmp_path))

    assert found["dtype=float32 threads=1 n=64"] == 0.5
    assert found["dtype=float32 threads=2 n=1024"] == 4.0
    assert found["dtype=float64 threads=1 n=1024"] == 2.0
    assert len(found) == 8


@pytest.mark.parametrize("write", [write_format_1, write_format_2])
def test_both_formats_carry_the_interval(tmp_path: Path, write: Write) -> None:
    write_benchmarks(tmp_path)
    write(tmp_path, 1, VALUES)

    row = rows(tmp_path)[CaseName("sums", "norm", "baseline", "kernel", "n=64 dtype=float32")]

    assert (row.low, row.seconds, row.high) == (0.98, 1.0, 1.02)
    assert row.runs_per_sample == 1, "asv's own number, where no record tells of a batch"


def test_a_project_measured_by_old_and_new_asv_has_one_history(tmp_path: Path) -> None:
    write_benchmarks(tmp_path)
    write_format_1(tmp_path, 1, VALUES)
    write_format_2(tmp_path, 2, VALUES)

    table = open_table(tmp_path, pairs=[PAIR])

    snapshots = table.snapshots(table.setups[0])
    assert [len(table.rows(snapshot)) for snapshot in snapshots] == [12, 12]
    assert table.problems == ()


def test_without_a_start_the_newest_commit_has_the_version_that_counts(tmp_path: Path) -> None:
    write_benchmarks(tmp_path)
    write_format_1(tmp_path, 1, VALUES, versions={PAIR.baseline: "old"})
    write_format_1(tmp_path, 2, VALUES, versions={PAIR.baseline: "new"})

    table = open_table(tmp_path, pairs=[PAIR])
    old, new = table.snapshots(table.setups[0])

    assert (len(table.rows(old)), len(table.rows(new))) == (8, 12)
    assert len(old.superseded) == 1
    assert {row.missing for row in table.rows(old).values()} == {
        f"the baseline baseline n={n} dtype={dtype} was not measured at this commit; run "
        r"`asv run --bench '^(linalg\.Norm\.time_numpy|linalg\.Norm\.time_numba)'`"
        for n in (64, 1024)
        for dtype in ("float32", "float64")
    }


def test_the_order_of_parameters_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PARAMETERS, "a.time_old", {"n": [1, 2], "m": [3]})
    monkeypatch.setitem(PARAMETERS, "a.time_new", {"m": [3], "n": [2, 1]})
    write_benchmarks(tmp_path)
    write_format_2(tmp_path, 1, {"a.time_old": [10.0, 20.0], "a.time_new": [5.0, 5.0]})

    found = speedups(rows(tmp_path, Pair("s", "a", "a.time_old", "a.time_new")))

    assert found == {"m=3 n=2": 4.0, "m=3 n=1": 2.0}


def test_without_benchmarks_json_parameters_match_by_place(tmp_path: Path) -> None:
    write_format_2(tmp_path, 1, {PAIR.baseline: BASELINE})
    same = Pair("sums", "self", PAIR.baseline, PAIR.baseline)

    found = speedups(rows(tmp_path, same))

    assert found["param1=1024 param2=float64"] == 1.0
    assert len(found) == 4


def test_a_benchmark_without_parameters_is_one_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.time_old", "a.time_new"):
        monkeypatch.setitem(PARAMETERS, name, {})
    write_format_2(tmp_path, 1, {"a.time_old": [3.0], "a.time_new": [1.0]})

    assert speedups(rows(tmp_path, Pair("s", "a", "a.time_old", "a.time_new"))) == {"": 3.0}


def test_one_baseline_serves_several_pairs(tmp_path: Path) -> None:
    write_benchmarks(tmp_path)
    write_format_2(tmp_path, 1, VALUES)
    other = Pair("sums", "again", PAIR.baseline, PAIR.candidate)

    assert {name.kernel for name in rows(tmp_path, PAIR, other)} == {"norm", "again"}


def test_text_that_reads_as_a_number_is_another_value_than_the_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [10, "10", 10.0, "a b", None, True, "true"]
    monkeypatch.setitem(PARAMETERS, "b.time_mixed", {"n": values})
    write_benchmarks(tmp_path)
    write_format_2(tmp_path, 1, {"b.time_mixed": [1.0] * 7})

    cases = [n.case for n in rows(tmp_path, Pair("s", "b", "b.time_mixed", "b.time_mixed"))]

    expected = ["10", "'10'", "10.0", "a\N{OPEN BOX}b", "None", "true", "'true'"]
    assert set(cases) == {f"n={value}" for value in expected}


def test_a_candidate_whose_baseline_failed_says_so(tmp_path: Path) -> None:
    write_benchmarks(tmp_path)
    write_format_2(tmp_path, 1, {**VALUES, PAIR.baseline: [None, 2.0, 10.0, 20.0]})

    name = CaseName("sums", "norm", "candidate", "kernel", "dtype=float32 threads=1 n=64")

    assert (
        rows(tmp_path)[name].missing
        == "the baseline baseline n=64 dtype=float32 has no time: failed"
    )


def test_a_candidate_without_its_baseline_names_the_command_for_both(tmp_path: Path) -> None:
    write_benchmarks(tmp_path)
    write_format_2(tmp_path, 1, {PAIR.candidate: CANDIDATE})

    missing = {row.missing for row in rows(tmp_path).values()}

    command = r"asv run --bench '^(linalg\.Norm\.time_numpy|linalg\.Norm\.time_numba)'"
    assert all(words and words.endswith(f"run `{command}`") for words in missing)


def test_a_baseline_alone_is_still_the_baseline(tmp_path: Path) -> None:
    write_benchmarks(tmp_path)
    write_format_2(tmp_path, 1, {PAIR.baseline: BASELINE})

    assert all(row.is_baseline for row in rows(tmp_path).values())


def test_a_name_that_no_result_has_is_a_problem_with_a_suggestion(tmp_path: Path) -> None:
    write_benchmarks(tmp_path)
    write_format_2(tmp_path, 1, VALUES)
    wrong = Pair("sums", "norm", PAIR.baseline, "linalg.Norm.time_number")

    assert open_table(tmp_path, pairs=[wrong]).problems == (
        Problem(
            "pair sums.norm",
            "no result file has its candidate 'linalg.Norm.time_number'; "
            "did you mean 'linalg.Norm.time_numba'?",
        ),
    )


def test_a_pair_of_something_else_than_times_is_a_problem(tmp_path: Path) -> None:
    write_benchmarks(tmp_path)
    pair = Pair("sums", "error", PAIR.baseline, "linalg.track_error")

    problems = open_table(tmp_path, pairs=[pair]).problems

    assert problems[1].message == (
        "its candidate 'linalg.track_error' measures no time; a pair is of two time benchmarks"
    )


@pytest.mark.parametrize("described", [True, False])
def test_without_a_pair_every_benchmark_is_reported_alone(tmp_path: Path, described: bool) -> None:
    if described:
        write_benchmarks(tmp_path)
    write_format_2(tmp_path, 1, {**VALUES, "linalg.track_error": [3.0]})

    table = open_table(tmp_path)
    (snapshot,) = table.snapshots(table.setups[0])
    found = table.rows(snapshot)

    assert {(name.suite, name.kernel, name.implementation) for name in found} == {
        ("linalg", "Norm.time_numpy", "time"),
        ("linalg", "Norm.time_numba", "time"),
        ("linalg", "track_error", "time"),
    }
    tracked = CaseName("linalg", "track_error", "time", "tracked", "")
    assert (found[tracked].value, found[tracked].seconds) == (3.0, None)
    assert found[tracked].unit == ("seconds" if described else "")
    seconds = [row.seconds for row in found.values()]
    assert sorted(filter(None, seconds)) == sorted(filter(None, [*BASELINE, *CANDIDATE]))
    assert all(row.is_baseline and not row.missing and not row.speedup for row in found.values())
    assert table.problems == ()


def test_the_code_that_asv_shows_is_read(tmp_path: Path) -> None:
    write_benchmarks(tmp_path)
    write_format_2(tmp_path, 1, VALUES)

    sources = open_table(tmp_path, pairs=[PAIR]).sources

    assert sources[BenchmarkName("sums", "norm", "candidate", "kernel")] == (
        "def time_numba(self): ..."
    )


@pytest.mark.parametrize("text", ["{", "3", '{"version": 2, "x": {"name": 4}}'])
def test_a_damaged_benchmarks_json_leaves_the_results(tmp_path: Path, text: str) -> None:
    write_format_2(tmp_path, 1, VALUES)
    (tmp_path / "benchmarks.json").write_text(text)

    table = open_table(tmp_path, pairs=[PAIR])

    assert len(table.setups) == 1
    assert all(problem.path == "benchmarks.json" for problem in table.problems)
