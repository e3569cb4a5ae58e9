"""A grid as its threads see it: launched for once, and what each of them notes about itself.

On a GPU where there is one, else on the device in software, in a process of its own: a process runs
either.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from gpubench.backends import registry
from gpubench.backends.devices import gpu_count
from gpubench.backends.limits import ARCHITECTURE_LIMITS, launch_fault
from gpubench.backends.protocol import Launch, Target
from gpubench.backends.software import NAME, requested, switched_on
from gpubench.errors import BackendError, GpubenchError
from gpubench.measure.targets import load_object
from gpubench.parallel import without_working_folder

BACKEND = "numba_cuda"
"""A tour is of CUDA's grids, so that this command names the backend that launches them."""
KERNEL = "gpubench.kernels.threads_and_blocks:thread_index_cuda"
"""Every thread writes down its place: ``(thread, block, three arrays more, block's shape)``."""

Dim3 = tuple[int, int, int]
"""A place or a shape, x first."""

MAX_THREADS = 2**20
"""Threads that a tour notes: 56 bytes of the device's memory for each."""


class Visit(NamedTuple):
    """What one thread noted."""

    block: Dim3
    """``blockIdx``"""
    thread: Dim3
    """``threadIdx``"""
    element: Dim3
    """``cuda.grid(3)``: the element of an array ``[z, y, x]`` that lies at ``x, y, z``."""


@dataclass(frozen=True)
class Tour:
    """A launch and its threads, in the order of blocks and of the threads in them, x fastest."""

    grid: Dim3
    block: Dim3
    device: str
    name: str
    """Of the device: ``NVIDIA H200``, or ``softcuda``."""
    visits: tuple[Visit, ...]


def parse_shape(what: str, text: str) -> Dim3:
    """``4``, ``2x3`` or ``2x3x2``; raises ``GpubenchError`` for anything else."""
    parts = text.lower().split("x")
    if len(parts) > 3 or not all(part.isascii() and part.isdecimal() for part in parts):
        raise GpubenchError(
            f"{what} of {text!r}: write one to three whole numbers, x first, like 4, 2x3 or 2x3x2"
        )
    return _place([*parts, 1, 1][:3])


def tour(grid: Dim3, block: Dim3, device: str = "cuda:0") -> Tour:
    """Launch a grid and note what its threads see.

    ``device`` is ``cuda:0`` ..., of GPUs or, where there is none, of the device in software. Raises
    ``GpubenchError`` for a launch that the device refuses, with the limit, and for one too large to
    note.
    """
    backend, launch = registry.get(BACKEND), Launch(block=block, grid=grid)
    if not backend.serves(device):
        raise BackendError(f"{device!r} is no CUDA device; use cuda:0, cuda:1 ...")
    limits = backend.device_facts(device).limits or ARCHITECTURE_LIMITS
    if fault := launch_fault(launch, limits):
        raise GpubenchError(fault)
    threads = launch.blocks * launch.threads_per_block
    if threads > MAX_THREADS:
        raise GpubenchError(
            f"launch of {threads} threads: possible on {device}, but only {MAX_THREADS} threads "
            "are noted one by one; use a smaller grid to look at"
        )
    if gpu_count() or requested():
        return Tour(grid, block, device, backend.device_facts(device).name, _visits(launch, device))
    try:
        new = get_context("spawn")
        with switched_on(), without_working_folder(), ProcessPoolExecutor(1, new) as process:
            return process.submit(tour, grid, block, device).result()
    except GpubenchError:
        raise
    except Exception as error:  # no compiler there, or the process has died
        raise GpubenchError(f"{NAME} failed: {type(error).__name__}: {error}") from error


def _visits(launch: Launch, device: str) -> tuple[Visit, ...]:
    shape = tuple(g * b for g, b in zip(launch.grid, launch.block, strict=True))[::-1]
    arrays: list[np.ndarray[Any, Any]] = [np.empty((*shape, 3), np.int32) for _ in range(4)]
    arrays.append(np.empty(shape, np.int64))
    with registry.get(BACKEND).open(device) as session:
        native = [session.to_native(array) for array in arrays]
        target = Target(function=load_object(KERNEL))
        session.bind(target, launch, (*native, *launch.block))()
        session.synchronize()
        thread, block = session.to_host(native[0]), session.to_host(native[1])
    visits = (
        Visit(_place(block[i]), _place(thread[i]), _place(i[::-1])) for i in np.ndindex(shape)
    )
    return tuple(sorted(visits, key=lambda visit: (visit.block[::-1], visit.thread[::-1])))


def _place(numbers: Any) -> Dim3:
    x, y, z = map(int, numbers)
    return x, y, z
