"""Whether a case computes what its baseline computes. A case that does not is never timed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from gpubench.backends import registry
from gpubench.errors import GpubenchError
from gpubench.measure.check import Comparison, compare
from gpubench.measure.execution import Execution
from gpubench.measure.inputs import Inputs, poisoned
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
    with ExitStack() as stack:
        session = stack.enter_context(
            registry.get(baseline.backend).open(baseline.device, baseline.threads)
        )
        execution = Execution(session, baseline, load_target(baseline), inputs)
        outputs = execution.outputs()
    _require_written(baseline, inputs, outputs)
    return outputs


def verify(execution: Execution, expected: Mapping[str, Array]) -> Comparison:
    """Run once with poisoned ``out`` arrays and compare every output with the baseline's."""
    for name, spec in execution.case.array_specs().items():
        if spec.intent == "out":
            execution.overwrite(name, poisoned(expected[name], expected[name]))
    check = execution.case.kernel.check
    checker = None if check.function is None else load_object(check.function)
    outputs = {
        name: _typed(array, expected[name]) for name, array in execution.outputs().items()
    }
    execution.restore()
    return compare(outputs, expected, check, checker)


def _require_written(baseline: Case, inputs: Inputs, outputs: Mapping[str, Array]) -> None:
    """At least one output must differ from what the run started with."""
    changed = [
        name
        for name, array in outputs.items()
        if name not in inputs.arrays or not _same(array, inputs.arrays[name])
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
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


def _typed(found: Array, reference: Array) -> Array:
    """A single number takes the reference's dtype if it is of the same kind.

    Compiled functions return Python's numbers, which have no dtype of their own.
    """
    if found.ndim == 0 and reference.ndim == 0 and found.dtype.kind == reference.dtype.kind:
        return found.astype(reference.dtype)
    return found
