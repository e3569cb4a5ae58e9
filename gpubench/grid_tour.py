"""A grid as its threads see it: launched for once, and what each of them notes about itself.

On a GPU where there is one, else on the device in software, in a process of its own: a process runs
either.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpubench.backends import registry
from gpubench.backends.devices import gpu_count
from gpubench.backends.limits import ARCHITECTURE_LIMITS, launch_fault
from gpubench.backends.protocol import Launch, Target
from gpubench.backends.software import NAME, requested, switched_on
from gpubench.errors import BackendError, GpubenchError
from gpubench.measure.targets import load_object

BACKEND = "numba_cuda"
"""A tour is of CUDA's grids, so that this command names the backend that launches them."""
KERNEL = "gpubench.kernels.threads_and_blocks:thread_index_cuda"
"""Every thread writes down its place: ``(thread, block, three arrays more, block's shape)``."""

Place = tuple[int, int, int]
"""A place or a shape, x first."""

MOST_THREADS = 2**20
"""Threads that a tour notes: 56 bytes of the device's memory for each."""


@dataclass(frozen=True)
class Visit:
    """What one thread noted."""

    block: Place
    """``blockIdx``"""
    thread: Place
    """``threadIdx``"""
    element: Place
    """``cuda.grid(3)``: the element of an array ``[z, y, x]`` that lies at ``x, y, z``."""


@dataclass(frozen=True)
class Tour:
    """A launch and its threads, in the order of blocks and of the threads in them, x fastest."""

    grid: Place
    block: Place
    device: str
    name: str
    """Of the device: ``NVIDIA H200``, or ``softcuda``."""
    visits: tuple[Visit, ...]


def parse_shape(what: str, text: str) -> Place:
    """``4``, ``2x3`` or ``2x3x2``; raises ``GpubenchError`` for anything else."""
    parts = text.lower().split("x")
    if len(parts) > 3 or not all(part.isascii() and part.isdecimal() for part in parts):
        raise GpubenchError(
            f"{what} of {text!r}: write one to three whole numbers, x first, like 4, 2x3 or 2x3x2"
        )
    x, y, z = (*map(int, parts), 1, 1)[:3]
    return x, y, z


def tour(grid: Place, block: Place, device: str = "cuda:0") -> Tour:
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
    if threads > MOST_THREADS:
        raise GpubenchError(
            f"launch of {threads} threads: possible on {device}, but only {MOST_THREADS} threads "
            "are noted one by one; use a smaller grid to look at"
        )
    if gpu_count() or requested():
        return _launched(launch, device)
    return _in_another_process(grid, block, device)


def _launched(launch: Launch, device: str) -> Tour:
    backend = registry.get(BACKEND)
    width, height, depth = (g * b for g, b in zip(launch.grid, launch.block, strict=True))
    shape = (depth, height, width)
    arrays: list[np.ndarray[Any, Any]] = [np.empty((*shape, 3), np.int32) for _ in range(4)]
    arrays.append(np.empty(shape, np.int64))
    with backend.open(device) as session:
        native = [session.to_native(array) for array in arrays]
        target = Target(function=load_object(KERNEL))
        session.bind(target, launch, (*native, *launch.block))()
        session.synchronize()
        thread, block = (session.to_host(native[i]) for i in (0, 1))
    visits = [
        Visit(_place(block[z, y, x]), _place(thread[z, y, x]), (x, y, z))
        for z, y, x in np.ndindex(depth, height, width)
    ]
    visits.sort(key=lambda visit: (visit.block[::-1], visit.thread[::-1]))
    name = backend.device_facts(device).name
    return Tour(launch.grid, launch.block, device, name, tuple(visits))


def _place(numbers: np.ndarray[Any, Any]) -> Place:
    x, y, z = map(int, numbers)
    return x, y, z


def _in_another_process(grid: Place, block: Place, device: str) -> Tour:
    arguments = json.dumps([grid, block]), device
    with switched_on():
        done = subprocess.run(
            [sys.executable, "-m", "gpubench.grid_tour", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise GpubenchError(f"{NAME} failed: {last}")
    noted = json.loads(done.stdout)
    places = ({name: tuple(at) for name, at in visit.items()} for visit in noted["visits"])
    return Tour(grid, block, device, noted["name"], tuple(Visit(**visit) for visit in places))


def main(shapes: str, device: str) -> None:
    """Print a tour as JSON; the other end of ``_in_another_process``."""
    grid, block = (_place(np.array(shape)) for shape in json.loads(shapes))
    json.dump(asdict(tour(grid, block, device)), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
