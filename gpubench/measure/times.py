"""The labelled times: what each runs, how it is sampled, and what is undone before a sample."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter

from gpubench.backends.protocol import LoopSampler, Sampler
from gpubench.measure.cold_start import ColdStartSampler
from gpubench.measure.execution import Execution
from gpubench.measure.leftovers import leftover_ratio
from gpubench.measure.sampling import MOST_RUNS, Measurement

MOST_LAUNCHES = 100
"""Launches in one sample of ``launch``: a full queue (1,024 launches on CUDA) would make the host
wait for the device."""


def kernel(execution: Execution) -> Measurement:
    """Inputs resident to outputs resident: the headline."""
    return _on_resident(execution, execution.sampler)


def cold(execution: Execution) -> Measurement:
    """``kernel`` with the last-level cache evicted before the run: one run a sample."""

    def refresh() -> None:
        execution.refresh()
        execution.session.flush()
        execution.session.synchronize()

    return Measurement(execution.sampler, refresh, execution.move, most_runs=1)


def end_to_end(execution: Execution) -> Measurement:
    """Host arrays to host arrays: allocate, copy, run, copy back what is written or returned."""

    def work() -> object:
        native = execution.upload()
        results = execution.results(execution.bind(native)())
        fetched = [execution.fetched_result(*result) for result in results.items()]
        return execution.download(native), fetched

    return Measurement(lambda _: LoopSampler(perf_counter, work), execution.restore)


def transfer(execution: Execution) -> Measurement:
    """The copies alone, both ways; what a call would make and return is not there to be fetched.
    Tables go to the device and the same ones back."""

    def work() -> object:
        native = execution.upload()
        returned = filter(native.__contains__, execution.case.implementation.returns)
        there_and_back = (*returned, *execution.inputs.tables)
        fetched = [execution.fetched_result(name, native[name]) for name in there_and_back]
        return execution.download(native), fetched

    return Measurement(lambda _: LoopSampler(perf_counter, work), execution.restore)


def launch(execution: Execution) -> Measurement:
    """The call until it returns on the host, the device not waited for."""

    def sampler(_: bool) -> Sampler:
        return LoopSampler(perf_counter, execution.call)

    return _on_resident(execution, sampler, MOST_LAUNCHES)


def _on_resident(
    execution: Execution, sampler: Callable[[bool], Sampler], most_runs: int = MOST_RUNS
) -> Measurement:
    """Runs on arrays that stay where they are, so that one finds what the one before left."""
    return Measurement(
        sampler,
        execution.restore,
        execution.move,
        refresh=execution.refresh,
        leftover_ratio=partial(leftover_ratio, execution),
        most_runs=most_runs,
    )


def _fresh(time: str, execution: Execution) -> Measurement:
    """What a fresh process takes."""
    sampler = ColdStartSampler(execution.case, time)
    return Measurement(lambda _: sampler, lambda: None, most_runs=1, dear=True)


LABELLED_TIMES: dict[str, Callable[[Execution], Measurement]] = {
    "kernel": kernel,
    "end_to_end": end_to_end,
    "transfer": transfer,
    "launch": launch,
    "compile": partial(_fresh, "compile"),
    "cold": cold,
    "start": partial(_fresh, "start"),
}
"""How to take each time of ``gpubench.names.TIMES``."""
