"""The check before a time: outputs against the baseline's on the same inputs.

Arrays are compared in pieces, so that comparing them needs little memory beside the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gpubench.arrow import AnyArray
from gpubench.measure.scores import Outputs, OwnRule, accepts
from gpubench.suite.sampling import Check

# In units of the dtype's rounding (`numpy.finfo(...).eps`) these are some 10, 84 and 4,500. A sum
# of n terms in another order differs by about sqrt(n) of them, and by n at worst (Higham, *Accuracy
# and Stability of Numerical Algorithms*, section 4.2). So float16 bears sums of a hundred terms,
# float32 of thousands and float64 of millions, and a wrong kernel is off by far more than that. A
# suite whose kernels round more says so with `rtol`.
DEFAULT_TOLERANCE = {
    "float16": 1e-2,
    "float32": 1e-5,
    "float64": 1e-12,
    "complex64": 1e-5,
    "complex128": 1e-12,
}
"""``rtol`` where a suite gives none; wider dtypes have that of float64."""


PIECE = 2**15
"""Elements that are compared at a time: 256 KiB of float64, so that two pieces and what is computed
of them stay in the cache of a core."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How far outputs are from the baseline's; ``fault`` says why they are wrong, else ``None``."""

    max_abs_error: float | None = 0.0
    """``None`` where outputs have a score, and their numbers may be any."""
    max_rel_error: float | None = 0.0
    """Largest error over the baseline's element, or over the root mean square of all of them where
    that is larger: near zero, every error would be large beside the element alone."""
    fault: str | None = None
    warnings: tuple[str, ...] = ()
    """What a reader of the results has to know though nothing is wrong."""
    score: float | None = None
    """What the outputs are worth, by the suite's score; ``None`` without one."""

    def joined(self, other: CheckResult) -> CheckResult:
        """Return the larger errors of two (NaN where one is), the first fault and the first
        score."""

        def larger(one: float | None, other: float | None) -> float | None:
            return None if one is None or other is None else float(np.maximum(one, other))

        return CheckResult(
            larger(self.max_abs_error, other.max_abs_error),
            larger(self.max_rel_error, other.max_rel_error),
            self.fault or other.fault,
            (*self.warnings, *other.warnings),
            other.score if self.score is None else self.score,
        )


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far elements may be from the baseline's: by ``atol + rtol |baseline|``."""

    rtol: float
    atol: float
    scale: float
    """Root mean square of the baseline's finite elements."""
    source: str
    """Where the two numbers come from, for people."""

    @classmethod
    def of(
        cls, reference: AnyArray, check: Check, output: np.dtype[Any] | None = None
    ) -> Tolerance:
        """Return the suite's tolerance for an output like this one, or the default; where the
        output is of a coarser dtype, the tolerance of that.

        All terms of an element add to its error. Where the terms cancel, they are as large as the
        other elements, and the element itself is small. So ``atol`` is ``rtol`` times the root mean
        square of the output: the normwise error (Higham, section 1.2), in the Euclidean norm, which
        a single large element raises least. ``norm: l2`` has ``rtol`` for that.
        """
        dtypes = [reference.dtype] if output is None else [reference.dtype, output]
        dtype = max(dtypes, key=lambda one: float(np.finfo(one).eps)).name
        scale = _root_mean_square(reference)
        rtol, atol = (
            given.get(dtype) if isinstance(given, Mapping) else given
            for given in (check.rtol, check.atol)
        )
        sources = []
        if rtol is None:
            rtol = DEFAULT_TOLERANCE.get(dtype, DEFAULT_TOLERANCE["float64"])
            sources.append(f"rtol: the default of {dtype}")
        if atol is None and check.norm == "l2":
            atol = 0.0
        elif atol is None:
            atol = rtol * scale
            sources.append(f"atol: rtol times the baseline's root mean square {scale:.3g}")
        return cls(rtol, atol, scale, "; ".join(sources) or "by the suite's `check`")

    def __str__(self) -> str:
        return f"{self.atol:.3g} + {self.rtol:g} |baseline| ({self.source})"


def compare(
    outputs: Outputs, expected: Outputs, check: Check, own_rule: OwnRule | None = None
) -> CheckResult:
    """Compare every output by name: shape, dtype (unless any is allowed), NaN and infinities, then
    error within tolerance.

    Structured arrays are compared field by field. What is neither real nor complex (integers,
    booleans, dates, text) must be equal. ``own_rule`` replaces the tolerance; where it is a score,
    errors of numbers mean nothing and are left out.
    """
    worst = CheckResult()
    for name, reference in expected.items():
        rule = None if own_rule else check.of(name)
        any_dtype = _may_differ(name, check)
        worst = worst.joined(compare_one(name, outputs[name], reference, rule, any_dtype=any_dtype))
    if own_rule and worst.fault is None:
        fault, score = own_rule(outputs, expected)
        worst = replace(worst, fault=fault, score=score)
    if check.score is not None:
        worst = replace(worst, max_abs_error=None, max_rel_error=None)
    return worst


def coarser_dtypes(outputs: Outputs, expected: Outputs) -> dict[str, np.dtype[Any]]:
    """Return the dtypes of the outputs with coarser numbers than the expected ones, by name."""
    coarser = {}
    for name, reference in expected.items():
        output = outputs[name].dtype if name in outputs else reference.dtype
        is_float = output.kind == reference.dtype.kind and output.kind in "fc"
        if is_float and np.finfo(output).eps > np.finfo(reference.dtype).eps:
            coarser[name] = output
    return coarser


def difference(one: Outputs, other: Outputs) -> str | None:
    """Return where two sets of outputs are not the same to the last bit: ``out: 3 of 64 elements,
    by at most 1.2e-07``; ``None`` where they are."""
    if one.keys() != other.keys():
        return "columns that are not there every time"
    for name in one:
        if same_bits(one[name], other[name]):
            continue
        kinds = [f"{array.dtype} {array.shape}" for array in (one[name], other[name])]
        if kinds[0] != kinds[1]:
            return f"{name}: {kinds[0]} and {kinds[1]}"
        result = compare_one(name, one[name], other[name], None)
        parts = zip(fields_of("", one[name]), fields_of("", other[name]), strict=True)
        pairs = (pair for (_, a), (_, b) in parts for pair in _pairs(a, b))
        count = sum(int(np.count_nonzero(_differ(a, b))) for a, b in pairs)
        by_most = f", by at most {result.max_abs_error:.2g}" if result.max_abs_error else ""
        return f"{name}: {_share(count, one[name].size)}{by_most}"
    return None


def same_bits(one: AnyArray, other: AnyArray) -> bool:
    """Return whether two arrays of any dtype hold the same to the last bit, element by element.

    Bytes that are no part of a value do not count: the padding of a structured array and of a
    ``longdouble``, which no kernel has to copy.
    """
    if one.shape != other.shape or not _are_alike(one.dtype, other.dtype):
        return False
    parts = zip(fields_of("", one), fields_of("", other), strict=True)
    return all(_same_values(*pair) for (_, a), (_, b) in parts for pair in _pairs(a, b))


def _pairs(one: AnyArray, other: AnyArray) -> Iterator[tuple[AnyArray, AnyArray]]:
    return ((a, b) for _, a, b in pieces_of(one, other))


def _same_values(one: AnyArray, other: AnyArray) -> bool:
    """Return whether two pieces without fields hold the same bits of values."""
    if one.dtype.hasobject:  # a list takes an object for equal to itself, as NaN is not
        return bool(one.tolist() == other.tolist())
    if one.dtype.char in "gG":  # 80 bits of the 128 that x86 gives a longdouble
        a, b = (piece.view(piece.real.dtype) for piece in (one, other))
        is_same = ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))
        return bool(is_same.all())
    return one.tobytes() == other.tobytes()


def passes(
    name: str, impostor: AnyArray, expected: Outputs, check: Check, own_rule: OwnRule | None
) -> bool:
    """Return whether an array would be taken for the expected output of this name."""
    rule = None if own_rule else check.of(name)
    any_dtype = _may_differ(name, check)
    found = compare_one(name, impostor, expected[name], rule, until_fault=True, any_dtype=any_dtype)
    if found.fault is not None:
        return False
    return own_rule is None or accepts(own_rule, {**expected, name: impostor}, expected)


def compare_one(
    name: str,
    output: AnyArray,
    reference: AnyArray,
    check: Check | None,
    *,
    until_fault: bool = False,
    any_dtype: bool = False,
) -> CheckResult:
    """Compare one output; without ``check``, differences of values are measured and are no fault.
    ``until_fault``: only whether there is one is asked, and the rest may be left out.
    ``any_dtype``: it may be of another precision than the reference."""
    if output.shape != reference.shape:
        fault = f"{name}: shape {output.shape}, the baseline gives {reference.shape}"
        return CheckResult(fault=fault)
    mine, theirs = output.dtype, reference.dtype
    if not _are_alike(mine, theirs) and not (any_dtype and _differ_in_precision(mine, theirs)):
        fault = f"{name}: dtype {mine}, the baseline gives {theirs}"
        if any_dtype:
            fault += "; `dtype: any` compares numbers of one kind: integers, real or complex ones"
        elif _differ_in_precision(mine, theirs):
            fault += "; `check: {dtype: any}` compares them all the same"
        return CheckResult(fault=fault)
    worst = CheckResult()
    parts = zip(fields_of(name, output), fields_of(name, reference), strict=True)
    for (part, a), (_, b) in parts:
        if b.dtype.kind in "fc":
            worst = worst.joined(_compare_close(part, a, b, check, until_fault))
        else:
            worst = worst.joined(_compare_exact(part, a, b, check))
    return worst


def _may_differ(name: str, check: Check) -> bool:
    """Return whether an output may be of another precision than the baseline's."""
    return check.of(name).dtype == "any"


def _differ_in_precision(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Return whether two dtypes are of numbers of one kind: integers, real or complex ones."""
    return any(one.kind in kinds and other.kind in kinds for kinds in ("iu", "f", "c"))


def _are_alike(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Return whether two dtypes hold the same fields; where these lie in an element, and how many
    bytes lie between them, is no difference."""
    return one == other or (one.names is not None and _fields(one) == _fields(other))


def _fields(dtype: np.dtype[Any]) -> list[Any]:
    """Return what a dtype is made of: names, extents and dtypes, without offsets."""
    if dtype.subdtype is not None:
        return [dtype.shape, _fields(dtype.base)]
    if dtype.names is None:
        return [dtype]
    return [(name, _fields(dtype[name])) for name in dtype.names]


def _differ(one: AnyArray, other: AnyArray) -> AnyArray:
    """Return which elements of two pieces differ; NaN and NaT are equal to themselves."""
    unequal = one != other
    if one.dtype.kind in "fcmM":
        is_missing = np.isnat if one.dtype.kind in "mM" else np.isnan
        unequal &= ~(is_missing(one) & is_missing(other))
    return cast(AnyArray, unequal)


def _compare_exact(
    name: str, output: AnyArray, reference: AnyArray, check: Check | None
) -> CheckResult:
    count = first = 0
    largest = relative = 0.0
    kind, itemsize = reference.dtype.kind, reference.dtype.itemsize
    scale: float | None = None
    for start, a, b in pieces_of(output, reference):
        apart = differs = _differ(a, b)
        number = int(np.count_nonzero(differs))
        if not number:
            continue
        first = first if count else start + int(differs.argmax())
        count += number
        if a.dtype != b.dtype:
            apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
        elif kind in "iu":
            # Exactly, as unsigned numbers: signed ones may be further apart than they can say.
            with np.errstate(over="ignore"):
                apart = np.where(a > b, a - b, b - a).astype(b.dtype).view(f"u{itemsize}")
        if kind in "iub":  # of dates and text there is no error, only a difference
            scale = _root_mean_square(reference) if scale is None else scale
            largest = max(largest, float(apart.max(initial=0)))
            size = np.abs(b.astype(np.float64))
            relative = max(relative, _largest_ratio(apart, size, scale))
    if not count or check is None:
        return CheckResult(largest, relative)
    at = _at(first, output, reference, "first")
    return CheckResult(largest, relative, f"{name}: {_share(count, output.size)} differ{at}")


def _compare_close(
    name: str, output: AnyArray, reference: AnyArray, check: Check | None, until_fault: bool
) -> CheckResult:
    """Ask for ``|a - b| <= atol + rtol |b|`` as in ``numpy.allclose``, or the relative Euclidean
    norm for ``norm: l2``; NaN and infinities must stand at the same places."""
    wide = np.result_type(reference.dtype, np.float64)
    tolerance = Tolerance.of(reference, check or Check(), output.dtype)
    rtol, atol = tolerance.rtol, tolerance.atol
    by_norm = check is not None and check.norm == "l2"
    odd = beyond = first_odd = worst = 0
    largest = relative = error_norm = norm = 0.0
    for start, a, b in pieces_of(output, reference):
        with np.errstate(over="ignore", invalid="ignore"):
            exact = b.astype(wide, copy=False)
            apart = np.abs(a.astype(wide, copy=False) - exact)
            if not np.isfinite(apart.max(initial=0.0)):
                usual = np.isfinite(a) & np.isfinite(b)
                is_odd = ~usual & ~((a == b) | (np.isnan(a) & np.isnan(b)))
                if not odd:
                    first_odd = start + int(is_odd.argmax())
                odd += int(np.count_nonzero(is_odd))
                apart, exact = np.where(usual, apart, 0), np.where(usual, exact, 0)
            size = np.abs(exact)
            if (most := float(apart.max(initial=0.0))) > largest:
                worst, largest = start + int(apart.argmax()), most
            if most > 0:
                relative = max(relative, _largest_ratio(apart, size, tolerance.scale))
            if most > atol:
                beyond += int(np.count_nonzero(apart > atol + rtol * size))
            if by_norm:
                error_norm = math.hypot(error_norm, _norm(apart))
                norm = math.hypot(norm, _norm(size))
        if until_fault and (odd or (beyond and check is not None and not by_norm)):
            break
    if odd:
        at = _at(first_odd, output, reference, "first")
        share = _share(odd, output.size)
        fault = f"{name}: {share} are NaN or infinite on one side only{at}"
        return CheckResult(math.nan, math.nan, fault)
    fault = ""
    if by_norm and error_norm > atol + rtol * norm:
        ratio = error_norm / norm if norm else error_norm
        fault = f"relative error {ratio:.3g} (l2 norm) is above {rtol:g} ({tolerance.source})"
    elif beyond and not by_norm:
        fault = f"{_share(beyond, output.size)} are off by more than {tolerance}"
    if not fault or check is None:
        return CheckResult(largest, relative)
    at = _at(worst, output, reference, "worst")
    return CheckResult(largest, relative, f"{name}: {fault}{at}")


def _root_mean_square(array: AnyArray) -> float:
    """Return that of the finite elements of an array of numbers; 0 where there are none."""
    wide = np.result_type(array.dtype, np.float64)
    norm, count = 0.0, 0
    for _, piece, _ in pieces_of(array, array):
        numbers = piece.astype(wide, copy=False)
        if not math.isfinite(length := _norm(numbers)):
            numbers = numbers[np.isfinite(numbers)]
            length = _norm(numbers)
        norm, count = math.hypot(norm, length), count + numbers.size
    return norm / math.sqrt(count) if count else 0.0


def _norm(numbers: AnyArray) -> float:
    """Euclidean norm of a contiguous array of one dimension, however large or small it is."""
    parts = numbers.view(numbers.real.dtype)  # a complex number is two
    largest = float(np.abs(parts).max(initial=0.0))
    if largest == 0:
        return 0.0
    with np.errstate(invalid="ignore"):
        scaled = parts / largest
        return largest * math.sqrt(np.einsum("i,i", scaled, scaled))


def fields_of(name: str, array: AnyArray) -> Iterator[tuple[str, AnyArray]]:
    """Yield an array under its name, or the fields of a structured one under theirs."""
    if array.dtype.names is None:
        yield name, array
    for field in array.dtype.names or ():
        yield from fields_of(f"{name}.{field}", array[field])


def pieces_of(one: AnyArray, other: AnyArray) -> Iterator[tuple[int, AnyArray, AnyArray]]:
    """Both arrays in flat pieces of C order, of which none is copied whole, with the index of each
    piece's first element."""
    a, b = (
        array.reshape(-1) if array.flags.c_contiguous else cast(AnyArray, array.flat)
        for array in (one, other)
    )
    for start in range(0, one.size, PIECE):
        yield start, a[start : start + PIECE], b[start : start + PIECE]


def _largest_ratio(apart: AnyArray, size: AnyArray, scale: float) -> float:
    """Return the largest ratio of errors to sizes, or to ``scale`` where that is larger."""
    if not scale:  # nothing but zeros is expected
        return math.inf if apart.any() else 0.0
    return float((apart / np.maximum(size, scale)).max(initial=0.0))


def _share(count: int, size: int) -> str:
    return f"{count} of {size} elements"


def _at(flat_index: int, output: AnyArray, reference: AnyArray, which: str) -> str:
    index = tuple(map(int, np.unravel_index(flat_index, output.shape)))
    place = f"[{', '.join(map(str, index))}]"
    return f"; {which} at {place}: {output[index]!s} instead of {reference[index]!s}"
