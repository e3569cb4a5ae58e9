"""Tables that queries have beside those of the results' file: ``commits`` and ``benchmarks``.

What they hold comes from the repository and from ``benchmarks.json``, which change without results.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb

from gpubench.names import BenchmarkName, parse_benchmark_name
from gpubench.results import store
from gpubench.results.commits import CommitOrder
from gpubench.results.model import Commit

COMMIT_COLUMNS = {
    "commit": ("VARCHAR", "hash of the commit"),
    "place": ("INTEGER", "place in the order of all commits with results, 0 for the oldest"),
    "date": ("TIMESTAMP", "date of the commit, UTC"),
    "subject": ("VARCHAR", "first line of its message; null where git does not know it"),
    "branches": ("VARCHAR[]", "branches of asv.conf.json whose history has it"),
    "tags": ("VARCHAR[]", "its tags"),
    "in_history": ("BOOLEAN", "whether a history has it"),
}
"""SQL types and meanings of the columns of ``commits``."""

BENCHMARK_COLUMNS = {
    "benchmark": ("VARCHAR", "asv's name of the benchmark"),
    "suite": ("VARCHAR", "suite, as in results"),
    "kernel": ("VARCHAR", "kernel"),
    "implementation": ("VARCHAR", "implementation of the kernel"),
    "time": ("VARCHAR", "what it measures, as in results"),
    "type": ("VARCHAR", "asv's type: time, memory, peakmemory or track"),
    "unit": ("VARCHAR", "unit of its values"),
}
"""SQL types and meanings of the columns of ``benchmarks``."""

_UNITS_SQL = """
    select c.benchmark, any_value(d.content->>'unit') from cases c
    join (select "case", any_value(detail) as detail from rows group by 1) r on r."case" = c.id
    join details d on d.id = r.detail group by 1 order by 1
"""
"""SQL of the benchmarks with results, by their names here, and of their units."""


def commit_rows(
    order: CommitOrder, outside: Iterable[Commit], tags: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of ``commits``, oldest first; no history has those that are ``outside``."""
    branches = defaultdict[str, list[str]](list)
    for branch, hashes in order.histories.items():
        for hash_ in hashes:
            branches[hash_].append(branch)
    apart = {commit.hash for commit in outside}
    for place, commit in enumerate(order.commits):
        date = datetime.fromtimestamp(commit.date, UTC).replace(tzinfo=None)
        names = [*filter(None, branches[commit.hash])]
        its_tags = list(tags.get(commit.hash, ()))
        is_in = commit.hash not in apart
        yield commit.hash, place, date, commit.subject, names, its_tags, is_in


def benchmark_rows(
    table: duckdb.DuckDBPyConnection,
    asv_names: Mapping[BenchmarkName, str],
    kinds: Mapping[str, str],
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of ``benchmarks``; ``asv_names`` are of benchmarks with another name here."""
    places = {place.asv_name: place for place in asv_names}
    for text, unit in table.execute(_UNITS_SQL).fetchall():
        name = places.get(text) or parse_benchmark_name(text)
        if name is not None:
            asv_name = asv_names.get(name, text)
            parts = name.suite, name.kernel, name.implementation, name.time
            yield asv_name, *parts, kinds.get(asv_name), unit


def write_table(
    connection: duckdb.DuckDBPyConnection,
    schema: str,
    name: str,
    columns: Mapping[str, tuple[str, str]],
    rows: Iterable[Sequence[Any]],
) -> None:
    """Write a table into a schema; ``columns`` have SQL types and meanings by name."""
    types = ", ".join(f'"{column}" {kind}' for column, (kind, _) in columns.items())
    kind = "temp table" if schema == "temp" else "table"
    connection.execute(f"create or replace {kind} {name} ({types})")
    for column, (_, meaning) in columns.items():
        text = meaning.replace("'", "''")
        connection.execute(f"""comment on column {schema}.{name}."{column}" is '{text}'""")
    if values := [*rows]:
        cells = zip(columns, zip(*values, strict=True), strict=True)
        store.insert(connection, name, **dict(cells))
