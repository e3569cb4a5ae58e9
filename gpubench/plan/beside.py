"""Cases at sizes beside the declared ones: a kernel that is right at 1,024 may be wrong at 1,025.

People declare round sizes. A loop that takes elements by pairs, a tile or a block that divides the
size, and a guard that is missing show only at others. No time is taken of these cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from gpubench.errors import PlanError
from gpubench.plan.asked import groups_of
from gpubench.plan.case import Case
from gpubench.plan.other_sizes import values_beside
from gpubench.plan.plan import Plan
from gpubench.suite.arrays import Zip
from gpubench.suite.model import Kernel


def cases_beside(plan: Plan, chosen: Iterable[Case]) -> list[Case]:
    """Return the cases of the chosen implementations, and of their baselines, at sizes that no
    suite declares.

    All sizes of a kernel move together: one above the smallest of each, a prime of each, and 1.
    Every other axis keeps its values. Left out are cases that the rules of the suite exclude or
    that have no value for a formula, and launches of a grid in numbers, which covers the declared
    sizes only.
    """
    kept = []
    wanted = {(case.suite.suite, case.kernel_name, case.implementation_name) for case in chosen}
    for groups in plan.kernels:
        kernel = groups[0].kernel
        of_kernel = groups[0].loaded.suite.suite, groups[0].kernel_name
        computed = {name for name in kernel.implementations if (*of_kernel, name) in wanted}
        if not computed:
            continue
        computed.add(kernel.baseline)
        declared = {_name(case) for case in replace(plan, kernels=(groups,)).cases()}
        for values in values_beside(kernel):
            moved = groups_of(groups[0], _with_sizes(kernel, values))
            cases: list[Case] = []
            with suppress(PlanError):  # a rule without a value at these sizes
                cases = [*replace(plan, kernels=(moved,)).cases()]
            kept += [
                case
                for case in cases
                if case.implementation_name in computed
                and case.problem is None
                and _name(case) not in declared
                and (case.grid is None or case.grid == "cover")
            ]
    return kept


def _name(case: Case) -> tuple[str, str]:
    return case.implementation_name, case.identity


def _with_sizes(kernel: Kernel, values: Mapping[str, int]) -> Kernel:
    """Return the kernel with one value of each size."""
    sizes = {
        name: Zip(zip={each: (values[each],) for each in axis.zip})
        if isinstance(axis, Zip)
        else (values[name],)
        for name, axis in kernel.sizes.items()
    }
    return kernel.model_copy(update={"sizes": sizes, "include": ()})
