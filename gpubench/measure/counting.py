"""What one run of a case counted on the device in software."""

from __future__ import annotations

from gpubench.backends.devices import is_cuda
from gpubench.backends.software import counts_model, machine_code
from gpubench.measure.bound_case import BoundCase
from gpubench.record import ORDER_DEPENDENT, CountsRecord
from gpubench.work.counting import (
    MachineCode,
    counts_record,
    difference_between,
    machine_code_of,
)


def code_of(bound: BoundCase) -> MachineCode:
    """Return the machine code of what a verified case launched on the device in software."""
    return machine_code_of(bound.launches or (), machine_code)


def counts_of(bound: BoundCase) -> CountsRecord | None:
    """Return what the run of a verified case counted; ``None`` where nothing was counted.

    A case whose parts run on several devices has none: they share the work by measured speed. One
    that counts otherwise in another order of threads has that as the reason.
    """
    case, launches = bound.case, bound.launches
    if launches is None or not (bound.session.simulated and is_cuda(case.device)):
        return None
    benchmark = case.benchmark("kernel").asv_name
    model, again = counts_model(), bound.launches_in_another_order
    record = counts_record(benchmark, case.identity, model, launches)
    if again is None or record.missing is not None:
        return record
    other = counts_record(benchmark, case.identity, model, again)
    difference = other.missing or difference_between(record.totals, other.totals)
    if difference is None:
        return record
    return CountsRecord(benchmark, case.identity, model, f"{ORDER_DEPENDENT}: {difference}")
