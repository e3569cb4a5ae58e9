"""joblib's ``Parallel``, kept open over a case: processes of loky, or threads.

Functions get the open ``Parallel`` first and return their results (``returns: [out]``): what a
worker of loky writes into an array stays in the worker, so that the check calls the result wrong,
and large arrays are read-only there. The time contains what is sent to the workers and back.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any

from gpubench.backends.host import HostSession
from gpubench.backends.protocol import Call
from gpubench.distribution import require_extra
from gpubench.edge.systems.clusters import WORKERS_PATTERN, counts_of, wait_for_all
from gpubench.edge.systems.pools import (
    PoolBackend,
    blas_threads,
    one_blas_thread,
    start_trackers,
    starting_workers,
    worker_died,
)
from gpubench.processes import end_with_parent

_loky_sessions = 0
"""That are open in this process: loky has one pool for all."""


class JoblibSession(HostSession):
    """Processes of loky, each of which has answered, or threads. Of threads BLAS has one while the
    session is open, where joblib sets none."""

    def __init__(self, device: str) -> None:
        super().__init__("joblib")
        joblib: Any = import_module("joblib")
        (workers,), options = counts_of(device), dict[str, Any](backend="threading")
        has_processes = device.startswith("processes")
        with self.opening() as ending:
            if has_processes:
                # What loky gives to each by itself is the processors' share: 1 where all are busy.
                options = {"backend": "loky", "inner_max_num_threads": 1}
                options["initializer"] = end_with_parent
                start_trackers("joblib.externals.loky.backend.resource_tracker")
                ending.enter_context(_loky())
            else:
                ending.enter_context(one_blas_thread())
            start = time.perf_counter()
            with starting_workers() if has_processes else nullcontext():
                parallel = ending.enter_context(joblib.Parallel(workers, **options))
                ask = [joblib.delayed(os.getpid)() for _ in range(workers)]
                wait_for_all(lambda _: parallel(ask), workers if has_processes else 1)
            self._passed = (parallel,)
            self._facts = {
                "joblib": joblib.__version__,
                "joblib_backend": options["backend"],
                "workers": workers,
                "pool_start_seconds": time.perf_counter() - start,
                "worker_blas_threads": max(parallel([joblib.delayed(blas_threads)()])),
            }

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        call = super().call_of(function, arguments)
        loky = import_module("joblib.externals.loky.process_executor")
        dead: type[Exception] = loky.TerminatedWorkerError

        def watched() -> Any:
            try:
                return call()
            except dead as error:
                code = re.search(r"\w+\((-?\d+)\)", str(error))
                raise worker_died(int(code[1]) if code else None) from error

        return watched


class JoblibBackend(PoolBackend):
    """With one job joblib starts no worker and does the work in this process, so that a pool has
    two at least."""

    name = "joblib"
    title = "joblib"
    device_names = rf"(processes|threads):(?!1$){WORKERS_PATTERN}"
    runs_on = "processes:2, processes:3 ... (loky) and threads:2 ..., by the number of workers"
    requires = (require_extra("joblib"),)
    modules = ("joblib",)
    software = ("joblib", "numpy")
    concerns = ("joblib",)
    passes = ("parallel",)

    def start(self, device: str, threads: int | None) -> JoblibSession:
        return JoblibSession(device)


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
            pool = import_module("joblib.externals.loky").get_reusable_executor(reuse=True)
            # joblib's own removes its folder of large arrays too; in place of one that broke loky
            # gives its plain one, with nothing in it.
            end = getattr(pool, "terminate", pool.shutdown)
            end(kill_workers=True)
            multiprocessing.active_children()  # asking forgets those that ended, and their locks
