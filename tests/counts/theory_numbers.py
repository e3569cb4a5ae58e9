"""Numbers that theory gives for the kernels of ``theory_kernels``, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping

from gpubench.work.derived import counted_flops, vectorized_share, widest_lanes

N = 1003
POSITIVE = N - 251
"""Of N numbers every fourth, from the first on, is negative."""
RETURNED = 8
"""Bytes that a function stores for a result of 8 bytes, and for None."""
CALLS_OF_FIBONACCI = 465
"""Of fibonacci(12): 2 F(13) - 1, F(13) = 233."""

BY_LINES: Mapping[str, Mapping[str, float]] = {
    "saxpy float32": {"flops_float32": 2 * N, "load_bytes": 8 * N, "store_bytes": 4 * N + RETURNED},
    "saxpy float64": {
        "flops_float64": 2 * N,
        "flops_float32": 0,
        "load_bytes": 16 * N,
        "store_bytes": 8 * N + RETURNED,
        "allocations": 0,
        "calls": 0,
        "divisions": 0,
    },
    "saxpy of 1024": {"flops": 2048, "load_bytes": 8192, "store_bytes": 4096 + RETURNED},
    "saxpy of 3": {"flops": 6, "load_bytes": 24, "store_bytes": 12 + RETURNED, "vectorized": 0},
    "saxpy with a in float64": {  # calculates in double precision, and moves as many bytes
        "flops_float64": 2 * N,
        "flops_float32": 0,
        "load_bytes": 8 * N,
        "store_bytes": 4 * N + RETURNED,
    },
    "saxpy of none": {"flops": 0, "load_bytes": 0, "store_bytes": RETURNED},
    "saxpy strided": {"flops": 2 * N, "load_bytes": 16 * N, "vectorized": 0},
    # np.ones stores 2 N; a number that was just stored need not be loaded again.
    "saxpy on overlapping arrays": {"flops": 2 * N, "vectorized": 0, "allocations": 1},
    "sum": {"flops": N, "load_bytes": 8 * N, "store_bytes": RETURNED, "vectorized": 0},
    # 4 vectors of 4 lanes are joined by 3 additions of vectors, and 4 lanes by 3 additions.
    "sum with reassoc": {"flops": 1024 + 12 + 3, "vectorized": 1, "lanes": 4},
    "matmul ijk": {
        "flops": 2 * 33**3,
        "load_bytes": 16 * 33**3,
        "store_bytes": 8 * 33**2 + RETURNED,
        "vectorized": 0,
    },
    "matmul ikj": {  # the factor is loaded once for each row
        "flops": 2 * 32**3,
        "load_bytes": 16 * 32**3 + 8 * 32**2,
        "store_bytes": 8 * 32**3 + RETURNED,
        "vectorized": 1,
        "lanes": 4,
    },
    "stencil": {  # 3 additions and a product for each inner cell
        "flops": 4 * 32**2,
        "load_bytes": 32 * 32**2,
        "store_bytes": 8 * 32**2 + RETURNED,
    },
    "masked store": {"load_bytes": 8 * N, "store_bytes": 8 * POSITIVE + RETURNED},
    "roots of some": {"libm_functions": POSITIVE, "flops": POSITIVE, "load_bytes": 8 * N},
    "gather": {"flops": 0, "load_bytes": 16 * N, "store_bytes": 8 * N + RETURNED},
    "gather with boundscheck": {"load_bytes": 16 * N, "store_bytes": 8 * N + RETURNED},
    "copy": {"flops": 0, "load_bytes": 8 * N, "store_bytes": 8 * N + RETURNED},
    "array expression": {"flops": 2 * N, "allocations": 1},
    "three temporaries": {"flops": 3 * N, "allocations": 3},
    "divisions": {"flops": 0, "divisions": N, "special_functions": N, "load_bytes": 8 * N},
    "divisions as NumPy's": {"divisions": 1024, "store_bytes": 8192 + RETURNED},
    "integer divisions": {"integer_divisions": N, "divisions": 0, "load_bytes": 8 * N},
    "cubes": {"flops": 2 * N, "libm_functions": 0},
    "powers": {"flops": 0, "libm_functions": N},
    "sines": {"flops": 0, "libm_functions": N, "load_bytes": 8 * N},
    "callee in another module": {"flops": 4 * N, "load_bytes": 8 * N, "calls": 0},
    "recursion": {"calls": CALLS_OF_FIBONACCI - 1},
    "prange": {"flops": 2 * N},
    "prange of calls": {"flops": 10},
    "stencil by decorator": {"flops": 2 * (N - 2), "allocations": 1},
    "vectorize": {"flops": 2 * N, "load_bytes": 16 * N, "store_bytes": 8 * N},
    "dynamic vectorize": {"flops_float32": N, "load_bytes": 8 * N, "store_bytes": 4 * N},
    "guvectorize": {"flops": 10 * N, "store_bytes": 80, "vectorized": 0},
    "cached": {"flops": 2 * N, "load_bytes": 8 * N},
    "generator": {"flops": 2 * N},
    "nogil threads": {"flops": 4 * N, "load_bytes": 32 * N, "store_bytes": 4 * RETURNED},
    "zeros": {"allocations": 1, "flops": 0},
    "slice": {"load_bytes": 8 * N, "flops": 0},
    "histogram": {"load_bytes": 16 * N, "store_bytes": 8 * N + RETURNED, "flops": 0},
}
"""By kernel and figure; whatever LLVM makes of the kernel."""

IN_VECTORS: Mapping[str, Mapping[str, float]] = {
    # Four vectors of 8 lanes a turn: 31 turns of 32. Of the other 11, two vectors of 4 lanes.
    "saxpy float32": {"flops_lanes_8": 1984, "flops_lanes_4": 16, "flops_lanes_1": 6, "lanes": 8},
    "saxpy float64": {"flops_lanes_4": 2000, "flops_lanes_1": 6, "lanes": 4},
    "saxpy of 1024": {"vectorized": 1, "lanes": 8},
    "masked store": {"flops_lanes_4": 1000},  # also for lanes whose result is not stored
    "array expression": {"flops_lanes_4": 2000},
    "divisions as NumPy's": {"ir_float": 256},  # 1024 in vectors of 4
    "cubes": {"flops_lanes_4": 2000},
    "callee in another module": {"flops_lanes_4": 4000, "store_bytes": 8 * N + RETURNED},
    "vectorize": {"flops_lanes_4": 2000, "lanes": 4},
    "dynamic vectorize": {"flops_lanes_8": 992, "flops_lanes_4": 8, "flops_lanes_1": 3},
    "exception": {"flops": N, "load_bytes": 8 * N},
    "generator": {"load_bytes": 8 * N, "store_bytes": RETURNED},
    "recursion": {"store_bytes": 8 * CALLS_OF_FIBONACCI},
    "guvectorize": {"load_bytes": 80 * N},
    "stencil": {"vectorized": 1, "lanes": 4},
}
"""The same for vectors of 256 bits, as LLVM 20 and newer make them."""

REASONS: Mapping[str, str] = {
    "sum": "cannot prove it is safe to reorder floating-point operations",
    "gather": "cannot identify array bounds",
    "histogram": "cannot identify array bounds",
    "prange of calls": "call instruction cannot be vectorized",
    "saxpy on overlapping arrays": "unsafe dependent memory operations in loop",
}
"""By kernel, how LLVM's reason begins."""

QUICK = (
    *("saxpy float32", "saxpy float64", "saxpy of 1024", "saxpy of 3", "saxpy with a in float64"),
    *("saxpy of none", "sum", "sum with reassoc", "matmul ijk", "matmul ikj", "masked store"),
    *("gather", "divisions", "prange", "prange of calls", "stencil by decorator"),
    *("vectorize", "cached", "recursion"),
)
"""Kernels of `make test`, which have every kind of count; all are for `make test-thorough`."""


def figure(totals: Mapping[str, int], name: str) -> float | None:
    """Return a count, or what follows from counts."""
    match name:
        case "flops":
            return counted_flops(totals)
        case "vectorized":
            return vectorized_share(totals)
        case "lanes":
            return widest_lanes(totals)
        case _:
            return totals.get(name, 0)
