"""The labelled times: what each runs, how it is sampled, and what is undone before a sample."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from gpubench.backends.protocol import LoopSampler, Sampler
from gpubench.measure.cold_start import ColdStartSampler
from gpubench.measure.execution import Execution

MOST_RUNS = 1_000_000
"""Runs in one sample of a call that takes next to no time."""
MOST_LAUNCHES = 100
"""Launches in one sample of ``launch``: a full queue (1,024 launches on CUDA) would make the host
wait for the device."""


@dataclass(frozen=True, slots=True)
class LabelledTime:
    """One of the labelled times, bound to an execution."""

    sampler: Callable[[bool], Sampler]
    """Makes a sampler for the arrays as they lie now; ``True``: not the first one of the case."""
    restore: Callable[[], None]
    """Untimed, before every sample."""
    move: Callable[[], None] = lambda: None
    """Puts the arrays of the call elsewhere in memory, untimed, before every round. Nothing where
    each run has arrays of its own."""
    most_runs: int = MOST_RUNS
    """Most runs in one sample."""
    dear: bool = False
    """Whether a single run takes so long that none is tried before the first sample."""


def kernel(execution: Execution) -> LabelledTime:
    """Inputs resident to outputs resident: the headline."""
    return LabelledTime(_by_the_device(execution), execution.restore, execution.move)


def cold(execution: Execution) -> LabelledTime:
    """``kernel`` with the last-level cache evicted before the run: one run a sample."""

    def restore() -> None:
        execution.restore()
        execution.session.flush()
        execution.session.synchronize()

    return LabelledTime(_by_the_device(execution), restore, execution.move, most_runs=1)


def end_to_end(execution: Execution) -> LabelledTime:
    """Host arrays to host arrays: allocate, copy, run, copy back."""

    def work() -> object:
        native = execution.upload()
        returned = execution.bind(native)()
        return execution.download(native), returned

    return LabelledTime(lambda _: _host_loop(work), execution.restore)


def transfer(execution: Execution) -> LabelledTime:
    """The copies alone, both ways."""

    def work() -> object:
        return execution.download(execution.upload())

    return LabelledTime(lambda _: _host_loop(work), execution.restore)


def launch(execution: Execution) -> LabelledTime:
    """The call until it returns on the host, the device not waited for."""
    return LabelledTime(
        lambda _: _host_loop(execution.call), execution.restore, execution.move, MOST_LAUNCHES
    )


def compilation(execution: Execution) -> LabelledTime:
    """First call in a fresh process with disk caches off, less a steady call."""
    sampler = ColdStartSampler(execution.case)
    return LabelledTime(lambda _: sampler, lambda: None, most_runs=1, dear=True)


LABELLED_TIMES: dict[str, Callable[[Execution], LabelledTime]] = {
    "kernel": kernel,
    "end_to_end": end_to_end,
    "transfer": transfer,
    "launch": launch,
    "compile": compilation,
    "cold": cold,
}
"""How to take each time of ``gpubench.names.TIMES``."""


def _by_the_device(execution: Execution) -> Callable[[bool], Sampler]:
    """By the session's own way of timing its call."""

    def sampler(again: bool) -> Sampler:
        session = execution.session
        return (session.sampler_again if again else session.sampler)(execution.call)

    return sampler


def _host_loop(work: Callable[[], object]) -> LoopSampler:
    return LoopSampler(time.perf_counter, work)
