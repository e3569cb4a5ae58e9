"""Memory: the most that one run holds, and what a case may hold at most.

Both are counted beyond what stands before a run, inputs included. A limit is the system's own
(``RLIMIT_DATA``): what asks for more than that gets none, and Python raises ``MemoryError``.
It is on memory that can be written and is no file's, used or not, of one process; workers of a
cluster have limits of their own (``options: {memory: ...}``).
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from gpubench.backends import registry
from gpubench.backends.protocol import DeviceMemoryError
from gpubench.errors import GpubenchError
from gpubench.measure import watcher
from gpubench.plan.case import Case

M_MMAP_THRESHOLD = -3
"""Of ``mallopt`` (``malloc.h`` of glibc): from so many bytes on memory comes from the system."""
M_TRIM_THRESHOLD = -1
"""So many free bytes at the end of a thread's memory go back to the system."""
LARGE = 128 * 2**10
"""Bytes of that, glibc's own at the start of a process (mallopt(3)); it grows by itself later."""

LASTING = 0.25
"""Seconds for which a run is repeated, so that some of many looks see whatever it does."""


class MemoryLimitError(GpubenchError):
    """A case ran into the limit of its suite; no fault of either."""


def peak_bytes(case: Case, run: Callable[[], object]) -> int | None:
    """Return the most bytes that one run holds beyond what is held before it, by this process and
    those that it started, its result included; ``None`` where the system does not tell, or where
    the device's memory is elsewhere.

    Of this process no peak is missed, unless the run maps files; of others one may be that lasts
    for less than a look (``watcher.PERIOD``).
    """
    if (
        sys.platform != "linux"
        or registry.get(case.backend).memory_place(case.device) == "elsewhere"
    ):
        return None
    # Have allocators give back what they keep of earlier runs, else a run would be seen to hold
    # nothing. For glibc this process is another one afterwards: arrays are no longer made of memory
    # that has been used.
    with suppress(AttributeError):  # another C library
        for threshold in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD):
            ctypes.CDLL(None).mallopt(threshold, LARGE)
    run()  # a thread's memory is given back when something in it is freed next
    _trim()
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


def _trim() -> None:
    gc.collect()
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def why_no_limit(case: Case) -> str | None:
    """Return why the case's limit cannot be kept here, with the next step; ``None`` where it can,
    or where it has none."""
    if case.memory_limit is None:
        return None
    if sys.platform != "linux":
        return "its memory limit cannot be kept here: that takes Linux; measure it there"
    backend = registry.get(case.backend)
    is_here = backend.memory_place(case.device) == "process"
    if is_here or backend.keeps_memory_limit(case.options()):
        return None
    return (
        f"its memory limit cannot be kept on {case.device}: it is one of this process; use cpu, "
        "threads:N, or workers with a limit of their own, dask:WORKERS:THREADS with "
        "`options: {memory: ...}`"
    )


@contextmanager
def limited(case: Case) -> Iterator[None]:
    """Inside, this process gets no more than the case's limit beyond what it has now; a
    ``MemoryError`` becomes a ``MemoryLimitError``."""
    if case.memory_limit is None:
        yield
        return
    import resource  # which Windows has not

    _trim()  # what is free already would be had besides
    before, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = watcher.fields("/proc/self/status")["VmData"] + case.memory_limit
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    except MemoryError as error:
        raise MemoryLimitError(exceeded(case, error)) from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, hard))


def exceeded(case: Case, error: BaseException) -> str | None:
    """Return why a case ended that ran into its limit; ``None`` where the error is another one."""
    if isinstance(error, MemoryLimitError):
        return str(error)
    if not isinstance(error, MemoryError | DeviceMemoryError) or case.memory_limit is None:
        return None
    what = str(error).strip() or "no more could be had"
    return f"{case.implementation_name} exceeded its memory limit of {_words(case)}: {what}"


def may_be_the_limit(case: Case) -> str:
    """Return what to add to the way in which a case's process ended; empty without a limit."""
    if case.memory_limit is None:
        return ""
    return f"; its memory limit is {_words(case)}, and some libraries crash where they get no more"


def _words(case: Case) -> str:
    return f"{(case.memory_limit or 0) / 2**20:,.4g} MiB"
