"""The same function over many things, in several processes where that saves time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, suppress
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from gpubench.environment import environment

T = TypeVar("T")
R = TypeVar("R")

SAFE_PATH = "PYTHONSAFEPATH"
"""Python's environment variable for its option ``-P``."""


def in_processes(
    function: Callable[[T], R],
    parts: Iterable[T],
    processes: int | None = None,
    *,
    ahead: int = 2,
) -> Iterator[R]:
    """What ``function`` gives for each part, in their order.

    Parts, results and the function go to new processes and back, but for what is done in this one.
    These import what they need, which takes about as long as a second of work: the caller decides
    whether there is more. ``processes`` counts this one, and is by default one for each processor
    that it may use. With one, for a single part, and where processes cannot be started, all is done
    here. No more parts and results wait in memory than three for each other process, and one.
    ``ahead`` parts at most are given to each other process, with the one that it works on: one
    where parts take so long that none should wait there while this process has none.
    """
    rest, others = iter(parts), (processes or processors()) - 1
    first = [*islice(rest, 2)]
    rest = chain(first, rest)
    waiting: deque[T] = deque()
    futures: deque[Future[R]] = deque()

    def results(most: int) -> Iterator[R]:
        """Those that are there, and more until no more than so many are waited for."""
        while futures and (futures[0].done() or len(futures) > most):
            result = futures.popleft().result()
            waiting.popleft()
            yield result

    if len(first) > 1 and others:
        # New processes: a fork would share locks that threads of this one may hold.
        with (
            suppress(OSError, BrokenExecutor),
            without_working_folder(),
            # They would begin where multiprocessing was imported.
            ProcessPoolExecutor(others, get_context("spawn"), os.chdir, (Path.cwd(),)) as pool,
        ):
            for part in rest:
                # Each other process has its parts. Meanwhile this one does its own.
                waiting.append(part)
                if sum(not future.done() for future in futures) < ahead * others:
                    futures.append(pool.submit(function, part))
                else:
                    futures.append(Future())
                    futures[-1].set_result(function(part))
                yield from results(3 * others)
            yield from results(0)
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
