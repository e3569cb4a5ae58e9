"""Threads of Python's own pool, ``multiprocessing.pool.ThreadPool``, handed to a function."""

from __future__ import annotations

import sys
import time
from multiprocessing.pool import ThreadPool
from threading import Barrier
from typing import Any

from gpubench.backends.pools import (
    PoolBackend,
    PoolSession,
    blas_threads,
    one_blas_thread,
    workers_of,
)


class ThreadsSession(PoolSession):
    """NumPy arrays that all threads share, and a pool of them.

    NumPy's BLAS has one thread while the session is open, so that the workers do not multiply it.
    """

    def __init__(self, workers: int) -> None:
        self._limited = one_blas_thread()
        self._limited.__enter__()
        start = time.perf_counter()
        pool = ThreadPool(workers)
        together = Barrier(workers)  # none has a second task before each has had one
        pool.map(lambda _: together.wait(), range(workers), chunksize=1)
        seconds = time.perf_counter() - start
        facts = {
            "workers": workers,
            "pool_start_seconds": seconds,
            "worker_blas_threads": blas_threads(),
            # A build of Python without that lock is another one, whose threads run side by side.
            "gil": bool(getattr(sys, "_is_gil_enabled", lambda: True)()),
        }
        super().__init__("threads", pool, facts)
        self._closed = False

    def close(self) -> None:
        """Waits for tasks that run: threads cannot be ended."""
        super().close()
        if not self._closed:
            self._closed = True
            self._pool.terminate()
            self._pool.join()
            self._limited.__exit__(None, None, None)


class ThreadsBackend(PoolBackend):
    """Runs functions that take a ``multiprocessing.pool.ThreadPool`` first, then NumPy arrays."""

    name = "threads"
    title = "Threads of the standard library"
    capabilities = ("in_place",)
    kinds = ("threads",)
    runs_on = "threads:1, threads:2 ..., by the number of workers"
    software = ("numpy",)
    passes = ("pool",)

    def start_pool(self, device: str, **options: Any) -> ThreadsSession:
        return ThreadsSession(workers_of(device))
