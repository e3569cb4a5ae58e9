"""Filters of images: every pixel of the result needs the pixels around it, so each is read often.

Images have the shape ``[h, w]``, rows one after another. Beyond an edge, ``convolution`` sees zeros
and ``median`` the nearest pixel. The tiled CUDA forms read a block's pixels and a rim around them
into shared memory once ("apron", Podlozhnyuk, "Image convolution with CUDA", NVIDIA, 2007).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Image = NDArray[Any]
"""A contiguous array ``[h, w]``."""
Weights = NDArray[Any]
"""Shape ``[5, 5]``; applied as they stand, without turning them round (a correlation)."""

SIDE = 5
"""Rows and columns of the weights."""
_RIM = SIDE // 2

# Devillard's network for the median of nine ("Fast median search", 1998, after Smith's of 1996):
# after these exchanges of the smaller to the left, the median is the fifth.
_EXCHANGES = (
    (1, 2), (4, 5), (7, 8), (0, 1), (3, 4), (6, 7), (1, 2), (4, 5), (7, 8), (0, 3),
    (5, 8), (4, 7), (3, 6), (1, 4), (2, 5), (4, 7), (4, 2), (6, 4), (4, 2),
)  # fmt: skip


def gaussian(values: dict[str, Any], generator: np.random.Generator) -> Weights:
    """Weights of a blur that sum to 1: the products of binomial coefficients."""
    row = np.array([1, 4, 6, 4, 1]) / 16
    weights: Weights = np.outer(row, row).astype(values["dtype"])
    return weights


def convolution_numpy(image: Image, weights: Weights, out: Image) -> None:
    """``out[y, x]`` is the sum of the weighted pixels around ``image[y, x]``: a pass for each."""
    height, width = image.shape
    padded = np.pad(image, _RIM)
    product = np.empty_like(out)
    out[:] = 0
    for i in range(SIDE):
        for j in range(SIDE):
            np.multiply(padded[i : i + height, j : j + width], weights[i, j], out=product)
            np.add(out, product, out=out)


@njit(cache=True)
def _sum_around(image: Image, weights: Weights, y: int, x: int) -> Any:
    """Return the weighted sum around a pixel that may be near an edge."""
    total = image.dtype.type(0)
    for i in range(max(0, _RIM - y), min(SIDE, image.shape[0] + _RIM - y)):
        for j in range(max(0, _RIM - x), min(SIDE, image.shape[1] + _RIM - x)):
            total += image[y + i - _RIM, x + j - _RIM] * weights[i, j]
    return total


@njit(cache=True, fastmath={"contract"})
def _add_row(row: Image, weights: Weights, out: Image) -> None:
    """Add five weighted neighbours in ``row`` to each pixel of ``out`` that has all of them."""
    a, b, c, d, e = weights[0], weights[1], weights[2], weights[3], weights[4]
    one, two, three, four = row[1:], row[2:], row[3:], row[4:]
    for x in range(row.size - 2 * _RIM):
        out[x] += a * row[x] + b * one[x] + c * two[x] + d * three[x] + e * four[x]


@njit(parallel=True, cache=True)
def convolution_parallel(image: Image, weights: Weights, out: Image) -> None:
    """Do the same, row by row over the threads of the CPU, so that a row stays in cache."""
    height, width = image.shape
    for y in prange(height):
        out[y] = 0
        for i in range(max(0, _RIM - y), min(SIDE, height + _RIM - y)):
            _add_row(image[y + i - _RIM], weights[i], out[y, _RIM:])
        for x in range(min(_RIM, width)):
            out[y, x] = _sum_around(image, weights, y, x)
        for x in range(max(_RIM, width - _RIM), width):
            out[y, x] = _sum_around(image, weights, y, x)


@cuda.jit
def convolution_cuda(image: Image, weights: Weights, out: Image) -> None:
    """Use a thread for each pixel, 25 reads from memory or cache; the launch covers the image."""
    x, y = cuda.grid(2)
    height, width = image.shape
    if x < width and y < height:
        total = image.dtype.type(0)
        for i in range(SIDE):
            for j in range(SIDE):
                row, column = y + i - _RIM, x + j - _RIM
                if 0 <= row < height and 0 <= column < width:
                    total += image[row, column] * weights[i, j]
        out[y, x] = total


def make_convolution_tiled(*, tile: int) -> Any:
    """Return a CUDA kernel that reads a tile and its rim into shared memory once.

    The launch is blocks of ``[tile, tile]`` threads and a grid that covers the image.
    """
    side = tile + 2 * _RIM

    @cuda.jit
    def convolution_tiled(image: Image, weights: Weights, out: Image) -> None:
        pixels = cuda.shared.array((side, side), dtype=image.dtype)
        height, width = image.shape
        x, y = cuda.grid(2)
        zero = image.dtype.type(0)
        top, left = cuda.blockIdx.y * tile - _RIM, cuda.blockIdx.x * tile - _RIM
        for i in range(cuda.threadIdx.y, side, tile):
            for j in range(cuda.threadIdx.x, side, tile):
                inside = 0 <= top + i < height and 0 <= left + j < width
                pixels[i, j] = image[top + i, left + j] if inside else zero
        cuda.syncthreads()
        if x < width and y < height:
            total = zero
            for i in range(SIDE):
                for j in range(SIDE):
                    pixel = pixels[cuda.threadIdx.y + i, cuda.threadIdx.x + j]
                    total += pixel * weights[i, j]
            out[y, x] = total

    return convolution_tiled


def median_numpy(image: Image, out: Image) -> None:
    """``out[y, x]`` is the median of the nine pixels around: a network of whole-image minima."""
    height, width = image.shape
    padded = np.pad(image, 1, mode="edge")
    planes = [padded[i : i + height, j : j + width].copy() for i in range(3) for j in range(3)]
    spare = np.empty_like(out)
    for low, high in _EXCHANGES:
        np.minimum(planes[low], planes[high], out=spare)
        np.maximum(planes[low], planes[high], out=planes[high])
        planes[low], spare = spare, planes[low]
    out[:] = planes[4]


# The conditional expressions keep the dtype of the pixels, where min and max would widen integers.
def _median_of_nine(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any) -> Any:
    """Return the median by ``_EXCHANGES``; what is not looked at again is not kept."""
    b, c = (b, c) if b < c else (c, b)
    e, f = (e, f) if e < f else (f, e)
    h, i = (h, i) if h < i else (i, h)
    a, b = (a, b) if a < b else (b, a)
    d, e = (d, e) if d < e else (e, d)
    g, h = (g, h) if g < h else (h, g)
    b, c = (b, c) if b < c else (c, b)
    e, f = (e, f) if e < f else (f, e)
    h, i = (h, i) if h < i else (i, h)
    d = d if a < d else a
    f = f if f < i else i
    e, h = (e, h) if e < h else (h, e)
    g = g if d < g else d
    e = e if b < e else b
    c = c if c < f else f
    e = e if e < h else h
    e, c = (e, c) if e < c else (c, e)
    e = e if g < e else g
    return e if e < c else c


_median_on_cpu = njit(cache=True)(_median_of_nine)
_median_on_device = cuda.jit(device=True)(_median_of_nine)


@njit(cache=True)
def _median_row(above: Image, row: Image, below: Image, out: Image) -> None:
    """Medians of all pixels of a row but the first and the last."""
    for x in range(out.size - 2):
        out[x + 1] = _median_on_cpu(
            above[x], above[x + 1], above[x + 2], row[x], row[x + 1], row[x + 2],
            below[x], below[x + 1], below[x + 2],
        )  # fmt: skip


@njit(cache=True)
def _median_at(above: Image, row: Image, below: Image, x: int) -> Any:
    """Return the median around a pixel that may be at an edge."""
    left, right = max(x - 1, 0), min(x + 1, row.size - 1)
    return _median_on_cpu(
        above[left], above[x], above[right], row[left], row[x], row[right],
        below[left], below[x], below[right],
    )  # fmt: skip


@njit(parallel=True, cache=True)
def median_parallel(image: Image, out: Image) -> None:
    """Do the same network on the pixels of a row, over the threads of the CPU."""
    height, width = image.shape
    for y in prange(height):
        above, below = image[max(y - 1, 0)], image[min(y + 1, height - 1)]
        _median_row(above, image[y], below, out[y])
        out[y, 0] = _median_at(above, image[y], below, 0)
        out[y, width - 1] = _median_at(above, image[y], below, width - 1)


@cuda.jit
def median_cuda(image: Image, out: Image) -> None:
    """Use a thread for each pixel, the network in registers; the launch covers the image."""
    x, y = cuda.grid(2)
    height, width = image.shape
    if x < width and y < height:
        left, right = x - 1 if x > 0 else x, x + 1 if x + 1 < width else x
        above, below = y - 1 if y > 0 else y, y + 1 if y + 1 < height else y
        out[y, x] = _median_on_device(
            image[above, left], image[above, x], image[above, right],
            image[y, left], image[y, x], image[y, right],
            image[below, left], image[below, x], image[below, right],
        )  # fmt: skip
