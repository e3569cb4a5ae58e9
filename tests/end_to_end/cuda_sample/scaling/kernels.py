"""Turning signs round, as it should be and in ways that fail. ``scale_illegal``, ``scale_lost`` and
``scale_hang`` are right: a command to the device makes them fail, by their names."""

from numba import cuda


def scale_numpy(a):
    a *= -1


@cuda.jit
def scale_right(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= -1


@cuda.jit
def scale_wrong(a):
    i = cuda.grid(1)
    if i < a.size - 1:
        a[i] *= -1


@cuda.jit(lineinfo=True)
def scale_outside(a):
    a[cuda.grid(1)] *= -1


@cuda.jit
def scale_illegal(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= -1


@cuda.jit
def scale_lost(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= -1


@cuda.jit
def scale_hang(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= -1


@cuda.jit
def scale_endless(a):
    i = cuda.grid(1)
    while a[0] == a[0]:
        if i < a.size:
            a[i] *= 1
