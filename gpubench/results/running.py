"""Runs of asv that are at work: what they have not finished was not killed.

A run is known by asv's process number and the moment at which it began (``AsvSettings.run``). It is
at work where this host has a process of that number which is no younger: numbers are given again,
but only to processes that begin later. Elsewhere than on Linux no run is known to be at work.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpubench.names import Value
from gpubench.results.appended import count_finished
from gpubench.results.model import Running
from gpubench.results.reading import SnapshotFiles
from gpubench.results.records import RUN
from gpubench.results.unfinished import begun

CLOCK_SECONDS = 2.0
"""By which a process may seem younger than the run that it began: a run's moment is rounded, and
the system's clock is set now and then."""

FILTERS = ("-b", "--bench", "-k", "--skip-existing")
"""Options of asv that leave out benchmarks, or what has results."""


@dataclass(frozen=True, slots=True)
class _Process:
    began: float
    """Seconds since 1970."""
    arguments: tuple[str, ...]


def running(
    files: SnapshotFiles, facts: Mapping[str, Value | None], planned: int | None
) -> Running | None:
    """Return how far the run is that measures a snapshot now; ``None`` where none does.

    ``planned`` is how many cases the project has, which a run without a filter measures.
    """
    run = facts.get(RUN)
    if files.record is None or _is_stored(files) or facts.get("host") != platform.node():
        return None
    number, moment = str(run).partition("-")[0], begun(run)
    process = _process(number) if number.isdecimal() and moment else None
    if process is None or process.began > moment + CLOCK_SECONDS:
        return None
    is_filtered = any(argument.startswith(FILTERS) for argument in process.arguments)
    finished = count_finished(files.record, run)
    is_whole = planned is not None and planned >= finished and not is_filtered
    return Running(moment, finished, planned if is_whole else None)


def _is_stored(files: SnapshotFiles) -> bool:
    """Return whether asv has stored a result since the last line of the record: it does so when a
    commit's benchmarks are done, and goes on with the next commit."""
    result_changed, record_changed = files.moments
    return result_changed >= record_changed


def _process(number: str) -> _Process | None:
    """Return a process of this host; ``None`` where there is none, or the system does not tell."""
    folder = Path("/proc", number)
    try:
        # The name, in parentheses, may hold anything.
        fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        arguments = (folder / "cmdline").read_text(errors="replace").split("\0")
        booted = next(
            float(line.split()[1])
            for line in Path("/proc/stat").read_text().splitlines()
            if line.startswith("btime")
        )
        if fields[0] in "ZX":  # it has ended, and nobody has asked how
            return None
        ticks = int(fields[19])  # proc_pid_stat(5): starttime is the 22nd field
        return _Process(booted + ticks / os.sysconf("SC_CLK_TCK"), tuple(arguments))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
