"""Takes each sample in turn with another process, for ``compare --measure`` and ``since``.

These commands start a process of each commit at once. Only one of both processes works at any
moment: a process has the turn from the begin of one sample to the begin of its next, and
waits for the other's. So two samples that are compared lie milliseconds apart, and other work on
the machine meets both (duet benchmarking: Bulej, Horky, Tuma, Farquet and Prokopec, *Duet
benchmarking: improving measurement accuracy in the cloud*, ICPE 2020).

A turn is a byte in the process's own pipe. As soon as one process has ended, the command puts many
turns into the pipe of the other.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.measure.observers.protocol import Observer

if TYPE_CHECKING:
    from gpubench.measure.case_run import CaseRun

TURNS_VARIABLE = "GPUBENCH_TURNS"
"""Environment variable: the path of the process's own pipe; that of the other lies beside it."""

PIPES = ("0", "1")
"""Names of the pipes, by side."""

FIRST_FILE = "first"
"""File beside them with the name of the pipe whose process takes the first sample."""


class TurnsObserver(Observer):
    """Wait before each sample until it is this process's turn."""

    _pipes: tuple[int, int] | None = None
    """This process's own, and the other's."""

    def on_sample_begin(self, run: CaseRun) -> None:
        """Give the turn to the other process, and wait for the next turn. Before its first sample
        only the second process gives a turn: the first process begins."""
        own = os.environ.get(TURNS_VARIABLE)
        if own is None:
            return
        gives = True
        if self._pipes is None:
            path = Path(own)
            other = path.with_name(PIPES[path.name == PIPES[0]])
            # Both ways, so that neither opening nor writing waits for the other process.
            self._pipes = os.open(path, os.O_RDWR), os.open(other, os.O_RDWR)
            gives = path.with_name(FIRST_FILE).read_text() != path.name
        mine, its = self._pipes
        if gives:
            os.write(its, b".")
        os.read(mine, 1)

    def on_finish(self, run: CaseRun) -> None:
        """Close the pipes."""
        for pipe in self._pipes or ():
            os.close(pipe)
        self._pipes = None
