"""Inputs of a case: random, seeded by suite, kernel, array and the axes it depends on, never zeros
unless the suite asks for them. The same seed gives the same inputs to every implementation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpubench.errors import KernelError
from gpubench.measure.targets import load_object
from gpubench.names import Value, format_identity
from gpubench.plan.case import ArraySpec, Case

Array = np.ndarray[Any, Any]

INTEGERS = 100
"""``uniform`` integers run from 0 to this number (less where the dtype cannot hold it)."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a case starts from, by name: scalars, and arrays of which those without input are
    poisoned."""

    arrays: Mapping[str, Array]
    scalars: Mapping[str, Any]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays together."""
        return sum(array.nbytes for array in self.arrays.values())


def draw_inputs(case: Case) -> Inputs:
    """Draw every array and scalar of a case.

    Raises ``KernelError`` where a function that fills arrays fails or returns another shape or
    dtype than the suite declares.
    """
    arrays: dict[str, Array] = {}
    if case.kernel.init is not None:
        arrays.update(_initialised(case))
    specs = case.array_specs()
    for name, spec in specs.items():
        if name in arrays:
            _require(case, name, spec, arrays[name])
        elif spec.intent in ("out", "scratch"):
            arrays[name] = poisoned(np.empty(spec.shape, spec.dtype))
        elif _model(spec) is None:
            arrays[name] = _filled(case, name, spec)
    for name, spec in specs.items():
        model = _model(spec)
        if name not in arrays and model is not None:
            arrays[name] = arrays[model].astype(spec.dtype).reshape(spec.shape)
    return Inputs({**{name: arrays[name] for name in specs}, **arrays}, case.scalars())


def poisoned(array: Array, expected: Array | None = None) -> Array:
    """A copy of ``array`` in which every element is wrong, so that unwritten ones show.

    NaN for floating point; for integers a sentinel; for booleans the opposite of ``expected``.
    Where the right answer happens to be the poison itself, another value is taken.
    """
    if array.dtype.kind == "b":
        return np.zeros_like(array) if expected is None else ~expected
    if array.dtype.kind in "fc":
        poison = np.full_like(array, np.nan)
        if expected is not None and np.isnan(expected.max(initial=-np.inf)):
            np.copyto(poison, 0, where=np.isnan(expected))
        return poison
    sentinel = np.iinfo(array.dtype).max - 41
    poison = np.full_like(array, sentinel)
    if expected is not None:
        np.copyto(poison, sentinel - 1, where=expected == sentinel)
    return poison


def generator(case: Case, name: str) -> np.random.Generator:
    """Random numbers for one array of one case (PCG64), the same in every process and machine."""
    point = format_identity(dict(sorted(case.data_values().items())))
    key = f"{case.suite.suite}/{case.kernel_name}/{name} {point}"
    return np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:16]))


def _model(spec: ArraySpec) -> str | None:
    """Name of the array that this one is ``like``."""
    name: str | None = getattr(spec.fill, "like", None)
    return name


def _filled(case: Case, name: str, spec: ArraySpec) -> Array:
    """An array by its ``fill``: a distribution's name, a number, or a function."""
    fill = spec.fill
    random = generator(case, name)
    reference: str | None = getattr(fill, "function", None)
    if reference is not None:
        function = load_object(reference)
        array = np.ascontiguousarray(_called(reference, function, case.values, random))
        _require(case, name, spec, array)
        return array
    if isinstance(fill, bool | int | float):
        return np.full(spec.shape, fill, spec.dtype)
    if fill is None:
        fill = "normal" if spec.dtype.kind in "fc" else "uniform"
    return _DISTRIBUTIONS[str(fill)](random, spec)


def _uniform(random: np.random.Generator, spec: ArraySpec) -> Array:
    if spec.dtype.kind == "b":
        return random.integers(0, 2, spec.shape).astype(bool)
    if spec.dtype.kind in "iu":
        return random.integers(0, INTEGERS, spec.shape, dtype=spec.dtype, endpoint=True)
    return _floating(random.random, spec)


def _floating(draw: Callable[..., Array], spec: ArraySpec) -> Array:
    """Real or complex numbers; float32 is drawn as such, which takes half the time."""
    if spec.dtype.kind == "c":
        numbers = np.empty(spec.shape, spec.dtype)
        numbers.real, numbers.imag = draw((2, *spec.shape))
        return numbers
    drawn = np.float32 if spec.dtype == np.float32 else np.float64
    return draw(spec.shape, drawn).astype(spec.dtype, copy=False)


_DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, ArraySpec], Array]] = {
    "normal": lambda random, spec: _floating(random.standard_normal, spec),
    "uniform": _uniform,
    "arange": lambda _, spec: np.arange(spec.size).astype(spec.dtype).reshape(spec.shape),
    "zeros": lambda _, spec: np.zeros(spec.shape, spec.dtype),
    "ones": lambda _, spec: np.ones(spec.shape, spec.dtype),
}


def _initialised(case: Case) -> dict[str, Array]:
    """Arrays that the kernel's ``init`` makes together, under the names that it ``returns``."""
    init = case.kernel.init
    assert init is not None
    made = _called(init.function, load_object(init.function), case.values, generator(case, "init"))
    arrays = made if isinstance(made, tuple | list) else (made,)
    if len(arrays) != len(init.returns):
        raise KernelError(
            f"{init.function} returned {len(arrays)} arrays; the suite's `init` names "
            f"{len(init.returns)}: {', '.join(init.returns)}"
        )
    return dict(zip(init.returns, map(np.ascontiguousarray, arrays), strict=True))


def _called(
    name: str, function: Any, values: Mapping[str, Value], random: np.random.Generator
) -> Any:
    try:
        return function(dict(values), random)
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise KernelError(f"{name}(values, generator) failed: {cause}") from error


def _require(case: Case, name: str, spec: ArraySpec, array: Array) -> None:
    if array.shape != spec.shape or array.dtype != spec.dtype:
        raise KernelError(
            f"{case.suite.suite}/{case.kernel_name}: array {name!r} came as {array.dtype} "
            f"{array.shape}; the suite declares {spec.dtype} {spec.shape}"
        )
