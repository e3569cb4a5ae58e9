"""Rounds on a device in a process of its own, so that a lost device ends one case only."""

from __future__ import annotations

import multiprocessing
import signal
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self

from gpubench.measure.direct import Job, Measured, take_round
from gpubench.measure.paired import Opponent
from gpubench.measure.preparation import case_record
from gpubench.plan.lookup import case_at, locate
from gpubench.plan.subject import HOME
from gpubench.record import CaseRecord

START_UP = 60.0
"""Seconds that a process may take to start, before the first case's timeout begins."""

READY = "ready"

Request = tuple[dict[str, Any], str, tuple[dict[str, Any], str] | None, int | None]
"""A job in plain values: a case is found again in its suite file."""


class Bench:
    """Takes rounds: those of CPU cases in this process, those of other devices in a worker.

    The worker is kept from case to case, because starting one and opening a device takes seconds.
    It is replaced when a case fails in it (a device may be lost), crashes it, or runs out of time.
    """

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker, whatever it is doing."""
        if self._process is not None and self._connection is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
        self._process = self._connection = None

    def take(self, job: Job) -> Measured:
        """One round. What goes wrong is in the record."""
        if _at_home(job):
            return take_round(job)
        measured = self._ask(job)
        if measured.record.status not in ("ok", "verified", "skipped", "wrong"):
            self.close()
        return measured

    def _ask(self, job: Job) -> Measured:
        try:
            connection = self._connected()
            connection.send(_request(job))
            if not connection.poll(job.timeout):
                return Measured(_timed_out(job))
            answer: Measured = connection.recv()
        except TimeoutError as error:
            return Measured(_failed(job, str(error)))
        except (EOFError, OSError):
            reason = f"its process ended without an outcome (exit code {self._exit_code()})"
            return Measured(_failed(job, reason))
        return answer

    def _connected(self) -> Connection:
        if self._connection is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
            if not self._connection.poll(START_UP):
                raise TimeoutError(f"no process started within {START_UP:g} s")
            self._connection.recv()
        return self._connection

    def _exit_code(self) -> int | None:
        if self._process is None:
            return None
        self._process.join(timeout=1)
        return self._process.exitcode


def serve(connection: Connection) -> None:
    """The worker: takes rounds until nobody asks any more. Ctrl-C is for the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection.send(READY)
    while True:
        try:
            request: Request = connection.recv()
        except EOFError:
            return
        connection.send(take_round(_job(request)))


def _at_home(job: Job) -> bool:
    devices = {job.case.device}
    if job.opponent is not None:
        devices.add(job.opponent.case.device)
    return devices == {HOME}


def _request(job: Job) -> Request:
    opponent = job.opponent
    paired = None if opponent is None else (locate(opponent.case), opponent.time)
    return locate(job.case), job.time, paired, job.samples


def _job(request: Request) -> Job:
    place, time, paired, samples = request
    opponent = None if paired is None else Opponent(case_at(paired[0]), paired[1])
    return Job(case_at(place), time, opponent, samples)


def _timed_out(job: Job) -> CaseRecord:
    reason = (
        f"stopped by its timeout of {job.timeout:g} s; "
        "raise `timeout` under `sampling`, or make the case smaller"
    )
    return replace(case_record(job.case, job.time, "timed_out"), reason=reason)


def _failed(job: Job, reason: str) -> CaseRecord:
    return replace(case_record(job.case, job.time, "failed"), reason=reason)
