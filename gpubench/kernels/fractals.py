"""Fractals: kernels bound by arithmetic, with hardly any data and work that differs by pixel.

The escape time of the Mandelbrot set: for every pixel ``c`` of the square that reaches from
``LEFT`` and ``BOTTOM`` over ``SIDE``, how many of at most ``iterations`` steps ``z = z * z + c``
from ``z = 0`` find ``|z| <= 2``. The dtype of ``counts`` (float32 or float64, shape ``[n, n]``) is
the precision of the arithmetic; counts are whole numbers in it, exact below 2**24. Pixels next to
the border of the set are chaotic: a fused multiply-add, which a GPU uses and NumPy does not,
changes their count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Picture = NDArray[Any]

LEFT, BOTTOM, SIDE = -2.0, -1.25, 2.5
_LANES = 64  # pixels that a CPU thread works on at once: several vectors, to hide their latency
_STEPS = 8  # between two looks at whether any of them is left
_APART = 64  # rows, between one row of a thread and its next
_CHAOTIC = 0.01  # share of pixels: three times what fused multiply-adds were seen to change


def same_picture(outputs: Mapping[str, Picture], expected: Mapping[str, Picture]) -> str | None:
    """Return what is wrong with ``counts``; ``None`` where at most 1 % of the pixels differ: those
    next to the border, which are chaotic."""
    differ = outputs["counts"] != expected["counts"]
    if (share := float(np.mean(differ))) <= _CHAOTIC:
        return None
    row, column = np.argwhere(differ)[0].tolist()
    found, right = (float(one["counts"][row, column]) for one in (outputs, expected))
    return (
        f"{share:.1%} of the pixels differ, and rounding changes {_CHAOTIC:.0%} at most; the first "
        f"is counts[{row}, {column}]: {found:g} instead of {right:g}"
    )


def mandelbrot_numpy(counts: Picture, iterations: int) -> None:
    """Escape times of all pixels at once; those that have escaped are taken out of the work."""
    n, number = counts.shape[0], counts.dtype.type
    offsets = number(SIDE) / number(n) * np.arange(n, dtype=counts.dtype)
    c_real = np.tile(number(LEFT) + offsets, n)
    c_imaginary = np.repeat(number(BOTTOM) + offsets, n)
    x, y, pixels = np.zeros_like(c_real), np.zeros_like(c_real), np.arange(n * n)
    counts[:] = iterations
    for done in range(iterations):
        x2, y2 = x * x, y * y
        inside = x2 + y2 <= 4
        if not inside.all():
            counts.flat[pixels[~inside]] = done
            pixels, c_real, c_imaginary = pixels[inside], c_real[inside], c_imaginary[inside]
            x, y, x2, y2 = x[inside], y[inside], x2[inside], y2[inside]
        y = (x + x) * y + c_imaginary
        x = x2 - y2 + c_real


@njit(cache=True)
def _count_lanes(
    c_real: Picture, c_imaginary: Any, x: Picture, y: Picture, counts: Picture, iterations: int
) -> None:
    """Escape times of ``_LANES`` pixels; ``x`` and ``y`` are room for their ``z``."""
    number = counts.dtype.type
    x[:], y[:], counts[:] = number(0), number(0), number(0)
    for done in range(0, iterations, _STEPS):
        for _ in range(min(_STEPS, iterations - done)):
            # The same for every lane, escaped or not, so that it becomes vector instructions.
            for lane in range(_LANES):
                x2, y2 = x[lane] * x[lane], y[lane] * y[lane]
                counts[lane] += number(1) if x2 + y2 <= number(4) else number(0)
                y[lane] = (x[lane] + x[lane]) * y[lane] + c_imaginary
                x[lane] = x2 - y2 + c_real[lane]
        alive = False
        for lane in range(_LANES):
            alive |= counts[lane] == number(done + _STEPS)
        if not alive:
            break


@njit(cache=True)
def _count_row(counts: Picture, row: int, iterations: int) -> None:
    n, number = counts.shape[0], counts.dtype.type
    step = number(SIDE) / number(n)
    c_real, lanes = np.empty(_LANES, counts.dtype), np.empty(_LANES, counts.dtype)
    x, y = np.empty(_LANES, counts.dtype), np.empty(_LANES, counts.dtype)
    for left in range(0, n, _LANES):
        for lane in range(_LANES):
            c_real[lane] = number(LEFT) + step * number(left + lane)
        _count_lanes(c_real, number(BOTTOM) + step * number(row), x, y, lanes, iterations)
        for lane in range(min(_LANES, n - left)):
            counts[row, left + lane] = lanes[lane]


@njit(parallel=True, cache=True)
def mandelbrot_parallel(counts: Picture, iterations: int) -> None:
    """Escape times over the threads of the CPU, many pixels of a row in step."""
    n = counts.shape[0]
    rounds = (n + _APART - 1) // _APART
    # A thread takes neighbouring turns. Rows through the middle of the set cost the most, so that
    # neighbouring turns are rows far apart.
    for turn in prange(rounds * _APART):
        row = turn % rounds * _APART + turn // rounds
        if row < n:
            _count_row(counts, row, iterations)


@cuda.jit
def mandelbrot_cuda(counts: Picture, iterations: int) -> None:
    """Escape times, one thread for each pixel: a launch of ``[n, n]`` threads or more."""
    column, row = cuda.grid(2)
    n = counts.shape[0]
    if row < n and column < n:
        # Every constant has the dtype of the picture: one float64 among them and all arithmetic is.
        number = counts.dtype.type
        step = number(SIDE) / number(n)
        c_real = number(LEFT) + step * number(column)
        c_imaginary = number(BOTTOM) + step * number(row)
        x = y = x2 = y2 = number(0)
        done = 0
        while done < iterations and x2 + y2 <= number(4):
            y = (x + x) * y + c_imaginary
            x = x2 - y2 + c_real
            x2, y2 = x * x, y * y
            done += 1
        counts[row, column] = done
