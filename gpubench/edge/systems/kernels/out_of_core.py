"""Data larger than the memory that a case may hold: a norm over a file of numbers, and sums of
groups over a file in Parquet.

A file is drawn piece by piece, by a seed, when a process draws the inputs of a case. It has no
name, so that it is gone with the process, however that ends; other processes open it by its
descriptor. It lies in the folder for temporary files (``TMPDIR``), which should be on a disk.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np

from gpubench.kernels.reductions import norm_parallel

Array = np.ndarray[Any, Any]

PIECE = 2**21
"""Numbers (16 MiB) that are read at once: far fewer than fit into the least memory that a suite
leaves, and enough that a call for each costs nothing beside it."""

ROWS = 2**20
"""Of a group of the Parquet file (12 MiB), Arrow's own choice."""

GROUPS = 1000
"""Keys of the rows: few, so that the answer takes next to no memory."""


def starts(values: Mapping[str, Any], generator: np.random.Generator) -> Array:
    """Return where pieces of the file of ``n`` numbers begin, int64; the file is there from now
    on."""
    _numbers(values["n"], values["seed"])
    return np.arange(0, values["n"], PIECE)


def keys(values: Mapping[str, Any], generator: np.random.Generator) -> Array:
    """Keys of the file of ``n`` rows, int32; the file is there from now on."""
    _rows(values["n"], values["seed"])
    return np.arange(GROUPS, dtype=np.int32)


@cache
def _numbers(n: int, seed: int) -> IO[bytes]:
    """Return a file of ``n`` float64, normally distributed."""
    file = TemporaryFile()  # noqa: SIM115 (it stays open with the process)
    for start in range(0, n, PIECE):
        random = np.random.default_rng([seed, start])
        random.standard_normal(min(PIECE, n - start)).tofile(file)
    file.flush()
    return file


@cache
def _rows(n: int, seed: int) -> IO[bytes]:
    """Return a file in Parquet of ``n`` rows: ``key`` (int32, below ``GROUPS``) and ``value``
    (float64, 0 to 1)."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    # Arrow's own takes a gibibyte of addresses ahead, in which no limit of them is seen.
    arrow.set_memory_pool(arrow.system_memory_pool())
    file = TemporaryFile()  # noqa: SIM115
    schema = arrow.schema([("key", arrow.int32()), ("value", arrow.float64())])
    plain = {"compression": "none", "use_dictionary": False}  # random numbers gain nothing
    with parquet.ParquetWriter(file, schema, **plain) as writer:
        for start in range(0, n, ROWS):
            random, size = np.random.default_rng([seed, start]), min(ROWS, n - start)
            drawn = random.integers(0, GROUPS, size, dtype=np.int32), random.random(size)
            # Of buffers: of arrays Arrow would import pandas, which is part of a `start`.
            columns = [
                arrow.Array.from_buffers(field.type, size, [None, arrow.py_buffer(values)])
                for field, values in zip(schema, drawn, strict=True)
            ]
            writer.write_table(arrow.table(columns, schema=schema))
    file.flush()
    return file


def parquet(n: int, seed: int) -> str:
    """Path of the Parquet file of ``n`` rows that ``keys`` made."""
    return _path(_rows(n, seed))


def _path(file: IO[bytes]) -> str:
    """Return the path of a file without a name, for all processes of this user."""
    return f"/proc/{os.getpid()}/fd/{file.fileno()}"


def norm_whole(starts: Array, n: int, seed: int, out: Array) -> None:
    """``out[0]`` becomes ``sqrt(sum(x**2))`` of the file's ``n`` numbers, all of them in memory."""
    x = np.fromfile(_path(_numbers(n, seed)))
    out[0] = np.sqrt(np.dot(x, x))


def norm_memmap(starts: Array, n: int, seed: int, out: Array) -> None:
    """Do the same over a memory map, piece by piece: the system reads what is touched, and drops it
    where it needs room."""
    x = np.memmap(_path(_numbers(n, seed)), np.float64, "r")
    pieces = (x[start : start + PIECE] for start in starts)
    out[0] = np.sqrt(sum(np.dot(piece, piece) for piece in pieces))


def norm_numba(starts: Array, n: int, seed: int, out: Array) -> None:
    """Do the same over a memory map, by one parallel loop."""
    norm_parallel(np.asarray(np.memmap(_path(_numbers(n, seed)), np.float64, "r")), out)


def norm_dask(starts: Any, n: int, seed: int) -> Any:
    """Return the same as a lazy array of shape [1]: workers read a piece for each chunk of
    ``starts``, which has one element."""
    from dask import array

    sizes = tuple(min(PIECE, n - start) for start in range(0, n, PIECE))
    read = partial(_piece, path=_path(_numbers(n, seed)), n=n)
    x = starts.map_blocks(read, dtype=np.float64, chunks=(sizes,), meta=np.empty(0))
    return array.sqrt((x * x).sum(keepdims=True))


def _piece(starts: Array, path: str, n: int) -> Array:
    start = int(starts[0])
    return np.fromfile(path, np.float64, min(PIECE, n - start), offset=8 * start)


def sums_by_row_groups(keys: Array, n: int, seed: int) -> Mapping[str, Array]:
    """Return the sum of ``value`` for each ``key``: NumPy over groups of rows, which Arrow
    reads."""
    file = import_module("pyarrow.parquet").ParquetFile(parquet(n, seed))
    sums = np.zeros(GROUPS)
    for group in range(file.num_row_groups):  # `iter_batches` keeps what it has read
        rows = file.read_row_group(group)
        sums += np.bincount(rows["key"], rows["value"], GROUPS)
    return {"key": keys, "value": sums}


def sums_pandas(keys: Array, n: int, seed: int) -> Any:
    """Return the same of a frame, all of it in memory."""
    frame = import_module("pandas").read_parquet(parquet(n, seed))
    return frame.groupby("key", as_index=False).sum()


def sums_polars(keys: Array, n: int, seed: int) -> Any:
    """Return the same as a query, which one of Polars's engines runs."""
    polars = import_module("polars")
    return polars.scan_parquet(parquet(n, seed)).group_by("key").agg(polars.col("value").sum())


def sums_dask(keys: Any, n: int, seed: int) -> Any:
    """Return the same as a lazy frame of Dask, a piece for each group of rows."""
    frame = import_module("dask.dataframe").read_parquet(parquet(n, seed), split_row_groups=True)
    return frame.groupby("key")[["value"]].sum().reset_index()
