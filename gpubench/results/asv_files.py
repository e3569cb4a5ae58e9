"""Reads asv's own files: result files (formats 1 and 2) and ``machine.json``."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpubench.errors import GpubenchError
from gpubench.names import BenchmarkName, parse_benchmark_name
from gpubench.results.model import Timing

FORMATS = (1, 2)
"""Versions of asv's result files that are read."""

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


class UnreadableFile(GpubenchError):
    """A file that is damaged, truncated or none of asv's."""


@dataclass(frozen=True, slots=True)
class StoredValue:
    """What asv stored for one case: a time, ``n/a``, or nothing because it failed."""

    timing: Timing | None
    not_applicable: bool = False
    """asv stored NaN: the benchmark raised ``NotImplementedError``."""


@dataclass(frozen=True, slots=True)
class StoredBenchmark:
    """One gpubench benchmark in a result file."""

    name: BenchmarkName
    version: str | None
    started_at: float
    """Seconds since 1970; 0 when not stored."""
    values: Mapping[str, StoredValue]
    """By the case's identity."""


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


def read_machine(path: Path) -> Mapping[str, Any]:
    """Facts from a ``machine.json``; raises ``UnreadableFile``."""
    facts = _read_object(path)
    if not isinstance(facts.get("machine"), str):
        raise UnreadableFile("it names no machine, so it is not asv's; run `asv machine`")
    return {key: value for key, value in facts.items() if key != "version"}


def read_result_file(path: Path) -> ResultFile:
    """Read one result file; raises ``UnreadableFile`` with what was found and what is allowed."""
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
    benchmarks, faults = _read_rows(columns, rows)
    return ResultFile(machine, environment, commit, date, benchmarks, faults)


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        raise UnreadableFile(f"it cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"damaged or half-written, it is no JSON: {error}") from error
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
    columns: Sequence[str], rows: Mapping[str, Any]
) -> tuple[tuple[StoredBenchmark, ...], tuple[str, ...]]:
    benchmarks, faults = [], []
    for asv_name, row in rows.items():
        name = parse_benchmark_name(asv_name)
        if name is None:
            continue
        try:
            benchmarks.append(_read_row(name, dict(zip(columns, row, strict=False))))
        except (TypeError, ValueError, KeyError, IndexError, SyntaxError) as error:
            faults.append(f"{asv_name} is left out: {error}")
    return tuple(benchmarks), tuple(faults)


def _read_row(name: BenchmarkName, row: Mapping[str, Any]) -> StoredBenchmark:
    version = row.get("version")
    cases = _identities(row.get("params"))
    table = [_column(row.get(column), column, len(cases)) for column in _COLUMNS]
    values = (_stored_value(version, *cells) for cells in zip(*table, strict=True))
    return StoredBenchmark(
        name=name,
        version=version,
        started_at=float(row.get("started_at") or 0) / 1000,
        values=dict(zip(cases, values, strict=True)),
    )


def _identities(parameters: Any) -> list[str]:
    """asv stores the repr of every value of every parameter; ours has one, of strings."""
    if not (isinstance(parameters, list) and len(parameters) == 1):
        raise ValueError(f"it has parameters {str(parameters)[:60]}, gpubench's have one, `case`")
    cases = [ast.literal_eval(text) for text in parameters[0]]
    if not all(isinstance(case, str) for case in cases):
        raise ValueError("its cases are no identities as gpubench writes them")
    return cases


def _column(values: Any, column: str, length: int) -> list[Any]:
    if values is None:
        return [None] * length
    if len(values) != length:
        raise ValueError(f"{len(values)} values in {column} for {length} cases")
    return list(values)


def _stored_value(
    version: str | None,
    median: float | None,
    low: float | None,
    high: float | None,
    q25: float | None,
    q75: float | None,
    number: float | None,
    repeat: float | None,
) -> StoredValue:
    if median is None:
        return StoredValue(None)
    if math.isnan(median):
        return StoredValue(None, not_applicable=True)
    if not (math.isfinite(median) and median > 0):
        raise ValueError(f"{median!r} is no time")
    return StoredValue(
        Timing(
            median=float(median),
            low=-math.inf if low is None or math.isnan(low) else float(low),
            high=math.inf if high is None or math.isnan(high) else float(high),
            q25=q25,
            q75=q75,
            number=None if number is None else int(number),
            repeat=None if repeat is None else int(repeat),
            version=version,
        )
    )


def result_paths(results_dir: Path) -> Iterator[Path]:
    """Result files, in order: every ``<machine>/*.json`` but asv's two files of another kind."""
    for path in sorted(results_dir.glob("*/*.json")):
        if path.name not in ("machine.json", "benchmarks.json"):
            yield path
