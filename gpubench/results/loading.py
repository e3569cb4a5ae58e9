"""Results directory to ``Results``: each file once, what cannot be read named and left out."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gpubench.collecting import without_collecting
from gpubench.errors import ResultsError
from gpubench.names import BenchmarkName, parse_benchmark_name
from gpubench.parallel import spread
from gpubench.record import SUFFIX
from gpubench.results.asv_files import (
    Described,
    UnreadableFile,
    read_benchmarks,
    read_machine,
    result_paths,
)
from gpubench.results.cache import cache_key, read_cache, write_cache
from gpubench.results.columns import StoredOutcomes
from gpubench.results.commits import order_commits
from gpubench.results.digests import (
    Digest,
    Files,
    Stamp,
    Versions,
    digest_all,
    read_outcomes,
    sharing,
)
from gpubench.results.model import CaseName, Outcome, Pair, Problem, Results, Snapshot
from gpubench.results.pairs import Roles, roles_of, unfit

MUCH = 2**25
"""Bytes to read from which more than one process does."""

FEW = 100
"""One file of so many is read again in less time than the cache is written in."""

_Read = dict[Files, Digest]
"""What has something of gpubench's in it, in the order of the paths."""

_Stamps = Mapping[Path, Stamp]
"""By the path of a result file and its record, without suffix."""


def load_results(
    results_dir: Path,
    repository: Path | None = None,
    pairs: Iterable[Pair] = (),
    cache: Path | None = None,
) -> Results:
    """Read asv's results and the records beside them.

    ``results_dir`` is asv's (``.asv/results``); one that does not exist holds no results.
    ``repository`` orders the commits and gives their subjects. ``pairs`` are benchmarks of an asv
    project that are reported as kernels. ``cache`` is a file that keeps what was read, for the next
    time; with it, several processes read where there is much. Files that are damaged, foreign or
    half-written are named in ``problems``. Raises ``ResultsError`` where ``results_dir`` is a file.

    Histories are made from the snapshots' columns. The rest of a snapshot's outcomes is read from
    its files again when one is asked for, as reports do for the newest.
    """
    if results_dir.exists() and not results_dir.is_dir():
        raise ResultsError(f"{results_dir} is a file; give the directory, such as .asv/results")
    problems: list[Problem] = []
    pairs = tuple(pairs)
    machines = _read_machines(results_dir, problems)
    described = _read_described(results_dir, problems)
    roles = roles_of(pairs, described)
    with without_collecting():
        read, stamps = _read(results_dir, roles, pairs, cache, problems)
    hashes = _full_hashes(read)
    commits = order_commits(_dates(read, hashes), repository)
    snapshots = _snapshots(read, stamps, hashes, roles, pairs)
    place = {commit.hash: index for index, commit in enumerate(commits)}
    snapshots.sort(key=lambda s: (place[s.commit], s.machine, s.environment))
    seen = _benchmarks(read)
    problems += unfit(pairs, seen, described)
    sources = _sources(seen, roles, described)
    return Results(tuple(snapshots), commits, machines, tuple(problems), sources, cache)


def _read_described(results_dir: Path, problems: list[Problem]) -> Mapping[str, Described]:
    path = results_dir / "benchmarks.json"
    try:
        return read_benchmarks(path) if path.exists() else {}
    except UnreadableFile as error:
        problems.append(Problem(path.name, str(error)))
        return {}


def _sources(
    seen: Container[BenchmarkName], roles: Roles, described: Mapping[str, Described]
) -> dict[BenchmarkName, str]:
    """Code of the benchmarks that are reported, their places in pairs included."""
    sources: dict[BenchmarkName, str] = {}
    for asv_name, found in described.items():
        own = parse_benchmark_name(asv_name)
        names = (*((own,) if own else ()), *roles.names.get(asv_name, ()))
        sources |= {name: found.source for name in names if found.source and name in seen}
    return sources


def _read_machines(results_dir: Path, problems: list[Problem]) -> dict[str, Mapping[str, Any]]:
    machines = {}
    for path in sorted(results_dir.glob("*/machine.json")):
        try:
            machines[path.parent.name] = read_machine(path)
        except UnreadableFile as error:
            problems.append(Problem(path.relative_to(results_dir).as_posix(), str(error)))
    return machines


def _files(results_dir: Path) -> list[Files]:
    results = {path.with_suffix(""): path for path in result_paths(results_dir)}
    records = {
        path.with_name(path.name.removesuffix(SUFFIX)): path
        for path in results_dir.glob(f"*/*{SUFFIX}")
    }
    stems = sorted(results.keys() | records.keys())
    return [Files(stem, results.get(stem), records.get(stem)) for stem in stems]


def _read(
    results_dir: Path,
    roles: Roles,
    pairs: Sequence[Pair],
    cache: Path | None,
    problems: list[Problem],
) -> tuple[_Read, _Stamps]:
    """Digests of all files, those of unchanged files from the cache; faults become problems."""
    key = cache_key(roles, pairs)
    known = read_cache(cache, key) if cache else {}
    listed = [(files, _name(files, results_dir), files.stamp()) for files in _files(results_dir)]
    changed = [each for each in listed if known.get(each[1], (None,))[0] != each[2]]
    size = sum(stamp[0] + stamp[2] for _, _, stamp in changed)
    digests = spread(
        partial(digest_all, roles=roles, pairs=pairs),
        [files for files, _, _ in changed],
        None if cache and size >= MUCH else 1,
    )
    new = {name: (stamp, told) for (_, name, stamp), told in zip(changed, digests, strict=True)}
    found: dict[str, tuple[Stamp, Digest]] = {}
    read: _Read = {}
    every = sharing((new.get(name) or known[name])[1] for _, name, _ in listed)
    for (files, name, stamp), told in zip(listed, every, strict=True):
        found[name] = stamp, told
        problems += _problems(files, told, results_dir)
        if told.told:
            read[files] = told
    different = len(changed) + len(known.keys() - found.keys())
    if cache and different > len(listed) // FEW:
        write_cache(cache, key, found)
    return read, {files.stem: stamp for files, _, stamp in listed}


def _name(files: Files, results_dir: Path) -> str:
    return files.stem.relative_to(results_dir).as_posix()


def _problems(files: Files, told: Digest, results_dir: Path) -> Iterator[Problem]:
    for path, faults in (
        (files.result, told.result_faults),
        (files.record, told.record_faults),
    ):
        if path and faults:
            name = path.relative_to(results_dir).as_posix()
            yield from (Problem(name, fault) for fault in faults)


def _benchmarks(read: _Read) -> set[BenchmarkName]:
    """Benchmarks that result files have values of."""
    names = {name for versions, _ in _by_versions(read).values() for name, _ in versions}
    return {parsed for name in names if (parsed := parse_benchmark_name(name))}


def _by_versions(read: _Read) -> dict[int, tuple[Versions, list[Digest]]]:
    """Files by their benchmarks and versions, the same ones together."""
    found: dict[int, tuple[Versions, list[Digest]]] = {}
    for told in read.values():
        found.setdefault(id(told.versions), (told.versions, []))[1].append(told)
    return found


def _stem_commit(stem: Path) -> str:
    return stem.name.partition("-")[0]


def _full_hashes(read: _Read) -> dict[Path, str]:
    """Commit of each file; a record alone knows eight characters, other files may know the rest."""
    known = {told.head.commit[:8]: told.head.commit for told in read.values() if told.head}
    return {
        files.stem: told.head.commit
        if told.head
        else known.get(_stem_commit(files.stem), _stem_commit(files.stem))
        for files, told in read.items()
    }


def _dates(read: _Read, hashes: Mapping[Path, str]) -> dict[str, float]:
    dates: dict[str, float] = {}
    for files, told in read.items():
        if told.head:
            dates[hashes[files.stem]] = told.head.date
        else:
            dates.setdefault(hashes[files.stem], _seconds(told.at))
    return dates


def _seconds(at: str | None) -> float:
    try:
        return datetime.fromisoformat(at or "").timestamp()
    except ValueError:
        return 0.0


def _snapshots(
    read: _Read,
    stamps: _Stamps,
    hashes: Mapping[Path, str],
    roles: Roles,
    pairs: Sequence[Pair],
) -> list[Snapshot]:
    newest = _newest_versions(read)
    superseded = {
        key: _superseded(versions, newest) for key, (versions, _) in _by_versions(read).items()
    }
    return [
        _snapshot(
            files,
            told,
            stamps[files.stem],
            hashes[files.stem],
            superseded[id(told.versions)],
            partial(read_outcomes, files, roles, pairs),
        )
        for files, told in read.items()
    ]


def _newest_versions(read: _Read) -> dict[str, str | None]:
    """Version of each asv benchmark when it last ran; values of another are another history."""
    latest: dict[str, tuple[float, str | None]] = {}
    for versions, files in _by_versions(read).values():
        # older files do not tell when it started
        dates = np.array([told.head.date if told.head else 0.0 for told in files])
        started = np.stack([told.started_at for told in files])
        last = np.where(started > 0, started, dates[:, None]).max(axis=0)
        for (benchmark, version), at in zip(versions, last.tolist(), strict=True):
            if benchmark not in latest or at >= latest[benchmark][0]:
                latest[benchmark] = (at, version)
    return {name: version for name, (_, version) in latest.items()}


def _superseded(versions: Versions, newest: Mapping[str, str | None]) -> frozenset[str]:
    """Benchmarks of a file that another version of has run since."""
    return frozenset(name for name, own in versions if own not in (None, newest[name]))


def _snapshot(
    files: Files,
    told: Digest,
    stamp: Stamp,
    commit: str,
    superseded: frozenset[str],
    read: Callable[[], Mapping[CaseName, Outcome]],
) -> Snapshot:
    head = told.head
    columns = told.columns
    if superseded:
        columns = columns.without(lambda name: name.benchmark.asv_name in superseded)
    return Snapshot(
        machine=files.stem.parent.name,
        environment=head.environment if head else files.stem.name.partition("-")[2],
        commit=commit,
        date=head.date if head else _seconds(told.at),
        outcomes=StoredOutcomes(columns, read),
        facts=told.facts,
        params=head.params if head else {},
        measured_at=told.at,
        superseded=tuple(sorted(superseded)),
        stamp=stamp,
    )
