"""Read the JSON of an asv result file, of each version of its format, without trusting it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import msgspec

from gpubench.errors import GpubenchError, describe_error
from gpubench.files import MAX_BYTES, TooLarge, read_regular
from gpubench.results.pairs import is_text

READ_FORMATS = (1, 2)
"""Versions of asv's result files that are read."""

RESULT_COLUMNS = (
    "result",
    "stats_ci_99_a",
    "stats_ci_99_b",
    "stats_q_25",
    "stats_q_75",
    "stats_number",
    "stats_repeat",
)

# NumPy alone would take "1.0" and True for numbers.
_RESULT_TYPES: dict[str, Any] = {
    **dict.fromkeys(RESULT_COLUMNS, list[float | None] | None),
    "params": Any,
    "version": Any,
    "started_at": float | None,
    "duration": Any,
    "samples": Any,
}

_stored_columns = attrgetter(*RESULT_COLUMNS)

_STATS_OF_FORMAT_1 = ("q_25", "q_75", "number", "repeat")

NAN = -1e308
"""Stands for a NaN, asv's "n/a", which Python writes into JSON and a strict reader refuses."""

# Takes every byte once, also of a string that does not end.
_STRING = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+"?)', re.DOTALL)

_HALVES = re.compile(
    # An escaped character, and both halves of one that JSON writes as two, are as they should be.
    rb"(\\[^u]|\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u[dD][89a-fA-F]..",
    re.DOTALL,
)


class UnreadableFile(GpubenchError):
    """A file that is damaged, truncated or none of asv's."""


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


def read_json(path: Path, expected: Any) -> Any:
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


def read_results(path: Path) -> dict[str, Any]:
    """Content of a result file in format 2; its benchmarks are decoded later, with the types of
    their columns, which saves half of the time."""
    try:
        content = read_limited(path)
        if b"NaN" in content:
            parts = _STRING.split(content)  # every second one is a string
            parts[::2] = [part.replace(b"NaN", b"%r" % NAN) for part in parts[::2]]
            content = b"".join(parts)
        try:
            return msgspec.structs.asdict(_CONTENT.decode(content))
        except msgspec.ValidationError:  # format 1
            return _as_format_2(msgspec.json.decode(content, type=dict[str, Any]))
    # Damaged, or with an infinity.
    except (OSError, UnicodeError, msgspec.MsgspecError, RecursionError):
        return _as_format_2(read_json(path, dict))


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
            "result_columns": ["params", "version", "started_at", *RESULT_COLUMNS],
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


def own_part(parameters: Any) -> tuple[str, ...]:
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
def row_type_of(columns: tuple[str, ...]) -> type[msgspec.Struct]:
    """Return what a file stores of one benchmark: a list in the order of its columns."""
    fields = [
        (name, _RESULT_TYPES[name], None)
        if name in _RESULT_TYPES
        else (f"other_{place}", Any, None)
        for place, name in enumerate(columns)
    ]
    fields += [(name, kind, None) for name, kind in _RESULT_TYPES.items() if name not in columns]
    return msgspec.defstruct("StoredRow", fields, array_like=True)


def read_row(stored: Any, row_type: type[msgspec.Struct]) -> Any:
    """Return a row; raise ``ValueError`` where it is none."""
    try:
        if isinstance(stored, msgspec.Raw):
            return msgspec.json.decode(stored, type=row_type)
        return msgspec.convert(stored, row_type)
    except (msgspec.MsgspecError, OverflowError) as error:
        raise ValueError(f"its times hold what is no number: {error}") from error


def columns_of(row: Any, cases: int) -> list[Sequence[float | None]]:
    """Return the columns of a benchmark; raises ``ValueError``."""
    nothing = [None] * cases
    columns = [nothing if column is None else column for column in _stored_columns(row)]
    if {*map(len, columns)} != {cases}:
        lengths = zip(RESULT_COLUMNS, map(len, columns), strict=True)
        name = next(name for name, length in lengths if length != cases)
        raise ValueError(f"{name} holds no list of {cases} values, one for each case")
    if isinstance(row.samples, list) and len(row.samples) == cases:  # they say how many they are
        columns[-1] = [
            len(kept) if isinstance(kept, list) and kept else count
            for kept, count in zip(row.samples, columns[-1], strict=True)
        ]
    return columns
