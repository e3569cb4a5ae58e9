"""Whether a case computes what its baseline computes. A case that does not is never timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpubench.backends import registry
from gpubench.errors import GpubenchError, KernelError
from gpubench.measure.check import Comparison, compare, difference, same_bits
from gpubench.measure.execution import Execution
from gpubench.measure.inputs import Inputs, poisoned
from gpubench.measure.inspection import set_order
from gpubench.measure.targets import load_object, load_target
from gpubench.plan.case import Case

Array = np.ndarray[Any, Any]


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
    execution: Execution, expected: Mapping[str, Array], orders: Sequence[str] = ()
) -> Comparison:
    """Run twice, ``out`` arrays poisoned before each run, and compare with the baseline's outputs.

    Arrays that are only read must stay as they are. Two runs that differ within the tolerance give
    a warning: a reader should know that the last digits are not the same every time. ``orders`` are
    further ones of threads and blocks, to be run in on the device in software.
    """
    poison = _poison(execution, expected)
    _put(execution, poison)
    first = _typed_like(execution.outputs(), expected)
    found = _compared(execution, first, expected)
    found = _again(execution, first, found, expected, poison)
    return _in_orders(execution, first, found, expected, poison, orders)


def verify_baseline(execution: Execution, orders: Sequence[str] = ()) -> Comparison:
    """The same of a baseline, which is right by definition: it must write, leave alone what it only
    reads, and do so again.

    Raises ``VacuousCheckError`` when it wrote nothing that could be checked.
    """
    first = _written_outputs(execution)
    poison = _poison(execution, first)
    found = _again(execution, first, _compared(execution, first, first), first, poison)
    return _in_orders(execution, first, found, first, poison, orders)


def _written_outputs(execution: Execution) -> dict[str, Array]:
    """Outputs of a first run, whose ``out`` arrays were drawn as poison."""
    outputs = execution.outputs()
    _require_written(execution.case, execution.inputs, outputs, execution.aliases)
    return outputs


def _again(
    execution: Execution,
    first: Mapping[str, Array],
    found: Comparison,
    expected: Mapping[str, Array],
    poison: Mapping[str, Array],
) -> Comparison:
    """What a second run adds to what was found of the first."""
    if found.fault is not None:
        return found
    if changed := execution.changed_inputs():
        return replace(found, fault=_changed(changed))
    execution.restore()
    _put(execution, poison)
    again = _typed_like(execution.seen_outputs(), expected)
    apart = difference(first, again)
    if apart is not None:
        found = found.joined(_compared(execution, again, expected))
    execution.restore()
    if apart is None:
        return found
    if found.fault is not None:
        why = "a race?" if expected is not first else "a race, or elements that it never writes?"
        fault = f"a second run on the same inputs is wrong ({why}): {found.fault}"
        return replace(found, fault=fault)
    return replace(found, warnings=(f"two runs differ: {apart} (atomics or a race)",))


def _in_orders(
    execution: Execution,
    first: Mapping[str, Array],
    found: Comparison,
    expected: Mapping[str, Array],
    poison: Mapping[str, Array],
    orders: Sequence[str],
) -> Comparison:
    """What runs in other orders of threads and blocks add to what was found.

    A result that is right in one order and wrong in another is a fault, as a device has none. One
    that is right in all and not the same is rounded in another order: a warning.
    """
    if not orders:
        return found
    right = [] if found.fault else ["the first"]
    fault, apart = found.fault, None
    for order in orders:
        execution.restore()
        _put(execution, poison)
        set_order(order)
        again = _typed_like(execution.outputs(), expected)
        other = _compared(execution, again, expected)
        found = found.joined(other)
        fault = fault or (other.fault and f"in {_order_words(order)}: {other.fault}")
        right += [] if other.fault else [_order_words(order)]
        apart = apart or difference(first, again)
    execution.restore()
    if fault is not None and right:
        fault = f"depends on the order of threads (right in {right[0]}): {fault}"
    elif fault is None and apart is not None:
        said = f"rounds differently in another order of threads: {apart}"
        return replace(found, warnings=(*found.warnings, said))
    return replace(found, fault=fault)


def _order_words(order: str) -> str:
    return f"{order} order" if order.isalpha() else f"the order of seed {order}"


def _poison(execution: Execution, expected: Mapping[str, Array]) -> dict[str, Array]:
    """For each ``out`` array, values of which none is right."""
    specs = execution.case.array_specs()
    return {
        name: poisoned(expected[name], expected[name])
        for name, spec in specs.items()
        if spec.intent == "out"
    }


def _put(execution: Execution, arrays: Mapping[str, Array]) -> None:
    for name, array in arrays.items():
        execution.overwrite(name, array)


def _typed_like(outputs: Mapping[str, Array], expected: Mapping[str, Array]) -> dict[str, Array]:
    return {name: _typed(array, expected[name]) for name, array in outputs.items()}


def _compared(
    execution: Execution, outputs: Mapping[str, Array], expected: Mapping[str, Array]
) -> Comparison:
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


def _changed(names: list[str]) -> str:
    return (
        f"the run changed {', '.join(names)}, which the suite declares to be read only; "
        "if that is meant, declare `intent: inout`"
    )


def _require_written(
    baseline: Case, inputs: Inputs, outputs: Mapping[str, Array], aliases: Mapping[str, str]
) -> None:
    """At least one output must differ from what the run started with."""
    sources = {name: aliases.get(name, name) for name in outputs}
    changed = [
        name
        for name, array in outputs.items()
        if sources[name] not in inputs.arrays or not _same(array, inputs.arrays[sources[name]])
    ]
    if changed:
        return
    found = ", ".join(outputs) or "none declared"
    raise VacuousCheckError(
        f"vacuous check: the baseline {baseline.implementation_name!r} leaves every output as it "
        f"found it (outputs: {found}); give the arrays that it writes `intent: out` or `inout`, or "
        "name what it returns in `returns`"
    )


def _same(one: Array, other: Array) -> bool:
    """Whether an output is the array it came from: its values, in whatever shape."""
    return one.size == other.size and same_bits(one.reshape(other.shape), other)


def _typed(found: Array, reference: Array) -> Array:
    """A single number takes the reference's dtype if it is of the same kind.

    Compiled functions return Python's numbers, which have no dtype of their own.
    """
    if found.ndim == 0 and reference.ndim == 0 and found.dtype.kind == reference.dtype.kind:
        return found.astype(reference.dtype)
    return found
