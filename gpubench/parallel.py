"""The same function over many things, in several processes where that saves time."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import select
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")
R = TypeVar("R")

CHUNKS = 4
"""For each process: enough that none waits long for the last one."""


def spread(
    function: Callable[[Sequence[T]], list[R]], items: Sequence[T], processes: int | None = None
) -> Iterator[R]:
    """What ``function`` gives for parts of ``items``, joined in their order.

    Both have to be picklable. New processes import what they need, which takes about as long as a
    second of work: the caller decides whether there is more. ``processes`` is by default one for
    each processor that this process may use; with one, and where processes cannot be started, the
    work is done here.
    """
    count = processes or processors()
    if count == 1 or len(items) < 2:
        yield from function(items)
        return
    size = -(-len(items) // (count * CHUNKS))
    parts = [items[start : start + size] for start in range(0, len(items), size)]
    done: list[list[R]] = []
    context = multiprocessing.get_context("spawn")
    with suppress(OSError, BrokenExecutor), ProcessPoolExecutor(count, context) as pool:
        done.extend(pool.map(function, parts))
    for found in done:
        yield from found
    for part in parts[len(done) :]:
        yield from function(part)


def share(
    function: Callable[[Sequence[T]], list[R]], items: Sequence[T], processes: int | None = None
) -> list[R]:
    """The same in forks of this process, for work of tenths of a second: see ``Fork``."""
    count = min(processes or processors(), len(items)) if _can_fork() else 1
    parts = [items[start::count] for start in range(count)]
    results: list[Any] = [None] * len(items)
    with ExitStack() as stack:
        forks = [stack.enter_context(Fork(partial(function, part))) for part in parts[1:]]
        for start, part in enumerate(parts):
            results[start::count] = forks[start - 1].result() if start else function(part)
    return results


class Fork(Generic[R]):
    """A fork of this process that does some work; a context manager that ends it.

    It begins with all that this process has in memory: nothing is imported again, and only results
    and errors have to be picklable. Where there are no forks the work is done here, when its result
    is asked for, and also that of one that is killed.
    """

    def __init__(self, work: Callable[[], R]) -> None:
        self._work = work
        self._process = self._outcome = 0

    def __enter__(self) -> Self:
        if not _can_fork():
            return self
        self._outcome, writing = os.pipe()
        try:
            with warnings.catch_warnings():
                # Threads, of NumPy's BLAS for example, do not go on in a fork: it waits for none.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._process = os.fork()
        except OSError:  # no memory or no process left
            os.close(self._outcome)
        else:
            if self._process == 0:
                os.close(self._outcome)
                self._tell(writing)
        os.close(writing)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            os.close(self._outcome)  # one that still writes ends of it
            os.waitpid(self._process, 0)
            self._process = 0

    @property
    def is_done(self) -> bool:
        """Whether it begins to tell its result, so that asking for it takes no long wait."""
        return not self._process or bool(select.select([self._outcome], [], [], 0)[0])

    def result(self) -> R:
        """Wait for it, once; raises what was raised in it."""
        if not self._process:
            return self._work()
        with open(self._outcome, "rb", closefd=False) as outcome:
            told = outcome.read()
        try:
            found, error = pickle.loads(told)
        except Exception:  # nothing was told, or an error that cannot be made again
            return self._work()
        if error is not None:
            raise error
        result: R = found
        return result

    def _tell(self, writing: int) -> None:
        """What the fork does: never returns, and leaves alone what the other process has open."""
        try:
            try:
                told = pickle.dumps((self._work(), None))
            except Exception as error:
                told = pickle.dumps((None, error))
            with open(writing, "wb") as outcome:
                outcome.write(told)
        finally:
            os._exit(0)


def _can_fork() -> bool:
    """On macOS, what the system's libraries started does not outlive a fork."""
    return hasattr(os, "fork") and sys.platform != "darwin"


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
