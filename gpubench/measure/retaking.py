"""Samples that other work disturbed are taken again, where there is time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from gpubench.measure.disturbance import (
    CROWDED,
    OTHERS,
    WAITED,
    CoreUse,
    Counters,
    core_use,
    counters,
    others,
    ran,
    waited,
)
from gpubench.measure.sampling import CaseSampler, SamplePlan
from gpubench.record import Disturbance


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample that was watched."""

    seconds: float
    """Of one run."""
    waiting: float | None
    """Seconds of all threads together; ``None`` where the system does not say."""
    share: float
    """Of the sample's time that it waited for others; 0 where it did not."""

    @property
    def is_disturbed(self) -> bool:
        return self.share > WAITED


class Watch:
    """Watches the samples of one process, and has disturbed ones taken again."""

    def __init__(
        self,
        again: int,
        seconds: float,
        *,
        earlier: CoreUse | None = None,
        counters: Callable[[], Counters] = counters,
        core_use: Callable[[], CoreUse] = core_use,
    ) -> None:
        """So many samples may be taken ``again``, in so many seconds together. ``earlier`` is asked
        for what others do while the watch has not lasted long enough to tell."""
        self._left, self._seconds = again, seconds
        self._counters, self._core_use = counters, core_use
        self._before = core_use()
        self._earlier = earlier or self._before
        self._again = 0
        self._samples: list[Sample] = []

    def sample(self, take: Callable[[], float], restore: Callable[[], None]) -> float:
        """Seconds of one run, from the sample that ``take`` takes: while it is disturbed and others
        may be taken, again after ``restore``. What waited least counts. Time does not decide, as
        the shortest would be too short."""
        best = self._watched(take)
        while best.is_disturbed and self._left > 0 and self._seconds > 0:
            start = time.perf_counter()
            restore()
            best = min(best, self._watched(take), key=lambda one: one.share)
            self._left -= 1
            self._again += 1
            self._seconds -= time.perf_counter() - start
        self._samples.append(best)
        return best.seconds

    def disturbance(self) -> Disturbance | None:
        """Return what others did to the samples so far; ``None`` where nothing is known."""
        after = self._core_use()
        if not self._samples or any(one.waiting is None for one in self._samples):
            return None
        used = self._others(after)
        crowded = used is not None and used > CROWDED * after.cores
        # One is taken again only while all that were taken in its place have waited too.
        disturbed = self._again + sum(one.is_disturbed for one in self._samples)
        return Disturbance(
            disturbed=1.0 if crowded else disturbed / (self._again + len(self._samples)),
            waiting=tuple(round(one.waiting or 0.0, 6) for one in self._samples),
            again=self._again,
        )

    def _watched(self, take: Callable[[], float]) -> Sample:
        before = self._counters()
        seconds = take()
        after = self._counters()
        waiting = waited(before, after)
        if waiting is None:
            return Sample(seconds, None, 0.0)
        share = waiting / max(after.at - before.at, 1e-9)
        if share > WAITED and len(ran(before, after)) > 1:
            now = self._core_use()
            used = self._others(now)
            if used is None or used <= OTHERS * now.cores:
                share = 0.0
        return Sample(seconds, waiting, share)

    def _others(self, now: CoreUse) -> float | None:
        used = others(self._before, now)
        return others(self._earlier, now) if used is None else used


def watch_samples(sampler: CaseSampler, plan: SamplePlan, earlier: CoreUse | None = None) -> Watch:
    """Watch the samples of one process from now on.

    As many as are planned may be taken again, in half of the time that the plan leaves. The other
    half is for what else asv's timeout is over. What a device times waits for no core. ``earlier``:
    as of ``Watch``.
    """
    samples = plan.samples(sampler.sample_seconds)
    left = (plan.seconds - samples * sampler.sample_seconds) / 2
    watch = Watch(samples, left, earlier=earlier)
    sampler.take = watch.sample
    return watch
