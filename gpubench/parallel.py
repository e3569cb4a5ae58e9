"""The same function over many things, in several processes where that saves time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, suppress
from itertools import chain, islice
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from typing import TypeVar

from gpubench.environment import environment

T = TypeVar("T")
R = TypeVar("R")

SAFE_PATH = "PYTHONSAFEPATH"
"""Python's environment variable for its option ``-P``."""

WAITING = 3
"""Parts and results in memory for each process, at most: one that it works on, the next one, and
one that the caller comes to later."""


def in_processes(
    function: Callable[[T], R], parts: Iterable[T], processes: int | None = None
) -> Iterator[R]:
    """What ``function`` gives for each part, in their order.

    Parts, results and the function go to new processes and back. These import what they need, which
    takes about as long as a second of work: the caller decides whether there is more.
    ``processes`` is by default one for each processor that this process may use. With one, for a
    single part, and where processes cannot be started or are killed, the work is done here.
    """
    rest, processes = iter(parts), processes or processors()
    first = [*islice(rest, 2)]
    rest = chain(first, rest)
    waiting: deque[tuple[T, Future[R] | None]] = deque()
    if len(first) > 1 and processes > 1:
        with suppress(OSError, BrokenExecutor), without_working_folder(), _new(processes) as pool:
            for part in rest:
                waiting.append((part, None))  # which starting a process may raise for
                waiting[-1] = part, pool.submit(function, part)
                yield from _results(waiting, WAITING * processes)
            yield from _results(waiting, 0)
    for part in chain((part for part, _ in waiting), rest):
        yield function(part)


def _results(waiting: deque[tuple[T, Future[R] | None]], most: int) -> Iterator[R]:
    """Wait for the first ones, until no more than so many are left."""
    while len(waiting) > most and (future := waiting[0][1]):
        result = future.result()  # of one that is raised, the part is still there
        waiting.popleft()
        yield result


def _new(processes: int) -> ProcessPoolExecutor:
    # New processes: a fork would share locks that threads of this one may hold.
    return ProcessPoolExecutor(processes, get_context("spawn"), _begin, (Path.cwd(),))


def _begin(folder: Path) -> None:
    """In another process: work where this one does, and end when it ends, however that is."""
    os.chdir(folder)  # else that is where multiprocessing was imported
    Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


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
