"""Reads asv's own files: result files and ``benchmarks.json`` (formats 1, 2), ``machine.json``."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpubench.errors import GpubenchError
from gpubench.names import BenchmarkName, parse_benchmark_name
from gpubench.results.model import Timing

FORMATS = (1, 2)
"""Versions of asv's result files that are read."""

MOST_BYTES = 2**28
"""A file of asv has some hundred bytes for each case; a larger one is something else."""

_COMMIT = re.compile(r"[0-9a-f]{8,64}")
_COLUMNS = (
    "result",
    "stats_ci_99_a",
    "stats_ci_99_b",
    "stats_q_25",
    "stats_q_75",
    "stats_number",
    "stats_repeat",
)
_ENDS = 3
"""How many of these, the first ones, are a time's median and ends."""


class UnreadableFile(GpubenchError):
    """A file that is damaged, truncated or none of asv's."""


class PairRoles(Protocol):
    """What benchmarks that are not gpubench's stand for in pairs."""

    @property
    def names(self) -> Mapping[str, tuple[BenchmarkName, ...]]:
        """Places in pairs, by asv's name."""
        ...

    def identities(self, asv_name: str, parameters: Any) -> Sequence[str]:
        """Identity of each case, in the order of the stored values."""
        ...


@dataclass(frozen=True, slots=True)
class Described:
    """What asv's ``benchmarks.json`` says of one benchmark."""

    param_names: tuple[str, ...] = ()
    kind: str = ""
    """``time``, ``track``, ``memory`` or ``peakmemory``; empty when unknown."""
    source: str = ""
    """The code that the benchmark shows; empty when unknown."""


Time = tuple[float, float, float]
"""Median and both ends of its interval, seconds; a NaN as the median where asv stored ``n/a``."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredBenchmark:
    """One gpubench benchmark in a result file: columns with a value for each case."""

    name: BenchmarkName
    asv_name: str
    """asv's; that of its place for one in a pair."""
    version: str | None
    started_at: float
    """Seconds since 1970; 0 when not stored."""
    cases: tuple[str, ...]
    """Identities."""
    medians: Sequence[float | None]
    """``None`` where asv stored nothing: the case failed. NaN: it raised
    ``NotImplementedError``."""
    ends: NDArray[np.float64]
    """Median and both ends of its interval in seconds, shape (3, cases); NaN without a time."""
    details: tuple[Sequence[Any], ...]
    """Both quartiles, calls in a sample, samples."""

    def times(self) -> list[Time | None]:
        """Time of each case."""
        columns = zip(self.medians, self.ends.T.tolist(), strict=True)
        return [None if median is None else (own[0], own[1], own[2]) for median, own in columns]

    def timing(self, row: int) -> Timing | None:
        """All that is stored of one time."""
        median, low, high = self.ends[:, row].tolist()
        if math.isnan(median):
            return None
        q25, q75, number, repeat = (column[row] for column in self.details)
        return Timing(
            median,
            low,
            high,
            q25=q25,
            q75=q75,
            number=None if number is None else int(number),
            repeat=None if repeat is None else int(repeat),
            version=self.version,
        )


@dataclass(frozen=True, slots=True)
class ResultFile:
    """One of asv's result files."""

    machine: str
    environment: str
    commit: str
    date: float
    """Seconds since 1970."""
    benchmarks: tuple[StoredBenchmark, ...]
    faults: tuple[str, ...]
    """Benchmarks in it that could not be read, one sentence each."""
    params: Mapping[str, str] = field(default_factory=dict)
    """Machine and environment as asv describes them; requirements without a version left out."""


def read_machine(path: Path) -> Mapping[str, Any]:
    """Facts from a ``machine.json``; raises ``UnreadableFile``."""
    facts = _read_object(path)
    if not isinstance(facts.get("machine"), str):
        raise UnreadableFile("it names no machine, so it is not asv's; run `asv machine`")
    return {key: value for key, value in facts.items() if key != "version"}


def read_benchmarks(path: Path) -> Mapping[str, Described]:
    """What ``benchmarks.json`` says of each benchmark, by its name; raises ``UnreadableFile``."""
    content = _read_json(path)
    if isinstance(content, dict):
        entries = [item for item in content.values() if isinstance(item, dict)]
    elif isinstance(content, list):  # format 1
        entries = [item for item in content if isinstance(item, dict)]
    else:
        raise UnreadableFile(f"not a file of asv: it holds a {type(content).__name__}")
    return {entry["name"]: _described(entry) for entry in entries if _is_text(entry.get("name"))}


def _described(entry: Mapping[str, Any]) -> Described:
    names, kind = entry.get("param_names"), entry.get("type")
    source = entry.get("pretty_source") or entry.get("code")
    return Described(
        param_names=tuple(names) if isinstance(names, list) and all(map(_is_text, names)) else (),
        kind=kind if isinstance(kind, str) else "",
        source=source if isinstance(source, str) else "",
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def read_result_file(path: Path, roles: PairRoles | None = None) -> ResultFile:
    """Read one result file; raises ``UnreadableFile`` with what was found and what is allowed.

    gpubench's own benchmarks are read, and those that have a role in a pair.
    """
    content = _as_format_2(_read_object(path))
    try:
        machine, commit = content["params"]["machine"], content["commit_hash"]
        environment, date = content["env_name"], float(content["date"]) / 1000
        columns, rows = list(content["result_columns"]), dict(content["results"])
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableFile(f"not a result file of asv: {error!r} is missing or wrong") from error
    if not (isinstance(machine, str) and isinstance(environment, str) and math.isfinite(date)):
        raise UnreadableFile("not a result file of asv: its machine, environment or date is wrong")
    if not (isinstance(commit, str) and _COMMIT.fullmatch(commit)):
        raise UnreadableFile(f"{str(commit)[:60]!r} is no commit hash")
    benchmarks, faults = _read_rows(columns, rows, roles)
    params = {k: v for k, v in content["params"].items() if isinstance(v, str) and v}
    return ResultFile(machine, environment, commit, date, benchmarks, faults, params)


def read_limited(path: Path) -> bytes:
    """A file's content; raises ``OSError``, and ``UnreadableFile`` for one that is too large."""
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise UnreadableFile(
            f"it has {size:,} bytes, and gpubench reads {MOST_BYTES:,} at most; move it away"
        )
    return path.read_bytes()


def _read_json(path: Path) -> Any:
    try:
        content = read_limited(path)
        with suppress(msgspec.MsgspecError):  # NaN, for example, which is no JSON
            return msgspec.json.decode(content)
        return json.loads(content.decode("utf-8"))
    except (OSError, UnicodeError) as error:
        raise UnreadableFile(f"it cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"damaged or half-written, it is no JSON: {error}") from error


def _read_object(path: Path) -> dict[str, Any]:
    content = _read_json(path)
    if not isinstance(content, dict):
        raise UnreadableFile(f"not a file of asv: it holds a {type(content).__name__}")
    return content


def _as_format_2(content: dict[str, Any]) -> dict[str, Any]:
    version = content.get("version")
    if version not in FORMATS:
        allowed = " and ".join(map(str, FORMATS))
        raise UnreadableFile(f"its format is {version!r}; this release reads {allowed}")
    if version == 2:
        return content
    from asv.results import Results as AsvResults

    try:
        upgraded: dict[str, Any] = AsvResults.update_to_2(content)
    except Exception as error:  # asv names what is missing in many ways
        raise UnreadableFile(f"asv cannot convert its format 1: {error}") from error
    return upgraded


def _read_rows(
    columns: Sequence[str], rows: Mapping[str, Any], roles: PairRoles | None
) -> tuple[tuple[StoredBenchmark, ...], tuple[str, ...]]:
    read: list[_Row] = []
    faults: list[str] = []
    for asv_name, row in rows.items():
        own, places = parse_benchmark_name(asv_name), roles.names.get(asv_name, ()) if roles else ()
        if own is None and not places:
            continue
        try:
            cells = dict(zip(columns, row, strict=False))
            if own:
                read.append(_read_row(own, asv_name, cells, _identities(cells.get("params"))))
            if roles and places:
                cases = tuple(roles.identities(asv_name, cells.get("params")))
                read += [_read_row(place, place.asv_name, cells, cases) for place in places]
        except (TypeError, ValueError, KeyError, IndexError, SyntaxError) as error:
            faults.append(f"{asv_name} is left out: {error}")
    return _with_ends(read, faults), tuple(faults)


class _Row(NamedTuple):
    """One benchmark whose values are not looked at yet."""

    name: BenchmarkName
    asv_name: str
    version: str | None
    started_at: float
    cases: tuple[str, ...]
    table: list[Sequence[Any]]
    """As in ``_COLUMNS``."""


def _read_row(
    name: BenchmarkName, asv_name: str, row: Mapping[str, Any], cases: tuple[str, ...]
) -> _Row:
    table = [_column(row.get(column), column, len(cases)) for column in _COLUMNS]
    started_at = float(row.get("started_at") or 0) / 1000
    return _Row(name, asv_name, row.get("version"), started_at, cases, table)


def _with_ends(rows: Sequence[_Row], faults: list[str]) -> tuple[StoredBenchmark, ...]:
    """The benchmarks, the times of all checked at once; one with something else is a fault."""
    try:
        columns = _numbers(rows)
    except ValueError:
        rows = [row for row in rows if _is_of_numbers(row, faults)]
        columns = _numbers(rows)
    ends = np.array(columns, np.float64).reshape(_ENDS, -1)  # None becomes NaN
    medians = ends[0]
    timed = (medians > 0) & (medians < math.inf)
    wrong = ~(timed | np.isnan(medians))
    for unknown, end in ((-math.inf, ends[1]), (math.inf, ends[2])):
        end[timed & np.isnan(end)] = unknown
        end[~timed] = math.nan
    found, stop = [], 0
    for row in rows:
        start, stop = stop, stop + len(row.cases)
        if wrong[start:stop].any():
            value = medians[start:stop][wrong[start:stop]][0]
            faults.append(f"{row.asv_name} is left out: {value!s} is no time")
            continue
        found.append(
            StoredBenchmark(
                name=row.name,
                asv_name=row.asv_name,
                version=row.version,
                started_at=row.started_at,
                cases=row.cases,
                medians=row.table[0],
                ends=ends[:, start:stop],
                details=tuple(row.table[_ENDS:]),
            )
        )
    return tuple(found)


def _identities(parameters: Any) -> tuple[str, ...]:
    """asv stores the repr of every value of every parameter; ours has one, of strings."""
    if not (isinstance(parameters, list) and len(parameters) == 1):
        raise ValueError(f"it has parameters {str(parameters)[:60]}, gpubench's have one, `case`")
    return _cases(tuple(parameters[0]))


@lru_cache(maxsize=2**12)
def _cases(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The strings that are stored as their repr: the same ones in the files of all commits."""
    cases = tuple(ast.literal_eval(text) for text in texts)
    if not all(isinstance(case, str) for case in cases):
        raise ValueError("its cases are no identities as gpubench writes them")
    return cases


def _column(values: Any, column: str, length: int) -> Sequence[Any]:
    if values is None:
        return [None] * length
    if not isinstance(values, list) or len(values) != length:
        raise ValueError(f"{column} holds no list of {length} values, one for each case")
    return values


def _numbers(rows: Sequence[_Row]) -> list[list[float | None]]:
    """Medians and ends of all benchmarks, one after the other; raises ``ValueError``."""
    joined = [list(chain.from_iterable(row.table[end] for row in rows)) for end in range(_ENDS)]
    try:
        return msgspec.convert(joined, list[list[float | None]])
    except (msgspec.MsgspecError, OverflowError) as error:
        raise ValueError(f"its times hold what is no number: {error}") from error


def _is_of_numbers(row: _Row, faults: list[str]) -> bool:
    try:
        _numbers([row])
    except ValueError as error:
        faults.append(f"{row.asv_name} is left out: {error}")
        return False
    return True


def result_paths(results_dir: Path) -> Iterator[Path]:
    """Result files, in order: every ``<machine>/*.json`` but asv's two files of another kind."""
    for path in sorted(results_dir.glob("*/*.json")):
        if path.name not in ("machine.json", "benchmarks.json"):
            yield path
