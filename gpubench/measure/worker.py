"""A process for what could crash, hang or lose a device: that ends one case only."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any, Literal

from gpubench.backends.software import build_ahead, requested, switched_on
from gpubench.environment import environment
from gpubench.errors import GpubenchError
from gpubench.parallel import HAS_FORK_SERVER, ctrl_c_is_ours, start_fork_server
from gpubench.processes import how_it_ended
from gpubench.temporary import remove_abandoned

MAX_PROCESS_START_SECONDS = 300.0
"""Seconds that a process may take to start, before the first item's own limit begins. Imports take
two of a processor's seconds, and a minute where twenty others ask for it."""

PRELOADED = "GPUBENCH_PRELOADED"
"""Environment variable that names the backends for ``gpubench.measure.preloaded``."""


class Unanswered(GpubenchError):
    """There is no answer; the message says why."""

    def __init__(
        self,
        reason: str,
        status: Literal["killed", "failed", "timed_out"],
        likely_cause: str | None = None,
    ) -> None:
        """``killed``: the process ended. ``failed``: what an item calls asked Python to end.
        ``likely_cause``: of a time-out, where something is known that makes processes wait."""
        super().__init__(reason)
        self.status, self.likely_cause = status, likely_cause


FORKED_AFTER_OPENMP = (
    "its process forked after a parallel function of Numba's had started OpenMP there. GNU's "
    "OpenMP ends such a fork, and a pool waits for it for ever: start processes by `spawn`, before "
    "the first parallel function, or with NUMBA_THREADING_LAYER=workqueue"
)
"""https://numba.readthedocs.io/en/stable/user/threading-layer.html#extra-notes"""


class Worker:
    """A process of its own that answers for one item after another: with ``do(item)``.

    After one without an answer another process takes its place. ``do``, which may keep something
    from item to item, the items and the answers have to be picklable.

    A process is forked in some hundredths of a second from one that has imported what all need,
    what the ``backends`` of these names preload too. The device in software does not survive a
    fork: there, and where the system has none, each process imports that itself.
    """

    def __init__(
        self,
        do: Callable[[Any], Any],
        *,
        backends: Iterable[str] = (),
        in_software: bool = False,
        is_fresh: bool = False,
        warned: Counter[str] | None = None,
    ) -> None:
        """Start the process. ``warned`` counts Python's warnings, each once for an item; none is
        shown.

        ``is_fresh``: the process is not forked, and has imported nothing with other settings.
        """
        self._do = do
        self._warned = Counter() if warned is None else warned
        self._in_software = in_software or requested()
        if in_software and not requested():  # else this process has started it
            build_ahead()
        self._forks = HAS_FORK_SERVER and not (self._in_software or is_fresh)
        get_ready(backends, in_software=not self._forks)
        self._limit = self.deadline = 0.0
        """By ``time.monotonic``, of the present item."""
        self._start()

    def _start(self) -> None:
        """Return before the process is ready, so that several can start side by side."""
        context: Any = multiprocessing.get_context("forkserver" if self._forks else "spawn")
        self._connection, theirs = context.Pipe()
        with (
            switched_on() if self._in_software else nullcontext(),
            nullcontext() if self._forks else ctrl_c_is_ours(),
        ):
            # A fork server keeps the environment that it started with.
            self._forked = context.RawValue("b", 0)
            arguments = theirs, self._do, dict(os.environ), self._forked
            # Not a daemon: functions of suites may start processes of their own.
            self._process = context.Process(target=_serve, args=arguments, daemon=False)
            self._process.start()
        theirs.close()
        self._is_ready = self._is_late = False

    def give(self, item: Any, limit: float) -> None:
        """Let the process work on this for ``limit`` seconds.

        A process that does not start, or has ended since, says so when it is asked for an answer.
        """
        self._limit, self.deadline = limit, monotonic()
        with suppress(OSError, EOFError):
            if not self._is_ready:
                if not self._connection.poll(MAX_PROCESS_START_SECONDS):
                    self._is_late = True
                    return
                self._connection.recv()
                self._is_ready = True
            self._connection.send(item)
        self.deadline = monotonic() + limit

    def answer(self) -> Any:
        """Wait for the answer, until the deadline; raises ``Unanswered`` where there is none."""
        if self._is_late:
            self.replace()
            reason = f"no process started within {MAX_PROCESS_START_SECONDS:g} s"
            raise Unanswered(reason, "killed")
        if not wait(self.signs, max(0.0, self.deadline - monotonic())):
            cause = FORKED_AFTER_OPENMP if self._forked.value else None
            self.replace()
            raise Unanswered(f"it took longer than {self._limit:g} s", "timed_out", cause)
        with suppress(EOFError, OSError):
            if self._connection.poll():  # what has ended may have answered before
                answer, exited, warned = self._connection.recv()
                self._warned.update(warned)
                if exited is None:
                    return answer
                self.replace()
                raise Unanswered(exited, "failed")
        self._process.join(timeout=1)
        code = self._process.exitcode
        how = "it closed its connection" if code is None else how_it_ended(code)
        self.replace()
        raise Unanswered(f"its process ended without an outcome ({how})", "killed")

    def replace(self) -> None:
        """Go on with the next item in another process."""
        self.end()
        self._start()

    def replace_in_software(self) -> None:
        """Go on in another process, which runs the device in software."""
        self._in_software, self._forks = True, False
        self.replace()

    def end(self) -> None:
        """End the process, whatever it is doing, and those that it started; remove the folders of
        systems that it could not remove itself."""
        with suppress(OSError, AttributeError):  # it ended by itself; Windows has no groups
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self._connection.close()
        remove_abandoned()

    @property
    def signs(self) -> tuple[Connection, int]:
        """What ``multiprocessing.connection.wait`` waits for: an answer, and the process's end.
        The end alone is not seen in the connection, which a process that was forked in it holds."""
        return self._connection, self._process.sentinel


def get_ready(backends: Iterable[str], *, in_software: bool = False) -> None:
    """Start the process that workers are forked from, where they are: it imports on another core
    what all need while this process goes on. A worker that is made before waits for it."""
    if not HAS_FORK_SERVER:
        return
    _start_tracker()
    if not (in_software or requested()):
        preloaded = {PRELOADED: " ".join(sorted(set(backends)))}
        start_fork_server("gpubench.measure.preloaded", preloaded)


def answering(workers: Sequence[Worker]) -> list[Worker]:
    """Wait for workers that have an answer, have ended or took too long, and return them."""
    soonest = min(worker.deadline for worker in workers) - monotonic()
    ready = wait([sign for worker in workers for sign in worker.signs], max(0.0, soonest))
    return [
        worker
        for worker in workers
        if any(sign in ready for sign in worker.signs) or worker.deadline <= monotonic()
    ]


def _start_tracker() -> None:
    """multiprocessing's own process that removes what was left. It would warn of each lock in a
    process that was killed, and from Python 3.14 on Numba has one with a name."""
    quiet = {"PYTHONWARNINGS": "ignore::UserWarning:multiprocessing.resource_tracker"}
    with environment(quiet), ctrl_c_is_ours():
        resource_tracker.ensure_running()


def _serve(
    connection: Connection, do: Callable[[Any], Any], environment: dict[str, str], forked: Any
) -> None:
    """Run items in the process until the connection closes. ``forked`` is set where the process
    forks after OpenMP has started in it."""

    def note_fork() -> None:
        forked.value = "numba.np.ufunc.omppool" in sys.modules

    if hasattr(os, "register_at_fork"):  # Windows has no fork
        os.register_at_fork(before=note_fork)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(environment)
    # As in any program.
    multiprocessing.set_start_method(None, force=True)
    with suppress(OSError):
        os.dup2(2, 1)  # what functions print is no part of the results
    itself = os.getpid()
    with suppress(OSError, AttributeError):
        os.setpgid(0, 0)  # what functions start ends with this process
    connection.send("ready")
    with suppress(EOFError):
        while True:
            item, answer, exited = connection.recv(), None, None
            with warnings.catch_warnings(record=True) as caught:
                try:
                    answer = do(item)
                except (SystemExit, KeyboardInterrupt) as error:  # not of ours: see above
                    exited = f"{type(error).__name__}: {error}".removesuffix(": ")
            if os.getpid() != itself:  # a process that the function forked and let return
                os._exit(0)
            connection.send((answer, exited, set(map(_words, caught))))
    with suppress(OSError, AttributeError):  # nobody is there who would end what it started
        os.killpg(itself, signal.SIGKILL)


def _words(warning: warnings.WarningMessage) -> str:
    """Kind and first line of a warning: Numba's have many lines, with codes of terminals."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(warning.message)).strip()
    return f"{warning.category.__name__}: {(*text.splitlines(), 'no message')[0]}"
