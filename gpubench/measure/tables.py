"""Tables that a case starts from, and the columns of returned tables that are compared.

A returned table is compared as arrays, one or two for each column, in the order of its key. Their
names are ``answer.v1`` and, for what is not floating point, ``answer.v1 is null``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gpubench.arrow import CATEGORIES, IS_NULL, AnyArray, array_of, pyarrow, text_of, to_columns
from gpubench.errors import KernelError
from gpubench.measure.check import same_bits
from gpubench.plan.case import ColumnSpec

EXACT = 2**53
"""Whole numbers up to this one are all float64's (IEEE 754: 53 bits of precision)."""


def arrow_column(what: str, spec: ColumnSpec, values: Any, generator: np.random.Generator) -> Any:
    """Return a column as a ``pyarrow.Array``, some of its values taken away. ``values`` fills it:
    an array of the column's dtype; for text words, or a pair, the index of each row's word and the
    words. Raises ``KernelError`` for anything else."""
    pa = pyarrow()
    (rows,) = spec.values.shape
    mask = generator.random(rows) < spec.nulls if spec.nulls else None
    if not spec.values.dtype.hasobject:
        values = np.asarray(values)
        if (values.shape, values.dtype) != (spec.values.shape, spec.values.dtype):
            raise KernelError(
                f"column {what} came as {values.dtype} {values.shape}; the suite declares "
                f"{spec.values.dtype} {spec.values.shape}"
            )
        return array_of(values, mask)
    codes, words = values if isinstance(values, tuple) and len(values) == 2 else (None, values)
    try:
        if codes is None:
            column = text_of(words, mask)
        else:
            indices = array_of(np.asarray(codes, np.int32), mask)
            column = pa.DictionaryArray.from_arrays(indices, text_of(words))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise KernelError(
            f"column {what} takes text, or a pair (indices, words): {error}"
        ) from error
    if len(column) != rows:
        raise KernelError(f"column {what} came with {len(column)} rows; the suite declares {rows}")
    is_dictionary = codes is not None
    if spec.is_category:
        return column if is_dictionary else column.dictionary_encode()
    return column.dictionary_decode() if is_dictionary else column


def comparable(name: str, table: Any, key: Sequence[str]) -> dict[str, AnyArray]:
    """Return a table as arrays by ``name.column``, its rows in the order of ``key``.

    Text and categories are objects, integers 64 bits wide, times nanoseconds: the same value is the
    same, however wide it is. A column of ``key`` that is not there is left out. Raises
    ``KernelError`` for two columns of one name, and for one of another type.
    """
    pa = pyarrow()
    names = table.column_names
    if len(set(names)) < len(names):
        raise KernelError(f"{name} has columns of the same name: {', '.join(map(str, names))}")
    try:
        plain = pa.table({each: _plain(table.column(each)) for each in sorted(names)})
    except pa.ArrowException as error:
        raise KernelError(f"{name} cannot be compared: {error}") from error
    by = [(column, "ascending") for column in key if column in names]
    if by:
        plain = plain.sort_by(by)
    return {f"{name}.{column}": values for column, values in to_columns(plain).items()}


def _plain(column: Any) -> Any:
    """Return a column in the widest type of its kind."""
    pa, kind = pyarrow(), column.type
    types = pa.types
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if types.is_string(kind):
        return column.cast(pa.large_string())
    if types.is_uint64(kind):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:  # beyond it
            return column
    if types.is_integer(kind):
        return column.cast(pa.int64())
    if types.is_null(kind) or types.is_decimal(kind):
        return column.cast(pa.float64())
    if types.is_timestamp(kind) or types.is_date(kind):
        return column.cast(pa.timestamp("ns"))
    if types.is_time(kind):
        return column.cast(pa.time64("ns"))
    return column.cast(pa.duration("ns")) if types.is_duration(kind) else column


def why_ambiguous(name: str, columns: Mapping[str, AnyArray], key: Sequence[str]) -> str | None:
    """Return why the rows of a table in the order of ``key`` might come in another one; ``None``
    where they cannot, or where ``key`` is empty. ``columns`` are those of ``comparable``."""
    if missing := [column for column in key if f"{name}.{column}" not in columns]:
        return (
            f"{name}: the baseline gives no column {missing[0]!r}, which is in `key`; it gives "
            f"{', '.join(_names(name, columns))}"
        )
    keys = {f"{name}.{column}{end}" for column in key for end in ("", IS_NULL)}
    alike = _same_as_the_row_before([a for n, a in columns.items() if n in keys])
    if not key or not alike.any():
        return None
    whole = [array for n, array in columns.items() if n.startswith(f"{name}.")]
    apart = int(np.count_nonzero(alike & ~_same_as_the_row_before(whole)))
    if not apart:  # the same rows: one is as good as the other
        return None
    return (
        f"{name}: {apart} rows have the `key` of another row and differ from it, so that their "
        f"order is open; name more columns than {', '.join(key)}"
    )


def _same_as_the_row_before(columns: Sequence[AnyArray]) -> AnyArray:
    if not columns:
        return np.ones(0, bool)
    same = np.ones(max(len(columns[0]) - 1, 0), bool)
    for values in columns:
        equal = values[1:] == values[:-1]
        if values.dtype.kind == "f":
            equal |= np.isnan(values[1:]) & np.isnan(values[:-1])
        same &= equal
    return same


def fitted(
    outputs: Mapping[str, AnyArray], expected: Mapping[str, AnyArray]
) -> dict[str, AnyArray]:
    """Return outputs in the baseline's types, where that is the same value.

    Compiled functions return Python's numbers, which have no dtype of their own. Of tables, a
    backend without missing integers gives floating-point numbers with NaN, and floating-point
    numbers take the baseline's width, by which the tolerance is chosen.
    """
    fitting = dict(outputs)
    for name, reference in expected.items():
        values, null = outputs.get(name), name + IS_NULL
        if values is None or values.dtype == reference.dtype:
            continue
        kinds = values.dtype.kind, reference.dtype.kind
        if "." not in name:  # of no table
            if values.ndim == reference.ndim == 0 and kinds[0] == kinds[1]:
                fitting[name] = values.astype(reference.dtype)
            continue
        if kinds[0] == "f" and null in expected:
            fitting[null] = np.isnan(values)
        if kinds == ("f", "f"):
            fitting[name] = values.astype(reference.dtype)
        elif kinds == ("f", "i"):
            numbers = np.where(np.isnan(values), 0, values)
            if np.all((np.abs(numbers) <= EXACT) & (np.trunc(numbers) == numbers)):
                fitting[name] = numbers.astype(np.int64)
        elif kinds in (("i", "f"), ("u", "f")):
            numbers = values.astype(reference.dtype)
            numbers[fitting.pop(null)] = np.nan
            fitting[name] = numbers
    return fitting


def why_other_columns(
    outputs: Mapping[str, AnyArray], expected: Mapping[str, AnyArray], tables: Sequence[str]
) -> str | None:
    """Return which columns of returned tables are missing or too many, or that the rows are;
    ``None`` where they are the baseline's."""
    for name in tables:
        mine, theirs = list(_names(name, outputs)), list(_names(name, expected))
        if missing := [column for column in theirs if column not in mine]:
            there = ", ".join(mine) or "none"
            return (
                f"{name}: no column {missing[0]!r}, which the baseline gives; columns are {there}"
            )
        if strange := [column for column in mine if column not in theirs]:
            return (
                f"{name}: a column {strange[0]!r}, which the baseline does not give; it gives "
                f"{', '.join(theirs)}"
            )
        rows = [{len(each[f"{name}.{column}"]) for column in mine} for each in (outputs, expected)]
        if rows[0] != rows[1]:
            return f"{name}: {max(rows[0])} rows, the baseline gives {max(rows[1])}"
    return None


def _names(name: str, columns: Mapping[str, AnyArray]) -> Iterator[str]:
    """Return the names of the columns of one table among outputs."""
    for column in columns:
        table, _, own = column.partition(".")
        if table == name and own and not own.endswith((IS_NULL, CATEGORIES)):
            yield own


def same_table(one: Any, other: Any) -> bool:
    """Return whether two ``pyarrow.Table`` have the same columns and rows, in the same order."""
    if one.column_names != other.column_names or one.num_rows != other.num_rows:
        return False
    a, b = comparable("", one, ()), comparable("", other, ())
    return a.keys() == b.keys() and all(same_bits(a[name], b[name]) for name in a)
