"""What an observer is: one method for each event of a run, which does nothing by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpubench.measure.case_run import CaseRun

EVENTS = (
    "on_begin",
    "on_verify",
    "on_size",
    "on_prepare",
    "on_warm_up",
    "on_round_begin",
    "on_sample_begin",
    "on_sample_end",
    "on_round_end",
    "on_check",
    "on_finish",
    "on_close",
    "on_record_change",
)
"""Methods of an observer, in the order of a run."""


class Observer:
    """Watch one case run: one labelled time of one case, in one process.

    ``asv run`` and ``gpubench time`` call the same methods in the same order. No method is called
    between two readings of a sample's clock. Each case run has an observer of its own, which may
    keep what it sees in attributes. What it finds goes on record by ``run.put(...)``.

    An exception ends the case, which has no time then.
    """

    origin: str | None = None
    """Where an observer of another package comes from; ``None`` for those of gpubench."""

    def on_begin(self, run: CaseRun) -> None:
        """See a run that begins: nothing is drawn, opened or computed yet."""

    def on_verify(self, run: CaseRun) -> None:
        """See a case whose outputs are right; its sample is sized next."""

    def on_size(self, run: CaseRun) -> None:
        """See a case whose sample has its number of runs.

        What is measured beside the time is measured here.
        """

    def on_prepare(self, run: CaseRun) -> None:
        """Put more on record of a case that is ready, before its line is written."""

    def on_warm_up(self, run: CaseRun) -> None:
        """See a case that is warm: the first sample comes next."""

    def on_round_begin(self, run: CaseRun, number: int) -> None:
        """See a round begin, by its number from 0: the arrays lie where they stay in it."""

    def on_sample_begin(self, run: CaseRun) -> None:
        """See a sample begin: this is the last that happens before it."""

    def on_sample_end(self, run: CaseRun, seconds: float) -> None:
        """See a sample end, which took so many ``seconds`` for one run.

        One that other work disturbed is taken again before it ends.
        """

    def on_round_end(self, run: CaseRun, number: int) -> None:
        """See a round end; what its samples queued on a device is done."""

    def on_check(self, run: CaseRun) -> None:
        """See that outputs are right after the last sample, or after each that may be the last."""

    def on_finish(self, run: CaseRun) -> None:
        """See the end of sampling: every sample is taken, and the arrays are still there."""

    def on_close(self, run: CaseRun) -> None:
        """See the end of a run, also of one that failed: the device is free."""

    def on_record_change(self, run: CaseRun) -> None:
        """See a new ``run.record``: the case has begun, is ready, has an outcome, or has more."""
