"""Wrong kernels in Numba on the CPU, apart from the others: importing it takes a second."""

import numba

BLOCK = 64


@numba.njit
def last_block_left_out(a, out):
    for block in range(a.size // BLOCK):
        for i in range(block * BLOCK, (block + 1) * BLOCK):
            out[i] = 2 * a[i]


@numba.njit
def reads_outside(a, out):
    """Without ``boundscheck`` nothing stops it at the last element."""
    for i in range(a.size):
        out[i] = a[i] + a[i + i // (a.size - 1)]


@numba.njit
def raises(a, out):
    for i in range(a.size):
        if i == a.size - 1:
            raise ValueError("the last element")
        out[i] = 2 * a[i]


@numba.njit
def does_not_compile(a, out):
    out.no_such_method(a)
