"""Numba's streaming kernels beside the same loops in C with OpenMP, on the same cores.

The C loops are those of STREAM (McCalpin 1995) and alike: plain ``for`` loops over pointers that
may overlap, compiled by ``cc -O3 -march=native -fopenmp``; strides and offsets are arguments of
both, which no compiler knows beforehand. The two take turns, and of each turn the best of a few
runs counts, so that what the machine does beside favours neither. Prints bytes per second of both
(each array read and written once, as STREAM counts) and Numba's share of C's, the median over the
turns. Target: at least 0.9 for each kernel. The last line is C's ``memcpy`` over the same cores,
which may write past the cache.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numba
import numpy as np
from figures import add_option, record, recording

from gpubench.kernels import elementwise, streaming

SOURCE = """
#include <string.h>
#define LOOP(name, parameters, statement)                     \\
    void name parameters {                                     \\
        _Pragma("omp parallel for")                            \\
        for (long i = 0; i < n; i++) statement;                \\
    }
LOOP(copy, (long n, float *a, float *b), b[i] = a[i])
LOOP(vector_add, (long n, float *a, float *b), b[i] += a[i])
LOOP(increment_by_one, (long n, float *a), a[i] += 1)
LOOP(multiply, (long n, float *a, float *b, float *c), c[i] = a[i] * b[i])
LOOP(saxpy, (long n, float *x, float *y), y[i] += 3.0f * x[i])
LOOP(triad, (long n, float *a, float *b, float *c), a[i] = b[i] + 3.0f * c[i])
LOOP(nstream, (long n, float *a, float *b, float *c), a[i] += b[i] + 3.0f * c[i])
LOOP(strided_copy, (long n, float *a, float *b, long stride), b[i] = a[i * stride])
LOOP(misaligned_copy, (long n, float *a, float *b, long offset), b[i] = a[i + offset])
LOOP(copy_in_pieces, (long n, float *a, float *b),
     if (i % 65536 == 0) memcpy(b + i, a + i, 4 * (n - i < 65536 ? n - i : 65536)))
"""

THREE = np.float32(3)
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Loop:
    """One streaming kernel in both languages."""

    name: str
    numba: Callable[..., Any]
    arrays: int
    """Arrays of ``n`` elements that are handed over, in order."""
    passes: int
    """Arrays that are read or written, each as often."""
    more: tuple[Any, ...] = ()
    """What the Numba form takes after the arrays."""
    longest: int = 1
    """How many times ``n`` the first array is long."""


LOOPS = (
    Loop("copy", streaming.copy_parallel, 2, 2),
    Loop("vector_add", elementwise.vector_add_parallel, 2, 3, ("n",)),
    Loop("increment_by_one", elementwise.increment_by_one_parallel, 1, 2),
    Loop("multiply", elementwise.multiply_parallel, 3, 3),
    Loop("saxpy", streaming.saxpy_parallel, 2, 3, ("scratch", THREE)),
    Loop("triad", streaming.triad_parallel, 3, 3, (THREE,)),
    Loop("nstream", streaming.nstream_parallel, 3, 4, ("scratch", THREE)),
    Loop("strided_copy", streaming.strided_copy_parallel, 2, 2, (2,), longest=2),
    Loop("misaligned_copy", streaming.misaligned_copy_parallel, 2, 2, (1,), longest=2),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=2**24, help="elements of each array, float32")
    parser.add_argument("--turns", type=int, default=15, help="turns of each language")
    parser.add_argument(
        "--runs", type=int, default=4, help="runs of a turn, of which the best counts"
    )
    add_option(parser)
    given = parser.parse_args()
    with recording(given):
        os.environ["OMP_NUM_THREADS"] = str(numba.config.NUMBA_NUM_THREADS)
        with TemporaryDirectory(prefix="gpubench-figures-") as folder:
            library = compiled(Path(folder))
            for loop in LOOPS:
                compare(loop, library, given)
            copy_by_pieces(library, given)


def compiled(folder: Path) -> ctypes.CDLL:
    """Compile the C loops, with as many threads as Numba has."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("there is no C compiler: install gcc or clang, or name one in CC")
    (folder / "loops.c").write_text(SOURCE)
    command = [compiler, "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-o", "loops.so"]
    subprocess.run([*command, "loops.c"], cwd=folder, check=True)
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    print(f"C         {version.stdout.splitlines()[0]}; {numba.config.NUMBA_NUM_THREADS} threads\n")
    return ctypes.CDLL(str(folder / "loops.so"))


def compare(loop: Loop, library: ctypes.CDLL, given: argparse.Namespace) -> None:
    """Check that both compute the same, take turns, and print one line."""
    ours, theirs = arrays(loop, given.n), arrays(loop, given.n)
    special = {"n": given.n, "scratch": np.empty(1, np.float32)}
    more = [special.get(one, one) if isinstance(one, str) else one for one in loop.more]
    in_numba = bound(loop.numba, *ours, *more)
    numbers = [ctypes.c_long(one) for one in (given.n, *loop.more) if isinstance(one, int)]
    in_c = bound(library[loop.name], numbers[0], *map(pointer, theirs), *numbers[1:])
    in_numba(), in_c()
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    shares, best = turns(in_numba, in_c, given)
    bandwidths = [4 * loop.passes * given.n / seconds / 1e9 for seconds in best]
    print(
        f"{loop.name:18} Numba {bandwidths[0]:6.2f} GB/s   C {bandwidths[1]:6.2f} GB/s   "
        f"{statistics.median(shares):.2f} of C   target at least 0.9",
        flush=True,
    )
    speeds = {"Numba, GB/s": f"{bandwidths[0]:.1f}", "C, GB/s": f"{bandwidths[1]:.1f}"}
    record("bandwidth", loop.name, {**speeds, "of C": f"{statistics.median(shares):.2f}"})


def copy_by_pieces(library: ctypes.CDLL, given: argparse.Namespace) -> None:
    a, b = arrays(LOOPS[0], given.n)
    call = bound(library["copy_in_pieces"], ctypes.c_long(given.n), pointer(a), pointer(b))
    seconds = min(fastest(call, given.runs) for _ in range(given.turns))
    print(f"{'memcpy':18} {'':19} C {8 * given.n / seconds / 1e9:6.2f} GB/s")


def arrays(loop: Loop, n: int) -> list[Array]:
    """Return the same numbers each time."""
    generator = np.random.default_rng(1)
    lengths = [n * loop.longest, *[n] * (loop.arrays - 1)]
    return [generator.standard_normal(length, np.float32) for length in lengths]


def pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def bound(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: function(*arguments)


def turns(
    one: Callable[[], Any], other: Callable[[], Any], given: argparse.Namespace
) -> tuple[list[float], tuple[float, float]]:
    """Return how many times faster ``one`` was in each turn, and the best seconds of both."""
    seconds = []
    for turn in range(given.turns):
        pair = [one, other] if turn % 2 else [other, one]
        found = [fastest(call, given.runs) for call in pair]
        seconds.append(found if turn % 2 else found[::-1])
    own, others = zip(*seconds, strict=True)
    return [b / a for a, b in seconds], (min(own), min(others))


def fastest(call: Callable[[], Any], runs: int) -> float:
    """Seconds of the best of some runs."""
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


if __name__ == "__main__":
    main()
