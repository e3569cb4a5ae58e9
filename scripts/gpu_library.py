"""The suites' CUDA kernels on a GPU: right, as fast as its memory, and beside CuPy's.

What ``gpu_check.py`` prints of them. Nothing of CUDA or CuPy is imported before it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from math import inf
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from gpubench.measure.bound_case import opened
from gpubench.measure.conditions import why_not
from gpubench.measure.direct import Job, take_turn
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.verification import expected_outputs, verify
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

SUITES = Path(__file__).resolve().parent.parent / "suites"
SAMPLES = 5
"""Of each case, in one round."""

STREAMING = (
    "streaming.copy", "streaming.saxpy", "streaming.triad", "streaming.nstream",
    "vector_add.vector_add", "increment_by_one.increment_by_one", "multiply.multiply",
)  # fmt: skip
"""Kernels that do nothing but move memory, in order and aligned."""


class Peer(NamedTuple):
    """A kernel of the library that CuPy has, too."""

    kernel: str
    implementation: str
    dtype: str
    call: Callable[[Any], Callable[..., Any]]
    """CuPy's function over the arrays that the kernel reads, from the module ``cupy``."""
    factor: float
    """So many times CuPy's time are enough."""


PEERS = (
    # cuBLAS keeps tiles in registers and uses all of a warp's; ours is the textbook's tile.
    Peer("matmul.matmul", "cuda_tiled", "float32", lambda cupy: cupy.matmul, 20.0),
    Peer("reductions.sum", "cuda_tree", "float32", lambda cupy: cupy.sum, 1.5),
    Peer(
        "linear_algebra.transpose", "cuda_tiled", "float32",
        lambda cupy: lambda a: cupy.ascontiguousarray(a.T), 1.5,
    ),
)  # fmt: skip


class Fastest(NamedTuple):
    """The fastest launch of a kernel at its largest size."""

    case: Case
    seconds: float
    """Of one run, ``inf`` where none has a time."""


@cache
def cuda_cases(device: str, preset: str | None = None) -> list[Case]:
    """Cases of all suites for one CUDA device."""
    count = int(device.partition(":")[2] or 0) + 1
    plan = build_plan(load_suites([SUITES], preset), gpu_count=count)
    return [c for c in plan.cases() if (c.backend, c.device) == ("numba_cuda", device)]


def faults(cases: Iterable[Case]) -> dict[str, str]:
    """Return why outputs are wrong or cannot be had, by the case; those that cannot run are left
    out."""
    found = {f"{case.group.title} {case.identity}": _fault(case) for case in cases}
    return {name: fault for name, fault in found.items() if fault}


def streams(cases: Iterable[Case]) -> Iterator[tuple[str, int, float]]:
    """Bytes that each kernel of ``STREAMING`` moves in its widest dtype, and seconds of a run."""
    every = list(cases)
    for kernel in STREAMING:
        found = fastest(largest(every, kernel, "float64"))
        yield kernel, int(found.case.work()[0] or 0), found.seconds


def beside_cupy(cases: Iterable[Case]) -> Iterator[tuple[Peer, float]]:
    """Times of CuPy's time that each of ``PEERS`` takes."""
    every = list(cases)
    for peer in PEERS:
        own = [c for c in every if c.implementation_name == peer.implementation]
        found = fastest(largest(own, peer.kernel, peer.dtype))
        yield peer, found.seconds / _cupy_seconds(peer, found.case)


def has_cupy() -> bool:
    return find_spec("cupy") is not None


def largest(cases: Iterable[Case], kernel: str, dtype: str) -> list[Case]:
    """Return a kernel's cases that move the most memory, in that dtype where it has several."""
    own = [c for c in cases if f"{c.suite.suite}.{c.kernel_name}" == kernel]
    own = [c for c in own if c.values.get("dtype", dtype) == dtype and why_not(c) is None]
    most = max((_bytes(case) for case in own), default=0)
    return [case for case in own if _bytes(case) == most]


def fastest(cases: Sequence[Case]) -> Fastest:
    """Return the case with the least time, each measured once, checked first.

    Raises ``ValueError`` where there is none.
    """
    if not cases:
        raise ValueError("no case can run on this device")
    timed = [Fastest(case, _seconds(case)) for case in cases]
    return min(timed, key=lambda found: found.seconds)


def _seconds(case: Case) -> float:
    samples = take_turn(Job(case, samples=SAMPLES)).samples
    return median(samples) if samples else inf


def _cupy_seconds(peer: Peer, case: Case) -> float:
    import cupy
    from cupyx.profiler import benchmark

    arrays: Mapping[str, Any] = draw_inputs(case).arrays
    read = [name for name, spec in case.array_specs.items() if spec.intent == "in"]
    arguments = tuple(cupy.asarray(arrays[name]) for name in read)
    times = benchmark(peer.call(cupy), arguments, n_repeat=50, n_warmup=5).gpu_times
    return float(median(times[0].tolist()))


def _bytes(case: Case) -> int:
    return sum(one.size * one.itemsize for one in case.array_specs.values())


def _fault(case: Case) -> str | None:
    if why_not(case) is not None:
        return None
    try:
        inputs = draw_inputs(case)
        expected = expected_outputs(case, inputs)
        with opened(case, inputs) as execution:
            return verify(execution, expected).fault
    except Exception as error:
        return f"{type(error).__name__}: {error}"
