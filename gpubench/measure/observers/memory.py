"""The memory that a case's arrays and one of its runs hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpubench.measure.memory import peak_bytes
from gpubench.measure.observers.protocol import Observer

if TYPE_CHECKING:
    from gpubench.measure.case_run import CaseRun


class MemoryObserver(Observer):
    """Put on record the bytes of the arrays, the limit, and where the suite asks the peak."""

    def on_prepare(self, run: CaseRun) -> None:
        """Put the bytes of the arrays and the limit on record."""
        limit = run.case.memory_limit
        limited = {"memory_limit_bytes": limit} if limit else {}
        run.put(conditions={"array_bytes": run.nbytes, **limited})

    def on_finish(self, run: CaseRun) -> None:
        """Watch some runs that are not timed, for the most memory that one holds."""
        if run.time != "kernel" or not run.case.kernel.sampling.memory:
            return
        bound = run.bound

        def call() -> None:
            bound.call()
            bound.session.synchronize()

        bound.refresh()
        peak = bound.session.peak_bytes(call)
        run.put(peak_bytes=peak_bytes(run.case, call) if peak is None else peak)
