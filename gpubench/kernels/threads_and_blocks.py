"""What a launch is: threads in blocks, blocks in a grid, and the place of a thread in an array.

CUDA counts x first and NumPy's fastest dimension is the last, so that the thread at ``(x, y, z)``
of the whole grid has the element ``[z, y, x]`` (CUDA C++ Programming Guide, "Thread Hierarchy").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Triples = NDArray[np.int32]
"""Shape ``[depth, height, width, 3]``: for every thread of a grid, numbers along x, y and z."""
Numbers = NDArray[np.int64]


def thread_index_numpy(
    thread: Triples, block: Triples, block_dim: Triples, grid_dim: Triples, index: Numbers,
    bx: int, by: int, bz: int,
) -> None:  # fmt: skip
    """Write what every thread of a grid with blocks of ``[bx, by, bz]`` threads finds about itself.

    ``thread`` is its place in its block (``threadIdx``), ``block`` its block's in the grid
    (``blockIdx``), ``block_dim`` and ``grid_dim`` are the shapes of both, and ``index`` is where
    the thread's element lies in a flat array.
    """
    depth, height, width = index.shape
    for axis, (extent, along) in enumerate(((bx, width), (by, height), (bz, depth))):
        place = np.arange(along, dtype=np.int32).reshape(_along(axis))
        thread[..., axis] = place % extent
        block[..., axis] = place // extent
    block_dim[:] = bx, by, bz
    grid_dim[:] = width // bx, height // by, depth // bz
    index.ravel()[:] = np.arange(index.size)


def _along(axis: int) -> tuple[int, int, int]:
    """Shape that lays a vector along x, y or z of ``[depth, height, width]``."""
    shape = [1, 1, 1]
    shape[2 - axis] = -1
    return shape[0], shape[1], shape[2]


@njit(parallel=True, cache=True)
def thread_index_parallel(
    thread: Triples, block: Triples, block_dim: Triples, grid_dim: Triples, index: Numbers,
    bx: int, by: int, bz: int,
) -> None:  # fmt: skip
    """Do the same with a loop over threads in place of a grid of them."""
    depth, height, width = index.shape
    for row in prange(depth * height):
        z, y = row // height, row % height
        for x in range(width):
            thread[z, y, x, 0], block[z, y, x, 0] = x % bx, x // bx
            thread[z, y, x, 1], block[z, y, x, 1] = y % by, y // by
            thread[z, y, x, 2], block[z, y, x, 2] = z % bz, z // bz
            block_dim[z, y, x, 0], grid_dim[z, y, x, 0] = bx, width // bx
            block_dim[z, y, x, 1], grid_dim[z, y, x, 1] = by, height // by
            block_dim[z, y, x, 2], grid_dim[z, y, x, 2] = bz, depth // bz
            index[z, y, x] = row * width + x


@cuda.jit
def thread_index_cuda(
    thread: Triples, block: Triples, block_dim: Triples, grid_dim: Triples, index: Numbers,
    bx: int, by: int, bz: int,
) -> None:  # fmt: skip
    """Every thread writes down what it is told; threads outside the arrays write nothing.

    ``bx``, ``by`` and ``bz`` are for the forms without a launch: a thread knows its block's shape.
    """
    x, y, z = cuda.grid(3)
    depth, height, width = index.shape
    if x < width and y < height and z < depth:
        thread[z, y, x, 0], block[z, y, x, 0] = cuda.threadIdx.x, cuda.blockIdx.x
        thread[z, y, x, 1], block[z, y, x, 1] = cuda.threadIdx.y, cuda.blockIdx.y
        thread[z, y, x, 2], block[z, y, x, 2] = cuda.threadIdx.z, cuda.blockIdx.z
        block_dim[z, y, x, 0], grid_dim[z, y, x, 0] = cuda.blockDim.x, cuda.gridDim.x
        block_dim[z, y, x, 1], grid_dim[z, y, x, 1] = cuda.blockDim.y, cuda.gridDim.y
        block_dim[z, y, x, 2], grid_dim[z, y, x, 2] = cuda.blockDim.z, cuda.gridDim.z
        index[z, y, x] = (z * height + y) * width + x


def empty_numpy(out: NDArray[np.int32]) -> None:
    """Write 1 to ``out[0]``: the least that can be checked."""
    out[0] = 1


@njit(cache=True)
def empty_compiled(out: NDArray[np.int32]) -> None:
    """Write 1 to ``out[0]``; there is nothing to share between threads."""
    out[0] = 1


@cuda.jit
def empty_cuda(out: NDArray[np.int32]) -> None:
    """Have the grid's first thread write 1 to ``out[0]``; all others compare one number and end."""
    if cuda.blockIdx.x == 0 and cuda.threadIdx.x == 0:
        out[0] = 1


def launch_limits_numpy(
    shape: Numbers, bx: int, by: int, bz: int, gx: int, gy: int, gz: int
) -> None:
    """Write the shape of a block and of a grid, as the last thread of the grid sees them."""
    shape[:] = bx, by, bz, gx, gy, gz


@njit(cache=True)
def launch_limits_compiled(
    shape: Numbers, bx: int, by: int, bz: int, gx: int, gy: int, gz: int
) -> None:
    """Do the same, compiled."""
    shape[0], shape[1], shape[2] = bx, by, bz
    shape[3], shape[4], shape[5] = gx, gy, gz


@cuda.jit
def launch_limits_cuda(
    shape: Numbers, bx: int, by: int, bz: int, gx: int, gy: int, gz: int
) -> None:
    """Have the last thread of the last block write what it is told: that far the grid has run.

    The other arguments are for the forms without a launch.
    """
    last_block = (
        cuda.blockIdx.x == cuda.gridDim.x - 1
        and cuda.blockIdx.y == cuda.gridDim.y - 1
        and cuda.blockIdx.z == cuda.gridDim.z - 1
    )
    last_thread = (
        cuda.threadIdx.x == cuda.blockDim.x - 1
        and cuda.threadIdx.y == cuda.blockDim.y - 1
        and cuda.threadIdx.z == cuda.blockDim.z - 1
    )
    if last_block and last_thread:
        shape[0], shape[1], shape[2] = cuda.blockDim.x, cuda.blockDim.y, cuda.blockDim.z
        shape[3], shape[4], shape[5] = cuda.gridDim.x, cuda.gridDim.y, cuda.gridDim.z
