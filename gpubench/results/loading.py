"""Results directory to ``Results``: each file once, what cannot be read named and left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from gpubench.errors import ResultsError
from gpubench.record import SUFFIX
from gpubench.results.asv_files import (
    ResultFile,
    UnreadableFile,
    read_machine,
    read_result_file,
    result_paths,
)
from gpubench.results.commits import order_commits
from gpubench.results.model import Problem, Results, Snapshot
from gpubench.results.outcomes import join
from gpubench.results.records import RecordFile, read_record


@dataclass(frozen=True, slots=True)
class _Pair:
    """A result file and the record beside it, either of which may be missing."""

    stem: Path
    result: ResultFile | None
    record: RecordFile


def load_results(results_dir: Path, repository: Path | None = None) -> Results:
    """Read asv's results and the records beside them.

    ``results_dir`` is asv's (``.asv/results``); one that does not exist holds no results.
    ``repository`` orders the commits and gives their subjects. Files that are damaged, foreign
    or half-written are named in ``problems``. Raises ``ResultsError`` where ``results_dir`` is
    a file.
    """
    if results_dir.exists() and not results_dir.is_dir():
        raise ResultsError(f"{results_dir} is a file; give the directory, such as .asv/results")
    problems: list[Problem] = []
    machines = _read_machines(results_dir, problems)
    pairs = _read_pairs(results_dir, problems)
    hashes = _full_hashes(pairs)
    commits = order_commits(_dates(pairs, hashes), repository)
    snapshots = _snapshots(pairs, hashes)
    place = {commit.hash: index for index, commit in enumerate(commits)}
    snapshots.sort(key=lambda s: (place[s.commit], s.machine, s.environment))
    return Results(tuple(snapshots), commits, machines, tuple(problems))


def _read_machines(results_dir: Path, problems: list[Problem]) -> dict[str, Mapping[str, Any]]:
    machines = {}
    for path in sorted(results_dir.glob("*/machine.json")):
        try:
            machines[path.parent.name] = read_machine(path)
        except UnreadableFile as error:
            problems.append(Problem(path.relative_to(results_dir).as_posix(), str(error)))
    return machines


def _read_pairs(results_dir: Path, problems: list[Problem]) -> list[_Pair]:
    results = {path.with_suffix(""): path for path in result_paths(results_dir)}
    records = {
        path.with_name(path.name.removesuffix(SUFFIX)): path
        for path in sorted(results_dir.glob(f"*/*{SUFFIX}"))
    }
    pairs = []
    for stem in sorted(results.keys() | records.keys()):
        result = _read_result(results.get(stem), results_dir, problems)
        record = _read_record(records.get(stem), results_dir, problems)
        if result or record.told:
            pairs.append(_Pair(stem, result, record))
    return pairs


def _read_result(
    path: Path | None, results_dir: Path, problems: list[Problem]
) -> ResultFile | None:
    if path is None:
        return None
    name = path.relative_to(results_dir).as_posix()
    try:
        result = read_result_file(path)
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


def _full_hashes(pairs: Iterable[_Pair]) -> dict[Path, str]:
    """Commit of each pair; a record alone knows eight characters, other files may know the rest."""
    known = {pair.result.commit[:8]: pair.result.commit for pair in pairs if pair.result}
    return {
        pair.stem: pair.result.commit
        if pair.result
        else known.get(_stem_commit(pair.stem), _stem_commit(pair.stem))
        for pair in pairs
    }


def _dates(pairs: Iterable[_Pair], hashes: Mapping[Path, str]) -> dict[str, float]:
    dates: dict[str, float] = {}
    for pair in pairs:
        if pair.result:
            dates[hashes[pair.stem]] = pair.result.date
        else:
            dates.setdefault(hashes[pair.stem], _seconds(pair.record.at))
    return dates


def _seconds(at: str | None) -> float:
    try:
        return datetime.fromisoformat(at or "").timestamp()
    except ValueError:
        return 0.0


def _snapshots(pairs: Iterable[_Pair], hashes: Mapping[Path, str]) -> list[Snapshot]:
    pairs = list(pairs)
    newest = _newest_versions(pairs)
    return [_snapshot(pair, hashes[pair.stem], newest) for pair in pairs]


def _newest_versions(pairs: Iterable[_Pair]) -> dict[str, str | None]:
    """Version of each asv benchmark when it last ran; values of another are another history."""
    latest: dict[str, tuple[float, str | None]] = {}
    for pair in pairs:
        for benchmark in pair.result.benchmarks if pair.result else ():
            name = benchmark.name.asv_name
            if name not in latest or benchmark.started_at >= latest[name][0]:
                latest[name] = (benchmark.started_at, benchmark.version)
    return {name: version for name, (_, version) in latest.items()}


def _snapshot(pair: _Pair, commit: str, newest: Mapping[str, str | None]) -> Snapshot:
    result, record = pair.result, pair.record
    benchmarks = result.benchmarks if result else ()
    superseded = frozenset(
        b.name.asv_name for b in benchmarks if b.version not in (None, newest[b.name.asv_name])
    )
    return Snapshot(
        machine=pair.stem.parent.name,
        environment=result.environment if result else pair.stem.name.partition("-")[2],
        commit=commit,
        date=result.date if result else _seconds(record.at),
        outcomes=join(benchmarks, record.told, superseded),
        facts=record.facts,
        measured_at=record.at,
        superseded=tuple(sorted(superseded)),
    )
