"""Opens results: files are read, rows stored, and snapshots put in the order of commits."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb

from gpubench.errors import ResultsError
from gpubench.git import Repository
from gpubench.links import leads_out
from gpubench.names import BenchmarkName, is_rate, parse_benchmark_name
from gpubench.results import store
from gpubench.results.asv_files import read_benchmarks, read_machine, read_names
from gpubench.results.asv_json import UnreadableFile
from gpubench.results.commits import CommitOrder, histories_of
from gpubench.results.model import (
    EVERY,
    NO_RENAMES,
    Described,
    Pair,
    PairPattern,
    Problem,
    Renames,
    Setup,
    Snapshot,
)
from gpubench.results.pairs import BenchmarkPairs, alone, resolved, unfit, unreadable_kinds
from gpubench.results.reading import SnapshotFiles, snapshot_files
from gpubench.results.running import running
from gpubench.results.table import T, Table


@store.interruptible()
def open_table(
    results_dir: Path,
    repository: Repository | None = None,
    pairs: Iterable[Pair | PairPattern] = (),
    path: Path | None = None,
    renames: Renames = NO_RENAMES,
    branches: Sequence[str] = (),
    name_of: Callable[[str], str] = str,
    thresholds: Sequence[tuple[str, float]] = (),
    commit_url: str = "",
    higher_is_better: Sequence[str] = (),
) -> Table:
    """Read asv's results and the records beside them.

    ``results_dir`` is asv's (``.asv/results``); one that does not exist holds no results.
    ``repository`` orders the commits and gives their subjects; each of ``branches`` makes a history
    of the commits that it contains (``histories_of``). ``name_of`` gives the name under which a
    machine's results are shown: of machines with one name, a commit's newest result counts, and
    ``problems`` names the others. ``pairs`` are benchmarks of an asv
    project that are reported as kernels; all others that are not gpubench's are reported alone.
    ``renames`` are names that results appear under
    instead of those that they were measured under. ``path`` is the file that keeps the table;
    without it, or where it is locked or cannot be written, which ``problems`` names, the table is
    in memory alone.
    Files that are damaged, foreign or half-written are named in ``problems``. Raises
    ``ResultsError`` where ``results_dir`` is a file, and ``DamagedTable``, here and where the table
    is asked later, where a part of its file cannot be read: done again, it is made anew.
    """
    if results_dir.exists() and not results_dir.is_dir():
        raise ResultsError(f"{results_dir} is a file; give the directory, such as .asv/results")
    problems: list[Problem] = []
    refused: list[Problem] = []
    files = snapshot_files(results_dir, lambda file, why: refused.append(Problem(file, why)))
    machines = {
        file.parent.name: facts
        for file in sorted(folder / "machine.json" for folder in results_dir.glob("*/"))
        if (facts := _read(read_machine, file, results_dir, problems))
    }
    described = _described(files, results_dir, problems)
    in_pairs, said, unmatched = resolved(tuple(pairs), described)
    said += unreadable_kinds(described)
    chosen = (*in_pairs, *alone(described, in_pairs))
    benchmark_pairs = BenchmarkPairs.of(chosen, described, renames)
    problems += [*said, *refused]
    # Without results there is no folder to keep the table in.
    connection, path = _connect(path if files else None, files, benchmark_pairs, problems)
    stored, started, ran = store.ask(connection, path, _heads)
    problems += [Problem(*fault) for head in stored for fault in json.loads(head["faults"])]
    problems += _unlisted(stored)
    stored = [head for head in stored if not head["is_empty"]]
    order = _order(stored, repository, branches, commit_url)
    # Without a benchmark of gpubench's there is no record either.
    planned = sum(each.cases for name, each in described.items() if parse_benchmark_name(name))
    key = store.key_of(benchmark_pairs)
    snapshots = _snapshots(stored, files, order, key, name_of, planned or None)
    if any(snapshot.setup.machine != snapshot.measured_on for snapshot in snapshots):
        snapshots, again = _newest_of_each(snapshots, started)
        problems += again
    paired = {
        place.asv_name: place for of_name in benchmark_pairs.places.values() for place in of_name
    }
    benchmarks = {name for text in ran if (name := paired.get(text) or parse_benchmark_name(text))}
    problems += unfit(benchmark_pairs.every, benchmarks, described)
    return Table(
        connection,
        path,
        order.commits,
        order,
        machines,
        tuple(problems),
        _find_sources(described, benchmark_pairs, benchmarks),
        results_dir,
        repository,
        _divide_by_setup(snapshots, order),
        unmatched_patterns=unmatched,
        thresholds=tuple(thresholds),
        asv_names={
            place: name for name, places in benchmark_pairs.places.items() for place in places
        },
        kinds={name: entry.kind for name, entry in described.items() if entry.kind},
        rates=frozenset(
            name
            for name, entry in described.items()
            if is_rate(entry.unit) or any(re.match(one, name) for one in higher_is_better)
        ),
    )


def _order(
    stored: Sequence[Mapping[str, Any]],
    repository: Repository | None,
    branches: Sequence[str],
    commit_url: str,
) -> CommitOrder:
    """Order the commits of snapshots, and give each the address of its page."""
    dates: dict[str, float] = {}
    for head in sorted(stored, key=lambda head: not head["has_result"]):
        dates.setdefault(head["commit"], head["date"])  # a record knows its own date only
    order = histories_of(dates, repository, branches)
    if not commit_url:
        return order
    linked = (replace(one, address=f"{commit_url}{one.hash}") for one in order.commits)
    return replace(order, commits=tuple(linked))


def _unlisted(stored: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Name the benchmarks with results that ``benchmarks.json`` does not list."""
    for name in sorted({name for head in stored for name in json.loads(head["unlisted"])}):
        message = f"{name} is left out: it has results, and benchmarks.json does not list it"
        yield Problem("benchmarks.json", message)


def _connect(
    path: Path | None,
    files: Sequence[SnapshotFiles],
    pairs: BenchmarkPairs,
    problems: list[Problem],
) -> tuple[duckdb.DuckDBPyConnection, Path | None]:
    """Open the table's file, brought up to date, and return it with its path; where it cannot be,
    which is added to ``problems``, a table in memory."""
    if path is not None:
        try:
            return store.up_to_date(path, files, pairs), path
        except store.Busy as error:
            message = f"{error}; all results were read anew, and are not kept"
            problems.append(Problem(f"{path.parent.name}/{path.name}", message))
    return store.in_memory(files, pairs), None


def _divide_by_setup(
    snapshots: Sequence[Snapshot], order: CommitOrder
) -> dict[Setup, list[Snapshot]]:
    """Return the snapshots of each setup in the order of its branch's commits; of several branches
    each makes a setup, and ``EVERY`` has all commits."""
    of_commit = defaultdict[str, list[Snapshot]](list)
    for snapshot in snapshots:
        of_commit[snapshot.commit.hash].append(snapshot)
    by_setup = defaultdict[Setup, list[Snapshot]](list)
    every = tuple(commit.hash for commit in order.commits)
    for branch, hashes in {**order.histories, EVERY: every}.items():
        own = branch if len(order.histories) > 1 or branch == EVERY else ""
        for snapshot in chain.from_iterable(of_commit[hash_] for hash_ in hashes):
            by_setup[replace(snapshot.setup, branch=own)].append(snapshot)
    return by_setup


def _find_sources(
    described: Mapping[str, Described], pairs: BenchmarkPairs, benchmarks: Set[BenchmarkName]
) -> dict[BenchmarkName, str]:
    """Return the source of each benchmark, as asv describes it under its name of now, or else under
    an old one."""
    sources: dict[BenchmarkName, str] = {}
    for asv_name, entry in described.items():
        measured = parse_benchmark_name(asv_name)
        now = pairs.renames.benchmark(measured) if measured else None
        for name in (now, *pairs.places.get(asv_name, ())):
            if name is None or name not in benchmarks or not entry.source:
                continue
            if name == measured or name not in sources:
                sources[name] = entry.source
    return sources


def _heads(
    table: duckdb.DuckDBPyConnection,
) -> tuple[list[dict[str, Any]], dict[int, float], set[str]]:
    """Return what the table says of snapshots, when the newest benchmark of each began, and asv's
    names of all benchmarks."""
    heads = store.records(
        table,
        """
        select s.*, t.benchmarks as superseded from snapshots s left join (
            select snapshot, list(benchmark) as benchmarks from superseded group by snapshot
        ) t on t.snapshot = s.id
        order by s.name
        """,
    )
    newest = "select snapshot, max(started_at) from versions group by snapshot"
    names = table.execute("select distinct benchmark from versions").fetchall()
    return heads, dict(table.execute(newest).fetchall()), {name for (name,) in names}


def _read(
    reader: Callable[[Path], Mapping[str, T]],
    file: Path,
    results_dir: Path,
    problems: list[Problem],
) -> Mapping[str, T]:
    """Return what a file of asv's says; nothing where it is missing or damaged, which is told."""
    if not os.path.lexists(file) or leads_out(file, results_dir):  # told with the other links
        return {}
    try:
        return reader(file)
    except UnreadableFile as error:
        problems.append(Problem(file.relative_to(results_dir).as_posix(), str(error)))
        return {}


def _described(
    files: Sequence[SnapshotFiles], results_dir: Path, problems: list[Problem]
) -> Mapping[str, Described]:
    """Return what asv says of its benchmarks, by their names."""
    described = _read(read_benchmarks, results_dir / "benchmarks.json", results_dir, problems)
    if not described:
        # Those that it would list: the largest file of a machine has most of its benchmarks.
        by_size = sorted(files, key=lambda item: item.sizes[0])
        largest = {item.name.partition("/")[0]: item for item in by_size}
        for file in filter(None, (item.result for item in largest.values())):
            with suppress(UnreadableFile):  # which is told where its times are read
                described = {**described, **read_names(file)}
    return described


def _snapshots(
    stored: Sequence[Mapping[str, Any]],
    files: Sequence[SnapshotFiles],
    order: CommitOrder,
    key: str,
    name_of: Callable[[str], str],
    planned: int | None,
) -> list[Snapshot]:
    """Make the snapshots of what the table says of them; ``planned`` cases are to be measured by a
    run that is at work."""
    commit_of = {commit.hash: commit for commit in order.commits}
    files_of = {file.name: file for file in files}
    snapshots = []
    for head in stored:
        commit, facts = commit_of[head["commit"]], json.loads(head["facts"])
        setup = Setup(name_of(head["machine"]), head["environment"])
        at_work = running(files_of[head["name"]], facts, planned)
        superseded = tuple(sorted(head["superseded"] or ()))
        told = key, head["name"], head["stamp"], commit, setup, superseded, at_work
        snapshots.append(
            Snapshot(
                id=head["id"],
                setup=setup,
                measured_on=head["machine"],
                commit=commit,
                facts=facts,
                concerns={name: tuple(of) for name, of in json.loads(head["concerns"]).items()},
                params=json.loads(head["params"]),
                measured_at=head["measured_at"],
                superseded=superseded,
                running=at_work,
                digest=store.digest(repr(told)),
            )
        )
    return snapshots


def _newest_of_each(
    snapshots: Sequence[Snapshot], started: Mapping[int, float]
) -> tuple[list[Snapshot], list[Problem]]:
    """Return one snapshot for each commit of a setup, the one measured last, and say which others
    there are. ``started`` has the seconds since 1970 at which its newest benchmark began."""
    newest: dict[tuple[Setup, str], Snapshot] = {}
    problems = []
    for snapshot in sorted(
        snapshots, key=lambda s: (started.get(s.id) or 0.0, s.measured_at or "", s.measured_on)
    ):
        place = snapshot.setup, snapshot.commit.hash
        if older := newest.get(place):
            path = f"{older.measured_on}/{older.commit.hash[:8]}-{older.setup.environment}.json"
            later = f"as {snapshot.measured_on}, {snapshot.setup.machine} measured the commit later"
            problems.append(Problem(path, f"another result counts: {later}"))
        newest[place] = snapshot
    return [*newest.values()], problems
