"""Whether a case computes what its baseline computes. A case that does not is never timed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpubench.backends import registry
from gpubench.backends.software import NAME, running_device
from gpubench.errors import GpubenchError, KernelError
from gpubench.measure.check import CheckResult, compare, difference, same_bits
from gpubench.measure.execution import Execution
from gpubench.measure.inputs import Inputs, poisoned
from gpubench.measure.targets import load_object, load_target
from gpubench.plan.case import Case

if TYPE_CHECKING:  # the device in software is imported only where it is asked for
    from gpubench.softcuda import Report

Array = np.ndarray[Any, Any]

MOST_FAULTS = 3
"""Faults of the device in software that a reason has room for."""


class VacuousCheckError(GpubenchError):
    """The baseline leaves every output as it found it, so that the check could not have failed."""


def expected_outputs(case: Case, inputs: Inputs) -> dict[str, Array]:
    """Outputs of the case's baseline on these inputs, computed on the baseline's own backend.

    Raises ``VacuousCheckError`` when the baseline wrote nothing that could be checked.
    """
    baseline = case.baseline() or case
    target = load_target(baseline)
    with registry.get(baseline.backend).open(baseline.device, baseline.threads) as session:
        return _written_outputs(Execution(session, baseline, target, inputs))


def verify(
    execution: Execution, baseline: Mapping[str, Array] | None, orders: Sequence[str] = ()
) -> CheckResult:
    """Run twice, ``out`` arrays poisoned before each run, and compare with the baseline's outputs.

    Without ``baseline`` the case is one itself, which is right by definition: its first outputs are
    what is expected, and it must write something (else ``VacuousCheckError``).

    Arrays that are only read must stay as they are. Two runs that differ within the tolerance give
    a warning: a reader should know that the last digits are not the same every time. ``orders`` are
    further ones of threads and blocks, to be run in on the device in software.
    """
    expected = _written_outputs(execution) if baseline is None else baseline
    specs = execution.case.array_specs()
    poison = {n: poisoned(expected[n], expected[n]) for n in specs if specs[n].intent == "out"}

    def run(fetch: Callable[[], Mapping[str, Array]]) -> dict[str, Array]:
        """Outputs of a run from the beginning."""
        execution.restore()
        execution.overwrite(poison)
        return _typed_like(fetch(), expected)

    first = dict(expected) if baseline is None else run(execution.outputs)
    result = _compared(execution, first, expected)
    if result.fault is None and (changed := execution.changed_inputs()):
        fault = (
            f"the run changed {', '.join(changed)}, which the suite declares to be read only; "
            "if that is meant, declare `intent: inout`"
        )
        result = replace(result, fault=fault)
    elif result.fault is None:
        again = run(execution.seen_outputs)
        if apart := difference(first, again):
            result = result.joined(_compared(execution, again, expected))
            if result.fault is None:
                warning = f"two runs differ: {apart} (atomics or a race)"
                result = replace(result, warnings=(warning,))
            else:
                never = ", or elements that it never writes" if baseline is None else ""
                why = f"a second run on the same inputs is wrong (a race{never}?)"
                result = replace(result, fault=f"{why}: {result.fault}")
    if orders:
        result = _in_orders(execution, run, first, result, expected, orders)
    execution.restore()
    return result


def _in_orders(
    execution: Execution,
    run: Callable[[Callable[[], Mapping[str, Array]]], Mapping[str, Array]],
    first: Mapping[str, Array],
    result: CheckResult,
    expected: Mapping[str, Array],
    orders: Sequence[str],
) -> CheckResult:
    """What runs in other orders of threads and blocks add to the result.

    One that is right in one order and wrong in another is a fault, as a device has none. One that
    is right in all and not the same is rounded in another order: a warning.
    """
    right = [] if result.fault else ["the first"]
    fault, apart = result.fault, None
    for order in orders:
        words = f"{order} order" if order.isalpha() else f"the order of seed {order}"
        set_order(order)
        again = run(execution.outputs)
        other = _compared(execution, again, expected)
        result = result.joined(other)
        fault = fault or (other.fault and f"in {words}: {other.fault}")
        right += [] if other.fault else [words]
        apart = apart or difference(first, again)
    if fault is not None and right:
        fault = f"depends on the order of threads (right in {right[0]}): {fault}"
    elif fault is None and apart is not None:
        warning = f"rounds differently in another order of threads: {apart}"
        return replace(result, warnings=(*result.warnings, warning))
    return replace(result, fault=fault)


def wrong_reason(case: Case, result: CheckResult, faults: Sequence[Report]) -> str | None:
    """Why a case is not right: its results, or what its device saw; ``None`` where it is."""
    reason = result.fault
    if reason is None:
        return with_faults("its results are right, and it has a fault", faults) if faults else None
    if case.baseline() is not None:
        reason = f"differs from the baseline {case.kernel.baseline!r}: {reason}"
    return with_faults(reason, faults)


def set_order(order: str) -> None:
    """Threads and blocks of later launches on the device in software run ``ascending``,
    ``descending`` or by a seed. Does nothing in a process that has not started it."""
    device = running_device()
    if device is not None:
        device.set("order", order)


def take_faults() -> tuple[Report, ...]:
    """Faults that the device in software saw since this was asked last, oldest first."""
    device = running_device()
    return () if device is None else tuple(device.reports())


def with_faults(reason: str, faults: Iterable[Report]) -> str:
    """A reason, and the faults behind it."""
    lines = [f"{NAME}: {fault}" for fault in faults]
    more = [f"and {len(lines) - MOST_FAULTS} more"] if len(lines) > MOST_FAULTS else []
    return "; ".join([reason, *lines[:MOST_FAULTS], *more])


def _written_outputs(execution: Execution) -> dict[str, Array]:
    """Outputs of a baseline's first run, whose ``out`` arrays were drawn as poison.

    At least one must differ from what the run started with.
    """
    outputs, arrays = execution.outputs(), execution.inputs.arrays
    for name, array in outputs.items():
        source = arrays.get(execution.aliases.get(name, name))
        # A result that is an array of the call may have another shape.
        same_size = source is not None and array.size == source.size
        if source is None or not same_size or not same_bits(array.reshape(source.shape), source):
            return outputs
    raise VacuousCheckError(
        f"vacuous check: the baseline {execution.case.implementation_name!r} leaves every output "
        f"as it found it (outputs: {', '.join(outputs) or 'none declared'}); give the arrays that "
        "it writes `intent: out` or `inout`, or name what it returns in `returns`"
    )


def _typed_like(outputs: Mapping[str, Array], expected: Mapping[str, Array]) -> dict[str, Array]:
    """The same, where a single number takes the reference's dtype if it is of the same kind:
    compiled functions return Python's numbers, which have no dtype of their own."""
    typed = dict(outputs)
    for name, array in outputs.items():
        reference = expected[name]
        if array.ndim == reference.ndim == 0 and array.dtype.kind == reference.dtype.kind:
            typed[name] = array.astype(reference.dtype)
    return typed


def _compared(
    execution: Execution, outputs: Mapping[str, Array], expected: Mapping[str, Array]
) -> CheckResult:
    check = execution.case.kernel.check
    if check.function is None:
        return compare(outputs, expected, check)
    checker = load_object(check.function)
    try:
        return compare(outputs, expected, check, checker)
    except Exception as error:
        raise KernelError(
            f"the check {check.function}(outputs, expected) failed: {type(error).__name__}: {error}"
        ) from error
