"""Reads asv's own files: result files and ``benchmarks.json`` (formats 1, 2), ``machine.json``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from asv_runner.statistics import compute_stats
from numpy.typing import NDArray

from gpubench.errors import describe_error
from gpubench.names import QUANTITIES, BenchmarkName, parse_benchmark_name, timed_beside
from gpubench.results.asv_json import (
    NAN,
    RESULT_COLUMNS,
    UnreadableFile,
    columns_of,
    own_part,
    read_json,
    read_results,
    read_row,
    row_type_of,
)
from gpubench.results.model import Described
from gpubench.results.pairs import BenchmarkPairs, is_text

LONGEST, SHORTEST = 1e12, 1e-18
"""Seconds: a result beyond is damaged. Thirty thousand years; light goes a third of a nanometre.
Squares and ratios of what lies between are numbers."""

MAX_EXACT_COUNT = 2**53
"""Runs in a sample, and samples: whole numbers up to here are exact as JSON has them."""

NEWEST = 253_402_300_800
"""Seconds from 1970 to the year 10000, which dates do not go beyond."""

ROUNDING = 1e-9
"""Relative: an end of an interval may be as far on the wrong side of the median."""

_COMMIT = re.compile(r"[0-9a-f]{8,64}")


class StoredBenchmark(NamedTuple):
    """One benchmark in a result file that is reported, without its values."""

    name: BenchmarkName
    asv_name: str
    """asv's; that of its place for one in a pair."""
    version: str | None
    started_at: float
    """Seconds since 1970; 0 when not stored."""
    cases: tuple[str, ...]
    """Identities."""


@dataclass(frozen=True, slots=True, eq=False)
class ResultFile:
    """One of asv's result files."""

    environment: str
    commit: str
    date: float
    """Of the commit, seconds since 1970."""
    params: Mapping[str, str]
    """Machine and environment as asv describes them; requirements without a version left out."""
    benchmarks: tuple[StoredBenchmark, ...]
    values: NDArray[np.float64]
    """Shape (7, cases), the cases of all benchmarks one after the other: median, both ends of its
    99 % interval and both quartiles in seconds, asv's ``number``, samples. NaN where asv has none;
    ``-inf`` and ``inf`` for ends that are not known."""
    missing: NDArray[np.bool_]
    """Where asv stored nothing, because the case failed. A NaN elsewhere is its ``n/a``: the
    benchmark raised ``NotImplementedError``."""
    faults: tuple[str, ...]
    """Benchmarks in it that could not be read, one sentence each."""
    samples: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """By asv's name of gpubench's benchmarks, what asv kept of each case's samples
    (``--record-samples``), as it is stored; benchmarks of which it kept none left out."""
    python: str = ""
    """Version; empty when not stored."""
    requirements: Mapping[str, str] = field(default_factory=dict)
    """Versions by name; empty ones are any version."""
    env_vars: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that asv set."""
    duration: float | None = None
    """Seconds that its benchmarks took in sum; ``None`` when not stored."""
    unlisted: tuple[str, ...] = ()
    """Benchmarks in it that are not reported."""


NO_RESULT = ResultFile("", "", 0.0, {}, (), np.empty((7, 0)), np.zeros(0, np.bool_), ())
"""Where asv has stored nothing."""


def values_of(samples: Sequence[float]) -> tuple[float, ...]:
    """Return samples, in seconds of one run, as asv states them: a column of
    ``ResultFile.values``."""
    median, stats = compute_stats(list(samples), 1)
    ends = stats["ci_99_a"], stats["ci_99_b"], stats["q_25"], stats["q_75"]
    return median, *ends, 1, len(samples)


def read_machine(path: Path) -> Mapping[str, Any]:
    """Facts from a ``machine.json``; raises ``UnreadableFile``."""
    facts = read_json(path, dict)
    if not isinstance(facts.get("machine"), str):
        raise UnreadableFile("it names no machine, so it is not asv's; run `asv machine`")
    return {key: value for key, value in facts.items() if key != "version"}


def read_benchmarks(path: Path) -> Mapping[str, Described]:
    """Return what ``benchmarks.json`` says of each benchmark, by its name; raises
    ``UnreadableFile``."""
    content = read_json(path, dict | list)  # a list in format 1
    described = {}
    for entry in content.values() if isinstance(content, dict) else content:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            names, kind, unit = (entry.get(key) for key in ("param_names", "type", "unit"))
            params = entry.get("params")
            params = params if isinstance(params, list) else []
            source = entry.get("pretty_source") or entry.get("code")
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                names = ()
            described[entry["name"]] = Described(
                param_names=tuple(names),
                kind=kind if isinstance(kind, str) else "",
                unit=unit if isinstance(unit, str) and is_text(unit) else "",
                source=source if isinstance(source, str) else "",
                cases=math.prod(len(values) for values in params if isinstance(values, list)),
            )
    return described


def read_names(path: Path) -> Mapping[str, Described]:
    """Return the benchmarks of a result file, where nothing describes them; raises
    ``UnreadableFile``."""
    results = read_results(path).get("results")
    return dict.fromkeys(results if isinstance(results, dict) else (), Described())


def read_result_file(path: Path, machine: str, pairs: BenchmarkPairs) -> ResultFile:
    """Read one result file of a machine; raises ``UnreadableFile`` with what is allowed.

    gpubench's own benchmarks are read, and those of pairs.
    """
    content = read_results(path)
    environment, commit, date, row_type, rows = _head_of(content, machine)
    found = _Found(pairs, row_type)
    for asv_name, stored_row in rows.items():
        found.add(asv_name, stored_row)
    table, missing = found.values()
    return ResultFile(
        environment,
        commit,
        date,
        {k: v for k, v in content["params"].items() if isinstance(v, str) and v},
        tuple(found.benchmarks),
        table,
        missing,
        tuple(found.faults),
        found.samples,
        python=_text_of(content.get("python")),
        requirements=_texts_of(content.get("requirements")),
        env_vars=_texts_of(content.get("env_vars")),
        duration=sum(found.durations) if found.durations else None,
        unlisted=tuple(filter(is_text, found.unlisted)),
    )


def _head_of(
    content: Mapping[str, Any], machine: str
) -> tuple[str, str, float, type[msgspec.Struct], dict[str, Any]]:
    """Return a file's environment, commit, seconds since 1970, columns of a benchmark and
    benchmarks; raises ``UnreadableFile`` where one of them is none."""
    try:
        stored_machine, commit = content["params"]["machine"], content["commit_hash"]
        environment, date = content["env_name"], float(content["date"]) / 1000
        row_type, rows = row_type_of(tuple(content["result_columns"])), dict(content["results"])
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableFile(f"not a result file of asv: {describe_error(error)}") from error
    is_date = 0 <= date < NEWEST
    if not (isinstance(stored_machine, str) and isinstance(environment, str) and is_date):
        raise UnreadableFile("not a result file of asv: its machine, environment or date is wrong")
    if not (isinstance(commit, str) and _COMMIT.fullmatch(commit)):
        raise UnreadableFile(f"{str(commit)[:60]!r} is no commit hash")
    if stored_machine != machine:
        raise UnreadableFile(f"it is of the machine {stored_machine!r}, in the folder of another")
    return environment, commit, date, row_type, rows


class _Found:
    """The benchmarks of a file that are reported, and what is wrong with others."""

    def __init__(self, pairs: BenchmarkPairs, row_type: type[msgspec.Struct]) -> None:
        self._pairs, self._row_type = pairs, row_type
        self._stored: list[Sequence[Sequence[float | None]]] = []
        self._name_in_file: dict[BenchmarkName, str] = {}
        self.benchmarks: list[StoredBenchmark] = []
        self.samples: dict[str, Sequence[Any]] = {}
        self.faults: list[str] = []
        self.durations: list[float] = []
        self.unlisted: list[str] = []

    def add(self, asv_name: str, stored_row: Any) -> None:
        """Add a benchmark with each name that it is reported under."""
        own = parse_benchmark_name(asv_name)
        places = *filter(None, [own]), *self._pairs.places.get(asv_name, ())
        if not places:
            if timed_beside(asv_name) is None:
                self.unlisted.append(asv_name)
            return
        try:
            row = read_row(stored_row, self._row_type)
            if isinstance(row.duration, int | float) and 0 <= row.duration <= LONGEST:
                self.durations.append(float(row.duration))
            for place in places:
                self._add_at(place, asv_name, row, is_own=place is own)
        # RecursionError, MemoryError: a parameter of thousands of parentheses.
        except (
            *(TypeError, ValueError, KeyError, IndexError, SyntaxError),
            *(RecursionError, MemoryError),
        ) as error:
            self.faults.append(f"{asv_name} is left out: {error or type(error).__name__}")

    def _add_at(self, place: BenchmarkName, asv_name: str, row: Any, *, is_own: bool) -> None:
        self._name_in_file[place] = asv_name
        cases = own_part(row.params) if is_own else self._pairs.identities(asv_name, row.params)
        values = columns_of(row, len(cases))
        started_at = (row.started_at or 0.0) / 1000
        self._stored.append(values)
        stored_as = asv_name if is_own else place.asv_name
        self.benchmarks.append(StoredBenchmark(place, stored_as, row.version, started_at, cases))
        if is_own and isinstance(row.samples, list) and len(row.samples) == len(cases):
            self.samples[asv_name] = row.samples

    def values(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return what ``ResultFile`` has in ``values`` and ``missing``, without the benchmarks that
        have a value which cannot be one."""
        columns = [[*chain.from_iterable(each)] for each in zip(*self._stored, strict=True)]
        columns = columns or [[] for _ in RESULT_COLUMNS]
        table = np.array(columns, np.float64)  # None becomes NaN
        table[table == NAN] = math.nan
        missing = np.array([value is None for value in columns[0]], np.bool_)
        if wrong := _wrong_values(table, self.benchmarks):
            self.faults += dict.fromkeys(
                f"{self._name_in_file[name]} is left out: {why}" for name, why in wrong.values()
            )
            keep = np.repeat(
                [index not in wrong for index in range(len(self.benchmarks))],
                [len(each.cases) for each in self.benchmarks],
            )
            table, missing = table[:, keep], missing[keep]
            kept = [each for index, each in enumerate(self.benchmarks) if index not in wrong]
            self.benchmarks = kept
        self._set_intervals(table)
        return table, missing

    def _set_intervals(self, table: NDArray[np.float64]) -> None:
        """Give every time an interval: without bounds where none is stored, or where the stored one
        does not hold the median."""
        timed = ~np.isnan(table[0])
        table[1][timed & np.isnan(table[1])] = -math.inf
        table[2][timed & np.isnan(table[2])] = math.inf
        table[:, ~timed] = math.nan
        rounding = np.abs(table[0]) * ROUNDING
        misplaced = (table[1] > table[0] + rounding) | (table[2] < table[0] - rounding)
        if not misplaced.any():
            return
        table[1][misplaced], table[2][misplaced] = -math.inf, math.inf
        cases = ((each, case) for each in self.benchmarks for case in each.cases)
        named = [f"{self._name_in_file[each.name]} {case}" for each, case in cases]
        count = int(misplaced.sum())
        more = f" and {count - 1} more" if count > 1 else ""
        first = named[int(misplaced.argmax())]
        no_interval = "no interval, since the stored one does not hold the median"
        self.faults.append(f"{first}{more}: {no_interval}")


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) and is_text(value) else ""


def _texts_of(content: Any) -> dict[str, str]:
    """Return a mapping of texts without what else is in it."""
    if not isinstance(content, dict):
        return {}
    return {name: _text_of(value) for name, value in content.items() if is_text(name)}


def _wrong_values(
    table: NDArray[np.float64], benchmarks: Sequence[StoredBenchmark]
) -> dict[int, tuple[BenchmarkName, str]]:
    """Benchmarks with a value that cannot be one, by their index: the name and what is wrong."""
    times, counts = table[:1], table[5:]
    of_times = [each.name.time not in QUANTITIES for each in benchmarks]
    is_time = np.repeat(np.array(of_times, np.bool_), [len(each.cases) for each in benchmarks])
    is_wrong = np.concatenate(
        [
            np.where(is_time, (times < SHORTEST) | (times > LONGEST), ~np.isfinite(times)),
            (counts < 0) | (counts > MAX_EXACT_COUNT) | (counts != np.floor(counts)),
        ]
    ) & ~np.isnan(np.concatenate([times, counts]))
    if not is_wrong.any():  # as nearly always
        return {}
    of_case = np.repeat(range(len(benchmarks)), [len(each.cases) for each in benchmarks])
    wrong: dict[int, tuple[BenchmarkName, str]] = {}
    for case in np.flatnonzero(is_wrong.any(axis=0)).tolist():
        place = int(is_wrong[:, case].argmax())
        name, value = ("result", *RESULT_COLUMNS[5:])[place], [*times, *counts][place][case]
        why = f"{value!s} s is no time" if is_time[case] else f"{value!s} is no finite number"
        if place:
            why = f"{name} holds {value!s}, which is no count"
        wrong.setdefault(int(of_case[case]), (benchmarks[of_case[case]].name, why))
    return wrong
