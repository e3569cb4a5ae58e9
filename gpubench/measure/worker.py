"""Processes for what could crash, hang or lose a device: that ends one case only."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self

from gpubench.backends.software import switched_on
from gpubench.measure.direct import Job, Measured, take_turn
from gpubench.measure.preparation import case_record
from gpubench.plan.case import HOME
from gpubench.record import Status

START_UP = 60.0
"""Seconds that a process may take to start, before the first case's own limit begins: imports take
ten on a busy machine."""

READY = "ready"


class Ended(Exception):
    """The process ended without an answer; the message says how."""


class Worker:
    """A process of its own that answers requests, one after another.

    ``start`` is called in it once, with ``arguments``, and returns what gives the answers to a
    request, of which there may be several. All of them have to be picklable.
    """

    def __init__(
        self,
        start: Callable[..., Callable[[Any], Iterable[Any]]],
        *arguments: Any,
        in_software: bool = False,
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_serve, args=(theirs, start, arguments), daemon=True
        )
        with switched_on() if in_software else nullcontext():
            self._process.start()
        theirs.close()
        self._is_ready = False

    def ask(self, request: Any) -> None:
        """Give it something to do. One that has ended says so when it is asked for an answer.

        Raises ``TimeoutError`` for a process that does not start.
        """
        with suppress(OSError, EOFError):
            if not self._is_ready:
                if not self.connection.poll(START_UP):
                    raise TimeoutError(f"no process started within {START_UP:g} s")
                self._is_ready = self.connection.recv() == READY
            self.connection.send(request)

    def answer(self, seconds: float) -> Any:
        """Wait for the next answer. Raises ``TimeoutError`` when the seconds are over, and
        ``Ended`` where the process ends before."""
        try:
            if self.connection.poll(max(0.0, seconds)):
                return self.connection.recv()
        except (EOFError, OSError):
            self._process.join(timeout=1)
            code = self._process.exitcode
            how = f"exit code {code}"
            if code is not None and code < 0:
                how = f"signal {signal.Signals(-code).name}"
            raise Ended(f"its process ended without an outcome ({how})") from None
        raise TimeoutError

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self.connection.close()


def _serve(
    connection: Connection,
    start: Callable[..., Callable[[Any], Iterable[Any]]],
    arguments: tuple[Any, ...],
) -> None:
    """The process: answers until nobody asks any more. Ctrl-C is for the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = start(*arguments)
    connection.send(READY)
    with suppress(EOFError):
        while True:
            for answer in answers(connection.recv()):
                connection.send(answer)


class Bench:
    """Takes turns of jobs: those of CPU cases in this process, those of other devices in a worker.

    The worker is kept from case to case, because starting one and opening a device takes seconds.
    It is replaced when a case fails in it (a device may be lost), crashes it, or runs out of time.
    """

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def take(self, job: Job) -> Measured:
        """One turn. What goes wrong is in the record."""
        devices = {job.case.device, job.opponent.case.device if job.opponent else HOME}
        if devices == {HOME}:
            return take_turn(job)
        measured = self._asked(job)
        if measured.record.status not in ("ok", "verified", "skipped", "wrong"):
            self._end()
        return measured

    def _asked(self, job: Job) -> Measured:
        try:
            if self._worker is None:
                self._worker = Worker(_turns)
            self._worker.ask(job)
        except TimeoutError as error:
            return _without_outcome(job, "failed", str(error))
        try:
            measured: Measured = self._worker.answer(job.timeout)
        except Ended as error:
            return _without_outcome(job, "failed", str(error))
        except TimeoutError:
            reason = (
                f"stopped by its timeout of {job.timeout:g} s; "
                "raise `timeout` under `sampling`, or make the case smaller"
            )
            return _without_outcome(job, "timed_out", reason)
        return measured

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.end()
        self._worker = None


def _turns() -> Callable[[Job], Iterator[Measured]]:
    """What a worker of a bench does."""
    return lambda job: iter((take_turn(job),))


def _without_outcome(job: Job, status: Status, reason: str) -> Measured:
    return Measured(replace(case_record(job.case, job.time, status), reason=reason))
