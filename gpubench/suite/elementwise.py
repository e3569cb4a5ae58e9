"""Formulas over the indices of an array: `i * j % 7 / n` for every element, a piece at a time.

Values that no index is part of are computed as in every other formula, exactly. Whole numbers of
indices are 64 bits wide and refused beyond that, all others are NumPy's float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpubench.suite.arithmetic import Elements, as_array
from gpubench.suite.expressions import ByName, Expression, ExpressionError

PIECE_ELEMENTS = 2**16
"""Elements that are computed at a time: 512 KiB for each operation that is under way, of which
there are at most ``MAX_FORMULA_DEPTH``, however large the array is."""


def elements(
    formula: Expression,
    scope: ByName,
    arrays: ByName,
    indices: Sequence[str],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    piece: int = PIECE_ELEMENTS,
) -> Iterator[tuple[int, Elements]]:
    """Elements of an array in C order, in flat pieces of ``dtype`` with the index of their first.

    ``indices`` are the names of the array's indices, one for each dimension of ``shape``. Raises
    ``ExpressionError`` for an element without a value, or with one that ``dtype`` does not hold.
    """
    uses_index = not formula.names.isdisjoint(indices)
    for start in range(0, math.prod(shape), piece):
        flat = np.arange(start, min(start + piece, math.prod(shape)))
        places = np.unravel_index(flat, shape) if uses_index else ()
        with np.errstate(all="ignore"):  # what is not finite is refused below
            try:
                at_indices = {**scope, **dict(zip(indices, places, strict=False))}
                value = formula.evaluate(at_indices, arrays)
                values = np.broadcast_to(as_array(value), flat.shape)
            except ValueError as error:
                raise ExpressionError(str(error), formula.text, 0) from None
            converted = values.astype(dtype)
            wrong = _beyond(values, converted)
        if wrong.any():
            first = int(wrong.argmax())
            at = ", ".join(str(int(index)) for index in np.unravel_index(start + first, shape))
            problem = f"is {values[first].item()!r} at [{at}]; {_allowed(dtype)}"
            raise ExpressionError(problem, formula.text, 0)
        yield start, converted


def _beyond(values: Elements, converted: Elements) -> Elements:
    """Return where a value is not one of the dtype that it was converted to."""
    beyond: Elements = ~np.isfinite(converted)
    if converted.dtype.kind in "biu":
        beyond = (converted != values) | ~np.isfinite(values)
    return beyond


def why_not_held(value: Any, dtype: np.dtype[Any]) -> str | None:
    """Return what is wrong with a number that ``dtype`` does not hold; ``None`` where it does."""
    if not isinstance(value, str):
        number = as_array(value)
        with np.errstate(all="ignore"):  # what is not finite is refused
            if not _beyond(number, number.astype(dtype)).any():
                return None
    return f"is {value!r}; {_allowed(dtype)}"


def _allowed(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "b":
        return "a bool array takes true and false: write a comparison"
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return f"{dtype} takes whole numbers from {bounds.min} to {bounds.max}: write // or floor()"
    return f"{dtype} takes finite numbers up to {np.finfo(dtype).max}: change the formula"
