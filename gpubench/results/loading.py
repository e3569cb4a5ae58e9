"""Results directory to ``Results``: each file once, what cannot be read named and left out."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from gpubench.errors import ResultsError
from gpubench.names import BenchmarkName, parse_benchmark_name
from gpubench.record import SUFFIX
from gpubench.results.asv_files import (
    Described,
    ResultFile,
    UnreadableFile,
    read_benchmarks,
    read_machine,
    read_result_file,
    result_paths,
)
from gpubench.results.commits import order_commits
from gpubench.results.model import Pair, Problem, Results, Snapshot
from gpubench.results.outcomes import join
from gpubench.results.pairs import Roles, roles_of, unfit, with_partners
from gpubench.results.records import RecordFile, read_record


@dataclass(frozen=True, slots=True)
class _Files:
    """A result file and the record beside it, either of which may be missing."""

    stem: Path
    result: ResultFile | None
    record: RecordFile


def load_results(
    results_dir: Path, repository: Path | None = None, pairs: Iterable[Pair] = ()
) -> Results:
    """Read asv's results and the records beside them.

    ``results_dir`` is asv's (``.asv/results``); one that does not exist holds no results.
    ``repository`` orders the commits and gives their subjects. ``pairs`` are benchmarks of an asv
    project that are reported as kernels. Files that are damaged, foreign or half-written are
    named in ``problems``. Raises ``ResultsError`` where ``results_dir`` is a file.
    """
    if results_dir.exists() and not results_dir.is_dir():
        raise ResultsError(f"{results_dir} is a file; give the directory, such as .asv/results")
    problems: list[Problem] = []
    pairs = tuple(pairs)
    machines = _read_machines(results_dir, problems)
    described = _read_described(results_dir, problems)
    roles = roles_of(pairs, described)
    files = _read_files(results_dir, roles, problems)
    hashes = _full_hashes(files)
    commits = order_commits(_dates(files, hashes), repository)
    snapshots = _snapshots(files, hashes, pairs)
    place = {commit.hash: index for index, commit in enumerate(commits)}
    snapshots.sort(key=lambda s: (place[s.commit], s.machine, s.environment))
    seen = {b.name for file in files if file.result for b in file.result.benchmarks}
    problems += unfit(pairs, seen, described)
    sources = _sources(seen, roles, described)
    return Results(tuple(snapshots), commits, machines, tuple(problems), sources)


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


def _read_files(results_dir: Path, roles: Roles, problems: list[Problem]) -> list[_Files]:
    results = {path.with_suffix(""): path for path in result_paths(results_dir)}
    records = {
        path.with_name(path.name.removesuffix(SUFFIX)): path
        for path in sorted(results_dir.glob(f"*/*{SUFFIX}"))
    }
    files = []
    for stem in sorted(results.keys() | records.keys()):
        result = _read_result(results.get(stem), results_dir, roles, problems)
        record = _read_record(records.get(stem), results_dir, problems)
        if (result and result.benchmarks) or record.told:
            files.append(_Files(stem, result, record))
    return files


def _read_result(
    path: Path | None, results_dir: Path, roles: Roles, problems: list[Problem]
) -> ResultFile | None:
    if path is None:
        return None
    name = path.relative_to(results_dir).as_posix()
    try:
        result = read_result_file(path, roles)
    except UnreadableFile as error:
        problems.append(Problem(name, str(error)))
        return None
    problems.extend(Problem(name, fault) for fault in result.faults)
    if result.machine != path.parent.name:
        message = f"it is of the machine {result.machine!r}, in the folder of another"
        problems.append(Problem(name, message))
        return None
    return result


def _read_record(path: Path | None, results_dir: Path, problems: list[Problem]) -> RecordFile:
    if path is None:
        return RecordFile()
    record = read_record(path)
    name = path.relative_to(results_dir).as_posix()
    problems.extend(Problem(name, fault) for fault in record.faults)
    return record


def _stem_commit(stem: Path) -> str:
    return stem.name.partition("-")[0]


def _full_hashes(files: Iterable[_Files]) -> dict[Path, str]:
    """Commit of each file; a record alone knows eight characters, other files may know the rest."""
    known = {file.result.commit[:8]: file.result.commit for file in files if file.result}
    return {
        file.stem: file.result.commit
        if file.result
        else known.get(_stem_commit(file.stem), _stem_commit(file.stem))
        for file in files
    }


def _dates(files: Iterable[_Files], hashes: Mapping[Path, str]) -> dict[str, float]:
    dates: dict[str, float] = {}
    for file in files:
        if file.result:
            dates[hashes[file.stem]] = file.result.date
        else:
            dates.setdefault(hashes[file.stem], _seconds(file.record.at))
    return dates


def _seconds(at: str | None) -> float:
    try:
        return datetime.fromisoformat(at or "").timestamp()
    except ValueError:
        return 0.0


def _snapshots(
    files: Sequence[_Files], hashes: Mapping[Path, str], pairs: Sequence[Pair]
) -> list[Snapshot]:
    newest = _newest_versions(files)
    return [_snapshot(file, hashes[file.stem], newest, pairs) for file in files]


def _newest_versions(files: Iterable[_Files]) -> dict[str, str | None]:
    """Version of each asv benchmark when it last ran; values of another are another history."""
    latest: dict[str, tuple[float, str | None]] = {}
    for file in files:
        if file.result is None:
            continue
        for benchmark in file.result.benchmarks:
            name = benchmark.name.asv_name
            at = benchmark.started_at or file.result.date  # older files do not tell the first
            if name not in latest or at >= latest[name][0]:
                latest[name] = (at, benchmark.version)
    return {name: version for name, (_, version) in latest.items()}


def _snapshot(
    file: _Files, commit: str, newest: Mapping[str, str | None], pairs: Sequence[Pair]
) -> Snapshot:
    result, record = file.result, file.record
    benchmarks = result.benchmarks if result else ()
    superseded = frozenset(
        b.name.asv_name for b in benchmarks if b.version not in (None, newest[b.name.asv_name])
    )
    return Snapshot(
        machine=file.stem.parent.name,
        environment=result.environment if result else file.stem.name.partition("-")[2],
        commit=commit,
        date=result.date if result else _seconds(record.at),
        outcomes=with_partners(join(benchmarks, record.told, superseded), pairs),
        facts=record.facts,
        params=result.params if result else {},
        measured_at=record.at,
        superseded=tuple(sorted(superseded)),
    )
