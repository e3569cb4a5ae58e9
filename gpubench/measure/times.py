"""The labelled times: what each runs, how it is sampled, and what is undone before a sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpubench.backends.host import HostClock
from gpubench.backends.protocol import Sampler
from gpubench.backends.sampler import LoopSampler
from gpubench.measure.cold_start import ColdStartSampler
from gpubench.measure.execution import Execution

MOST_RUNS = 1_000_000
MOST_LAUNCHES = 100
"""Launches in one sample of ``launch``: a full queue would make the host wait for the device."""


@dataclass(frozen=True, slots=True)
class LabelledTime:
    """One of the labelled times, bound to an execution."""

    sampler: Sampler
    restore: Callable[[], None]
    """Untimed, before every sample."""
    most_runs: int = MOST_RUNS
    """Most runs in one sample."""


def kernel(execution: Execution) -> LabelledTime:
    """Inputs resident to outputs resident: the headline."""
    return LabelledTime(execution.session.sampler(execution.call), execution.restore)


def cold(execution: Execution) -> LabelledTime:
    """``kernel`` with the last-level cache evicted before the run: one run a sample."""
    session = execution.session

    def restore() -> None:
        execution.restore()
        session.flush()
        session.synchronize()

    sampler = session.sampler(execution.call)
    restore()
    sampler.seconds(1)  # what the sampler says of itself is then about one run, cold
    return LabelledTime(sampler, restore, most_runs=1)


def end_to_end(execution: Execution) -> LabelledTime:
    """Host arrays to host arrays: allocate, copy, run, copy back."""

    def work() -> object:
        native = execution.upload()
        returned = execution.bind(native)()
        return execution.download(native), returned

    return LabelledTime(_host_loop(work), execution.restore)


def transfer(execution: Execution) -> LabelledTime:
    """The copies alone, both ways."""

    def work() -> object:
        return execution.download(execution.upload())

    return LabelledTime(_host_loop(work), execution.restore)


def launch(execution: Execution) -> LabelledTime:
    """The call until it returns on the host, the device not waited for."""
    return LabelledTime(_host_loop(execution.call), execution.restore, MOST_LAUNCHES)


def compilation(execution: Execution) -> LabelledTime:
    """First call in a fresh process with disk caches off, less a steady call."""
    return LabelledTime(ColdStartSampler(execution.case), lambda: None, most_runs=1)


LABELLED_TIMES: dict[str, Callable[[Execution], LabelledTime]] = {
    "kernel": kernel,
    "end_to_end": end_to_end,
    "transfer": transfer,
    "launch": launch,
    "compile": compilation,
    "cold": cold,
}
"""How to take each time of ``gpubench.names.TIMES``."""


def _host_loop(work: Callable[[], object]) -> LoopSampler:
    return LoopSampler(HostClock(), work, "host loop")
