"""Whether a case computes what its baseline computes. A case that does not is never timed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gpubench.arrow import AnyArray
from gpubench.backends.software import (
    NAME,
    count_launches,
    in_another_order,
    is_counting,
    set_option,
    take_counts,
)
from gpubench.errors import GpubenchError
from gpubench.measure.bound_case import BoundCase, opened
from gpubench.measure.check import CheckResult, coarser_dtypes, compare, difference, same_bits
from gpubench.measure.inputs import Inputs, draw_arrays, poisoned
from gpubench.measure.scores import Outputs, OwnRule, Scorer
from gpubench.measure.tables import fitted, why_ambiguous, why_other_columns
from gpubench.measure.targets import called, load_object
from gpubench.measure.vacuous import why_copies_pass, why_vacuous
from gpubench.plan.case import Case
from gpubench.suite.sampling import Check

if TYPE_CHECKING:  # the device in software is imported only where it is asked for
    from softcuda import Report
    from softcuda.counts import LaunchCounts

MOST_FAULTS = 3
"""Faults of the device in software that a reason has room for."""

OTHER = "other "
"""The draw of inputs that are not those of a case's samples."""


class VacuousCheckError(GpubenchError):
    """The check tells the right result from no other: it would prove nothing."""


def expected_outputs(case: Case, inputs: Inputs) -> dict[str, AnyArray]:
    """Return the outputs of the case's baseline on these inputs, computed on the baseline's own
    backend; raises ``VacuousCheckError`` where comparing with them would prove nothing."""
    with opened(case.baseline() or case, inputs) as bound:
        return _proving_outputs(bound)


def verify(bound: BoundCase, baseline: Outputs | None, orders: Sequence[str] = ()) -> CheckResult:
    """Run twice, ``out`` arrays poisoned before each run, and compare with the baseline's outputs.

    Without ``baseline`` the case is one itself, which is right by definition: its first outputs are
    what is expected, and comparing with them must prove something (else ``VacuousCheckError``).
    They stay in ``bound.expected``.

    Arrays that are only read must stay as they are. Two runs that differ within the tolerance give
    a warning: a reader should know that the last digits are not the same every time. ``orders`` are
    further ones of threads and blocks, to be run in on the device in software. Where that counts,
    what the first run counted stays in ``bound.launches``; of a case with atomic operations,
    what a run in another order counted stays beside it.
    """
    take_counts()  # of what computed the inputs and the baseline
    expected = _proving_outputs(bound) if baseline is None else baseline
    bound.expected = expected
    specs, intents = bound.case.given_specs, bound.case.kernel.intents()
    outs = [name for name in bound.changing if intents[name] == "out"]  # not returned
    rights = {n: expected[n].astype(specs[n].dtype, copy=False) for n in outs if n in expected}
    poison = {name: poisoned(right, right) for name, right in rights.items()}

    def run(*, seen: bool = False) -> dict[str, AnyArray]:
        """Return the outputs of a run from the beginning."""
        bound.restore()
        bound.overwrite(poison)
        return bound.outputs(seen=seen)

    first = dict(expected) if baseline is None else run()
    if is_counting():
        bound.launches = take_counts()
        if any(map(_has_atomics, bound.launches)):
            with in_another_order():
                bound.restore()
                bound.overwrite(poison)
                if baseline is None:  # its first run began with the arrays as they were drawn
                    bound.session.synchronize()
                    take_counts()
                bound.outputs()
            bound.launches_in_another_order = take_counts()
        count_launches(False)  # other runs count the same
    if coarser := coarser_dtypes(first, expected):  # by whose tolerance more passes
        _see_that_it_proves(bound, expected, _found(bound, first), coarser)
    result = _compared(bound, first, expected)
    if result.fault and baseline is not None and (never := why_never_written(first, poison)):
        result = replace(result, fault=f"{never} ({result.fault})")
    elif result.fault is None and (changed := bound.changed_inputs()):
        result = replace(result, fault=_why_changed(bound.case, changed))
    elif result.fault is None:
        again = run(seen=True)
        if apart := difference(first, again):
            result = result.joined(_compared(bound, again, expected))
            if result.fault is None:
                warning = f"two runs differ: {apart} (atomics or a race)"
                result = replace(result, warnings=(warning,))
            else:
                never = why_never_written(again, poison) if baseline is None else None
                why = "a second run on the same inputs is wrong (a race?)"
                result = replace(result, fault=never or f"{why}: {result.fault}")
    if orders:
        result = _in_orders(bound, run, first, result, orders)
    bound.restore()
    if result.fault is not None and (hint := bound.why_wrong()):
        result = replace(result, fault=f"{result.fault}; {hint}")
    return result


def _why_changed(case: Case, changed: Sequence[str]) -> str:
    """Return what is wrong with arrays that a run must only read, and what to write if it may."""
    init = case.kernel.init
    made = {*init.returns} - case.array_specs.keys() if init else set[str]()
    names = ", ".join(changed)
    meant = f"write `init: {{inout: [{names}]}}`" if made >= {*changed} else ""
    return (
        f"the run changed {names}, which the suite declares to be read only; "
        f"if that is meant, {meant or 'declare `intent: inout`'}"
    )


def why_never_written(outputs: Outputs, poison: Outputs) -> str | None:
    """Return which elements of ``out`` arrays a run left as they were; ``None`` where it wrote all.

    ``poison`` are the arrays before the run, no element of which is right. Where the elements that
    were written are all of a smaller array, its shape is named: it is what the suite means mostly.
    Booleans tell nothing: one that is wrong is the poison.
    """
    for name, before in poison.items():
        after = outputs.get(name)
        if after is None or after.shape != before.shape or after.dtype != before.dtype:
            continue
        if not after.ndim or after.dtype.kind == "b":
            continue
        is_left = _same_elements(after, before)
        if not (count := int(is_left.sum())) or count == after.size:
            continue
        shape = tuple(int(places.max()) + 1 for places in np.nonzero(~is_left))
        written = f"a run leaves {count:,} of the {after.size:,} elements of {name!r} unwritten"
        if math.prod(shape) == after.size - count:
            return (
                f"{written}: what is written has the shape {[*shape]}, and the suite declares "
                f"{[*after.shape]}; declare the shape that is written, let the loop or the launch "
                "reach all elements, or declare `intent: inout`"
            )
        first = [int(place) for place in np.argwhere(is_left)[0]]
        return f"{written}, the first at {first}; write them all, or declare `intent: inout`"
    return None


def _same_elements(one: AnyArray, other: AnyArray) -> AnyArray:
    """Return which elements of two arrays of one shape and dtype have equal bytes."""
    left, right = (np.ascontiguousarray(side)[..., None].view(np.uint8) for side in (one, other))
    same: AnyArray = np.all(left == right, axis=-1)
    return same


def _has_atomics(launch: LaunchCounts) -> bool:
    """Return whether a launch made atomic operations: their results may decide what is done."""
    return bool(
        launch.counts.get("global_atomic_requests") or launch.counts.get("shared_atomic_requests")
    )


def verify_again(bound: BoundCase, expected: Outputs, outputs: Outputs | None) -> CheckResult:
    """Compare the outputs of a later run on fresh inputs, for ``None`` of one more."""
    if outputs is None:
        bound.refresh()
        outputs = bound.outputs(seen=True)
    return _compared(bound, outputs, expected)


def verify_often(bound: BoundCase, result: CheckResult, seconds: float) -> CheckResult:
    """Return the result of ``verify``, and of each of more runs on fresh inputs, for so many
    seconds: what is wrong at times, as a race is, has hundreds of chances to show where a run is
    short."""
    first: dict[str, AnyArray] = {}
    runs, end = 2, perf_counter() + seconds  # two are those of ``verify``
    while result.fault is None and perf_counter() + bound.run_seconds < end:
        bound.refresh()
        outputs = bound.outputs(seen=True)
        runs += 1
        if outputs.keys() == first.keys() and all(
            same_bits(array, first[name]) for name, array in outputs.items()
        ):
            continue  # as right as the first of these were
        result = result.joined(_compared(bound, outputs, bound.expected))
        first = first or {name: array.copy() for name, array in outputs.items()}
        if result.fault is not None:
            result = replace(result, fault=f"right at first, wrong in run {runs}: {result.fault}")
    return result


def remembers(bound: BoundCase) -> bool:
    """Return whether a kernel keeps its results: the outputs stay the same when other inputs
    replace the first ones in place, and are wrong for the other inputs.

    Says ``False`` where there are no other inputs: arrays without random numbers keep their values,
    and arrays of ``init`` may have another shape each time.
    """
    case, before = bound.case, bound.inputs
    other = replace(before, arrays=draw_arrays(case, OTHER))
    both = [(array, before.arrays[name]) for name, array in other.arrays.items()]
    if any(new.shape != old.shape for new, old in both) or all(same_bits(*pair) for pair in both):
        return False
    bound.give(other)
    bound.refresh()
    try:
        outputs = bound.outputs()
        if _compared(bound, outputs, bound.expected).fault is not None:
            return False
        with opened(case.baseline() or case, other) as baseline:
            return _compared(bound, outputs, baseline.outputs()).fault is not None
    finally:
        bound.give(before)


def _in_orders(
    bound: BoundCase,
    run: Callable[[], Outputs],
    first: Outputs,
    result: CheckResult,
    orders: Sequence[str],
) -> CheckResult:
    """With runs in other orders of threads and blocks. A device has no order: right in one and
    wrong in another is a fault. Right in all and not the same is rounding: a warning."""
    right = [] if result.fault else ["the first"]
    fault, apart = result.fault, None
    for order in orders:
        words = f"{order} order" if order.isalpha() else f"the order of seed {order}"
        set_option("order", order)
        again = run()
        other = _compared(bound, again, bound.expected)
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
    """Return why a case is not right: its results, or what its device saw; ``None`` where it is."""
    reason = result.fault
    if reason is None:
        return with_faults("its results are right, and it has a fault", faults) if faults else None
    if case.baseline() is not None:
        reason = f"differs from the baseline {case.kernel.baseline!r}: {reason}"
    return with_faults(reason, faults)


def with_faults(reason: str, faults: Iterable[Report]) -> str:
    """Return a reason, and the faults behind it."""
    lines = [f"{NAME}: {fault}" for fault in faults]
    more = [f"and {len(lines) - MOST_FAULTS} more"] if len(lines) > MOST_FAULTS else []
    return "; ".join([reason, *lines[:MOST_FAULTS], *more])


def _proving_outputs(bound: BoundCase) -> dict[str, AnyArray]:
    """Return the outputs of a baseline's first run, in whose place nothing that was there before
    may pass: its ``out`` arrays were drawn as poison."""
    outputs = bound.outputs()
    started = _found(bound, outputs) | bound.unchanged_tables(outputs)
    kernel = bound.case.kernel
    for name, table in kernel.tables.items():
        is_compared = table.intent == "out" and name not in kernel.check.uncompared()
        if is_compared and (reason := why_ambiguous(name, outputs, table.key)):
            raise VacuousCheckError(reason)
    _see_that_it_proves(bound, outputs, started)
    if reason := why_copies_pass(outputs, _read_arrays(bound)):
        raise VacuousCheckError(f"vacuous check: {reason}")
    return outputs


def _see_that_it_proves(
    bound: BoundCase,
    expected: Outputs,
    started: Outputs,
    dtypes: Mapping[str, np.dtype[Any]] | None = None,
) -> None:
    """Raise ``VacuousCheckError`` where comparing with what is expected would prove nothing."""
    check = _check_of(bound.case)
    if reason := why_vacuous(expected, started, check, _own_rule(bound), dtypes):
        raise VacuousCheckError(f"vacuous check: {reason}")


def _found(bound: BoundCase, outputs: Outputs) -> dict[str, AnyArray]:
    """Return what the arrays of outputs held before a run, by the outputs' names."""
    found = {}
    for name, array in outputs.items():
        source = bound.inputs.arrays.get(bound.aliases.get(name, name))
        # A result that is an array of the call may have another shape.
        if source is not None and source.size == array.size:
            found[name] = source.reshape(array.shape)
    return found


def _read_arrays(bound: BoundCase) -> dict[str, AnyArray]:
    """Return what the case starts from, by name."""
    intents = bound.case.kernel.intents()
    # Those of `init` may be declared nowhere.
    read = [n for n in bound.inputs.arrays if intents.get(n, "in") in ("in", "inout")]
    return {name: bound.inputs.arrays[name] for name in read}


def _compared(bound: BoundCase, outputs: Outputs, expected: Outputs) -> CheckResult:
    kernel, outputs = bound.case.kernel, fitted(outputs, expected)
    if fault := why_other_columns(outputs, expected, tuple(kernel.tables)):
        return CheckResult(fault=fault)
    return compare(outputs, expected, _check_of(bound.case), _own_rule(bound))


def _check_of(case: Case) -> Check:
    """Return the kernel's check; outputs are compared by value where one of two is given other
    dtypes."""
    sides = filter(None, (case, case.baseline()))
    if all(side.implementation.cast is None for side in sides):
        return case.kernel.check
    return case.kernel.check.model_copy(update={"dtype": "any"})


def _own_rule(bound: BoundCase) -> OwnRule | None:
    """Return the function of the suite that replaces the tolerance, if it names one: a score over
    what the case starts from, or one that says what is wrong."""
    case, inputs = bound.case, bound.inputs
    check = case.kernel.check
    if check.score is not None:
        values = {**case.values, **inputs.scalars, **_read_arrays(bound)}
        return Scorer(check, load_object(check.score), values)
    if check.function is None:
        return None
    function: Callable[[Outputs, Outputs], str | None] = load_object(check.function)

    def rule(outputs: Outputs, expected: Outputs) -> tuple[str | None, None]:
        with called(f"the check {check.function}(outputs, expected)", check.function):
            return function(outputs, expected) or None, None

    return rule
