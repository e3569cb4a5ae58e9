"""Tables on the host: Arrow's, and their columns as NumPy arrays.

NumPy has no missing values and no categories. So a table is there a mapping of names to arrays of
one dimension: floating-point numbers with NaN for what is missing; all else with whatever stands
there and, as ``NAME is null``, an array of booleans; text as Python's ``str``, in arrays of
objects; a category as its codes (int32, -1 where it is missing) and, as ``NAME categories``, the
words that they stand for.

pyarrow is imported when the first table is made, and by nothing that has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from gpubench.distribution import require_extra
from gpubench.errors import KernelError

AnyArray = np.ndarray[Any, Any]

IS_NULL = " is null"
"""Ends the name of the array that says which values of a column are missing."""
CATEGORIES = " categories"
"""Ends the name of the array of a category's words."""


def not_installed() -> str | None:
    """Return why there can be no tables here; ``None`` where there can. Imports nothing."""
    if find_spec("pyarrow") is not None:
        return None
    return (
        "tables need the module 'pyarrow', which is not installed: "
        f"pip install '{require_extra('tables')}'"
    )


def pyarrow() -> Any:
    """Return the module; raises ``KernelError`` where it is not installed."""
    if reason := not_installed():
        raise KernelError(reason)
    return import_module("pyarrow")


def array_of(values: AnyArray, missing: AnyArray | None = None) -> Any:
    """Return a ``pyarrow.Array`` of numbers or booleans. ``pyarrow.array`` would import pandas
    where that is installed, and what a fresh process takes to import it would be in no time."""
    pa = pyarrow()
    data = np.packbits(values, bitorder="little") if values.dtype == bool else values
    buffers = [_validity(missing), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def text_of(words: Sequence[str], missing: AnyArray | None = None) -> Any:
    """Return the same of text, as ``large_string``; raises ``TypeError`` for what is no text."""
    pa = pyarrow()
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"found {word!r}, a {type(word).__name__}")
    encoded = [word.encode() for word in words]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = [_validity(missing), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


def _validity(missing: AnyArray | None) -> Any:
    """Return a bit for each value that is there, as Arrow has it; ``None`` where all are."""
    if missing is None:
        return None
    return pyarrow().py_buffer(np.packbits(~missing, bitorder="little"))


def to_columns(table: Any) -> dict[str, AnyArray]:
    """Return new arrays with the values of a ``pyarrow.Table``, by name, as this module describes
    them.

    ``NAME is null`` is there for every column that is neither floating point nor a category.
    Raises ``KernelError`` for a column that is neither numbers, booleans, text, categories nor
    times.
    """
    pa = pyarrow()
    arrays: dict[str, AnyArray] = {}
    for name, chunks in zip(table.column_names, table.columns, strict=True):
        kind = chunks.type
        if pa.types.is_dictionary(kind):
            codes, words = _codes(chunks)
            arrays[name] = codes
            arrays[name + CATEGORIES] = words
        elif pa.types.is_floating(kind):
            arrays[name] = np.array(chunks.to_numpy())
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            codes, words = _codes(chunks.dictionary_encode())
            # One object for each distinct word. The last is what the code -1 finds.
            arrays[name] = np.append(words, np.array([""], object))[codes]
            arrays[name + IS_NULL] = codes == -1
        elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_temporal(kind):
            arrays[name + IS_NULL] = np.array(chunks.is_null().to_numpy())
            if chunks.null_count:
                chunks = chunks.fill_null(pa.scalar(0).cast(kind))
            arrays[name] = np.array(chunks.to_numpy())
        else:
            raise KernelError(
                f"column {name!r} is of Arrow's type {kind}; allowed: numbers, booleans, text, "
                "categories and times"
            )
    return arrays


def _codes(chunks: Any) -> tuple[AnyArray, AnyArray]:
    """Codes of a column of dictionaries, int32 with -1 for null, and the words, as objects."""
    pa = pyarrow()
    chunks = chunks.unify_dictionaries()
    parts = [part.indices.fill_null(-1).to_numpy(zero_copy_only=False) for part in chunks.chunks]
    words = chunks.chunk(0).dictionary if parts else pa.array([], pa.large_string())
    codes = np.concatenate([np.empty(0, np.int32), *parts]).astype(np.int32)
    return codes, np.array(words.to_numpy(zero_copy_only=False), object)


def from_columns(columns: object) -> Any:
    """Return a ``pyarrow.Table`` of arrays by name, as a function over NumPy arrays returns them.

    Text may be of NumPy's own types too. Raises ``KernelError`` for what is no such mapping.
    """
    pa = pyarrow()
    if not isinstance(columns, Mapping):
        raise KernelError(
            f"a table came as a {type(columns).__name__}; allowed: a mapping of names to NumPy "
            "arrays of one dimension"
        )
    arrays = {str(name): np.asarray(values) for name, values in columns.items()}
    shapes = {values.shape for name, values in arrays.items() if not name.endswith(CATEGORIES)}
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        listed = ", ".join(f"{name} {values.shape}" for name, values in arrays.items())
        raise KernelError(f"columns of a table are of one dimension and one length; found {listed}")
    made = {}
    for name, values in arrays.items():
        of_another = next((s for s in (IS_NULL, CATEGORIES) if name.endswith(s)), "")
        if of_another and name.removesuffix(of_another) in arrays:
            continue
        mask, words = arrays.get(name + IS_NULL), arrays.get(name + CATEGORIES)
        try:
            if words is not None:
                codes = pa.array(values, pa.int32(), mask=values < 0)
                made[name] = pa.DictionaryArray.from_arrays(codes, pa.array(words.astype(object)))
            elif values.dtype.kind in "OUT":
                made[name] = pa.array(values.astype(object), pa.large_string(), mask=mask)
            else:
                made[name] = pa.array(values, mask=mask)
        except (pa.ArrowException, TypeError) as error:
            raise KernelError(f"column {name!r} cannot be part of a table: {error}") from error
    return pa.table(made)
