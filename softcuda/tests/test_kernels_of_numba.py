"""What the sanitizer and the counts say of kernels as Numba compiles them."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_runs import why_not
from softcuda_process import on_softcuda

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

TRIPLE = 'extern "C" __device__ int triple(float *r, float x) { *r = 3 * x; return 0; }'


def sanitize_kernels() -> Any:
    """Return what the sanitizer reports of kernels, by their names: the kinds and lines, those from
    the line of ``def`` on."""
    import numpy as np
    from numba import cuda, float32

    import softcuda

    device = softcuda.start()
    device.set("sanitize", "1")

    @cuda.jit
    def largest_and_smallest(out, x):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        cuda.atomic.max(out, 0, x[i])
        cuda.atomic.min(out, 1, x[i])
        cuda.atomic.nanmax(out, 2, x[i])

    @cuda.jit
    def read_beside_the_largest(out, x):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        cuda.atomic.max(out, 0, x[i])
        out[3 + i] = out[0]

    @cuda.jit
    def add_to_what_is_not_there(out, x):  # type: ignore[no-untyped-def]
        part = cuda.local.array(4, float32)
        i = cuda.grid(1)
        part[i % 4] += x[i]
        out[i] = part[i % 4]

    @cuda.jit
    def add_to_one_that_is_not_there(out, x):  # type: ignore[no-untyped-def]
        part = cuda.local.array(1, float32)
        i = cuda.grid(1)
        part[0] += x[i]
        out[i] = part[0]

    @cuda.jit
    def add_to_what_was_written(out, x):  # type: ignore[no-untyped-def]
        part = cuda.local.array((2, 2), float32)
        i = cuda.grid(1)
        for k in range(4):
            part[k // 2, k % 2] = 0
        part[i % 2, 1] += x[i]
        out[i] = part[i % 2, 1]

    found = {}
    for dtype in (np.float32, np.float64):
        for kernel in (
            largest_and_smallest,
            read_beside_the_largest,
            add_to_what_is_not_there,
            add_to_one_that_is_not_there,
            add_to_what_was_written,
        ):
            kernel[1, 64](np.zeros(80, dtype), np.arange(64, dtype=dtype))
            name = kernel.py_func.__name__
            first = kernel.py_func.__code__.co_firstlineno
            told = {(one.kind, one.line - first, one.space) for one in device.reports()}
            found[f"{name} {dtype.__name__}"] = sorted(told)
    return found


@pytest.fixture(scope="module")
def reports() -> Any:
    return on_softcuda(sanitize_kernels)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_atomic_maximum_of_floats_is_no_race_with_itself(reports: Any, dtype: str) -> None:
    assert reports[f"largest_and_smallest {dtype}"] == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_plain_read_beside_an_atomic_maximum_is_a_race(reports: Any, dtype: str) -> None:
    found = reports[f"read_beside_the_largest {dtype}"]
    assert found
    assert {kind for kind, _, _ in found} == {"race"}


def test_a_local_array_holds_nothing_until_it_is_written(reports: Any) -> None:
    assert reports["add_to_what_is_not_there float32"] == [["uninitialised", 4, "local"]]
    assert reports["add_to_one_that_is_not_there float32"] == [["uninitialised", 4, "local"]]
    assert reports["add_to_what_was_written float32"] == []


def count_a_kernel_that_links_c() -> Any:
    """Return a kernel's results and the lines that have counts, where it calls CUDA C: compiled
    without a word of lines, and with ``lineinfo=True``."""
    import numpy as np
    from numba import cuda

    import softcuda

    device = softcuda.start()
    device.set("count", "1")
    triple = cuda.declare_device("triple", "float32(float32)", link=cuda.CUSource(TRIPLE))

    def run(x, out):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < x.size:
            out[i] = triple(x[i])

    answers = []
    for options in ({}, {"lineinfo": True}):
        out = np.zeros(5, np.float32)
        cuda.jit(**options)(run)[1, 32](np.arange(5, dtype=np.float32), out)
        (launch,) = device.counts()
        lines = [one.line - run.__code__.co_firstlineno for one in launch.lines]
        answers.append([out.tolist(), lines])
    return answers


def test_a_kernel_that_links_cuda_c_keeps_its_lines() -> None:
    for results, lines in on_softcuda(count_a_kernel_that_links_c):
        assert results == [0, 3, 6, 9, 12]
        assert {1, 2, 3} <= set(lines)


def run_kernels_that_manage_memory() -> Any:
    """Return what kernels write that make an array and give it back, and the lines with counts."""
    import numpy as np
    from numba import config, cuda

    import softcuda

    device = softcuda.start()
    device.set("count", "1")
    config.CUDA_ENABLE_NRT = True

    def copy(x, out):  # type: ignore[no-untyped-def]
        own = x.copy()
        for i in range(own.size):
            out[i] = own[i]

    def add_up(x, out):  # type: ignore[no-untyped-def]
        out[0] = x.sum()

    answers = []
    for run in (copy, add_up):
        out = np.zeros(3)
        cuda.jit(run)[1, 1](np.arange(1.0, 4), out)
        (launch,) = device.counts()
        lines = [one.line - run.__code__.co_firstlineno for one in launch.lines]
        answers.append([out.tolist(), lines])
    return answers


def test_a_kernel_that_makes_arrays_keeps_its_lines() -> None:
    """Numba's own CUDA C for that is inlined where no statement of Python stands."""
    copied, added = on_softcuda(run_kernels_that_manage_memory)
    assert copied[0] == [1, 2, 3]
    assert {1, 2, 3} <= set(copied[1])
    assert added[0] == [6, 0, 0]
    assert 1 in added[1]
