"""Count cases at one commit after another, each installed in an environment of asv's.

A server of asv's imports the commit's benchmarks. Where the environment asks for it, that counts
the cases before any is measured (``count_ahead``, ``verify_ahead``), and counts go on record: what
counts is the commit's own gpubench and Numba, on the commit's code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing

from gpubench.backends.devices import is_cuda
from gpubench.backends.software import COUNT_SWITCH, SWITCH
from gpubench.errors import GpubenchError
from gpubench.measure.cpu_counting import is_counted_on_cpu, why_not_with_one_thread
from gpubench.measure.direct import Job
from gpubench.measure.installing import ENVIRONMENT_FOLDERS, CommitInstaller, CommitSide, take_lines
from gpubench.measure.observers.turns import TURNS_VARIABLE
from gpubench.measure.two_commits import TwoCommits
from gpubench.names import CPU
from gpubench.plan.case import Case
from gpubench.record import CountsRecord

NO_COUNTS = "its release of gpubench put no counts of the case on record"
NO_CASE = "it does not have the case"


def countable_jobs(cases: Sequence[Case]) -> list[Job]:
    """Return a job for each case of which work can be counted: Numba's on the CPU with one thread,
    and CUDA's on the device in software. Raises ``GpubenchError`` where there is none."""
    jobs = [
        Job(case, case.group.times[0])
        for case in cases
        if case.group.times and (_is_on_cpu(case) or is_cuda(case.device))
    ]
    if not jobs:
        backends = ", ".join(sorted({case.backend for case in cases}))
        raise GpubenchError(
            "--counts counts Numba's code on the CPU with one thread, and CUDA kernels in "
            f"software: these cases run on {backends}. Name others, or leave --counts out"
        )
    return jobs


def _is_on_cpu(case: Case) -> bool:
    return is_counted_on_cpu(case) and why_not_with_one_thread(case) is None


class CommitCounter:
    """Counts jobs at one commit after another, in one environment."""

    def __init__(self, installer: CommitInstaller, jobs: Sequence[Job]) -> None:
        """Count these jobs; nothing is installed yet."""
        self._installer, self._jobs = installer, jobs
        names = ((job.case.benchmark(job.time).asv_name, job.case.identity) for job in jobs)
        self._patterns = [f"^{re.escape(f'{name}({case!r})')}$" for name, case in names]
        self._switches = {COUNT_SWITCH: CPU}
        if any(is_cuda(job.case.device) for job in jobs):
            self._switches[SWITCH] = "1"

    def count(self, commit: str) -> Mapping[int, CountsRecord | str]:
        """Return the counts of each job at a commit by the job's place, or why it has none.

        Raises ``GpubenchError`` where the commit cannot be installed or its benchmarks cannot be
        imported.
        """
        side = self._installer.describe(commit, ENVIRONMENT_FOLDERS[1], self._patterns)
        # Nobody takes turns here, and a process would wait for its turn for ever.
        kept = {name: value for name, value in side.variables.items() if name != TURNS_VARIABLE}
        side.variables = kept | self._switches
        self._installer.install(side)
        with closing(TwoCommits([side], self._installer, "forkserver")) as bench:
            bench.begin_round()
            counted = {
                (line.benchmark, line.case): line
                for line in take_lines(side)
                if isinstance(line, CountsRecord)
            }
            return {
                place: counted.get(_key(job)) or _why_not(bench, side, job)
                for place, job in enumerate(self._jobs)
            }


def _key(job: Job) -> tuple[str, str]:
    return job.case.benchmark("kernel").asv_name, job.case.identity


def _why_not(bench: TwoCommits, side: CommitSide, job: Job) -> str:
    """Return why a case has no counts: a process of its own says what is wrong with it."""
    if side.find(job) is None:
        return NO_CASE
    outcome = bench.take(0, job)
    if outcome is None or outcome.record.status in ("ok", "verified"):
        return NO_COUNTS
    return f"{outcome.record.status}: {outcome.record.reason}"
