"""joblib's ``Parallel``, kept open over a case: processes of loky, or threads.

Functions get the open ``Parallel`` first and return their results (``returns: [out]``): what a
worker of loky writes into an array stays in the worker, so that the check calls the result wrong,
and large arrays are read-only there. The time contains what is sent to the workers and back.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any

from gpubench.backends.orphans import end_with_parent
from gpubench.backends.pools import (
    PoolBackend,
    PoolSession,
    a_worker_died,
    blas_threads,
    how_it_ended,
    one_blas_thread,
    start_trackers,
    starting_workers,
    wait_for_all,
    workers_of,
)
from gpubench.backends.protocol import Call, DeviceLostError, Launch, Target

_loky_sessions = 0
"""That are open in this process: loky has one pool for all."""


class JoblibThreadsSession(PoolSession):
    """Threads. BLAS has one thread while the session is open, where joblib sets none."""

    def __init__(self, workers: int) -> None:
        joblib = _joblib()
        with ExitStack() as stack:
            stack.enter_context(one_blas_thread())
            start = time.perf_counter()
            parallel = joblib.Parallel(n_jobs=workers, backend="threading")
            stack.enter_context(parallel)
            parallel(joblib.delayed(os.getpid)() for _ in range(workers))
            seconds = time.perf_counter() - start
            facts = {
                "joblib": joblib.__version__,
                "joblib_backend": "threading",
                "workers": workers,
                "pool_start_seconds": seconds,
                "worker_blas_threads": blas_threads(),
            }
            super().__init__("joblib", parallel, facts)
            self._open = stack.pop_all()

    def close(self) -> None:
        """Waits for tasks that run: threads cannot be ended."""
        super().close()
        self._open.close()


class JoblibProcessesSession(PoolSession):
    """Processes of loky, each of which has answered."""

    def __init__(self, workers: int) -> None:
        joblib = _joblib()
        with ExitStack() as stack:
            start_trackers("joblib.externals.loky.backend.resource_tracker")
            stack.enter_context(_loky())
            start = time.perf_counter()
            with starting_workers():
                # What loky gives to each by itself is the processors' share: 1 where all are busy.
                parallel = joblib.Parallel(
                    workers, backend="loky", inner_max_num_threads=1, initializer=end_with_parent
                )
                stack.enter_context(parallel)
                ask = [joblib.delayed(os.getpid)() for _ in range(workers)]
                wait_for_all(workers, lambda: set(parallel(ask)))
            seconds = time.perf_counter() - start
            facts = {
                "joblib": joblib.__version__,
                "joblib_backend": "loky",
                "workers": workers,
                "pool_start_seconds": seconds,
                "worker_blas_threads": max(parallel([joblib.delayed(blas_threads)()])),
            }
            super().__init__("joblib", parallel, facts)
            self._open = stack.pop_all()

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        call = super().bind(target, launch, arguments)
        dead: type[Exception] = _part("externals.loky.process_executor").TerminatedWorkerError

        def watched() -> Any:
            try:
                return call()
            except dead as error:
                code = re.search(r"\w+\((-?\d+)\)", str(error))
                how = how_it_ended(int(code[1])) if code else "no exit code"
                raise DeviceLostError(a_worker_died(how)) from error

        return watched

    def close(self) -> None:
        super().close()
        self._open.close()


class JoblibBackend(PoolBackend):
    """Runs functions that take an open ``joblib.Parallel`` first, then NumPy arrays.

    With one job joblib starts no worker and does the work in this process, so that a pool has two
    at least.
    """

    name = "joblib"
    title = "joblib"
    kinds = ("processes", "threads")
    fewest = 2
    runs_on = "processes:2, processes:3 ... (loky) and threads:2 ..., by the number of workers"
    requires = ("gpubench[joblib]",)
    software = ("joblib", "numpy")
    concerns = ("joblib",)
    passes = ("parallel",)

    def unavailable(self, device: str) -> str | None:
        if reason := super().unavailable(device):
            return reason
        if find_spec("joblib") is None:
            return f"{device}: joblib is not installed; pip install 'gpubench[joblib]'"
        return None

    def start_pool(self, device: str, **options: Any) -> PoolSession:
        if device.startswith("threads"):
            return JoblibThreadsSession(workers_of(device))
        return JoblibProcessesSession(workers_of(device))


@contextmanager
def _loky() -> Iterator[None]:
    """Loky's pool, which it keeps for later uses, ends with the last session that is open."""
    global _loky_sessions
    _loky_sessions += 1
    try:
        yield
    finally:
        _loky_sessions -= 1
        if _loky_sessions == 0:
            pool = _part("externals.loky").get_reusable_executor(reuse=True)
            # joblib's own removes its folder of large arrays too; in place of one that broke loky
            # gives its plain one, with nothing in it.
            end = getattr(pool, "terminate", pool.shutdown)
            end(kill_workers=True)
            multiprocessing.active_children()  # asking forgets those that ended, and their locks


def _joblib() -> Any:
    return importlib.import_module("joblib")


def _part(name: str) -> Any:
    return importlib.import_module(f"joblib.{name}")
