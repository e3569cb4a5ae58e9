"""Has samples that other work disturbed taken again, and says how many there were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpubench.measure.disturbance import CoreUse, core_use
from gpubench.measure.observers.protocol import Observer
from gpubench.measure.retaking import Watch, watch_samples

if TYPE_CHECKING:
    from gpubench.measure.case_run import CaseRun


class DisturbanceObserver(Observer):
    """Watch the samples of a run for other work on the machine."""

    _earlier: CoreUse | None = None
    _watch: Watch | None = None

    def on_verify(self, run: CaseRun) -> None:
        """Note how the cores are used before the sample is sized."""
        self._earlier = core_use()

    def on_prepare(self, run: CaseRun) -> None:
        """Watch from now on."""
        self._watch = watch_samples(run.sampler, run.plan, self._earlier)

    def on_finish(self, run: CaseRun) -> None:
        """Keep what others did to the samples."""
        assert self._watch is not None
        run.disturbance = self._watch.disturbance()
