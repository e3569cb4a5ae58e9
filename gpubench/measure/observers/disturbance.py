"""Has samples that other work disturbed taken again, and says how many there were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpubench.measure.observers.protocol import Observer

if TYPE_CHECKING:
    from gpubench.measure.case_run import CaseRun


class DisturbanceObserver(Observer):
    """Watch the samples of a run for other work on the machine (``measure/disturbance.py``)."""

    def on_prepare(self, run: CaseRun) -> None:
        """Watch from now on."""
        run.sampler.begin_watch(run.plan)

    def on_finish(self, run: CaseRun) -> None:
        """Keep what others did to the samples."""
        run.disturbance = run.sampler.disturbance
