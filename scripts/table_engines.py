"""What could hold the table of results: DuckDB, Polars with Parquet, SQLite or plain NumPy files.

Writes synthetic columns of many snapshots with each engine that is installed, adds one snapshot,
and reads what a report reads. Prints a table; see `docs/measurements.md` for figures.

    python scripts/table_engines.py --snapshots 3000 --cases 1000
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

SETUPS = 3
BATCH = 60
"""Snapshots that are written at once, as many as a report reads in one go."""

Columns = dict[str, NDArray[Any]]
HISTORY = ("case", "snapshot", "status", "seconds", "low", "high", "speedup", "speedup_low")


def snapshots(first: int, last: int, cases: int) -> Columns:
    """Rows of some snapshots as a report has them."""
    random = np.random.default_rng(first)
    count = (last - first) * cases
    seconds = random.lognormal(-8, 2, count)
    speedup = random.lognormal(0, 1, count)
    return {
        "snapshot": np.repeat(np.arange(first, last, dtype=np.int32), cases),
        "case": np.tile(np.arange(cases, dtype=np.int32), last - first),
        "detail": np.tile(np.arange(cases, dtype=np.int32), last - first),
        "status": (random.random(count) < 0.02).astype(np.uint8),
        "seconds": seconds,
        "low": seconds * 0.98,
        "high": seconds * 1.02,
        "q25": seconds * 0.99,
        "q75": seconds * 1.01,
        "samples": np.full(count, 10.0),
        "speedup": speedup,
        "speedup_low": speedup * 0.96,
        "speedup_high": speedup * 1.04,
    }


class Engine(Protocol):
    """One way to keep the table below a folder."""

    packages: tuple[str, ...]
    query: str
    """How people ask it something."""

    def write(self, batches: Iterator[Columns]) -> None:
        """The whole table, for the first time."""
        ...

    def add(self, rows: Columns) -> None:
        """One more snapshot."""
        ...

    def history(self, first: int, last: int) -> Columns:
        """Some columns of the snapshots of one setup."""
        ...

    def rows(self, snapshot: int) -> list[tuple[Any, ...]]:
        """All columns of one snapshot, as Python values."""
        ...


class DuckDB:
    packages = ("duckdb",)
    query = "SQL: one file that any client opens"

    def __init__(self, folder: Path) -> None:
        import duckdb

        self._connect = lambda: duckdb.connect(folder / "table.duckdb")

    def write(self, batches: Iterator[Columns]) -> None:
        with self._connect() as connection:
            for number, batch in enumerate(batches):
                connection.register("batch", batch)
                how = "insert into rows" if number else "create table rows as"
                connection.execute(f"{how} select * from batch")

    def add(self, rows: Columns) -> None:
        with self._connect() as connection:
            connection.register("batch", rows)
            connection.execute("insert into rows select * from batch")

    def history(self, first: int, last: int) -> Columns:
        columns = ", ".join(f'"{name}"' for name in HISTORY)
        with self._connect() as connection:
            result: Columns = connection.execute(
                f"select {columns} from rows where snapshot between ? and ?", [first, last - 1]
            ).fetchnumpy()
        return result

    def rows(self, snapshot: int) -> list[tuple[Any, ...]]:
        with self._connect() as connection:
            sql = "select * from rows where snapshot = ?"
            result: list[tuple[Any, ...]] = connection.execute(sql, [snapshot]).fetchall()
        return result


class Polars:
    packages = ("polars", "polars-runtime-32")
    query = "SQL and expressions over a folder of Parquet files"

    def __init__(self, folder: Path) -> None:
        import polars

        self._polars, self._folder = polars, folder

    def write(self, batches: Iterator[Columns]) -> None:
        for number, batch in enumerate(batches):
            self._polars.DataFrame(batch).write_parquet(self._folder / f"{number:05}.parquet")

    def add(self, rows: Columns) -> None:
        self._polars.DataFrame(rows).write_parquet(self._folder / "99999.parquet")

    def _scan(self) -> Any:
        return self._polars.scan_parquet(self._folder / "*.parquet")

    def history(self, first: int, last: int) -> Columns:
        wanted = self._polars.col("snapshot").is_between(first, last - 1)
        frame = self._scan().filter(wanted).select(HISTORY).collect()
        return {name: frame[name].to_numpy() for name in HISTORY}

    def rows(self, snapshot: int) -> list[tuple[Any, ...]]:
        found = self._scan().filter(self._polars.col("snapshot") == snapshot).collect().rows()
        return list(found)


class SQLite:
    packages = ()
    query = "SQL: one file, client in the standard library"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "table.sqlite"

    def write(self, batches: Iterator[Columns]) -> None:
        for number, batch in enumerate(batches):
            with sqlite3.connect(self._path) as connection:
                if not number:
                    names = ", ".join(f'"{name}"' for name in batch)
                    connection.execute(f"create table rows ({names})")
                    connection.execute("create index by_snapshot on rows (snapshot)")
                self._insert(connection, batch)

    def _insert(self, connection: sqlite3.Connection, rows: Columns) -> None:
        values = zip(*(column.tolist() for column in rows.values()), strict=True)
        connection.executemany(f"insert into rows values ({', '.join('?' * len(rows))})", values)

    def add(self, rows: Columns) -> None:
        with sqlite3.connect(self._path) as connection:
            self._insert(connection, rows)

    def history(self, first: int, last: int) -> Columns:
        columns = ", ".join(f'"{name}"' for name in HISTORY)
        with sqlite3.connect(self._path) as connection:
            rows = connection.execute(
                f"select {columns} from rows where snapshot between ? and ?", (first, last - 1)
            ).fetchall()
        return dict(zip(HISTORY, np.array(rows, np.float64).T, strict=True))

    def rows(self, snapshot: int) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self._path) as connection:
            sql = "select * from rows where snapshot = ?"
            return connection.execute(sql, (snapshot,)).fetchall()


class NumPy:
    packages = ()
    query = "no"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _append(self, rows: Columns) -> None:
        for name, column in rows.items():
            with (self._folder / f"{name}.{column.dtype.str[1:]}").open("ab") as file:
                file.write(column.tobytes())

    def write(self, batches: Iterator[Columns]) -> None:
        for batch in batches:
            self._append(batch)

    def add(self, rows: Columns) -> None:
        self._append(rows)

    def _columns(self) -> Columns:
        return {path.stem: np.memmap(path, path.suffix[1:], "r") for path in self._folder.iterdir()}

    def history(self, first: int, last: int) -> Columns:
        columns = self._columns()
        start, stop = np.searchsorted(columns["snapshot"], [first, last])
        return {name: np.array(columns[name][start:stop]) for name in HISTORY}

    def rows(self, snapshot: int) -> list[tuple[Any, ...]]:
        columns = self._columns()
        start, stop = np.searchsorted(columns["snapshot"], [snapshot, snapshot + 1])
        values = (column[start:stop].tolist() for column in columns.values())
        return list(zip(*values, strict=True))


ENGINES: dict[str, Callable[[Path], Engine]] = {
    "DuckDB": DuckDB, "Polars": Polars, "SQLite": SQLite, "NumPy": NumPy,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--snapshots", type=int, default=3000)
    parser.add_argument("--cases", type=int, default=1000)
    given = parser.parse_args()
    print(
        "| engine | write all | add one | history | one snapshot | size | import | installed |",
        end="",
    )
    print(" query |\n" + "| --- " * 9 + "|")
    for name, engine in ENGINES.items():
        print(measured(name, engine, given.snapshots, given.cases), flush=True)


def measured(name: str, engine: Callable[[Path], Engine], count: int, cases: int) -> str:
    """One line of the table."""
    if not all(importlib.util.find_spec(p.partition("-")[0]) for p in engine.packages):  # type: ignore[attr-defined]
        return f"| {name} | not installed |"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        one = engine(folder)
        starts = range(0, count, BATCH)
        made = [snapshots(start, min(start + BATCH, count), cases) for start in starts]
        seconds = [timed(lambda: one.write(iter(made)))]
        seconds.append(timed(lambda: one.add(snapshots(count, count + 1, cases))))
        third = count // SETUPS
        seconds.append(min(timed(lambda: one.history(third, 2 * third)) for _ in range(3)))
        seconds.append(min(timed(lambda: one.rows(count // 2)) for _ in range(3)))
        assert len(one.rows(count)) == cases
        assert len(one.history(third, 2 * third)["seconds"]) == third * cases
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    cells = [name, *(f"{value:.3f} s" for value in seconds), f"{size / 2**20:.0f} MiB"]
    cells += [
        f"{import_seconds(one.packages):.2f} s",
        f"{installed(one.packages):.0f} MiB",
        one.query,
    ]
    return "| " + " | ".join(cells) + " |"


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def import_seconds(packages: tuple[str, ...]) -> float:
    """In a new process, over one that imports NumPy alone."""
    modules = ", ".join(["numpy", *packages[:1]])
    both = []
    for names in (modules, "numpy"):
        command = [sys.executable, "-c", f"import {names}"]
        both.append(min(timed(lambda c=command: subprocess.run(c, check=True)) for _ in range(5)))
    return max(both[0] - both[1], 0.0)


def installed(packages: tuple[str, ...]) -> float:
    """MiB of the files of distributions."""
    files = (file for name in packages for file in importlib.metadata.files(name) or ())
    sizes = (Path(os.fspath(file.locate())) for file in files)
    return sum(path.stat().st_size for path in sizes if path.exists()) / 2**20


if __name__ == "__main__":
    if shutil.disk_usage(tempfile.gettempdir()).free < 2**31:
        sys.exit("it needs 2 GiB below the folder for temporary files")
    main()
