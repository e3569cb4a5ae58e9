"""What there is to test: every kernel of the library, with arguments, launches and their types."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import types

from gpubench.kernels import elementwise, fractals, linear_algebra, reductions

DTYPES = ("float32", "float64")
ITERATIONS = 30
Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Entry:
    """One operation: how its arguments are made, which of them are results, and its forms."""

    make: Callable[[int, str, np.random.Generator], Arguments]
    results: tuple[int, ...]
    numpy: Callable[..., None]
    parallel: Callable[..., None]
    cuda: dict[str, Callable[..., Any]]
    """Each queues the kernel: called with ``grid``, ``block`` and the arguments."""
    launches: tuple[tuple[Any, Any], ...]
    """Blocks with their grids; ``None`` for a grid that covers."""
    sizes: tuple[int, ...] = (1, 15, 17)
    """What is simulated: one, one less than a block, and a prime that is one more than a block."""
    rtol: dict[str, float] = field(default_factory=lambda: {"float32": 1e-5, "float64": 1e-12})


def arguments(entry_name: str, size: int, dtype: str) -> Arguments:
    """The same arguments in every process; results that are written only are poisoned."""
    seed = zlib.crc32(f"{entry_name} {size} {dtype}".encode())
    return INVENTORY[entry_name].make(size, dtype, np.random.default_rng(seed))


def results(entry_name: str, called_with: Arguments) -> list[np.ndarray[Any, Any]]:
    return [called_with[i] for i in INVENTORY[entry_name].results]


def covering(size: int, block: Any) -> Any:
    """A grid that gives each of ``size`` elements (in each dimension of the block) a thread."""
    if isinstance(block, int):
        return -(-size // block)
    return tuple(-(-size // extent) for extent in block)


def _normal(shape: Any, dtype: str, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    numbers: np.ndarray[Any, Any] = rng.standard_normal(shape).astype(dtype)
    return numbers


def _poison(shape: Any, dtype: str) -> np.ndarray[Any, Any]:
    return np.full(shape, np.nan, dtype)


def _vector_add(n: int, dtype: str, rng: np.random.Generator) -> Arguments:
    return _normal(n, dtype, rng), _normal(n, dtype, rng), n


def _increment(n: int, dtype: str, rng: np.random.Generator) -> Arguments:
    return (_normal(n, dtype, rng),)


def _multiply(n: int, dtype: str, rng: np.random.Generator) -> Arguments:
    return _normal(n, dtype, rng), _normal(n, dtype, rng), _poison(n, dtype)


def _norm(n: int, dtype: str, rng: np.random.Generator) -> Arguments:
    return _normal(n, dtype, rng), _poison(1, dtype)


def _matmul(n: int, dtype: str, rng: np.random.Generator) -> Arguments:
    """``[n, n + 2] @ [n + 2, n - 1]``, no two sizes alike, and C inside what ``n`` covers."""
    m, k, columns = n, n + 2, max(n - 1, 1)
    return (
        _normal((m, k), dtype, rng),
        _normal((k, columns), dtype, rng),
        _poison((m, columns), dtype),
    )


def _mandelbrot(n: int, dtype: str, rng: np.random.Generator) -> Arguments:
    return _poison((n, n), dtype), ITERATIONS


def _launch(kernel: Any, grid: Any, block: Any, *called_with: Any) -> None:
    kernel[grid, block](*called_with)


def _launch_norm(grid: int, block: int, *called_with: Any) -> None:
    launch = SimpleNamespace(stream=0, grid=grid, block=block, shared_bytes=0)
    reductions.norm_cuda(launch, *called_with)


VECTOR_LAUNCHES = ((4, None), (16, None), (5, 2), (1, 1))
"""Covering; and fewer threads than elements, which the kernels make up for by striding."""
MATRIX_LAUNCHES = (((4, 4), None), ((8, 2), None))
MATRIX_SIZES = (1, 3, 5)

INVENTORY = {
    "vector_add": Entry(
        _vector_add, (1,),
        elementwise.vector_add_numpy, elementwise.vector_add_parallel,
        {"vector_add_cuda": partial(_launch, elementwise.vector_add_cuda)},
        (*VECTOR_LAUNCHES, (4, 40)),
    ),
    "increment_by_one": Entry(
        _increment, (0,),
        elementwise.increment_by_one_numpy, elementwise.increment_by_one_parallel,
        {"increment_by_one_cuda": partial(_launch, elementwise.increment_by_one_cuda)},
        VECTOR_LAUNCHES,
    ),
    "multiply": Entry(
        _multiply, (2,),
        elementwise.multiply_numpy, elementwise.multiply_parallel,
        {"multiply_cuda": partial(_launch, elementwise.multiply_cuda)},
        VECTOR_LAUNCHES,
    ),
    "norm": Entry(
        _norm, (1,),
        reductions.norm_numpy, reductions.norm_parallel,
        {"norm_cuda": _launch_norm},
        (*VECTOR_LAUNCHES, (7, 3), (12, 2)),
    ),
    "matmul": Entry(
        _matmul, (2,),
        linear_algebra.matmul_numpy, linear_algebra.matmul_parallel,
        {"matmul_cuda": partial(_launch, linear_algebra.matmul_cuda)},
        MATRIX_LAUNCHES,
        MATRIX_SIZES,
        {"float32": 1e-4, "float64": 1e-12},
    ),
    "matmul_tiled": Entry(
        _matmul, (2,),
        linear_algebra.matmul_numpy, linear_algebra.matmul_parallel,
        {
            f"make_matmul_tiled(tile={tile})":
            partial(_launch, linear_algebra.make_matmul_tiled(tile=tile)) for tile in (4,)
        },
        (((4, 4), None),),
        MATRIX_SIZES,
        {"float32": 1e-4, "float64": 1e-12},
    ),
    "mandelbrot": Entry(
        _mandelbrot, (0,),
        fractals.mandelbrot_numpy, fractals.mandelbrot_parallel,
        {"mandelbrot_cuda": partial(_launch, fractals.mandelbrot_cuda)},
        MATRIX_LAUNCHES,
        MATRIX_SIZES,
    ),
}  # fmt: skip


def cuda_kernels() -> Iterator[tuple[str, str, Any, tuple[Any, ...]]]:
    """Name, dtype, kernel and argument types of everything that is launched on a GPU."""
    for dtype in DTYPES:
        number = getattr(types, dtype)
        vector, matrix, index = number[::1], number[:, ::1], types.int64
        yield "vector_add_cuda", dtype, elementwise.vector_add_cuda, (vector, vector, index)
        yield "increment_by_one_cuda", dtype, elementwise.increment_by_one_cuda, (vector,)
        yield "multiply_cuda", dtype, elementwise.multiply_cuda, (vector,) * 3
        yield "norm clear", dtype, reductions._clear, (vector,)
        yield "norm add squares", dtype, reductions._add_squares, (vector, vector)
        yield "norm take root", dtype, reductions._take_root, (vector,)
        yield "matmul_cuda", dtype, linear_algebra.matmul_cuda, (matrix,) * 3
        for tile in (8, 16, 32):
            tiled = linear_algebra.make_matmul_tiled(tile=tile)
            yield f"matmul_tiled {tile}", dtype, tiled, (matrix,) * 3
        yield "mandelbrot_cuda", dtype, fractals.mandelbrot_cuda, (matrix, index)
