"""Processes of Python's own pool, ``multiprocessing.Pool``, over arrays in memory that they share.

A worker writes where the caller reads: arrays, and views of them, go to it as the place where they
lie. ``multiprocessing.Pool`` and not ``concurrent.futures.ProcessPoolExecutor``, which took four
times as long for a task (95 to 130 µs against 20 to 30, Python 3.11, two cores): it is what pays
first. What the executor has and the pool has not is added here: a worker that dies is told of.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.pool import AsyncResult, Pool
from typing import Any, ClassVar

from gpubench.arrow import AnyArray
from gpubench.backends.host import HostSession
from gpubench.backends.numpy import blas_libraries
from gpubench.backends.protocol import Native
from gpubench.edge.systems.clusters import WORKERS_PATTERN, counts_of, wait_for_all
from gpubench.edge.systems.pools import (
    NO_THREADS,
    ONE_THREAD_VARIABLES,
    PoolBackend,
    SharedMapping,
    blas_threads,
    locks_without_names,
    starting_workers,
    worker_died,
)
from gpubench.errors import BackendError, did_you_mean
from gpubench.layouts import span_bytes
from gpubench.names import Value
from gpubench.processes import end_with_parent

METHODS = ("spawn", "forkserver", "fork")

LOOK = 0.05
"""Seconds between two looks whether all workers live, while their results are waited for."""

POOL_SHUTDOWN_SECONDS = 2.0
"""Seconds that a pool may take to end by itself; it takes hundredths, and never does where a worker
was killed in the midst of an answer."""


class WatchedPool(Pool):
    """``multiprocessing.Pool`` that says when a worker dies; Python's own starts another and waits
    for ever for what the dead one should have sent (python/cpython#66587).

    ``map``, ``starmap`` and ``apply`` raise ``DeviceLostError`` then. After a death the pool is of
    no more use, so that none is started in its place.
    """

    def __init__(self, workers: int, method: str) -> None:
        self._crew: list[Any] = []
        # The server keeps the environment that it started with, and may have loaded NumPy.
        by_server = method == "forkserver"
        initializer = _one_thread_and_no_longer_than_the_parent if by_server else end_with_parent
        super().__init__(workers, initializer, context=multiprocessing.get_context(method))

    def Process(self, ctx: Any, *arguments: Any, **options: Any) -> Any:  # type: ignore[override]
        """Return what the pool makes a worker with."""
        if len(self._crew) == self._processes:  # type: ignore[attr-defined]
            return _Nobody()
        self._crew.append(ctx.Process(*arguments, **options))
        return self._crew[-1]

    def map(self, *arguments: Any, **named: Any) -> Any:
        return self._watched(self.map_async, *arguments, **named)

    def starmap(self, *arguments: Any, **named: Any) -> Any:
        return self._watched(self.starmap_async, *arguments, **named)

    def apply(self, *arguments: Any, **named: Any) -> Any:
        return self._watched(self.apply_async, *arguments, **named)

    def _watched(
        self, submit: Callable[..., AsyncResult[Any]], *arguments: Any, **named: Any
    ) -> Any:
        self._see_that_all_live()
        result = submit(*arguments, **named)
        result.wait(LOOK)
        while not result.ready():
            self._see_that_all_live()
            result.wait(LOOK)
        return result.get()

    def _see_that_all_live(self) -> None:
        for process in self._crew:
            if (code := process.exitcode) is not None:
                raise worker_died(code)

    def end(self) -> None:
        """End all workers, whatever they are doing."""
        if any(process.exitcode is not None for process in self._crew):
            self._end_crew()
            # One that waits for a task holds the lock under which all do, and nobody gives back
            # what a dead one holds: the pool would wait for it.
            with suppress(ValueError):  # it was free
                self._inqueue._rlock.release()  # type: ignore[attr-defined]
        ending = threading.Thread(target=self.terminate, daemon=True)
        ending.start()
        ending.join(POOL_SHUTDOWN_SECONDS)
        self._end_crew()

    @staticmethod
    def _help_stuff_finish(inqueue: Any, task_handler: threading.Thread, size: int) -> None:
        """Empty the queue of tasks as ``Pool`` does; a worker that was killed in the midst of
        reading one has left a part of it, and what follows cannot be read."""
        with suppress(Exception):
            Pool._help_stuff_finish(inqueue, task_handler, size)  # type: ignore[attr-defined]

    def _end_crew(self) -> None:
        for process in self._crew:
            process.kill()
            process.join()


class _Nobody:
    """In place of a worker that died: a process that is never started."""

    name, daemon, exitcode = "", True, None

    def start(self) -> None: ...

    def terminate(self) -> None: ...

    def is_alive(self) -> bool:
        return False


class MultiprocessingSession(HostSession):
    """A pool of processes, each of which has answered, and arrays in memory that they share."""

    def __init__(self, workers: int, method: str) -> None:
        super().__init__("multiprocessing")
        start = time.perf_counter()
        with self.opening() as ending, starting_workers(), locks_without_names():
            pool = self._pool = WatchedPool(workers, method)
            ending.callback(pool.end)
            wait_for_all(lambda _: [pool.apply(os.getpid)], workers)
        self._passed = (pool,)
        self._facts = {
            "workers": workers,
            "start_method": method,
            "pool_start_seconds": time.perf_counter() - start,
        }

    def to_native(self, array: AnyArray) -> Native:
        return SharedMapping(span_bytes(array)).copy_of(array)

    def facts(self) -> Mapping[str, Value]:
        return {**super().facts(), "worker_blas_threads": self._pool.apply(blas_threads)}


class MultiprocessingBackend(PoolBackend):
    name = "multiprocessing"
    title = "Processes of the standard library"
    times = ("kernel", "end_to_end", "transfer", "cold", "start")
    capabilities = ("in_place",)
    device_names = f"processes:{WORKERS_PATTERN}"
    runs_on = "processes:1, processes:2 ..., by the number of workers"
    software = ("numpy",)
    passes = ("pool",)
    no_threads = NO_THREADS.format(kind="processes")
    options: ClassVar[Mapping[str, str]] = {
        "method": "how a worker is started: 'spawn' (the default), a new Python; 'forkserver', a "
        "copy of one; 'fork', a copy of the process that measures, fast and unsafe beside threads"
    }

    def unavailable(self, device: str) -> str | None:
        if reason := super().unavailable(device):
            return reason
        if hasattr(os, "memfd_create"):
            return None
        return (
            f"{device}: arrays that processes share need Linux (memfd_create); use threads:N, or "
            "the backend joblib"
        )

    def start(
        self, device: str, threads: int | None, method: object = "spawn"
    ) -> MultiprocessingSession:
        if method not in METHODS:
            hint = did_you_mean(str(method), METHODS)
            raise BackendError(f"method {method!r}{hint}; allowed: {', '.join(METHODS)}")
        (workers,) = counts_of(device)
        return MultiprocessingSession(workers, str(method))


def _one_thread_and_no_longer_than_the_parent() -> None:
    os.environ.update(ONE_THREAD_VARIABLES)  # of libraries that are loaded later
    blas_libraries().limit(limits=1)
    end_with_parent()
