"""Reads asv's own files: result files and ``benchmarks.json`` (formats 1, 2), ``machine.json``."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from asv_runner.statistics import compute_stats
from numpy.typing import NDArray

from gpubench.errors import GpubenchError, describe_error
from gpubench.files import MAX_BYTES, TooLarge, read_regular
from gpubench.names import QUANTITIES, BenchmarkName, parse_benchmark_name, timed_beside
from gpubench.results.model import Described
from gpubench.results.pairs import BenchmarkPairs, is_text

READ_FORMATS = (1, 2)
"""Versions of asv's result files that are read."""

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
_RESULT_COLUMNS = (
    "result",
    "stats_ci_99_a",
    "stats_ci_99_b",
    "stats_q_25",
    "stats_q_75",
    "stats_number",
    "stats_repeat",
)
_STATS_OF_FORMAT_1 = ("q_25", "q_75", "number", "repeat")

# NumPy alone would take "1.0" and True for numbers.
_RESULT_TYPES: dict[str, Any] = {
    **dict.fromkeys(_RESULT_COLUMNS, list[float | None] | None),
    "params": Any,
    "version": Any,
    "started_at": float | None,
    "duration": Any,
    "samples": Any,
}


class _Content(msgspec.Struct):
    """A result file in format 2."""

    version: Literal[2]
    commit_hash: Any
    env_name: Any
    date: Any
    params: Any
    result_columns: Any
    results: dict[str, msgspec.Raw]
    python: Any = None
    requirements: Any = None
    env_vars: Any = None


_CONTENT = msgspec.json.Decoder(_Content)

_NAN = -1e308
"""Stands for a NaN, asv's "n/a", which Python writes into JSON and a strict reader refuses."""

# Takes every byte once, also of a string that does not end.
_STRING = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+"?)', re.DOTALL)


class UnreadableFile(GpubenchError):
    """A file that is damaged, truncated or none of asv's."""


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
    facts = _read_json(path, dict)
    if not isinstance(facts.get("machine"), str):
        raise UnreadableFile("it names no machine, so it is not asv's; run `asv machine`")
    return {key: value for key, value in facts.items() if key != "version"}


def read_benchmarks(path: Path) -> Mapping[str, Described]:
    """Return what ``benchmarks.json`` says of each benchmark, by its name; raises
    ``UnreadableFile``."""
    content = _read_json(path, dict | list)  # a list in format 1
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
    results = _read_results(path).get("results")
    return dict.fromkeys(results if isinstance(results, dict) else (), Described())


def read_result_file(path: Path, machine: str, pairs: BenchmarkPairs) -> ResultFile:
    """Read one result file of a machine; raises ``UnreadableFile`` with what is allowed.

    gpubench's own benchmarks are read, and those of pairs.
    """
    content = _read_results(path)
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
        row_type, rows = _row_type(tuple(content["result_columns"])), dict(content["results"])
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
            row = _row(stored_row, self._row_type)
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
        cases = _own(row.params) if is_own else self._pairs.identities(asv_name, row.params)
        values = _values(row, len(cases))
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
        columns = columns or [[] for _ in _RESULT_COLUMNS]
        table = np.array(columns, np.float64)  # None becomes NaN
        table[table == _NAN] = math.nan
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
        name, value = ("result", *_RESULT_COLUMNS[5:])[place], [*times, *counts][place][case]
        why = f"{value!s} s is no time" if is_time[case] else f"{value!s} is no finite number"
        if place:
            why = f"{name} holds {value!s}, which is no count"
        wrong.setdefault(int(of_case[case]), (benchmarks[of_case[case]].name, why))
    return wrong


_HALVES = re.compile(
    # An escaped character, and both halves of one that JSON writes as two, are as they should be.
    rb"(\\[^u]|\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u[dD][89a-fA-F]..",
    re.DOTALL,
)


def read_limited(path: Path) -> bytes:
    """Return a JSON file's content; halves of characters (lone surrogates), which no encoding has
    and no page can show, are replaced.

    Raises ``OSError``, and ``UnreadableFile`` for one that is too large.
    """
    try:
        content = read_regular(path, MAX_BYTES)
    except TooLarge as error:
        raise UnreadableFile(f"{error}; move it away") from error
    # Looking for one byte takes a tenth of the time that looking for three does.
    if b"\\" in content and (b"\\ud" in content or b"\\uD" in content):
        return _HALVES.sub(lambda match: match[1] or rb"\ufffd", content)
    return content


def _read_json(path: Path, expected: Any) -> Any:
    try:
        data = read_limited(path)
        try:
            content = msgspec.json.decode(data)
        except msgspec.MsgspecError:  # NaN, for example, which is no JSON
            content = json.loads(data.decode("utf-8"))
    except (OSError, UnicodeError) as error:
        raise UnreadableFile(f"it cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"damaged or half-written, it is no JSON: {error}") from error
    if not isinstance(content, expected):
        raise UnreadableFile(f"not a file of asv: it holds a {type(content).__name__}")
    return content


def _read_results(path: Path) -> dict[str, Any]:
    """Content of a result file in format 2; its benchmarks are decoded later, with the types of
    their columns, which saves half of the time."""
    try:
        content = read_limited(path)
        if b"NaN" in content:
            parts = _STRING.split(content)  # every second one is a string
            parts[::2] = [part.replace(b"NaN", b"%r" % _NAN) for part in parts[::2]]
            content = b"".join(parts)
        try:
            return msgspec.structs.asdict(_CONTENT.decode(content))
        except msgspec.ValidationError:  # format 1
            return _as_format_2(msgspec.json.decode(content, type=dict[str, Any]))
    # Damaged, or with an infinity.
    except (OSError, UnicodeError, msgspec.MsgspecError, RecursionError):
        return _as_format_2(_read_json(path, dict))


def _as_format_2(content: dict[str, Any]) -> dict[str, Any]:
    version = content.get("version")
    if version not in READ_FORMATS:
        allowed = " and ".join(map(str, READ_FORMATS))
        raise UnreadableFile(f"its format is {version!r}; this release reads {allowed}")
    if version == 2:
        return content
    try:
        versions, starts = content.get("benchmark_version", {}), content.get("started_at", {})
        upgraded = {
            **content,
            "result_columns": ["params", "version", "started_at", *_RESULT_COLUMNS],
            "results": {
                name: [*_of_format_1(value, versions.get(name), starts.get(name))]
                for name, value in content["results"].items()
            },
        }
        if "env_name" not in content:
            # Not at the top: asv imports all of its commands and plugins.
            from asv.environment import get_env_name

            named_by = content["python"], content["requirements"]
            upgraded["env_name"] = get_env_name("", *named_by, {})
    except Exception as error:  # what is missing, or of another kind
        raise UnreadableFile(
            f"its format 1 cannot be converted: {describe_error(error)}"
        ) from error
    return upgraded


def _of_format_1(stored: Any, version: Any, started_at: Any) -> Iterator[Any]:
    """Yield a benchmark in the order of the columns, as ``asv.results.Results.update_to_2`` has
    it."""
    value = stored if isinstance(stored, dict) else {"result": stored}
    yield from (value.get("params", []), version, started_at)
    result, stats = (
        of_cases if isinstance(of_cases, list) else [of_cases]
        for of_cases in (value["result"], value.get("stats"))
    )
    ends = [[one and one["ci_99"][end] for one in stats] for end in (0, 1)]
    others = ([one and one.get(name) for one in stats] for name in _STATS_OF_FORMAT_1)
    for column in (result, *ends, *others):
        yield column if any(one is not None for one in column) else None


def _own(parameters: Any) -> tuple[str, ...]:
    """asv stores the repr of every value of every parameter; ours has one, of strings."""
    if not (isinstance(parameters, list) and len(parameters) == 1):
        raise ValueError(f"it has parameters {str(parameters)[:60]}, gpubench's have one, `case`")
    return _cases(tuple(parameters[0]))


@lru_cache(maxsize=2**12)
def _cases(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the strings that are stored as their repr: the same ones in the files of all
    commits."""
    cases = tuple(ast.literal_eval(text) for text in texts)
    if not all(isinstance(case, str) and is_text(case) for case in cases):
        raise ValueError("its cases are no identities as gpubench writes them")
    return cases


@lru_cache(maxsize=8)
def _row_type(columns: tuple[str, ...]) -> type[msgspec.Struct]:
    """Return what a file stores of one benchmark: a list in the order of its columns."""
    fields = [
        (name, _RESULT_TYPES[name], None)
        if name in _RESULT_TYPES
        else (f"other_{place}", Any, None)
        for place, name in enumerate(columns)
    ]
    fields += [(name, kind, None) for name, kind in _RESULT_TYPES.items() if name not in columns]
    return msgspec.defstruct("StoredRow", fields, array_like=True)


def _row(stored: Any, row_type: type[msgspec.Struct]) -> Any:
    """Return a row; raise ``ValueError`` where it is none."""
    try:
        if isinstance(stored, msgspec.Raw):
            return msgspec.json.decode(stored, type=row_type)
        return msgspec.convert(stored, row_type)
    except (msgspec.MsgspecError, OverflowError) as error:
        raise ValueError(f"its times hold what is no number: {error}") from error


_columns_of = attrgetter(*_RESULT_COLUMNS)


def _values(row: Any, cases: int) -> list[Sequence[float | None]]:
    """Return the columns of a benchmark; raises ``ValueError``."""
    nothing = [None] * cases
    columns = [nothing if column is None else column for column in _columns_of(row)]
    if {*map(len, columns)} != {cases}:
        lengths = zip(_RESULT_COLUMNS, map(len, columns), strict=True)
        name = next(name for name, length in lengths if length != cases)
        raise ValueError(f"{name} holds no list of {cases} values, one for each case")
    if isinstance(row.samples, list) and len(row.samples) == cases:  # they say how many they are
        columns[-1] = [
            len(kept) if isinstance(kept, list) and kept else count
            for kept, count in zip(row.samples, columns[-1], strict=True)
        ]
    return columns
