"""The same function over many things, in several processes where that saves time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import chain, islice
from multiprocessing import forkserver, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from gpubench.environment import environment

T = TypeVar("T")
R = TypeVar("R")

SAFE_PATH = "PYTHONSAFEPATH"
"""Python's environment variable for its option ``-P``."""

WAITING = 3
"""Parts and results in memory for each process, at most: the part at work, the next part, and a
result that the caller has not taken yet."""

MAX_STOPPING_SECONDS = 5.0
"""Seconds until a process is killed that should stop: by then it hangs in a part, such as a kernel
that never returns, and does not write a result."""

HAS_FORK_SERVER = "forkserver" in multiprocessing.get_all_start_methods()
"""Whether processes can be forked from one that does nothing else."""


def in_processes(
    function: Callable[[T], R], parts: Iterable[T], processes: int | None = None
) -> Iterator[R]:
    """Yield what ``function`` gives for each part, in their order.

    Parts, results and the function go to new processes and back. These import what they need, which
    takes half a second, unless ``start_fork_server`` had it imported: the caller decides whether
    there is more to do.
    ``processes`` is by default one for each processor that this process may use. With one, for a
    single part, and where processes cannot be started or are killed, the work is done here.
    """
    rest, processes = iter(parts), processes or processors()
    first = [*islice(rest, 2)]
    rest = chain(first, rest)
    waiting: deque[tuple[T, Future[R] | None]] = deque()
    if len(first) > 1 and processes > 1:
        with (
            suppress(OSError, BrokenExecutor),
            without_working_folder(),
            _new(processes) as pool,
            _stopped_on_the_way(pool),
        ):
            for part in rest:
                waiting.append((part, None))  # which starting a process may raise for
                with _ctrl_c_later():
                    waiting[-1] = part, pool.submit(_work, function, part)
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
    # No forks of this process: they would share locks that threads of it may hold.
    start_fork_server()
    context: Any = multiprocessing.get_context("forkserver" if HAS_FORK_SERVER else "spawn")
    return ProcessPoolExecutor(processes, context, _begin, (Path.cwd(), dict(os.environ)))


def _begin(folder: Path, variables: Mapping[str, str]) -> None:
    """Have another process work in the folder of this process, and end when this process ends in
    any way."""
    signal.signal(signal.SIGINT, _stop)
    os.chdir(folder)  # else that is where multiprocessing was imported
    os.environ.clear()  # of the fork server, which may have started long ago
    os.environ.update(variables)
    threading.Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


_at_work, _is_stopped = False, False
"""Of another process: whether it works on a part, and whether it should on no more of them."""


def _work(function: Callable[[T], R], part: T) -> R:
    global _at_work
    _at_work = True
    try:
        if _is_stopped:
            raise KeyboardInterrupt
        return function(part)
    finally:
        _at_work = False


def _stop(*_: object) -> None:
    # Not anywhere: half a result in the pipe would be waited for for ever.
    global _is_stopped
    _is_stopped = True
    if _at_work:
        raise KeyboardInterrupt


@contextmanager
def _stopped_on_the_way(pool: ProcessPoolExecutor) -> Iterator[None]:
    """Have processes that are started meanwhile stop where it does not come to its end, since the
    executor waits for what they do."""
    before = {*multiprocessing.active_children()}
    try:
        yield
    except BaseException:
        with ctrl_c_is_ours():  # which the user may have pressed twice
            pool.shutdown(wait=False, cancel_futures=True)
            patience = time.monotonic() + MAX_STOPPING_SECONDS
            while processes := {*multiprocessing.active_children()} - before:
                for process in processes:
                    if time.monotonic() > patience:
                        process.kill()
                    elif sys.platform != "win32" and process.pid:  # which has no signals
                        with suppress(ProcessLookupError):
                            os.kill(process.pid, signal.SIGINT)
                time.sleep(0.05)
        raise


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def start_fork_server(
    module: str | None = None, variables: Mapping[str, str] | None = None
) -> None:
    """Start the process that others are forked from, unless this process has one or the system has
    none; it imports the module first. Returns before it has imported anything."""
    if not HAS_FORK_SERVER:
        return
    if module:
        multiprocessing.get_context("forkserver").set_forkserver_preload([module])
    with without_working_folder(), environment(variables or {}), ctrl_c_is_ours():
        forkserver.ensure_running()


@contextmanager
def ctrl_c_is_ours() -> Iterator[None]:
    """Start processes inside the block with Ctrl-C ignored: this process gets Ctrl-C and ends
    them."""
    with _on_ctrl_c(signal.SIG_IGN):
        yield


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Ctrl-C that is pressed meanwhile counts afterwards: a process that starts would not find what
    the executor has made for it, and say so."""
    pressed: list[int] = []
    with _on_ctrl_c(lambda number, _: pressed.append(number)):
        yield
    if pressed:
        raise KeyboardInterrupt


@contextmanager
def _on_ctrl_c(handler: signal.Handlers | Callable[[int, Any], object]) -> Iterator[None]:
    """Ctrl-C that is pressed meanwhile comes to the handler."""
    if threading.current_thread() is not threading.main_thread():  # only there it can be set
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def without_working_folder() -> AbstractContextManager[None]:
    """Have processes of Python that are started meanwhile not look for modules in the working
    folder first, as ``python -c``, by which multiprocessing starts them, does: not even the
    standard library's would be safe from a file of the same name there."""
    return environment({SAFE_PATH: "1"})


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
