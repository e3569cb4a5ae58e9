"""Columns of the tables that the suite ``frames`` groups, joins and sorts.

They are drawn as the benchmark of h2o.ai, now DuckDB Labs', draws its own (`groupby-datagen.R` and
`join-datagen.R` of duckdblabs/db-benchmark): keys from a few to as many as there are rows, as text
and as numbers, and small numbers to add up. The functions are called with the values of a case and
a seeded generator: ``n`` is the number of rows, ``k`` how many groups a key of few groups has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = Mapping[str, Any]
Text = tuple[NDArray[np.int64], list[str]]
"""For each row the index of its word, and the words."""

SHARED = 0.9
"""Share of a table's keys that the table joined to it has too, as `join-datagen.R` has it."""


# --- keys of groups


def few_words(values: Values, generator: np.random.Generator) -> Text:
    """One of ``k`` words for each row: ``id001``."""
    codes = generator.integers(0, int(values["k"]), int(values["n"]))
    return codes, [f"id{word:03}" for word in range(1, values["k"] + 1)]


def many_words(values: Values, generator: np.random.Generator) -> Text:
    """One of ``n / k`` words for each row: ``id0000000001``."""
    count = _many(values)
    codes = generator.integers(0, count, int(values["n"]))
    return codes, [f"id{word:010}" for word in range(1, count + 1)]


def few_numbers(values: Values, generator: np.random.Generator) -> NDArray[np.int32]:
    """1 to ``k`` for each row, int32."""
    return generator.integers(1, int(values["k"]) + 1, int(values["n"]), dtype=np.int32)


def many_numbers(values: Values, generator: np.random.Generator) -> NDArray[np.int32]:
    """1 to ``n / k`` for each row, int32."""
    return generator.integers(1, _many(values) + 1, int(values["n"]), dtype=np.int32)


def _many(values: Values) -> int:
    return max(int(values["n"]) // int(values["k"]), 1)


# --- numbers to add up


def to_5(values: Values, generator: np.random.Generator) -> NDArray[np.int32]:
    """1 to 5, int32."""
    return generator.integers(1, 6, int(values["n"]), dtype=np.int32)


def to_15(values: Values, generator: np.random.Generator) -> NDArray[np.int32]:
    """1 to 15, int32."""
    return generator.integers(1, 16, int(values["n"]), dtype=np.int32)


def to_100(values: Values, generator: np.random.Generator) -> NDArray[np.float64]:
    """0 to 100 with six digits after the point, float64."""
    return np.round(100 * generator.random(int(values["n"])), 6)


# --- keys of joins; ``right`` is the number of rows of the table that is joined


def left_keys(values: Values, generator: np.random.Generator) -> NDArray[np.int32]:
    """1 to ``right`` for each of ``n`` rows, each of them once before any comes again, int32."""
    places = generator.permutation(int(values["n"]))
    return (places % int(values["right"]) + 1).astype(np.int32)


def right_keys(values: Values, generator: np.random.Generator) -> NDArray[np.int32]:
    """``right`` numbers, none twice, int32: the first nine in ten of ``left_keys``, and others."""
    return generator.permutation(_right(values)).astype(np.int32)


def left_words(values: Values, generator: np.random.Generator) -> Text:
    """``left_keys`` as text: ``id12``."""
    codes = left_keys(values, generator) - 1
    return codes.astype(np.int64), [f"id{word}" for word in range(1, values["right"] + 1)]


def right_words(values: Values, generator: np.random.Generator) -> Text:
    """``right_keys`` as text."""
    words = [f"id{word}" for word in generator.permutation(_right(values))]
    return np.arange(len(words)), words


def row_numbers(values: Values, generator: np.random.Generator) -> NDArray[np.int32]:
    """1 to ``n`` in any order, int32: what tells the rows of a join apart."""
    return (generator.permutation(values["n"]) + 1).astype(np.int32)


def right_numbers(values: Values, generator: np.random.Generator) -> NDArray[np.float64]:
    """``right`` numbers of 0 to 100, float64."""
    return np.round(100 * generator.random(int(values["right"])), 6)


def _right(values: Values) -> NDArray[np.int64]:
    right = int(values["right"])
    shared = int(SHARED * right)
    return np.concatenate([np.arange(1, shared + 1), right + np.arange(1, right - shared + 1)])


# --- a file


CSV_HEAD = b"row_number,a_measure,word_of_it\n"
CSV_ROW = len(CSV_HEAD)
"""Bytes of each row: ``1234567890,12.345678,id00000042`` and the end of the line."""


def csv_bytes(values: Values, generator: np.random.Generator) -> NDArray[np.uint8]:
    """Return a file of comma-separated values with a head and ``n`` rows: whole numbers, numbers
    with six digits after the point, and one of ``k`` words; uint8, ``CSV_ROW * (n + 1)`` bytes."""
    n = int(values["n"])
    rows = np.full((n + 1, CSV_ROW), ord(","), np.uint8)
    rows[0] = np.frombuffer(CSV_HEAD, np.uint8)
    rows[1:, :10] = _digits(generator.integers(10**9, 10**10, n), 10)
    measures = generator.integers(0, 10**8, n)
    rows[1:, 11:13] = _digits(measures // 10**6, 2)
    rows[1:, 13] = ord(".")
    rows[1:, 14:20] = _digits(measures % 10**6, 6)
    rows[1:, 21:23] = np.frombuffer(b"id", np.uint8)
    rows[1:, 23:31] = _digits(generator.integers(0, int(values["k"]), n), 8)
    rows[1:, 31] = ord("\n")
    return rows.reshape(-1)


def _digits(numbers: NDArray[np.int64], count: int) -> NDArray[np.uint8]:
    """Return the last ``count`` decimal digits of each number as text, a row each."""
    powers = 10 ** np.arange(count - 1, -1, -1)
    digits: NDArray[np.uint8] = (numbers[:, None] // powers % 10 + ord("0")).astype(np.uint8)
    return digits
