"""What a case may hold of memory at most.

That is counted beyond what stands before a run, inputs included. A limit is the system's own
(``RLIMIT_DATA``): what asks for more than that gets none, and Python raises ``MemoryError``.
It is on memory that can be written and is no file's, used or not, of one process; workers of a
cluster have limits of their own (``options: {memory: ...}``).
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gpubench.backends import registry
from gpubench.backends.protocol import DeviceMemoryError
from gpubench.errors import GpubenchError
from gpubench.measure import watcher
from gpubench.plan.case import Case


class MemoryLimitError(GpubenchError):
    """A case ran into the limit of its suite; no fault of either."""


def trim() -> None:
    """Give back to the system what allocators keep of memory that is free."""
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

    trim()  # what is free already would be had besides
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
    limit = _words(case.memory_limit)
    return f"{case.implementation_name} exceeded its memory limit of {limit}: {what}"


def may_be_the_limit(case: Case) -> str:
    """Return what to add to the way in which a case's process ended; empty without a limit."""
    if case.memory_limit is None:
        return ""
    limit = _words(case.memory_limit)
    return f"; its memory limit is {limit}, and some libraries crash where they get no more"


def _words(limit: int) -> str:
    return f"{limit / 2**20:,.4g} MiB"
