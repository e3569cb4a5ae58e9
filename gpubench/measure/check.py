"""The check before a time: outputs against the baseline's on the same inputs.

Arrays are compared in pieces, so that comparing them needs little memory beside the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from gpubench.suite.model import Check

Array = np.ndarray[Any, Any]

DEFAULT_TOLERANCE = {
    "float16": 1e-2,
    "float32": 1e-5,
    "float64": 1e-12,
    "complex64": 1e-5,
    "complex128": 1e-12,
}
"""Relative and absolute tolerance where a suite gives none: tens of units in the last place. Wider
dtypes have that of float64."""

PIECE = 2**15
"""Elements that are compared at a time."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far outputs are from the baseline's; ``fault`` says why they are wrong, else ``None``."""

    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    """Over the elements at which the baseline is not zero."""
    fault: str | None = None
    warnings: tuple[str, ...] = ()
    """What a reader of the results has to know though nothing is wrong."""

    def joined(self, other: Comparison) -> Comparison:
        """The larger errors of two and the first fault."""
        return Comparison(
            _larger(self.max_abs_error, other.max_abs_error),
            _larger(self.max_rel_error, other.max_rel_error),
            self.fault or other.fault,
            (*self.warnings, *other.warnings),
        )


def compare(
    outputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    check: Check,
    checker: Callable[[Mapping[str, Array], Mapping[str, Array]], str | None] | None = None,
) -> Comparison:
    """Compare every output by name: shape, dtype, NaN and infinities, then error within tolerance.

    Structured arrays are compared field by field. What is neither real nor complex (integers,
    booleans, dates, text) must be equal. ``checker`` replaces the tolerance by a rule of the
    suite's own: it returns what is wrong, or ``None``.
    """
    worst = Comparison()
    for name, reference in expected.items():
        found = _compare_one(name, outputs[name], reference, check, tolerant=checker is None)
        worst = worst.joined(found)
    if checker is not None and worst.fault is None:
        fault = checker(outputs, expected)
        return Comparison(worst.max_abs_error, worst.max_rel_error, fault or None)
    return worst


def difference(one: Mapping[str, Array], other: Mapping[str, Array]) -> str | None:
    """Where two sets of outputs are not the same to the last bit: ``out: 3 of 64 elements, by at
    most 1.2e-07``; ``None`` where they are."""
    for name in one:
        if same_bits(one[name], other[name]):
            continue
        found = _compare_one(name, one[name], other[name], None, tolerant=True)
        count = sum(_count_unequal(a, b) for _, a, b in _pieces(one[name], other[name]))
        by_most = f", by at most {found.max_abs_error:.2g}" if found.max_abs_error else ""
        return f"{name}: {_share(count, one[name].size)}{by_most}"
    return None


def _count_unequal(one: Array, other: Array) -> int:
    unequal = one != other
    if one.dtype.kind in "fc":
        unequal &= ~(np.isnan(one) & np.isnan(other))
    return int(np.count_nonzero(unequal))


def same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays of any dtype have equal bytes, element by element."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.hasobject:
        return bool(np.all(one == other))
    return all(a.tobytes() == b.tobytes() for _, a, b in _pieces(one, other))


def tolerance(given: float | Mapping[str, float] | None, dtype: str, default: float) -> float:
    """Tolerance for a dtype: one number for all, one by dtype, or the default."""
    if isinstance(given, Mapping):
        return float(given.get(dtype, default))
    return default if given is None else float(given)


def _compare_one(
    name: str, found: Array, reference: Array, check: Check | None, *, tolerant: bool
) -> Comparison:
    if found.shape != reference.shape:
        return Comparison(
            fault=f"{name}: shape {found.shape}, the baseline gives {reference.shape}"
        )
    if found.dtype != reference.dtype:
        return Comparison(
            fault=f"{name}: dtype {found.dtype}, the baseline gives {reference.dtype}"
        )
    if reference.dtype.names:
        return _compare_fields(name, found, reference, check, tolerant=tolerant)
    if reference.dtype.kind not in "fc":
        return _compare_exact(name, found, reference, tolerant=tolerant)
    return _compare_close(name, found, reference, check, tolerant=tolerant)


def _compare_fields(
    name: str, found: Array, reference: Array, check: Check | None, *, tolerant: bool
) -> Comparison:
    worst = Comparison()
    for field in reference.dtype.names or ():
        part = f"{name}.{field}"
        one = _compare_one(part, found[field], reference[field], check, tolerant=tolerant)
        worst = worst.joined(one)
    return worst


def _compare_exact(name: str, found: Array, reference: Array, *, tolerant: bool) -> Comparison:
    count, first, largest, relative = 0, -1, 0.0, 0.0
    for start, a, b in _pieces(found, reference):
        differs = a != b
        number = int(np.count_nonzero(differs))
        if not number:
            continue
        first = start + int(differs.argmax()) if not count else first
        count += number
        apart = _apart(a, b)
        largest = max(largest, float(apart.max(initial=0)))
        relative = max(relative, _largest_ratio(apart, np.abs(_numbers(b))))
    if not count:
        return Comparison()
    fault = f"{name}: {_share(count, found.size)} differ{_at(first, found, reference, 'first')}"
    return Comparison(largest, relative, fault if tolerant else None)


def _apart(found: Array, reference: Array) -> Array:
    """Absolute differences; of integers exactly, as unsigned numbers, which wrap around."""
    kind = reference.dtype.kind
    if kind in "iu":
        unsigned = np.dtype(f"u{reference.dtype.itemsize}")
        with np.errstate(over="ignore"):
            apart = np.where(found > reference, found - reference, reference - found)
        wrapped: Array = apart.astype(reference.dtype).view(unsigned)
        return wrapped
    if kind == "b":
        return np.not_equal(found, reference)
    return np.zeros(0)


def _numbers(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind in "iub" else np.zeros(0)


def _compare_close(
    name: str, found: Array, reference: Array, check: Check | None, *, tolerant: bool
) -> Comparison:
    errors = _Errors(reference.dtype, check)
    for start, a, b in _pieces(found, reference):
        errors.add(start, a, b)
    if errors.odd:
        count = _share(errors.odd, found.size)
        at = _at(errors.first_odd, found, reference, "first")
        fault = f"{name}: {count} are NaN or infinite on one side only{at}"
        return Comparison(math.nan, math.nan, fault)
    problem = errors.beyond_tolerance() if tolerant else None
    if problem is None:
        return Comparison(errors.largest, errors.relative)
    at = _at(errors.worst, found, reference, "worst")
    return Comparison(errors.largest, errors.relative, f"{name}: {problem}{at}")


class _Errors:
    """Errors of one floating-point array, summed up piece by piece."""

    def __init__(self, dtype: np.dtype[Any], check: Check | None) -> None:
        default = DEFAULT_TOLERANCE.get(dtype.name, DEFAULT_TOLERANCE["float64"])
        self.wide = np.result_type(dtype, np.float64)
        self.rtol = tolerance(check.rtol, dtype.name, default) if check else 0.0
        self.atol = tolerance(check.atol, dtype.name, default) if check else 0.0
        self.by_norm = check is not None and check.norm == "l2"
        self.size = self.odd = self.beyond = 0
        self.first_odd = self.worst = -1
        self.largest = self.relative = 0.0
        self.error_norm = self.norm = 0.0

    def add(self, start: int, found: Array, reference: Array) -> None:
        """Take one piece into account, the first element of which has the index ``start``."""
        with np.errstate(over="ignore", invalid="ignore"):
            exact = reference.astype(self.wide, copy=False)
            apart = np.abs(found.astype(self.wide, copy=False) - exact)
            if not np.isfinite(apart.max(initial=0.0)):
                apart, exact = self._without_odd(start, found, reference)
            self._add_usual(start, apart, np.abs(exact))

    def _without_odd(self, start: int, found: Array, reference: Array) -> tuple[Array, Array]:
        """Errors and baseline with zeros where either is NaN or infinite."""
        usual = np.isfinite(reference) & np.isfinite(found)
        odd = ~usual & ~((found == reference) | (np.isnan(found) & np.isnan(reference)))
        if not self.odd and odd.any():
            self.first_odd = start + int(odd.argmax())
        self.odd += int(np.count_nonzero(odd))
        exact = np.where(usual, reference, 0).astype(self.wide)
        return np.abs(np.where(usual, found, 0).astype(self.wide) - exact), exact

    def _add_usual(self, start: int, apart: Array, size: Array) -> None:
        self.size += apart.size
        largest = float(apart.max(initial=0.0))
        if self.worst < 0 or largest > self.largest:
            self.worst, self.largest = start + int(apart.argmax()), largest
        if self.by_norm:
            self.error_norm = math.hypot(self.error_norm, float(np.linalg.norm(apart)))
            self.norm = math.hypot(self.norm, float(np.linalg.norm(size)))
        if largest == 0:
            return
        self.relative = max(self.relative, _largest_ratio(apart, size))
        if largest > self.atol:
            self.beyond += int(np.count_nonzero(apart > self.atol + self.rtol * size))

    def beyond_tolerance(self) -> str | None:
        """What exceeds the tolerance: ``|a - b| <= atol + rtol |b|`` as in ``numpy.allclose``, or
        the relative Euclidean norm for ``norm: l2``."""
        if not self.by_norm:
            if not self.beyond:
                return None
            share = _share(self.beyond, self.size)
            return f"{share} are off by more than {self.atol:g} + {self.rtol:g} |baseline|"
        if self.error_norm <= self.atol + self.rtol * self.norm:
            return None
        relative = self.error_norm / self.norm if self.norm else self.error_norm
        return f"relative error {relative:.3g} (l2 norm) is above {self.rtol:g}"


def _pieces(one: Array, other: Array) -> Iterator[tuple[int, Array, Array]]:
    """Both arrays in flat pieces of C order, with the index of each piece's first element."""
    a, b = _flat(one), _flat(other)
    for start in range(0, one.size, PIECE):
        yield start, a[start : start + PIECE], b[start : start + PIECE]


def _flat(array: Array) -> Array:
    """Something whose slices are pieces; a view or an iterator, so that nothing is copied whole."""
    return array.reshape(-1) if array.flags.c_contiguous else cast(Array, array.flat)


def _largest_ratio(apart: Array, size: Array) -> float:
    if size.min(initial=math.inf) > 0:
        return float((apart / size).max(initial=0.0))
    nonzero = size != 0
    return float((apart[nonzero] / size[nonzero]).max(initial=0.0))


def _larger(one: float, other: float) -> float:
    """The larger of two; NaN if one of them is."""
    return math.nan if math.isnan(one) or math.isnan(other) else max(one, other)


def _share(count: int, size: int) -> str:
    return f"{count} of {size} elements"


def _at(flat_index: int, found: Array, reference: Array, which: str) -> str:
    index = tuple(map(int, np.unravel_index(flat_index, found.shape)))
    place = f"[{', '.join(map(str, index))}]"
    return f"; {which} at {place}: {found[index]!s} instead of {reference[index]!s}"
