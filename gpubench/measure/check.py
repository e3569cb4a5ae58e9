"""The check before a time: outputs against the baseline's on the same inputs.

Arrays are compared in pieces, so that comparing them needs little memory beside the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from gpubench.suite.model import Check

Array = np.ndarray[Any, Any]

DEFAULT_TOLERANCE = {
    "float16": 1e-2,
    "float32": 1e-5,
    "float64": 1e-12,
    "complex64": 1e-5,
    "complex128": 1e-12,
}
"""Relative and absolute tolerance where a suite gives none; wider dtypes have that of float64.

In units of the dtype's rounding (``numpy.finfo(...).eps``) these are some 10, 84 and 4,500. A sum
of n terms in another order differs by about sqrt(n) of them, and by n at worst (Higham, *Accuracy
and Stability of Numerical Algorithms*, section 4.2). So float64 bears sums of millions of terms,
and float32 of thousands; a suite whose kernels round more says so with ``rtol``.
"""

PIECE = 2**15
"""Elements that are compared at a time: 256 KiB of float64, so that two pieces and what is computed
of them stay in the cache of a core."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How far outputs are from the baseline's; ``fault`` says why they are wrong, else ``None``."""

    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    """Over the elements at which the baseline is not zero."""
    fault: str | None = None
    warnings: tuple[str, ...] = ()
    """What a reader of the results has to know though nothing is wrong."""

    def joined(self, other: CheckResult) -> CheckResult:
        """The larger errors of two (NaN where one is) and the first fault."""
        return CheckResult(
            float(np.maximum(self.max_abs_error, other.max_abs_error)),
            float(np.maximum(self.max_rel_error, other.max_rel_error)),
            self.fault or other.fault,
            (*self.warnings, *other.warnings),
        )


def compare(
    outputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    check: Check,
    checker: Callable[[Mapping[str, Array], Mapping[str, Array]], str | None] | None = None,
) -> CheckResult:
    """Compare every output by name: shape, dtype, NaN and infinities, then error within tolerance.

    Structured arrays are compared field by field. What is neither real nor complex (integers,
    booleans, dates, text) must be equal. ``checker`` replaces the tolerance by a rule of the
    suite's own: it returns what is wrong, or ``None``.
    """
    worst = CheckResult()
    for name, reference in expected.items():
        result = _compare_one(name, outputs[name], reference, check, tolerant=checker is None)
        worst = worst.joined(result)
    if checker is not None and worst.fault is None:
        fault = checker(outputs, expected)
        return CheckResult(worst.max_abs_error, worst.max_rel_error, fault or None)
    return worst


def difference(one: Mapping[str, Array], other: Mapping[str, Array]) -> str | None:
    """Where two sets of outputs are not the same to the last bit: ``out: 3 of 64 elements, by at
    most 1.2e-07``; ``None`` where they are."""
    for name in one:
        if same_bits(one[name], other[name]):
            continue
        result = _compare_one(name, one[name], other[name], None, tolerant=True)
        count = 0
        for _, a, b in _pieces(one[name], other[name]):
            unequal = a != b
            if a.dtype.kind in "fc":
                unequal &= ~(np.isnan(a) & np.isnan(b))
            count += int(np.count_nonzero(unequal))
        by_most = f", by at most {result.max_abs_error:.2g}" if result.max_abs_error else ""
        return f"{name}: {_share(count, one[name].size)}{by_most}"
    return None


def same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays of any dtype have equal bytes, element by element."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.hasobject:
        return bool(np.all(one == other))
    return all(a.tobytes() == b.tobytes() for _, a, b in _pieces(one, other))


def _compare_one(
    name: str, output: Array, reference: Array, check: Check | None, *, tolerant: bool
) -> CheckResult:
    """One output; where not ``tolerant``, differences are measured and are no fault."""
    for what in ("shape", "dtype"):
        mine, theirs = getattr(output, what), getattr(reference, what)
        if mine != theirs:
            return CheckResult(fault=f"{name}: {what} {mine}, the baseline gives {theirs}")
    if reference.dtype.names:
        worst = CheckResult()
        for field in reference.dtype.names:
            part, a, b = f"{name}.{field}", output[field], reference[field]
            worst = worst.joined(_compare_one(part, a, b, check, tolerant=tolerant))
        return worst
    if reference.dtype.kind in "fc":
        return _compare_close(name, output, reference, check, tolerant=tolerant)
    return _compare_exact(name, output, reference, tolerant=tolerant)


def _compare_exact(name: str, output: Array, reference: Array, *, tolerant: bool) -> CheckResult:
    count, first, largest, relative = 0, -1, 0.0, 0.0
    for start, a, b in _pieces(output, reference):
        differs = a != b
        number = int(np.count_nonzero(differs))
        if not number:
            continue
        first = start + int(differs.argmax()) if not count else first
        count += number
        if reference.dtype.kind in "iub":  # of dates and text there is no error, only a difference
            apart = _apart(a, b)
            largest = max(largest, float(apart.max(initial=0)))
            relative = max(relative, _largest_ratio(apart, np.abs(b.astype(np.float64))))
    if not count:
        return CheckResult()
    at = _at(first, output, reference, "first")
    fault = f"{name}: {_share(count, output.size)} differ{at}"
    return CheckResult(largest, relative, fault if tolerant else None)


def _apart(output: Array, reference: Array) -> Array:
    """Absolute differences of integers or booleans, exactly: as unsigned numbers, since signed ones
    may be further apart than their own dtype can say."""
    if reference.dtype.kind == "b":
        return np.not_equal(output, reference)
    with np.errstate(over="ignore"):
        apart = np.where(output > reference, output - reference, reference - output)
    wrapped: Array = apart.astype(reference.dtype).view(f"u{reference.dtype.itemsize}")
    return wrapped


def _compare_close(
    name: str, output: Array, reference: Array, check: Check | None, *, tolerant: bool
) -> CheckResult:
    errors = _Errors(reference.dtype, check)
    for start, a, b in _pieces(output, reference):
        errors.add(start, a, b)
    if errors.odd:
        count = _share(errors.odd, output.size)
        at = _at(errors.first_odd, output, reference, "first")
        fault = f"{name}: {count} are NaN or infinite on one side only{at}"
        return CheckResult(math.nan, math.nan, fault)
    fault_of_all = errors.beyond_tolerance() if tolerant else None
    if fault_of_all is None:
        return CheckResult(errors.largest, errors.relative)
    at = _at(errors.worst, output, reference, "worst")
    return CheckResult(errors.largest, errors.relative, f"{name}: {fault_of_all}{at}")


class _Errors:
    """Errors of one floating-point array, summed up piece by piece."""

    def __init__(self, dtype: np.dtype[Any], check: Check | None) -> None:
        self.wide = np.result_type(dtype, np.float64)
        self.rtol = _tolerance(check.rtol, dtype.name) if check else 0.0
        self.atol = _tolerance(check.atol, dtype.name) if check else 0.0
        self.by_norm = check is not None and check.norm == "l2"
        self.size = self.odd = self.beyond = 0
        self.first_odd = self.worst = -1
        self.largest = self.relative = 0.0
        self.error_norm = self.norm = 0.0

    def add(self, start: int, output: Array, reference: Array) -> None:
        """Take one piece into account, the first element of which has the index ``start``."""
        with np.errstate(over="ignore", invalid="ignore"):
            exact = reference.astype(self.wide, copy=False)
            apart = np.abs(output.astype(self.wide, copy=False) - exact)
            if not np.isfinite(apart.max(initial=0.0)):
                apart, exact = self._without_odd(start, output, reference)
            size = np.abs(exact)
            self.size += apart.size
            largest = float(apart.max(initial=0.0))
            if self.worst < 0 or largest > self.largest:
                self.worst, self.largest = start + int(apart.argmax()), largest
            if self.by_norm:
                self.error_norm = math.hypot(self.error_norm, float(np.linalg.norm(apart)))
                self.norm = math.hypot(self.norm, float(np.linalg.norm(size)))
            if largest > 0:
                self.relative = max(self.relative, _largest_ratio(apart, size))
            if largest > self.atol:
                self.beyond += int(np.count_nonzero(apart > self.atol + self.rtol * size))

    def _without_odd(self, start: int, output: Array, reference: Array) -> tuple[Array, Array]:
        """Errors and baseline with zeros where either is NaN or infinite."""
        usual = np.isfinite(reference) & np.isfinite(output)
        odd = ~usual & ~((output == reference) | (np.isnan(output) & np.isnan(reference)))
        if not self.odd and odd.any():
            self.first_odd = start + int(odd.argmax())
        self.odd += int(np.count_nonzero(odd))
        exact = np.where(usual, reference, 0).astype(self.wide)
        return np.abs(np.where(usual, output, 0).astype(self.wide) - exact), exact

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


def _tolerance(given: float | Mapping[str, float] | None, dtype: str) -> float:
    """The suite's: one number for all dtypes or one by dtype; else the default."""
    default = DEFAULT_TOLERANCE.get(dtype, DEFAULT_TOLERANCE["float64"])
    if isinstance(given, Mapping):
        return float(given.get(dtype, default))
    return default if given is None else float(given)


def _pieces(one: Array, other: Array) -> Iterator[tuple[int, Array, Array]]:
    """Both arrays in flat pieces of C order, with the index of each piece's first element.

    Pieces are slices of a view or of an iterator, so that nothing is copied whole.
    """
    a, b = (
        array.reshape(-1) if array.flags.c_contiguous else cast(Array, array.flat)
        for array in (one, other)
    )
    for start in range(0, one.size, PIECE):
        yield start, a[start : start + PIECE], b[start : start + PIECE]


def _largest_ratio(apart: Array, size: Array) -> float:
    """Of errors over sizes, where these are not zero."""
    if size.min(initial=math.inf) <= 0:
        nonzero = size != 0
        apart, size = apart[nonzero], size[nonzero]
    return float((apart / size).max(initial=0.0))


def _share(count: int, size: int) -> str:
    return f"{count} of {size} elements"


def _at(flat_index: int, output: Array, reference: Array, which: str) -> str:
    index = tuple(map(int, np.unravel_index(flat_index, output.shape)))
    place = f"[{', '.join(map(str, index))}]"
    return f"; {which} at {place}: {output[index]!s} instead of {reference[index]!s}"
