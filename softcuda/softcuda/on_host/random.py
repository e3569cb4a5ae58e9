"""Random numbers in place of cuRAND's: its library, and the generators of ``default_rng``.

NumPy draws them on the host. A seed gives the same numbers each time, and other numbers than on a
GPU; their distributions are those of cuRAND's manual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from softcuda.on_host.libraries import Library, RefusedError
from softcuda.on_host.work import Array, host_number, note, queue, view

VERSION = 10000
"""What ``curandGetVersion`` answers: 10.0."""
NOT_INITIALIZED, LENGTH_NOT_MULTIPLE = 101, 105
INTERNAL_ERROR = 999
FIRST_QUASI = 200
"""``CURAND_RNG_QUASI_DEFAULT``: the numbers of pseudorandom generators are smaller."""


# ---- the library --------------------------------------------------------------------------------


@dataclass
class _Generator:
    stream: int = 0
    seed: int = 0
    offset: int = 0
    made: np.random.Generator | None = None

    def draws(self) -> np.random.Generator:
        """Return what draws, which begins again after the seed or the offset was set."""
        if self.made is None:
            bits = np.random.Philox(self.seed)
            bits.advance(self.offset)
            self.made = np.random.Generator(bits)
        return self.made


_generators: dict[int, _Generator] = {}
_numbers = count(1)


def _create(address: int, kind: int) -> None:
    if kind >= FIRST_QUASI:
        raise RefusedError(f"of quasirandom numbers (curandRngType {kind})")
    number = next(_numbers)
    _generators[number] = _Generator()
    host_number(address, np.uintp)[...] = number


def _destroy(generator: int) -> int | None:
    return None if _generators.pop(generator, None) else NOT_INITIALIZED


def _get_version(address: int) -> None:
    host_number(address, np.intc)[...] = VERSION


def _set_stream(generator: int, stream: int) -> None:
    _generators[generator].stream = stream


def _set_seed(generator: int, seed: int) -> None:
    state = _generators[generator]
    state.seed, state.made = seed % 2**64, None


def _set_offset(generator: int, offset: int) -> None:
    state = _generators[generator]
    state.offset, state.made = offset % 2**64, None


def _set_ordering(generator: int, ordering: int) -> int | None:
    """Take any order of results: each is one of this generator's."""
    return None if generator in _generators else NOT_INITIALIZED


_Draw = Callable[..., Array]


def _filler(
    name: str, dtype: Any, draw: _Draw, *, in_pairs: bool = False
) -> Callable[..., int | None]:
    """Return a function of the library that fills ``length`` numbers at an address.

    They are drawn at the call, so that streams do not decide which numbers who gets.
    """

    def fill(generator: int, address: int, length: int, *parameters: float) -> int | None:
        if in_pairs and length % 2:
            return LENGTH_NOT_MULTIPLE  # "the length must be a multiple of 2"
        state, array = _generators[generator], view(address, dtype, (length,))
        drawn = draw(state.draws(), length, *parameters)

        def write() -> None:
            array[...] = drawn

        queue(name, state.stream, write, array)
        return None

    return fill


def _uniform(dtype: Any) -> _Draw:
    """Return what draws "between 0.0 and 1.0, where 0.0 is excluded and 1.0 is included"."""
    return lambda draws, length: 1 - draws.random(length, dtype)


def _normal(draws: np.random.Generator, length: int, mean: float, deviation: float) -> Array:
    return draws.normal(mean, deviation, length)


def _log_normal(draws: np.random.Generator, length: int, mean: float, deviation: float) -> Array:
    return draws.lognormal(mean, deviation, length)


def _bits(dtype: Any) -> _Draw:
    return lambda draws, length: draws.integers(0, np.iinfo(dtype).max, length, dtype, True)


CURAND = Library(
    name="curand",
    module="cupy_backends.cuda.libs.curand",
    error="CURANDError",
    not_supported=INTERNAL_ERROR,
    failed=INTERNAL_ERROR,
    functions={
        "curandCreateGenerator": ("pi", _create),
        "curandDestroyGenerator": ("p", _destroy),
        "curandGetVersion": ("p", _get_version),
        "curandSetStream": ("pp", _set_stream),
        "curandSetPseudoRandomGeneratorSeed": ("pl", _set_seed),
        "curandSetGeneratorOffset": ("pl", _set_offset),
        "curandSetGeneratorOrdering": ("pi", _set_ordering),
        **{
            f"curandGenerate{name}": (
                f"ppp{types}",
                _filler(f"curandGenerate{name}", dtype, draw, in_pairs="Normal" in name),
            )
            for name, types, dtype, draw in (
                ("", "", np.uint32, _bits(np.uint32)),
                ("LongLong", "", np.uint64, _bits(np.uint64)),
                ("Uniform", "", np.float32, _uniform(np.float32)),
                ("UniformDouble", "", np.float64, _uniform(np.float64)),
                ("Normal", "ff", np.float32, _normal),
                ("NormalDouble", "dd", np.float64, _normal),
                ("LogNormal", "ff", np.float32, _log_normal),
                ("LogNormalDouble", "dd", np.float64, _log_normal),
                ("Poisson", "d", np.uint32, lambda draws, n, mean: draws.poisson(mean, n)),
            )
        },
    },
)


# ---- the generators of default_rng, whose kernels are linked into a module of CuPy's -------------


def replace_generators() -> None:
    """Have CuPy's ``Generator`` and what else lies in its module draw on the host.

    Without this their kernels, of which CuPy asks for no error, would leave arrays as they were.
    """
    api = import_module("cupy.random._generator_api")
    for replaced in (Generator, FeistelBijection, init_curand, random_raw):
        setattr(api, replaced.__name__, replaced)
    setattr(import_module("cupy.random._generator"), FeistelBijection.__name__, FeistelBijection)


def init_curand(generator: int, state: int, seed: int, size: int) -> None:
    """Prepare nothing: NumPy keeps the state of a generator."""


def random_raw(bit_generator: Any, out: Any) -> None:
    """Fill an array of CuPy's with random bits of a bit generator, as 32 bits."""
    note("cupy.random.BitGenerator.random_raw")
    bits = _draws_of(bit_generator).integers(0, 2**32, out.shape, np.uint32)
    out[...] = import_module("cupy").asarray(bits.astype(np.dtype(out.dtype)))


def _draws_of(bit_generator: Any) -> np.random.Generator:
    """Return what draws for a bit generator of CuPy's: generators that share one go on from each
    other."""
    if not hasattr(bit_generator, "softcuda_draws"):
        bits = np.random.PCG64(bit_generator._seed_seq)
        bit_generator.softcuda_draws = np.random.Generator(bits)
    draws: np.random.Generator = bit_generator.softcuda_draws
    return draws


class FeistelBijection:
    """Numbers below a limit in random order, each at most once."""

    num_rounds = 24
    """Of the keys that CuPy draws for it."""

    def __init__(self, num_elements: int, keys: Array) -> None:
        self._limit, self._seed = num_elements, np.asarray(keys)

    def __call__(self, size: int) -> Any:
        """Return the first ``size`` of them, as ``int64``."""
        note("cupy.random.FeistelBijection")
        drawn = np.random.default_rng(self._seed).choice(self._limit, size, replace=False)
        return import_module("cupy").asarray(drawn.astype(np.int64))


class Generator:
    """``cupy.random.Generator``, drawn by NumPy's from the seed of a bit generator of CuPy's."""

    def __init__(self, bit_generator: Any) -> None:
        self.bit_generator = bit_generator

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Return numbers from 0 to below 1."""
        return self._draw("random", size=size, dtype=dtype, out=out)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Return numbers of the normal distribution with the mean 0 and the deviation 1."""
        return self._draw("standard_normal", size=size, dtype=dtype, out=out)

    def standard_exponential(
        self, size: Any = None, dtype: Any = np.float64, method: str = "inv", out: Any = None
    ) -> Any:
        """Return numbers of the exponential distribution with the scale 1."""
        return self._draw("standard_exponential", size=size, dtype=dtype, method=method, out=out)

    def standard_gamma(
        self, shape: Any, size: Any = None, dtype: Any = np.float64, out: Any = None
    ) -> Any:
        """Return numbers of the gamma distribution with the scale 1."""
        return self._draw("standard_gamma", shape, size=size, dtype=dtype, out=out)

    def uniform(
        self, low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = np.float64
    ) -> Any:
        """Return numbers from ``low`` to below ``high``."""
        return self._draw("uniform", low, high, size).astype(dtype, copy=False)

    def beta(self, a: Any, b: Any, size: Any = None, dtype: Any = np.float64) -> Any:
        """Return numbers of the beta distribution."""
        return self._draw("beta", a, b, size).astype(dtype, copy=False)

    def __getattr__(self, name: str) -> Any:
        if name not in _ALIKE:
            raise AttributeError(f"cupy.random.Generator has no {name}")
        return partial(self._draw, name)

    def _draw(self, name: str, *arguments: Any, out: Any = None, **named: Any) -> Any:
        """Draw by a method of NumPy's, which takes the same arguments, and copy to the device."""
        note(f"cupy.random.Generator.{name}")
        cupy = import_module("cupy")
        named = {
            key: cupy.asnumpy(each) if _is_array(each) else each for key, each in named.items()
        }
        given = [cupy.asnumpy(each) if _is_array(each) else each for each in arguments]
        if out is not None:
            named |= {"out": np.empty(out.shape, out.dtype), "size": named["size"] or out.shape}
        drawn = cupy.asarray(getattr(_draws_of(self.bit_generator), name)(*given, **named))
        if out is None:
            return drawn
        out[...] = drawn
        return out


_ALIKE = {
    *("binomial", "chisquare", "dirichlet", "exponential", "f", "gamma", "geometric"),
    *("hypergeometric", "integers", "logseries", "poisson", "power"),
}
"""The methods of ``Generator`` that have the arguments of NumPy's."""


def _is_array(value: Any) -> bool:
    return hasattr(value, "__cuda_array_interface__")
