"""Thousands of small matrices: nothing to gain inside one of them, all between them.

A library that is tuned for one large matrix is called for each small one, and its start costs more
than its work. Here the shape is a constant of the compiled code, so that loops disappear into
registers; or many matrices are worked on in step, one in each lane of a vector register. On a GPU a
matrix is a thread's, which needs no barriers and leaves neighbours reading far apart, or a block's,
in shared memory (Dongarra et al., "Optimized batched linear algebra for modern architectures",
2017; Haidar et al., "Batched matrix computations on hardware accelerators based on GPUs", 2015).

Batches have the shape ``[n, k, k]`` and one dtype, matrices one after another.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Batch = NDArray[Any]
"""A contiguous array ``[n, k, k]``."""
Buffer = NDArray[Any]

_WIDE = 16  # columns from which vector instructions are worth their start
_TOGETHER = 64  # matrices that a CPU thread factors in step: whole vector registers of each number


def batched_matmul_numpy(A: Batch, B: Batch, C: Batch) -> None:
    """``C[i] = A[i] @ B[i]``, no temporary."""
    np.matmul(A, B, out=C)


def make_batched_matmul_parallel(*, k: int) -> Any:
    """Return a CPU function for ``C[i] = A[i] @ B[i]``, compiled for matrices of one shape.

    Loops of constant length are taken apart into instructions for single numbers: good for the
    smallest matrices. From ``_WIDE`` on, a row is computed by vector instructions, which the
    compiler makes of a loop only where it does not know that it is short.
    """

    @njit(fastmath={"contract"})
    def multiply_row(a: Any, B: Any, c: Any) -> None:
        for column in range(k if k < _WIDE else c.size):
            total = a[0] * B[0, column]
            for i in range(1, k):
                total += a[i] * B[i, column]
            c[column] = total

    @njit(parallel=True)
    def batched_matmul_parallel(A: Batch, B: Batch, C: Batch) -> None:
        for i in prange(C.shape[0]):
            for row in range(k):
                multiply_row(A[i, row], B[i], C[i, row])

    return batched_matmul_parallel


@cuda.jit
def batched_matmul_cuda(A: Batch, B: Batch, C: Batch) -> None:
    """Use a thread for each number of ``C``; any one-dimensional launch is right."""
    k = np.uint32(C.shape[1])
    square = k * k
    i, size = np.uint64(cuda.grid(1)), np.uint64(C.size)
    while i < size:
        matrix, place = i // square, np.uint32(i % square)
        row, column = place // k, place % k
        total = C.dtype.type(0)
        for j in range(k):
            total += A[matrix, row, j] * B[matrix, j, column]
        C[matrix, row, column] = total
        i += np.uint64(cuda.gridsize(1))


def make_batched_matmul_shared(*, k: int, together: int) -> Any:
    """Return a CUDA kernel that reads ``together`` pairs of matrices into shared memory for each
    block.

    The launch is blocks of ``[k * k, together]`` threads and any one-dimensional grid.
    """
    square = k * k

    @cuda.jit
    def batched_matmul_shared(A: Batch, B: Batch, C: Batch) -> None:
        a = cuda.shared.array((together, square), dtype=A.dtype)
        b = cuda.shared.array((together, square), dtype=B.dtype)
        place, mine = cuda.threadIdx.x, cuda.threadIdx.y
        row, column = place // k, place % k
        for first in range(cuda.blockIdx.x * together, C.shape[0], cuda.gridDim.x * together):
            i = first + mine
            if i < C.shape[0]:
                a[mine, place] = A[i, row, column]
                b[mine, place] = B[i, row, column]
            cuda.syncthreads()
            if i < C.shape[0]:
                total = C.dtype.type(0)
                for j in range(k):
                    total += a[mine, row * k + j] * b[mine, j * k + column]
                C[i, row, column] = total
            cuda.syncthreads()

    return batched_matmul_shared


def positive_definite(values: dict[str, Any], generator: np.random.Generator) -> Batch:
    """``n`` symmetric matrices with eigenvalues from 1 on: ``G @ G.T / k + 1`` for normal ``G``."""
    k = values["k"]
    G = generator.standard_normal((values["n"], k, k), dtype=np.float32)
    A: Batch = (G @ G.transpose(0, 2, 1) / k + np.eye(k, dtype=np.float32)).astype(values["dtype"])
    return A


def batched_cholesky_numpy(A: Batch, L: Batch) -> None:
    """Lower triangles with ``L[i] @ L[i].T = A[i]``: NumPy's LAPACK for each matrix in turn."""
    L[:] = np.linalg.cholesky(A)


@njit(cache=True)
def _interleave(A: Batch, lanes: Buffer) -> None:
    """``lanes[row, column, i] = A[i, row, column]`` for the lower triangles."""
    for i in range(A.shape[0]):
        for row in range(A.shape[1]):
            for column in range(row + 1):
                lanes[row, column, i] = A[i, row, column]


@njit(cache=True)
def _separate(lanes: Buffer, L: Batch) -> None:
    """Do it the other way round; zeros above the diagonal."""
    for i in range(L.shape[0]):
        for row in range(L.shape[1]):
            for column in range(row + 1):
                L[i, row, column] = lanes[row, column, i]
            for column in range(row + 1, L.shape[2]):
                L[i, row, column] = 0


# As NumPy divides, without a test for zero, which would keep the loop from vector instructions.
@njit(cache=True, error_model="numpy")
def _divide_by_root(x: Buffer, diagonal: Buffer) -> None:
    for lane in range(x.size):
        x[lane] /= math.sqrt(diagonal[lane])


@njit(cache=True, fastmath={"contract"})
def _subtract_products(x: Buffer, row: Buffer, column: Buffer) -> None:
    """Subtract the dot product of two rows as far as the column before ``x``, in each lane."""
    depth = row.shape[0]
    for p in range(0, depth - 3, 4):
        for lane in range(x.size):
            x[lane] -= (
                row[p, lane] * column[p, lane]
                + row[p + 1, lane] * column[p + 1, lane]
                + row[p + 2, lane] * column[p + 2, lane]
                + row[p + 3, lane] * column[p + 3, lane]
            )
    for p in range(depth - depth % 4, depth):
        for lane in range(x.size):
            x[lane] -= row[p, lane] * column[p, lane]


@njit(cache=True)
def _factor(lanes: Buffer) -> None:
    """Factor all interleaved matrices in place, column by column ("left-looking")."""
    for j in range(lanes.shape[0]):
        for i in range(j, lanes.shape[0]):
            _subtract_products(lanes[i, j], lanes[i, :j], lanes[j, :j])
        for i in range(lanes.shape[0] - 1, j - 1, -1):  # the diagonal itself comes last
            _divide_by_root(lanes[i, j], lanes[j, j])


@njit(cache=True)
def _cholesky_together(A: Batch, L: Batch) -> None:
    n, k = A.shape[0], A.shape[1]
    lanes = np.empty((k, k, n), A.dtype)
    _interleave(A, lanes)
    _factor(lanes)
    _separate(lanes, L)


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _cholesky_of_four(A: Batch, L: Batch) -> None:
    """Matrices of 4 x 4, one at a time without a loop: all of one is in registers."""
    zero, one = A.dtype.type(0), A.dtype.type(1)
    for i in range(A.shape[0]):
        a, lower = A[i], L[i]
        top = math.sqrt(a[0, 0])
        scale = one / top
        l10, l20, l30 = a[1, 0] * scale, a[2, 0] * scale, a[3, 0] * scale
        second = math.sqrt(a[1, 1] - l10 * l10)
        scale = one / second
        l21, l31 = (a[2, 1] - l20 * l10) * scale, (a[3, 1] - l30 * l10) * scale
        third = math.sqrt(a[2, 2] - l20 * l20 - l21 * l21)
        l32 = (a[3, 2] - l30 * l20 - l31 * l21) / third
        lower[0, 0], lower[0, 1], lower[0, 2], lower[0, 3] = top, zero, zero, zero
        lower[1, 0], lower[1, 1], lower[1, 2], lower[1, 3] = l10, second, zero, zero
        lower[2, 0], lower[2, 1], lower[2, 2], lower[2, 3] = l20, l21, third, zero
        lower[3, 0], lower[3, 1], lower[3, 2] = l30, l31, l32
        lower[3, 3] = math.sqrt(a[3, 3] - l30 * l30 - l31 * l31 - l32 * l32)


@njit(parallel=True, cache=True)
def batched_cholesky_parallel(A: Batch, L: Batch) -> None:
    """Do the same for ``_TOGETHER`` matrices in step, over the threads of the CPU; matrices of 4 x
    4 are small enough for the registers of one."""
    for piece in prange((A.shape[0] + _TOGETHER - 1) // _TOGETHER):
        first, last = piece * _TOGETHER, piece * _TOGETHER + _TOGETHER
        if A.shape[1] == 4:
            _cholesky_of_four(A[first:last], L[first:last])
        else:
            _cholesky_together(A[first:last], L[first:last])


@cuda.jit
def batched_cholesky_cuda_thread(A: Batch, L: Batch) -> None:
    """Use a thread for each matrix, row by row; any one-dimensional launch is right."""
    for matrix in range(cuda.grid(1), A.shape[0], cuda.gridsize(1)):
        for i in range(A.shape[1]):
            for j in range(i + 1):
                total = A[matrix, i, j]
                for p in range(j):
                    total -= L[matrix, i, p] * L[matrix, j, p]
                L[matrix, i, j] = math.sqrt(total) if i == j else total / L[matrix, j, j]
            for j in range(i + 1, A.shape[1]):
                L[matrix, i, j] = 0


def make_batched_cholesky_staged(*, k: int) -> Any:
    """Return a CUDA kernel with a thread for each matrix, which the block brings to shared memory.

    Neighbours read and write neighbours, and each thread factors its matrix in its own banks. The
    launch is any one-dimensional one with ``k * k`` numbers of shared memory for each thread,
    and one more where ``k`` is even.
    """
    square = k * k
    pitch = square + 1 - k % 2  # odd, so that 32 matrices begin in 32 banks

    @cuda.jit
    def batched_cholesky_staged(A: Batch, L: Batch) -> None:
        room = cuda.shared.array(0, dtype=A.dtype)
        thread, threads = cuda.threadIdx.x, cuda.blockDim.x
        mine = thread * pitch
        for first in range(cuda.blockIdx.x * threads, A.shape[0], cuda.gridDim.x * threads):
            numbers = min(threads, A.shape[0] - first) * square
            for place in range(thread, numbers, threads):
                matrix, number = place // square, place % square
                room[matrix * pitch + number] = A[first + matrix, number // k, number % k]
            cuda.syncthreads()
            if first + thread < A.shape[0]:
                for i in range(k):
                    for j in range(i + 1):
                        total = room[mine + i * k + j]
                        for p in range(j):
                            total -= room[mine + i * k + p] * room[mine + j * k + p]
                        root = total if i == j else room[mine + j * k + j]
                        room[mine + i * k + j] = math.sqrt(root) if i == j else total / root
            cuda.syncthreads()
            for place in range(thread, numbers, threads):
                matrix, number = place // square, place % square
                row, column = number // k, number % k
                lower = room[matrix * pitch + number] if column <= row else A.dtype.type(0)
                L[first + matrix, row, column] = lower
            cuda.syncthreads()

    return batched_cholesky_staged


def make_batched_cholesky_block(*, k: int) -> Any:
    """Return a CUDA kernel with a block for each matrix, in shared memory, a thread for each row.

    The launch is blocks of any number of threads, ``k`` of which are of use, and any grid.
    """
    pitch = k + 1  # so that a column lies in different banks

    @cuda.jit
    def batched_cholesky_block(A: Batch, L: Batch) -> None:
        room = cuda.shared.array((k, pitch), dtype=A.dtype)
        thread, threads = cuda.threadIdx.x, cuda.blockDim.x
        for matrix in range(cuda.blockIdx.x, A.shape[0], cuda.gridDim.x):
            for place in range(thread, k * k, threads):
                room[place // k, place % k] = A[matrix, place // k, place % k]
            cuda.syncthreads()
            for j in range(k):
                root = math.sqrt(room[j, j])
                cuda.syncthreads()
                for i in range(j + thread, k, threads):
                    room[i, j] = root if i == j else room[i, j] / root
                cuda.syncthreads()
                for i in range(j + 1 + thread, k, threads):
                    for column in range(j + 1, i + 1):
                        room[i, column] -= room[i, j] * room[column, j]
                cuda.syncthreads()
            # Each thread takes out what it will put in again: no barrier is needed between.
            for place in range(thread, k * k, threads):
                row, column = place // k, place % k
                L[matrix, row, column] = room[row, column] if column <= row else A.dtype.type(0)

    return batched_cholesky_block
