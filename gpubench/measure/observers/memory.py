"""The memory that a case's arrays and one of its runs hold.

That of a run is counted beyond what stands before it, inputs included.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from gpubench.backends import registry
from gpubench.measure import watcher
from gpubench.measure.memory import trim
from gpubench.measure.observers.protocol import Observer
from gpubench.plan.case import Case

if TYPE_CHECKING:
    from gpubench.measure.case_run import CaseRun

M_MMAP_THRESHOLD = -3
"""Of ``mallopt`` (``malloc.h`` of glibc): from so many bytes on memory comes from the system."""
M_TRIM_THRESHOLD = -1
"""So many free bytes at the end of a thread's memory go back to the system."""
LARGE = 128 * 2**10
"""Bytes of that, glibc's own at the start of a process (mallopt(3)); it grows by itself later."""

LASTING = 0.25
"""Seconds for which a run is repeated, so that some of many looks see whatever it does."""


class MemoryObserver(Observer):
    """Put on record the bytes of the arrays, the limit, and where the suite asks the peak."""

    def on_prepare(self, run: CaseRun) -> None:
        """Put the bytes of the arrays and the limit on record."""
        limit = run.case.memory_limit
        limited = {"memory_limit_bytes": limit} if limit else {}
        run.put(conditions={"array_bytes": run.nbytes, **limited})

    def on_finish(self, run: CaseRun) -> None:
        """Watch some runs that are not timed, for the most memory that one holds."""
        if run.time != "kernel" or not run.case.kernel.sampling.memory:
            return
        bound = run.bound

        def call() -> None:
            bound.call()
            bound.session.synchronize()

        bound.refresh()
        peak = bound.session.peak_bytes(call)
        run.put(peak_bytes=peak_bytes(run.case, call) if peak is None else peak)


def peak_bytes(case: Case, run: Callable[[], object]) -> int | None:
    """Return the most bytes that one run adds in this process and its descendants, the result
    included; ``None`` where the system does not tell, or where the device's memory is elsewhere.

    No peak of this process is missed, unless the run maps files. A peak of another process may be
    missed that is shorter than the time between two looks (``watcher.PERIOD``).
    """
    place = registry.get(case.backend).memory_place(case.device)
    if sys.platform != "linux" or place == "elsewhere":
        return None
    # Have allocators give back what they keep of earlier runs, else a run would be seen to hold
    # nothing. For glibc this process is another one afterwards: arrays are no longer made of memory
    # that has been used.
    with suppress(AttributeError):  # another C library
        for threshold in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD):
            ctypes.CDLL(None).mallopt(threshold, LARGE)
    run()  # a thread's memory is given back when something in it is freed next
    trim()
    command = [sys.executable, "-I", "-S", watcher.__file__, str(os.getpid())]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline().strip() != watcher.READY:
            return None
        end = time.monotonic() + LASTING
        run()
        while time.monotonic() < end:
            run()
        said, _ = process.communicate()
    return int(said) if said else None
