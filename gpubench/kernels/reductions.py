"""From many numbers to one: reductions, where threads have to bring their parts together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

MAX_THREADS_PER_BLOCK = 1024
"""Of every CUDA architecture since compute capability 2.0 (CUDA C++ Programming Guide)."""
_PIECE = 4096  # numbers that are summed before they are added to the rest


def norm_numpy(x: NDArray[Any], out: NDArray[Any]) -> None:
    """Euclidean norm of ``x`` (shape ``[n]``) into ``out`` (shape ``[1]``, same dtype).

    ``numpy.linalg.norm`` computes the same dot product and so is as accurate; calling ``dot``
    leaves out what it does before and after, which counts for short vectors.
    """
    out[0] = math.sqrt(np.dot(x, x))


# Without leave to reassociate, a sum is a chain of additions that no vector unit can run; with the
# whole of fastmath NaN and infinity would be lost.
@njit(parallel=True, cache=True, fastmath={"reassoc", "nsz", "contract"})
def norm_parallel(x: NDArray[Any], out: NDArray[Any]) -> None:
    """Euclidean norm of ``x`` into ``out[0]``, over the threads of the CPU.

    Pieces are summed in the dtype of ``x`` and their sums in float64, so that the error does not
    grow with the length.
    """
    total = 0.0
    for piece in prange((x.size + _PIECE - 1) // _PIECE):
        part = x.dtype.type(0)
        for i in range(piece * _PIECE, min(piece * _PIECE + _PIECE, x.size)):
            part += x[i] * x[i]
        total += part
    out[0] = math.sqrt(total)


@cuda.jit
def _clear(out: NDArray[Any]) -> None:
    out[0] = 0


@cuda.jit
def _add_squares(x: NDArray[Any], out: NDArray[Any]) -> None:
    """Add the sum of squares of ``x`` to ``out[0]``: one tree in shared memory for each block."""
    sums = cuda.shared.array(MAX_THREADS_PER_BLOCK, dtype=x.dtype)
    thread = cuda.threadIdx.x
    stride = cuda.gridsize(1)
    total = x.dtype.type(0)
    i = cuda.grid(1)
    while i < x.size:
        total += x[i] * x[i]
        i += stride
    sums[thread] = total
    cuda.syncthreads()
    active = cuda.blockDim.x
    while active > 1:
        half = (active + 1) // 2  # rounded up: any number of threads is summed
        if thread + half < active:
            sums[thread] += sums[thread + half]
        cuda.syncthreads()
        active = half
    if thread == 0:
        cuda.atomic.add(out, 0, sums[0])


@cuda.jit
def _take_root(out: NDArray[Any]) -> None:
    out[0] = math.sqrt(out[0])


def norm_cuda(launch: Any, x: Any, out: Any) -> None:
    """Queue the Euclidean norm of ``x`` into ``out[0]``: clear, add the squares, take the root.

    ``launch`` gives ``stream``, ``grid``, ``block`` (at most 1,024 threads, one-dimensional) and
    ``shared_bytes`` of the summing kernel. Any grid is right, and so is a second run, because the
    sum is cleared on the same stream. Blocks add to one number in the order in which they finish,
    so that the last digits may differ between runs.
    """
    _clear[1, 1, launch.stream](out)
    _add_squares[launch.grid, launch.block, launch.stream, launch.shared_bytes](x, out)
    _take_root[1, 1, launch.stream](out)
