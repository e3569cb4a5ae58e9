"""The labelled times: what each runs, how it is sampled, what is undone before a sample, and
whether batches of runs may be timed: not where one takes another time on what those before left."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter

from gpubench.backends.protocol import LoopSampler, Sampler
from gpubench.measure.bound_case import BoundCase
from gpubench.measure.cold_start import ColdStartSampler
from gpubench.measure.sampling import MOST_RUNS, CaseSampler

MOST_LAUNCHES = 100
"""Launches in one sample of ``launch``: a full queue (1,024 launches on CUDA) would make the host
wait for the device."""

MATTERS = 1.05
"""Factor between the two from which a batch is no time of the first run. It is the difference that
two commits have to show (``docs/measurement.md``). Where the arrays lie and what is left in cache
moves single runs by a few percent, however alike the two states are made."""

PAIRS = 20
"""Single runs in each state. So many are taken only where they agree: a few are enough to see that
they do not."""
DISSENT = 2
"""Pairs that may say otherwise. If half of all pairs lay on either side of 1, 18 of 20 would agree
in 0.04 % of cases (sign test: Conover, *Practical Nonparametric Statistics*, section 3.4). With 1 %
a suite of a thousand cases would have ten that are taken for something that they are not; the 11
pairs that 1 % needs bear no disturbed one."""


def kernel(bound: BoundCase) -> CaseSampler:
    """Measure from inputs resident to outputs resident: the headline."""
    return _on_resident(bound, bound.sampler)


def cold(bound: BoundCase) -> CaseSampler:
    """``kernel`` with the last-level cache evicted before the run: one run a sample."""

    def refresh() -> None:
        bound.refresh()
        bound.session.flush()
        bound.session.synchronize()

    return CaseSampler(bound.sampler, refresh, bound.move, most_runs=1)


def end_to_end(bound: BoundCase) -> CaseSampler:
    """Host arrays to host arrays: allocate, copy, run, copy back what is written or returned."""

    def work() -> object:
        native = bound.upload()
        results = bound.results(bound.bind(native)())
        fetched = [bound.fetched_result(*result) for result in results.items()]
        return bound.download(native), fetched

    return CaseSampler(lambda _: LoopSampler(perf_counter, work), bound.restore)


def transfer(bound: BoundCase) -> CaseSampler:
    """Return the copies alone, both ways; what a call would make and return is not there to be
    fetched. Tables go to the device and the same ones back."""

    def work() -> object:
        native = bound.upload()
        returned = filter(native.__contains__, bound.case.implementation.returns)
        there_and_back = (*returned, *bound.inputs.tables)
        fetched = [bound.fetched_result(name, native[name]) for name in there_and_back]
        return bound.download(native), fetched

    return CaseSampler(lambda _: LoopSampler(perf_counter, work), bound.restore)


def launch(bound: BoundCase) -> CaseSampler:
    """Return the call until it returns on the host, the device not waited for."""

    def sampler(_: bool) -> Sampler:
        return LoopSampler(perf_counter, bound.call)

    return _on_resident(bound, sampler, MOST_LAUNCHES)


def _on_resident(
    bound: BoundCase, sampler: Callable[[bool], Sampler], most_runs: int = MOST_RUNS
) -> CaseSampler:
    """Run on arrays that stay in place: each run finds the values that the run before left."""
    return CaseSampler(
        sampler,
        bound.restore,
        bound.move,
        refresh=bound.refresh,
        leftover_ratio=partial(leftover_ratio, bound),
        most_runs=most_runs,
    )


def leftover_ratio(bound: BoundCase, sampler: Sampler, runs: int) -> float | None:
    """Seconds of a run on what a batch of ``runs`` left, over those of one on fresh inputs.

    ``None`` where that is alike, or where nothing is written. In a batch, a kernel that sorts in
    place sorts from the second run on what is sorted, and one that looks whether its output holds
    the result already has nothing left to do. So single runs are timed in two states that differ
    in data alone: fresh inputs, with poison in ``out`` arrays, and what a whole batch left in the
    arrays that are written. Both are put in place by the same copies right before the run, outside
    of its time, so that caches and transfers are alike. Which is first alternates.
    """
    if not bound.changing:
        return None
    fresh = bound.putter(bound.fresh())
    fresh()
    # An odd number: after an even one, a kernel that undoes itself has what it began with.
    sampler.seconds(runs + 1 - runs % 2)
    leftover = bound.putter(bound.left())

    def seconds(put: Callable[[], None]) -> float:
        put()
        return sampler.seconds(1)

    ratios: list[float] = []
    for pair in range(PAIRS):
        if pair % 2:
            first, later = seconds(fresh), seconds(leftover)
        else:
            later, first = seconds(leftover), seconds(fresh)
        ratios.append(later / first if first > 0 else 1.0)
        not_longer = sum(ratio < MATTERS for ratio in ratios)
        not_shorter = sum(ratio > 1 / MATTERS for ratio in ratios)
        if min(not_longer, not_shorter) > DISSENT:
            return None
    return median(ratios)


def _fresh(time: str, bound: BoundCase) -> CaseSampler:
    """Return what a fresh process takes."""
    sampler = ColdStartSampler(bound.case, time)
    return CaseSampler(lambda _: sampler, lambda: None, most_runs=1, dear=True)


LABELLED_TIMES: dict[str, Callable[[BoundCase], CaseSampler]] = {
    "kernel": kernel,
    "end_to_end": end_to_end,
    "transfer": transfer,
    "launch": launch,
    "compile": partial(_fresh, "compile"),
    "cold": cold,
    "start": partial(_fresh, "start"),
}
"""How to take each time of ``gpubench.names.TIMES``."""
