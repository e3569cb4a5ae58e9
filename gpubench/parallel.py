"""The same function over many things, in several processes where that saves time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
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

WAITING = 8
"""Parts and results in memory for each other process, at most: while one starts, this one reads
six parts of a report's results."""

_kept: list[ProcessPoolExecutor] | None = None
"""What ``processes_kept`` keeps, once it is started."""


def in_processes(
    function: Callable[[T], R], parts: Iterable[T], processes: int | None = None
) -> Iterator[R]:
    """What ``function`` gives for each part, in their order.

    Parts, results and the function go to new processes and back, but for what is done in this one.
    These import what they need, which takes about as long as a second of work: the caller decides
    whether there is more. ``processes`` counts this one, and is by default one for each processor
    that it may use. With one, for a single part, and where processes cannot be started, all is done
    here. No more parts and results wait in memory than ``WAITING`` for each other process, and two.
    """
    rest, others = iter(parts), (processes or processors()) - 1
    coming = deque(islice(rest, 2))
    waiting: deque[T] = deque()
    futures: deque[Future[R]] = deque()

    def results(most: int) -> Iterator[R]:
        """Those that are there, and more until no more than so many are waited for."""
        while futures and (futures[0].done() or len(futures) > most):
            result = futures.popleft().result()
            waiting.popleft()
            yield result

    if len(coming) > 1 and others:
        with suppress(OSError, BrokenExecutor), _others(others) as pool:
            try:
                while coming:
                    waiting.append(coming.popleft())
                    coming.extend(islice(rest, 1))
                    # Each other process has a part and the next one. Meanwhile this one does its
                    # own, and the last one, unless another has nothing to do.
                    most = 2 * others if coming else others
                    if sum(not future.done() for future in futures) < most:
                        futures.append(pool.submit(function, waiting[-1]))
                    else:
                        done: Future[R] = Future()
                        done.set_result(function(waiting[-1]))
                        futures.append(done)
                    # Two, since the others wait for parts while the caller is busy with results.
                    yield from islice(results(WAITING * others), 2)
                yield from results(0)
            finally:
                wait(futures)  # which may write where the caller cleans up
    for part in chain(waiting, coming, rest):
        yield function(part)


@contextmanager
def processes_kept() -> Iterator[None]:
    """The processes that the first ``in_processes`` starts meanwhile work for later ones, too."""
    global _kept
    _kept = []
    try:
        with without_working_folder():
            yield
    finally:
        end_kept()
        _kept = None


def end_kept() -> None:
    """These processes end, with what they have open. The next call starts others."""
    while _kept:
        _kept.pop().shutdown()


def are_ready() -> bool:
    """Whether there are other processes that need not be started."""
    return bool(_kept)


@contextmanager
def _others(number: int) -> Iterator[ProcessPoolExecutor]:
    """Those that are kept, or else so many new ones."""
    if _kept:
        yield _kept[0]
        return
    with without_working_folder():
        # New processes: a fork would share locks that threads of this one may hold.
        pool = ProcessPoolExecutor(number, get_context("spawn"), _begin, (Path.cwd(),))
        if _kept is not None:
            _kept.append(pool)
            yield pool
        else:
            with pool:
                yield pool


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
