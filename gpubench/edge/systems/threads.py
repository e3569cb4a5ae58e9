"""Threads of Python's own pool, ``multiprocessing.pool.ThreadPool``, handed to a function."""

from __future__ import annotations

import sys
import time
from multiprocessing.pool import ThreadPool
from threading import Barrier

from gpubench.backends.host import HostSession
from gpubench.edge.systems.clusters import WORKERS_PATTERN, counts_of
from gpubench.edge.systems.pools import PoolBackend, blas_threads, one_blas_thread


class ThreadsSession(HostSession):
    """NumPy arrays that all threads share, and a pool of them.

    NumPy's BLAS has one thread while the session is open, so that the workers do not multiply it.
    """

    def __init__(self, workers: int) -> None:
        super().__init__("threads")
        with self.opening() as ending:
            ending.enter_context(one_blas_thread())
            start = time.perf_counter()
            pool = ThreadPool(workers)
            ending.callback(pool.join)
            ending.callback(pool.terminate)
            together = Barrier(workers)  # none has a second task before each has had one
            pool.map(lambda _: together.wait(), range(workers), chunksize=1)
            self._passed = (pool,)
            self._facts = {
                "workers": workers,
                "pool_start_seconds": time.perf_counter() - start,
                "worker_blas_threads": blas_threads(),
                # A build of Python without that lock is another one, whose threads run side by
                # side.
                "gil": bool(getattr(sys, "_is_gil_enabled", lambda: True)()),
            }


class ThreadsBackend(PoolBackend):
    name = "threads"
    title = "Threads of the standard library"
    capabilities = ("in_place",)
    device_names = f"threads:{WORKERS_PATTERN}"
    runs_on = "threads:1, threads:2 ..., by the number of workers"
    software = ("numpy",)
    passes = ("pool",)

    def start(self, device: str, threads: int | None) -> ThreadsSession:
        return ThreadsSession(*counts_of(device))
