"""The check before a time: outputs against the baseline's on the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

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
"""Relative and absolute tolerance where a suite gives none: tens of units in the last place."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far outputs are from the baseline's; ``fault`` says why they are wrong, else ``None``."""

    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    fault: str | None = None


def compare(
    outputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    check: Check,
    checker: Callable[[Mapping[str, Array], Mapping[str, Array]], str | None] | None = None,
) -> Comparison:
    """Compare every output by name: shape, dtype, NaN and infinities, then error within tolerance.

    Integers and booleans must be equal. ``checker`` replaces the tolerance by a rule of the suite's
    own: it returns what is wrong, or ``None``.
    """
    worst = Comparison()
    for name, reference in expected.items():
        found = _compare_one(name, outputs[name], reference, check, tolerant=checker is None)
        worst = Comparison(
            max(worst.max_abs_error, found.max_abs_error),
            max(worst.max_rel_error, found.max_rel_error),
            worst.fault or found.fault,
        )
    if checker is not None and worst.fault is None:
        fault = checker(outputs, expected)
        return Comparison(worst.max_abs_error, worst.max_rel_error, fault or None)
    return worst


def tolerance(given: float | Mapping[str, float] | None, dtype: str, default: float) -> float:
    """Tolerance for a dtype: one number for all, one by dtype, or the default."""
    if isinstance(given, Mapping):
        return float(given.get(dtype, default))
    return default if given is None else float(given)


def _compare_one(
    name: str, found: Array, reference: Array, check: Check, *, tolerant: bool
) -> Comparison:
    if found.shape != reference.shape:
        return Comparison(
            fault=f"{name}: shape {found.shape}, the baseline gives {reference.shape}"
        )
    if found.dtype != reference.dtype:
        return Comparison(
            fault=f"{name}: dtype {found.dtype}, the baseline gives {reference.dtype}"
        )
    if reference.dtype.kind not in "fc":
        return _compare_exact(name, found, reference, tolerant=tolerant)
    return _compare_close(name, found, reference, check, tolerant=tolerant)


def _compare_exact(name: str, found: Array, reference: Array, *, tolerant: bool) -> Comparison:
    differs = found != reference
    count = int(np.count_nonzero(differs))
    if not count:
        return Comparison()
    difference = np.abs(found.astype(np.float64) - reference.astype(np.float64))
    largest = float(difference.max())
    fault = f"{name}: {_share(count, found.size)} differ{_first(differs, found, reference)}"
    return Comparison(largest, largest, fault if tolerant else None)


def _compare_close(
    name: str, found: Array, reference: Array, check: Check, *, tolerant: bool
) -> Comparison:
    special = ~np.isfinite(reference) | ~np.isfinite(found)
    odd = special & ~((found == reference) | (np.isnan(found) & np.isnan(reference)))
    if odd.any():
        count = _share(int(np.count_nonzero(odd)), found.size)
        return Comparison(
            np.nan,
            np.nan,
            f"{name}: {count} are NaN or infinite on one side only{_first(odd, found, reference)}",
        )
    wide = np.complex128 if reference.dtype.kind == "c" else np.float64
    exact = np.where(special, 0, reference).astype(wide)
    difference = np.abs(np.where(special, 0, found).astype(wide) - exact)
    size = np.abs(exact)
    absolute = float(difference.max(initial=0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = float(np.nan_to_num(difference / size, posinf=0.0).max(initial=0.0))
    if not tolerant:
        return Comparison(absolute, relative)
    fault = _beyond(name, difference, size, reference.dtype.name, check)
    if fault is not None:
        fault += _worst(difference, found, reference)
    return Comparison(absolute, relative, fault)


def _beyond(name: str, difference: Array, size: Array, dtype: str, check: Check) -> str | None:
    """What exceeds the tolerance: ``|a - b| <= atol + rtol |b|`` as in ``numpy.allclose``, or the
    relative Euclidean norm for ``norm: l2``."""
    default = DEFAULT_TOLERANCE[dtype]
    rtol = tolerance(check.rtol, dtype, default)
    atol = tolerance(check.atol, dtype, default)
    if check.norm == "l2":
        scale = float(np.linalg.norm(size.ravel()))
        error = float(np.linalg.norm(difference.ravel()))
        if error <= atol + rtol * scale:
            return None
        relative = error / scale if scale else error
        return f"{name}: relative error {relative:.3g} (l2 norm) is above {rtol:g}"
    beyond = int(np.count_nonzero(difference > atol + rtol * size))
    if not beyond:
        return None
    share = _share(beyond, size.size)
    return f"{name}: {share} are off by more than {atol:g} + {rtol:g} |baseline|"


def _share(count: int, size: int) -> str:
    return f"{count} of {size} elements"


def _first(where: Array, found: Array, reference: Array) -> str:
    index = tuple(int(i) for i in np.argwhere(where)[0]) if where.ndim else ()
    return _at(index, found, reference, "first")


def _worst(difference: Array, found: Array, reference: Array) -> str:
    index = tuple(int(i) for i in np.unravel_index(int(difference.argmax()), difference.shape))
    return _at(index, found, reference, "worst")


def _at(index: tuple[int, ...], found: Array, reference: Array, which: str) -> str:
    place = f"[{', '.join(map(str, index))}]"
    return f"; {which} at {place}: {found[index]!s} instead of {reference[index]!s}"
