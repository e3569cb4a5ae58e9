"""What pools of workers on this machine share: the names of their devices, what is set while they
start, arrays that processes share, a session that hands the pool to functions.

A device is called after the kind and number of its workers: ``processes:4``, ``threads:2``.
"""

from __future__ import annotations

import mmap
import os
import sys
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from multiprocessing import synchronize, util
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, SupportsIndex

import numpy as np

from gpubench.arrow import AnyArray
from gpubench.backends.host import HostBackend, cpu
from gpubench.backends.numpy import blas_libraries
from gpubench.backends.protocol import DeviceLostError, DeviceMemoryError
from gpubench.edge.systems.clusters import counts_of
from gpubench.environment import environment
from gpubench.layouts import array_in
from gpubench.processes import how_it_ended

ONE_THREAD_VARIABLES = dict.fromkeys(
    (
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
        *("VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
    ),
    "1",
)
"""Variables that libraries read the number of their threads from, once, when they are loaded;
joblib sets the same (``joblib._parallel_backends.ParallelBackendBase.MAX_NUM_THREADS_VARS``)."""


NO_THREADS = (
    "the device says how many workers there are, and each has one thread; leave out 'threads', or "
    "list {kind}:{{threads}} under 'devices'"
)
"""``Backend.no_threads`` of pools of a ``kind``."""


class PoolBackend(HostBackend):
    """A backend whose devices are pools. Its sessions put the pool before the arguments of a call.
    Closing them waits for tasks that threads run: they cannot be ended. ``pool_start_seconds``
    among their facts are from the first worker until each had answered."""

    times: ClassVar[tuple[str, ...]] = ("kernel", "cold", "start")
    no_threads = NO_THREADS.format(kind="threads")

    def unavailable(self, device: str) -> str | None:
        """More workers than processors would take turns, which is another case's time."""
        if reason := super().unavailable(device):
            return reason
        (workers,), most = counts_of(device), cpu().threads
        if workers <= most:
            return None
        return (
            f"{device}: this process may use {most} of the machine's hardware threads; use fewer "
            "workers, or measure on a larger machine"
        )


def worker_died(code: int | None) -> DeviceLostError:
    """Return what to raise where a worker ended before its tasks, by its exit code, as far as it is
    known."""
    how = "no exit code" if code is None else how_it_ended(code)
    return DeviceLostError(
        f"a worker died ({how}) before its tasks were done; look for what crashes in them, or give "
        "it less memory to fill: fewer workers, smaller tasks"
    )


def blas_threads() -> int:
    """Threads of the BLAS that a task of NumPy's has, in the process that is asked; 1 where their
    number is not known."""
    return max((int(library["num_threads"]) for library in blas_libraries().info()), default=1)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Give this process's BLAS one thread meanwhile, so that threads of a pool, and processes that
    are forked, do not multiply it."""
    limited: AbstractContextManager[Any] = blas_libraries().limit(limits=1)
    return limited


@contextmanager
def starting_workers() -> Iterator[None]:
    """Start workers inside the block with one thread in each library, and without imports that no
    task asks for.

    A worker imports the main module of its parent. Here that module measures, and its imports would
    count as time that a pool takes to start.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        with environment(ONE_THREAD_VARIABLES), one_blas_thread():
            yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def outliving_this_group() -> Iterator[None]:
    """Put processes that start inside the block into another process group than this process's. So
    processes that clean up are left when a time-out kills this process's group. The other group is
    the parent's where this process leads a group; else a new group, since asv's parent is killed
    with its fork."""
    group = None
    with suppress(OSError, AttributeError):  # who leads a session cannot; Windows has no groups
        before = os.getpgid(0)
        os.setpgid(0, os.getpgid(os.getppid()) if before == os.getpid() else 0)
        group = before
    try:
        yield
    finally:
        if group is not None:
            os.setpgid(0, group)


def start_trackers(*others: str) -> None:
    """Start what removes the names of locks and files that this process leaves behind, however it
    ends: the tracker of ``multiprocessing``, and those of ``others``, by the names of modules."""
    # They remove without a word: what is left is of cases that were ended, which is on record.
    with outliving_this_group(), environment({"PYTHONWARNINGS": "ignore:resource_tracker"}):
        for module in ("multiprocessing.resource_tracker", *others):
            import_module(module).ensure_running()


@contextmanager
def locks_without_names() -> Iterator[None]:
    """Locks that are made meanwhile lose their names at the end, when all workers have them.

    A lock has a name in the file system, by which a worker finds it, until its owner ends; one that
    is killed leaves the name behind. What ends it is run now, once and early.
    """
    registry: dict[Any, Any] = getattr(util, "_finalizer_registry", {})
    before = set(registry)
    try:
        yield
    finally:
        cleanup = getattr(synchronize.SemLock, "_cleanup", None)
        for key in set(registry) - before:
            finalizer: Any = registry.get(key)  # other threads end theirs
            if getattr(finalizer, "_callback", None) is cleanup:
                finalizer()


class SharedMapping:
    """Memory that processes share. The memory has no name that could be left behind: others
    open the descriptor of this process, and the system frees the memory with the last of them.

    Raises ``DeviceMemoryError`` where there is no room for so many bytes.
    """

    def __init__(self, nbytes: int) -> None:
        size = max(nbytes, 1)  # none can be mapped
        descriptor = os.memfd_create("gpubench")
        try:
            # At once, where an error can be raised: memory that lacks later ends the process.
            os.posix_fallocate(descriptor, 0, size)
            self.memory = mmap.mmap(descriptor, size)
        except OSError as error:
            os.close(descriptor)
            raise DeviceMemoryError(
                f"no room for {nbytes:,} bytes of shared memory: {error.strerror}; "
                "make the arrays smaller"
            ) from error
        self.path = f"/proc/{os.getpid()}/fd/{descriptor}"
        self.number = os.fstat(descriptor).st_ino
        whole = np.frombuffer(self.memory, np.uint8)
        self.first = int(whole.__array_interface__["data"][0])
        self.last = self.first + size - 1
        weakref.finalize(self, os.close, descriptor)

    def copy_of(self, array: AnyArray) -> SharedArray:
        """Return a copy of the same layout, for which the memory has ``span_bytes(array)``."""
        copy = array_in(self.memory, array).view(SharedArray)
        copy.mapping = self
        copy[...] = array
        copy.flags.writeable = array.flags.writeable
        return copy


class SharedArray(np.ndarray[Any, np.dtype[Any]]):
    """An array in such memory, or a view of one, that goes to another process as the place where
    it lies. What is computed from it lies elsewhere and goes as its values."""

    mapping: SharedMapping | None = None

    def __array_finalize__(self, array: AnyArray | None) -> None:
        self.mapping = getattr(array, "mapping", None)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        first = int(self.__array_interface__["data"][0])
        mapping = self.mapping
        if mapping is None or not mapping.first <= first <= mapping.last:
            return np.asarray(self).__reduce_ex__(protocol)
        place = first - mapping.first, self.shape, self.strides, self.dtype
        return attached, (mapping.path, mapping.number, *place)


_attached: dict[tuple[str, int], mmap.mmap] = {}
"""Memory that this process has opened, by path and number."""


def attached(
    path: str,
    number: int,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
) -> AnyArray:
    """Return the array that lies there, in a worker; its memory is opened once."""
    if (path, number) not in _attached:
        for opened in list(_attached):  # those that have been given back since
            with suppress(OSError):
                if Path(opened[0]).stat().st_ino == opened[1]:
                    continue
            del _attached[opened]
        descriptor = os.open(path, os.O_RDWR)
        try:
            _attached[path, number] = mmap.mmap(descriptor, 0)
        finally:
            os.close(descriptor)
    return np.ndarray(shape, dtype, _attached[path, number], offset, strides)
