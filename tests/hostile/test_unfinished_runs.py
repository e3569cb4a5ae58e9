"""What a stopped run had finished is read from the record, where asv has not stored it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from result_files import AT, CommitFiles

from gpubench.record import CaseRecord, RoundsRecord, RunRecord, finished_runs
from gpubench.results import open_table
from gpubench.results.model import Row
from gpubench.results.unfinished import UNFINISHED

NUMPY, NUMBA = "suites.norm__numpy.time_kernel", "suites.norm__numba.time_kernel"
COMMIT, DATE = "a" * 40, 1_600_000_000
EARLIER, LATER = f"17-{DATE - 1000}", f"18-{DATE + 1000}"
"""Runs before and after what asv has stored began."""
SAMPLES = (1.0e-3, 1.3e-3, 1.1e-3, 1.2e-3, 0.9e-3, 1.05e-3)


def files(directory: Path, run: str = LATER) -> CommitFiles:
    return CommitFiles(directory, COMMIT, DATE).facts(run=run)


def finished(
    made: CommitFiles,
    benchmark: str = NUMPY,
    case: str = "n=64",
    samples: tuple[float, ...] = SAMPLES,
    version: str = "v1",
    **fields: object,
) -> CommitFiles:
    """A process that has finished a case."""
    made.record(benchmark, case, "started", version=version)
    made.record(benchmark, case, values={"n": 64}, sizes=("n",), version=version, **fields)
    return made.rounds(benchmark, case, *samples)


def rows(directory: Path) -> Mapping[tuple[str, str], Row]:
    """By implementation and case."""
    table = open_table(directory)
    assert table.problems == ()
    (setup,) = table.setups
    (snapshot,) = table.snapshots(setup)
    return {(n.implementation, n.case): row for n, row in table.rows(snapshot).items()}


def test_a_row_is_as_if_asv_had_stored_it(tmp_path: Path) -> None:
    for name in ("stored", "killed"):
        made = files(tmp_path / name)
        for benchmark in (NUMPY, NUMBA):
            finished(made, benchmark)
            if name == "stored":
                made.values[benchmark]["n=64"] = [*SAMPLES]
                made.started_at = DATE + 2000
        made.write()

    stored, killed = rows(tmp_path / "stored"), rows(tmp_path / "killed")

    assert killed.keys() == stored.keys()
    for place, row in killed.items():
        assert row.warnings == (UNFINISHED,)
        whole = stored[place]
        times = row.seconds, row.low, row.high, row.q25, row.q75, row.samples
        assert times == pytest.approx(
            (whole.seconds, whole.low, whole.high, whole.q25, whole.q75, whole.samples), rel=1e-4
        )
        assert (row.status, row.rounds, row.version) == ("ok", SAMPLES, "v1")
        assert row.speedup == whole.speedup
    assert killed["numba", "n=64"].baseline == killed["numpy", "n=64"].name


def test_all_samples_count_where_there_are_more_than_rounds(tmp_path: Path) -> None:
    made = finished(files(tmp_path), samples=(1e-3,) * 20)
    made.lines[-1] = replace(made.lines[-1], samples=(1e-3,) * 30 + (3e-3,) * 70)
    made.write()

    row = rows(tmp_path)["numpy", "n=64"]

    assert (row.seconds, row.samples, len(row.rounds)) == (3e-3, 100, 20)


def test_a_later_run_counts_though_it_was_stopped(tmp_path: Path) -> None:
    made = files(tmp_path).time(NUMPY, "n=64", 5e-3).time(NUMPY, "n=128", 7e-3)
    finished(made).write()

    found = rows(tmp_path)

    assert found["numpy", "n=64"].seconds == pytest.approx(1.075e-3)
    assert found["numpy", "n=64"].warnings == (UNFINISHED,)
    assert found["numpy", "n=128"].seconds == pytest.approx(7e-3)
    assert found["numpy", "n=128"].warnings == ()


@pytest.mark.parametrize("value", [5e-3, None])
def test_what_asv_has_stored_since_counts(tmp_path: Path, value: float | None) -> None:
    made = files(tmp_path, EARLIER)
    made = made.time(NUMPY, "n=64", value) if value else made.missing(NUMPY, "n=64")
    finished(made).write()

    row = rows(tmp_path)["numpy", "n=64"]

    assert (row.status, row.warnings) == ("ok" if value else "failed", ())


def test_a_case_beside_others_that_were_asked_for_later_is_shown(tmp_path: Path) -> None:
    """asv has n/a for what was not asked for."""
    made = files(tmp_path, EARLIER).time(NUMPY, "n=128", 7e-3).not_applicable(NUMPY, "n=64")
    finished(made).write()

    row = rows(tmp_path)["numpy", "n=64"]

    assert (row.status, row.warnings) == ("ok", (UNFINISHED,))


def test_a_case_that_asv_s_file_does_not_know_is_added_to_its_benchmark(tmp_path: Path) -> None:
    made = files(tmp_path).time(NUMPY, "n=128", 7e-3)
    finished(made).write()

    assert {place: row.status for place, row in rows(tmp_path).items()} == {
        ("numpy", "n=128"): "ok",
        ("numpy", "n=64"): "ok",
    }


def test_of_another_version_than_stored_nothing_is_shown(tmp_path: Path) -> None:
    made = files(tmp_path).time(NUMPY, "n=64", 5e-3)
    finished(made, version="v2").write()

    row = rows(tmp_path)["numpy", "n=64"]

    assert (row.seconds, row.version) == (pytest.approx(5e-3), "v1")


def test_a_run_that_was_killed_in_a_case_takes_nothing_from_an_earlier_one(tmp_path: Path) -> None:
    made = finished(files(tmp_path, EARLIER)).facts(run=LATER)
    made.record(NUMPY, "n=64", "started", version="v1").write()

    row = rows(tmp_path)["numpy", "n=64"]

    assert (row.status, row.samples, row.warnings) == ("ok", 6, (UNFINISHED,))


def test_a_case_that_was_being_sampled_has_no_time(tmp_path: Path) -> None:
    files(tmp_path).record(NUMPY, "n=64", "started").record(NUMPY, "n=64").write()

    assert rows(tmp_path)["numpy", "n=64"].status == "killed"


@pytest.mark.parametrize("samples", [(-1.0,), (0.0, 1.0), (1e308, 1.0), (1e-320,)])
def test_what_is_no_time_is_none(tmp_path: Path, samples: tuple[float, ...]) -> None:
    finished(files(tmp_path), samples=samples).write()

    assert rows(tmp_path)["numpy", "n=64"].status == "killed"


@pytest.mark.parametrize("run", ["", "x", "17-", "17-1e400", "17-nan", f"17-{'9' * 5000}", 5, 1e9])
def test_a_run_without_a_moment_is_older_than_what_asv_has(tmp_path: Path, run: object) -> None:
    made = CommitFiles(tmp_path, COMMIT, DATE).facts(run=run).time(NUMPY, "n=64", 5e-3)
    finished(made).write()

    assert rows(tmp_path)["numpy", "n=64"].seconds == pytest.approx(5e-3)


def test_a_failure_that_ends_a_run_may_come_of_what_ended_it() -> None:
    failed = CaseRecord(NUMPY, "n=64", "failed", AT)
    other = CaseRecord(NUMPY, "n=128", "skipped", AT)
    run = RunRecord(AT, {"run": "one"})

    assert finished_runs([run, failed])["one"] == {}
    assert [*finished_runs([run, failed, other])["one"]] == [(NUMPY, "n=64"), (NUMPY, "n=128")]


def test_a_case_that_turned_out_wrong_has_no_time() -> None:
    ok, wrong = CaseRecord(NUMPY, "n=64", "ok", AT), CaseRecord(NUMPY, "n=64", "wrong", AT)
    rounds = RoundsRecord(NUMPY, "n=64", AT, SAMPLES)

    (cases,) = finished_runs([RunRecord(AT, {"run": "one"}), ok, wrong, rounds]).values()

    (process,) = cases[NUMPY, "n=64"]
    assert (process.outcome.status, process.samples) == ("wrong", ())
