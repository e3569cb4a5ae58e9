"""What is kept of result files: it saves reading, and never changes what a report says."""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from result_files import CommitFiles
from stored_asv_project import PAIR, write_benchmarks, write_format_2

from gpubench.results import Results, Snapshot, digests, load_results, loading
from gpubench.results.cache import cache_key, cache_path
from gpubench.results.columns import columns_of

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"
DAY = 86_400


def write_commit(directory: Path, day: int) -> CommitFiles:
    """A commit with a case of every kind."""
    files = CommitFiles(directory, f"{day:x}" * 40, DAY * day)
    files.facts(numba=f"0.{day}", run=day, threads=2)
    baseline = {"baseline_benchmark": NUMPY, "baseline_case": "n=4"}
    files.time(NUMPY, "n=4", 2.0).record(NUMPY, "n=4")
    files.time(NUMBA, "n=4 block=1", 1.0 + day / 100)
    files.record(NUMBA, "n=4 block=1", **baseline, pair_ratios=(2.0, 2.1, 1.9), pair_rounds=(3,))
    files.missing(NUMBA, "n=4 block=2").record(NUMBA, "n=4 block=2", "failed", reason="no memory")
    files.not_applicable(NUMBA, "n=4 block=3")
    files.time(NUMBA, "n=4 block=4", 1.0, count=1).record(NUMBA, "n=4 block=4", "verified")
    files.record(NUMBA, "n=4 block=5", "started", timeout=60.0)
    files.missing(NUMBA, "n=4 block=6")
    files.record(NUMBA, "n=4 block=7", "skipped", reason="no device", max_abs_error=math.nan)
    return files.write()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for day in (1, 2, 3):
        write_commit(tmp_path / "results", day)
    return tmp_path / "results"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are read, as they are."""
    read: list[str] = []

    digest = digests.digest

    def noted(files: digests.Files, *rest: Any) -> digests.Digest:
        read.append(files.stem.name)
        return digest(files, *rest)

    monkeypatch.setattr(digests, "digest", noted)
    return read


def load(directory: Path) -> Results:
    return load_results(directory, cache=cache_path(directory))


def told(results: Results) -> object:
    """All that results hold, NaN made comparable."""
    return repr([(s, dict(s.outcomes), columns(s)) for s in results.snapshots]), repr(
        (results.commits, results.problems, results.machines)
    )


def columns(snapshot: Snapshot) -> object:
    found = columns_of(snapshot.outcomes)
    names, links = found.cases.names, found.cases.links
    return names, links, found.statuses.tolist(), found.times.tolist(), dict(found.ratios)


@pytest.fixture(autouse=True)
def plain_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets ``told`` compare snapshots whose outcomes are not read yet."""
    monkeypatch.setattr(loading.StoredOutcomes, "__repr__", lambda outcomes: "outcomes")


def test_columns_are_those_of_the_outcomes(directory: Path) -> None:
    for snapshot in load_results(directory).snapshots:
        kept, made = columns_of(snapshot.outcomes), columns_of(dict(snapshot.outcomes))

        assert (kept.cases.names, kept.cases.links) == (made.cases.names, made.cases.links)
        assert kept.statuses.tolist() == made.statuses.tolist()
        assert np.array_equal(kept.times, made.times, equal_nan=True)
        assert dict(kept.ratios) == dict(made.ratios)


def test_columns_of_pairs_are_those_of_the_outcomes(tmp_path: Path) -> None:
    write_benchmarks(tmp_path)
    write_format_2(tmp_path, 1, {PAIR.baseline: [8.0] * 4, PAIR.candidate: [4.0, None] * 4})
    (snapshot,) = load_results(tmp_path, pairs=[PAIR]).snapshots

    kept, made = columns_of(snapshot.outcomes), columns_of(dict(snapshot.outcomes))

    assert (kept.cases.names, kept.cases.links) == (made.cases.names, made.cases.links)
    assert kept.statuses.tolist() == made.statuses.tolist()


def test_the_second_time_says_the_same_and_reads_nothing(directory: Path, reads: list[str]) -> None:
    without = told(load_results(directory))
    first = told(load(directory))
    reads.clear()

    second = told(load(directory))

    assert first == without
    assert second == without
    assert reads == []


def test_only_what_is_new_or_has_changed_is_read(directory: Path, reads: list[str]) -> None:
    load(directory)
    write_commit(directory, 4)
    changed = CommitFiles(directory, "2" * 40, DAY * 2)
    with changed.record_path.open("a") as record:
        record.write("half a li")
    removed = CommitFiles(directory, "3" * 40, DAY * 3)
    removed.result_path.unlink()
    removed.record_path.unlink()
    reads.clear()

    results = load(directory)

    assert reads == ["22222222-virtualenv-py3.11", "44444444-virtualenv-py3.11"]
    assert told(results) == told(load_results(directory))
    assert [problem.message.partition(":")[0] for problem in results.problems] == [
        "line 8 is left out"
    ]


def test_faults_are_named_the_second_time_too(directory: Path, reads: list[str]) -> None:
    folder = directory / "runner"
    (folder / "55555555-broken.json").write_text("{")
    (folder / "66666666-foreign.json").write_text(json.dumps({"version": 99}))
    first = load(directory)
    reads.clear()

    assert load(directory).problems == first.problems
    assert [problem.path for problem in first.problems] == [
        "runner/55555555-broken.json",
        "runner/66666666-foreign.json",
    ]
    assert reads == []


def test_huge_files_are_named_and_left_out(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = CommitFiles(directory, "2" * 40, DAY * 2)
    sizes = [path.stat().st_size for path in (files.result_path, files.record_path)]
    with files.record_path.open("a") as record:
        record.write(" " * 10_000)
    monkeypatch.setattr("gpubench.results.asv_files.MOST_BYTES", 10_000)

    results = load(directory)

    assert max(sizes) < 10_000
    (problem,) = results.problems
    assert problem.path == "runner/22222222-virtualenv-py3.11.gpubench.jsonl"
    assert problem.message == (
        f"it has {sizes[1] + 10_000:,} bytes, and gpubench reads 10,000 at most; move it away"
    )


def test_a_file_that_cannot_be_opened_is_tried_again(directory: Path, reads: list[str]) -> None:
    (directory / "runner" / "55555555-folder.json").mkdir()
    load(directory)
    reads.clear()

    assert "it cannot be read" in load(directory).problems[0].message
    assert reads == ["55555555-folder"]


def shorten(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flip(content: bytes) -> bytes:
    """One bit, in a number: what follows is read as if nothing were."""
    place = content.index(np.float64(1.98).tobytes())
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def sealed(*content: object) -> bytes:
    encoded = msgspec.msgpack.encode(content)
    return zlib.crc32(encoded).to_bytes(4) + encoded


def other_rows(content: bytes) -> bytes:
    """Columns that are shorter than their cases."""
    *tables, rows = msgspec.msgpack.decode(content[4:])
    for row in rows.values():
        row[2] = row[2][:-1]
    return sealed(*tables, rows)


def other_key(content: bytes) -> bytes:
    _, *rest = msgspec.msgpack.decode(content[4:])
    return sealed("another release", *rest)


@pytest.mark.parametrize(
    "damage",
    [shorten, flip, other_rows, other_key, lambda _: b"", lambda _: b"\x00" * 100],
    ids=["truncated", "one bit", "columns too short", "another release", "empty", "foreign"],
)
def test_a_damaged_or_foreign_cache_is_written_anew(
    directory: Path, reads: list[str], damage: Callable[[bytes], bytes]
) -> None:
    expected, path = told(load(directory)), cache_path(directory)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    reads.clear()

    assert told(load(directory)) == expected
    assert len(reads) == 3
    assert path.read_bytes() == whole


def test_other_pairs_have_other_digests(directory: Path, reads: list[str]) -> None:
    load(directory)
    reads.clear()

    load_results(directory, pairs=[PAIR], cache=cache_path(directory))

    assert len(reads) == 3
    assert cache_key(1) != cache_key(2)


def test_it_stands_beside_the_results_and_git_ignores_it(directory: Path) -> None:
    load(directory)
    folder = directory.parent / ".gpubench-cache"

    assert cache_path(directory).parent == folder
    assert (folder / ".gitignore").read_text() == "*\n"
    assert sorted(path.name for path in folder.iterdir()) == [
        ".gitignore",
        cache_path(directory).name,
    ]


def test_where_none_can_be_written_there_is_none(directory: Path) -> None:
    (directory.parent / ".gpubench-cache").write_text("in the way")

    assert told(load(directory)) == told(load_results(directory))


def test_an_unchanged_cache_is_not_written(directory: Path) -> None:
    load(directory)
    os.utime(cache_path(directory), ns=(0, 0))

    load(directory)

    assert cache_path(directory).stat().st_mtime_ns == 0


def test_outcomes_that_were_written_anew_since_keep_what_the_columns_tell(directory: Path) -> None:
    snapshot = load(directory).snapshots[0]
    files = CommitFiles(directory, "1" * 40, DAY)
    files.result_path.unlink()
    files.record_path.unlink()

    outcomes = {name.case: outcome for name, outcome in snapshot.outcomes.items()}

    assert outcomes["n=4"].status == "ok"
    assert outcomes["n=4"].timing and outcomes["n=4"].timing.median == 2.0
    assert (outcomes["n=4 block=2"].status, outcomes["n=4 block=2"].timing) == ("failed", None)
