"""Cases at sizes beside the declared ones: a kernel that is right at 1,024 may be wrong at 1,025.

People declare round sizes. A loop that takes elements by pairs, a tile or a block that divides the
size, and a guard that is missing show only at others. So each kernel is verified at three more
sizes: one above its smallest, a prime, and 1. No time is taken of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from math import isqrt
from typing import Any

from gpubench.names import Value
from gpubench.plan.asked import groups_of
from gpubench.plan.case import Case
from gpubench.plan.plan import Plan
from gpubench.suite.model import Kernel, Zip, axis_values


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
        for sizes in _sizes_beside(kernel):
            moved = kernel.model_copy(update={"sizes": sizes, "include": ()})
            others = replace(plan, kernels=(groups_of(groups[0], moved),))
            kept += [
                case
                for case in others.cases()
                if case.implementation_name in computed
                and case.problem is None
                and _name(case) not in declared
                and (case.grid is None or case.grid == "cover")
            ]
    return kept


def _name(case: Case) -> tuple[str, str]:
    return case.implementation_name, case.identity


def _sizes_beside(kernel: Kernel) -> Iterator[Mapping[str, Any]]:
    """Yield the sizes of a kernel with one value each; none where a size is no whole number."""
    smallest: dict[str, Value] = {}
    for name, axis in kernel.sizes.items():
        if isinstance(axis, Zip):
            smallest |= {each: axis_values(column)[0] for each, column in axis.zip.items()}
        else:
            smallest[name] = min(axis_values(axis))
    if not all(isinstance(value, int) for value in smallest.values()):
        return
    above = {name: int(value) + 1 for name, value in smallest.items()}
    # Different primes: a kernel that takes rows for columns is right where both are as many.
    primes = dict[str, int]()
    for name, value in above.items():
        primes[name] = next(p for p in _primes_above(value) if p not in primes.values())
    for values in (above, primes, dict.fromkeys(above, 1)):
        yield {
            name: Zip(zip={each: (values[each],) for each in axis.zip})
            if isinstance(axis, Zip)
            else (values[name],)
            for name, axis in kernel.sizes.items()
        }


def _primes_above(number: int) -> Iterator[int]:
    """Yield the primes above a number, by trial division: sizes are small enough for it."""
    return (n for n in count(number + 1) if all(n % d for d in range(2, isqrt(n) + 1)))
