"""Two commits of the project, each in an environment of asv's, measured process by process.

asv makes the environments, checks out, builds and installs, as for ``asv run``; both commits stay
installed beside each other, and a side can be given another commit. Their folders have names of the
same length, as a path's length moves what lies in memory. Suites are those of the working tree,
kernels those of each commit. Processes are started by asv's own code, so that a commit with another
release of gpubench is measured too: what both sides share is asv's protocol and the record. Nothing
is kept among asv's results.
"""

from __future__ import annotations

import json
import math
import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpubench.environment import environment
from gpubench.errors import GpubenchError
from gpubench.measure.conditions import why_stopped
from gpubench.measure.direct import Job, Measured
from gpubench.measure.in_turn import Bench
from gpubench.measure.installing import (
    ATTRIBUTES,
    ENVIRONMENT_FOLDERS,
    CommitInstaller,
    CommitSide,
    Say,
    installer_of,
    last_lines,
    quiet_asv,
    take_lines,
)
from gpubench.measure.observers.turns import PIPES
from gpubench.measure.outcomes import case_record
from gpubench.processes import how_it_ended
from gpubench.record import CaseRecord, RoundsRecord, RunRecord
from gpubench.statuses import RecordedStatus

MAX_TURNS = 4096
"""Turns that a process is left when the other has ended: more than samples in one process, and no
more than a pipe takes at once (``PIPE_BUF``)."""

MIN_TIMEOUT_SECONDS = 0.1
"""Limit of a process for which no time is left: asv takes 0 for no limit."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """How one process ended."""

    outcome: Measured
    is_cut: bool
    """Whether the time that was left ended it."""
    has_no_server: bool
    """Whether the server that it was forked from ended with it."""


class TwoCommits(Bench):
    """Two commits whose processes can be taken in turn; a ``Bench``."""

    def __init__(
        self,
        sides: Sequence[CommitSide],
        installer: CommitInstaller,
        launch_method: str | None = None,
    ) -> None:
        """Start processes by a launch method of asv's, else as the installer's configuration says.

        Two are alive at once where asv's servers start each with the variables of its side. What
        asv starts by ``spawn`` has those of this process.
        """
        self.sides = [*sides]
        self._installer = installer
        self._launch_method = launch_method or installer.config.launch_method
        self.is_alternating = self._launch_method == "forkserver"
        self._spawners: list[Any] = []

    def put_in_place(self, side: int, label: str) -> CommitSide:
        """Install another commit in the environment of a side. Raises ``NotInstalled``, and then
        nothing is there."""
        self.close()
        commit = self._installer.describe(label, ENVIRONMENT_FOLDERS[side])
        self._installer.install(commit)
        self.sides[side] = commit
        return commit

    def has_job(self, side: int, job: Job) -> bool:
        """Return whether a side has a case."""
        return self.sides[side].find(job) is not None

    def begin_round(self) -> None:
        """Start new servers, from which asv forks processes, where it has servers: forks of one
        server lie alike in memory, and that would favour one side in all pairs."""
        from gpubench.asv_code import runner, util

        self.close()
        config = self._installer.config
        method = self._launch_method or "auto"
        for side in self.sides:
            with environment(side.variables), quiet_asv():
                try:
                    spawner = runner.get_spawner(side.environment, config.benchmark_dir, method)
                except (util.UserError, RuntimeError) as error:
                    raise GpubenchError(f"no process starts for {side.label}: {error}") from error
            self._spawners.append(spawner)
        with ThreadPoolExecutor(len(self.sides)) as threads:
            imports = [*threads.map(lambda spawner: spawner.preimport(), self._spawners)]
        for side, (imported, words) in zip(self.sides, imports, strict=True):
            if not imported:
                raise GpubenchError(
                    f"the benchmarks cannot be imported at {side.label} ({side.commit[:8]}):\n"
                    f"{last_lines(words)}"
                )

    def close(self) -> None:
        """End the servers, and what they measure."""
        for spawner in self._spawners:
            spawner.interrupted = True  # else it prints what its processes have printed
            spawner.close()
        self._spawners = []

    def take(self, side: int, job: Job, seconds_left: float = math.inf) -> Measured | None:
        """Measure a job in one process of a side; ``None`` where the time that is left ended it."""
        with environment(self.sides[side].variables), quiet_asv():
            ended = self._run(side, job, seconds_left)
            if ended.has_no_server:
                self.begin_round()
        return None if ended.is_cut else ended.outcome

    def take_together(
        self, job: Job, is_reversed: bool, seconds_left: float = math.inf
    ) -> list[Measured] | None:
        """Measure a job in a process of each side, both alive: their samples take turns.

        A process that ends leaves its turns to the other. ``None`` where the time that is left
        ended one.
        """
        pipes = self._installer.make_pipes(PIPES[is_reversed])

        def run(side: int) -> _Ended:
            try:
                return self._run(side, job, seconds_left, waits=True)
            finally:
                os.write(pipes[1 - side], b"." * MAX_TURNS)

        try:
            with quiet_asv(), ThreadPoolExecutor(len(self.sides)) as threads:
                running = [threads.submit(run, side) for side in range(len(self.sides))]
                try:
                    both = [one.result() for one in running]
                except BaseException:
                    self.close()  # else the threads wait for processes that nobody wants
                    raise
        finally:
            for pipe in pipes:
                os.close(pipe)
        if any(ended.has_no_server for ended in both):
            self.begin_round()
        return None if any(ended.is_cut for ended in both) else [ended.outcome for ended in both]

    def _run(self, side: int, job: Job, seconds_left: float, *, waits: bool = False) -> _Ended:
        """Run one process to its end. One that waits for another has the time of both."""
        from gpubench.asv_code import util

        of, spawner = self.sides[side], self._spawners[side]
        found = of.find(job)
        assert found is not None  # only jobs that both sides have are taken
        benchmark, number = found
        limit = benchmark.get("timeout") or self._installer.config.default_benchmark_timeout
        limit *= 1 + waits
        has_no_server = False
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder, "result.json")
            try:
                printed, code = spawner.run(
                    name=f"{benchmark['name']}-{number}",
                    params_str=json.dumps(dict(ATTRIBUTES)),
                    profile_path="None",
                    result_file_name=str(result),
                    timeout=max(min(limit, seconds_left), MIN_TIMEOUT_SECONDS),
                    cwd=folder,
                )
            except (util.UserError, OSError, RuntimeError) as error:  # the server has ended with it
                has_no_server = True
                printed, code = str(error), -signal.SIGKILL
            samples: tuple[float, ...] = ()
            with suppress(OSError, ValueError, TypeError, KeyError):  # none where it failed
                samples = tuple(map(float, json.loads(result.read_text())["samples"]))
        return _Ended(
            self._outcome(of, job, samples, printed, code, limit),
            is_cut=seconds_left < limit and code == util.TIMEOUT_RETCODE,
            has_no_server=has_no_server,
        )

    def _outcome(
        self,
        side: CommitSide,
        job: Job,
        samples: Sequence[float],
        printed: str,
        code: int,
        limit: float,
    ) -> Measured:
        """Return what a process put on record; where it ended before, how it did."""
        from gpubench.asv_code import util

        last: CaseRecord | None = None
        rounds: RoundsRecord | None = None
        for line in take_lines(side):
            if isinstance(line, RunRecord):
                side.run = line
            elif isinstance(line, RoundsRecord):
                rounds = line
            elif isinstance(line, CaseRecord) and (last is None or last.status != "wrong"):
                last = line
        record = last or case_record(job.case, job.time, "started")
        taken = rounds.rounds if rounds and rounds.rounds else samples
        if code == util.TIMEOUT_RETCODE:
            record = replace(record, status="timed_out", reason=why_stopped(limit))
        elif record.status in ("started", "ok") and not (code == 0 and taken):
            how = how_it_ended(code) if code else "it gave no time"
            status: RecordedStatus = "failed" if code >= 0 else "killed"
            words = (f"its process ended without an outcome ({how})", last_lines(printed, 1))
            record = replace(record, status=status, reason=": ".join(filter(None, words)))
        elif record.status == "started":  # a release that kept no record
            record = replace(record, status="ok")
        if record.status != "ok":
            return Measured(record)
        each_round = tuple((seconds,) for seconds in taken)
        return Measured(record, (each_round,), (rounds.disturbance if rounds else None,))


@contextmanager
def two_commits(
    labels: tuple[str, str],
    work: Sequence[Job],
    environment_name: str | None = None,
    preset: str | None = None,
    say: Say = lambda words: None,
) -> Iterator[TwoCommits]:
    """Install two commits, each in an environment of its own, for these jobs.

    Raises ``GpubenchError`` where there is no configuration of asv, git does not know a commit, or
    an environment cannot be made.
    """
    with (
        installer_of(work, environment_name, preset, say) as installer,
        sides_of(installer, labels) as bench,
    ):
        yield bench


@contextmanager
def sides_of(installer: CommitInstaller, labels: tuple[str, str]) -> Iterator[TwoCommits]:
    """Install two commits beside each other. Raises ``GpubenchError`` as ``two_commits``."""
    pairs = zip(labels, ENVIRONMENT_FOLDERS, strict=True)
    sides = [installer.describe(label, folder) for label, folder in pairs]
    for side in sides:
        installer.install(side)
    bench = TwoCommits(sides, installer)
    try:
        yield bench
    finally:
        bench.close()
