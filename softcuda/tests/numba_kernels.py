"""Kernels of Numba that differ in what a thread and a block of them take."""

from __future__ import annotations

from typing import Any


def make_kernels() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Kernels and types of their arguments by name: a plain one, one with shared memory, one with
    local memory, and one that spills."""
    from numba import cuda, float32, float64

    @cuda.jit
    def copy(a, b):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < a.size:
            b[i] = a[i]

    @cuda.jit
    def tile(a, b):  # type: ignore[no-untyped-def]
        tile = cuda.shared.array((32, 33), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        tile[y, x] = a[32 * y + x]
        cuda.syncthreads()
        b[32 * y + x] = tile[x, y]

    @cuda.jit
    def local(a, b):  # type: ignore[no-untyped-def]
        part = cuda.local.array(128, float32)
        for k in range(a.size):
            part[k % 128] += a[k]
        b[cuda.grid(1)] = part[int(a[0]) % 128]

    @cuda.jit(max_registers=24)
    def spill(a, b):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        p, q, r, s = a[i], a[i + 1], a[i + 2], a[i + 3]
        t, u, v, w = a[i + 4], a[i + 5], a[i + 6], a[i + 7]
        for _ in range(a.size):
            p, q, r, s = p * q + r, q * r + s, r * s + t, s * t + u
            t, u, v, w = t * u + v, u * v + w, v * w + p, w * p + q
        b[i] = p + q + r + s + t + u + v + w

    single, double = (float32[::1], float32[::1]), (float64[::1], float64[::1])
    return {
        "copy": (copy, single),
        "tile": (tile, single),
        "local": (local, single),
        "spill": (spill, double),
    }
