"""What files have in common is made once, and comes out as if each file were read alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from result_files import AT, CommitFiles

from gpubench.record import CaseRecord
from gpubench.results import open_table, rows
from gpubench.results.pairs import BenchmarkPairs
from gpubench.results.reading import Reader, SnapshotFiles, snapshot_files

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"
CASES = ("n=1", "n=2", "n=3")

Write = Callable[[CommitFiles, str, str], None]
"""Writes a case of a benchmark into two files."""


def ok(files: CommitFiles, benchmark: str, case: str, **fields: object) -> None:
    baseline = {} if benchmark == NUMPY else {"baseline_benchmark": NUMPY, "baseline_case": case}
    files.time(benchmark, case, 1e-3 * (1 + files.date % 7))
    files.record(benchmark, case, "started").record(benchmark, case, "ok", **{**baseline, **fields})


def ok_without_record(files: CommitFiles, benchmark: str, case: str) -> None:
    files.time(benchmark, case, 2e-3)


def of_another_baseline(files: CommitFiles, benchmark: str, case: str) -> None:
    ok(files, benchmark, case, baseline_benchmark=NUMPY, baseline_case="n=1")


def two_rounds(files: CommitFiles, benchmark: str, case: str) -> None:
    ok(files, benchmark, case)
    ok(files, benchmark, case)


def measured_again(files: CommitFiles, benchmark: str, case: str) -> None:
    files.record(benchmark, case, "failed", reason="at first")
    files.facts(run=2)
    ok(files, benchmark, case)
    files.facts(run=1)


def before_any_run(files: CommitFiles, benchmark: str, case: str) -> None:
    """What was told without a run's fact does not outlive what a run tells."""
    files.lines.insert(0, CaseRecord(benchmark, case, "failed", AT, reason="at first"))
    ok(files, benchmark, case)


def failed_at_first(files: CommitFiles, benchmark: str, case: str) -> None:
    """In the run that all others are of."""
    files.record(benchmark, case, "failed", reason="at first")
    ok(files, benchmark, case)


def failed_in_a_round(files: CommitFiles, benchmark: str, case: str) -> None:
    ok(files, benchmark, case)
    files.record(benchmark, case, "failed", reason="too little memory")


def wrong(files: CommitFiles, benchmark: str, case: str) -> None:
    files.time(benchmark, case, 1e-3).record(benchmark, case, "wrong", reason="off by one")


def skipped(files: CommitFiles, benchmark: str, case: str) -> None:
    files.not_applicable(benchmark, case).record(benchmark, case, "skipped", reason="no GPU")


def not_applicable(files: CommitFiles, benchmark: str, case: str) -> None:
    files.not_applicable(benchmark, case)


def missing(files: CommitFiles, benchmark: str, case: str) -> None:
    files.missing(benchmark, case)


def stopped(files: CommitFiles, benchmark: str, case: str) -> None:
    files.missing(benchmark, case).record(benchmark, case, "started", timeout=60.0)


def timed_out(files: CommitFiles, benchmark: str, case: str) -> None:
    long_before = "2026-03-01T09:00:00+00:00"
    files.missing(benchmark, case).record(benchmark, case, "started", timeout=60.0, at=long_before)


def in_the_record_alone(files: CommitFiles, benchmark: str, case: str) -> None:
    files.record(benchmark, case, "started")


def verified(files: CommitFiles, benchmark: str, case: str) -> None:
    files.time(benchmark, case, 1e-3).record(benchmark, case, "verified")


def of_rounds(files: CommitFiles, benchmark: str, case: str) -> None:
    ok(files, benchmark, case)
    files.rounds(benchmark, case, *(1e-3 * (1 + files.date % place) for place in range(1, 7)))


def paired(files: CommitFiles, benchmark: str, case: str) -> None:
    ok(files, benchmark, case, pair_ratios=(1.5, 1.6))


RARE = (
    ok_without_record, of_another_baseline, two_rounds, measured_again, before_any_run,
    failed_at_first, failed_in_a_round, wrong,
    skipped, not_applicable, missing, stopped, timed_out, in_the_record_alone, verified,
    of_rounds, paired,
)  # fmt: skip


def write(directory: Path, index: int, writes: Callable[[str, str], Write]) -> None:
    files = CommitFiles(directory, f"{index:08x}{0:032x}", date=86_400 * (index + 1)).facts(run=1)
    for benchmark in (NUMPY, NUMBA):
        for case in CASES:
            writes(benchmark, case)(files, benchmark, case)
    files.write()


def read(files: list[SnapshotFiles]) -> list[str]:
    """All that is read of each file, but for numbers that depend on the files before it."""
    batch = Reader(BenchmarkPairs()).read(files)
    names, details = batch.names, batch.details
    columns = {name: column.tolist() for name, column in batch.cells.items()}
    read: list[tuple[object, ...]] = [(repr(head),) for head in batch.heads]
    for cells in zip(*columns.values(), strict=True):
        row = dict(zip(columns, cells, strict=True))
        case, detail, baseline = row.pop("case"), row.pop("detail"), row.pop("baseline")
        read[row.pop("snapshot")] += (
            (names[case], details[detail], None if baseline is None else names[baseline], row),
        )
    return [repr(sorted(rows, key=repr)) for rows in read]


def assert_as_if_alone(directory: Path) -> None:
    files = snapshot_files(directory)
    assert read(files) == [only for one in files for only in read([one])]


@pytest.mark.parametrize("order", [RARE, RARE[::-1]], ids=["in order", "reversed"])
def test_a_case_is_not_taken_for_one_of_another_story(
    tmp_path: Path, order: tuple[Write, ...]
) -> None:
    rarities = [(rare, place) for rare in order for place in CASES]
    for index, (rare, place) in enumerate(rarities):
        write(tmp_path, index, lambda _, case, r=rare, p=place: r if case == p else ok)

    assert_as_if_alone(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_each_file_comes_out_as_if_it_were_alone(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for index in range(60):
        write(tmp_path, index, lambda *_: chance.choice(RARE) if chance.random() < 0.1 else ok)

    assert_as_if_alone(tmp_path)


def test_what_files_have_in_common_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    detail = rows._detail
    monkeypatch.setattr(rows, "_detail", lambda *of: (made.append(of), detail(*of))[1])
    for index in range(5):
        files = CommitFiles(tmp_path, f"{index:08x}{0:032x}", date=86_400 * (index + 1)).facts(
            run=index
        )
        for case in CASES:
            ok(files, NUMPY, case)
        files.write()

    table = open_table(tmp_path)
    (numpy, *_), *_ = table.history(table.setups[0]).times

    assert len(made) == len(CASES)
    assert numpy.tolist() == pytest.approx([1e-3 * (1 + 86_400 * day % 7) for day in range(1, 6)])
