"""The same function over many things, in several processes where that saves time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, suppress
from itertools import chain, islice
from multiprocessing import get_context
from typing import TypeVar

from gpubench.environment import environment

T = TypeVar("T")
R = TypeVar("R")

SAFE_PATH = "PYTHONSAFEPATH"
"""Python's environment variable for its option ``-P``."""


def in_processes(
    function: Callable[[T], R], parts: Iterable[T], processes: int | None = None
) -> Iterator[R]:
    """What ``function`` gives for each part, in their order.

    Parts, results and the function go to new processes and back. These import what they need,
    which takes about as long as a second of work: the caller decides whether there is more.
    ``processes`` is by default one for each processor that this process may use. With one, for a
    single part, and where processes cannot be started, the work is done here. No more parts and
    results wait in memory than there are processes, and one.
    """
    rest = iter(parts)
    first = [*islice(rest, processes or processors())]
    rest = chain(first, rest)
    waiting: deque[T] = deque()
    if len(first) > 1:
        # New processes: a fork would share locks that threads of this one may hold.
        with (
            suppress(OSError, BrokenExecutor),
            without_working_folder(),
            ProcessPoolExecutor(len(first), get_context("spawn")) as pool,
        ):
            futures: deque[Future[R]] = deque()
            for part in rest:
                waiting.append(part)
                futures.append(pool.submit(function, part))
                if len(waiting) > len(first):
                    result = futures.popleft().result()
                    waiting.popleft()
                    yield result
            while futures:
                result = futures.popleft().result()
                waiting.popleft()
                yield result
    for part in chain(waiting, rest):
        yield function(part)


def without_working_folder() -> AbstractContextManager[None]:
    """Processes of Python that are started meanwhile do not look for modules in the working folder
    first, as ``python -c``, by which multiprocessing starts them, does: not even the standard
    library's would be safe from a file of the same name there."""
    return environment({SAFE_PATH: "1"})


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
