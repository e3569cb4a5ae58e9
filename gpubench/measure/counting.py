"""What one run of a case counted on the device in software."""

from __future__ import annotations

from gpubench.backends.devices import is_cuda
from gpubench.backends.software import counts_model
from gpubench.measure.execution import Execution
from gpubench.record import CountsRecord
from gpubench.work.counting import counts_record


def counts_of(execution: Execution) -> CountsRecord | None:
    """Return what the run of a verified case counted; ``None`` where nothing was counted.

    A case whose parts run on several devices has none: they share the work by measured speed.
    """
    case, launches = execution.case, execution.launches
    if launches is None or not (execution.session.simulated and is_cuda(case.device)):
        return None
    benchmark = case.benchmark("kernel").asv_name
    return counts_record(benchmark, case.identity, counts_model(), launches)
