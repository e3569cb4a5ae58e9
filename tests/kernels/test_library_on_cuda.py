"""Every CUDA form of every suite at small, odd sizes, against its baseline.

A device in software watches every access to memory. Launches are small ones, and those that the
suites declare. `make test` runs a kernel of each kind, and `.ci/run` all: so many cases that each
value of an axis and of a launch is there, in one order of threads and blocks that is neither
straight one. `make test-thorough` runs so many that any two values meet, in three orders.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import pytest
from library_cases import (
    by_kernel,
    checked_cases,
    fault,
    in_pairs,
    kernels_with,
    name,
    of_each,
    small_plan,
    with_each_value,
)

from gpubench.backends.limits import ARCHITECTURE_LIMITS, launch_fault
from gpubench.backends.protocol import Launch
from gpubench.backends.software import requested
from gpubench.measure.verify_cases import Manner, Verified, orders, verified
from gpubench.plan.case import Case

pytestmark = pytest.mark.gpu

FEW = 16
"""Elements along each size of which the right result may be nothing but zeros."""

MAX_THREADS = 2**17
"""Of a launch: suites declare larger ones, to show what a grid can hold."""

KERNELS = kernels_with("numba_cuda")


@cache
def cases_of_kernels() -> dict[str, list[Case]]:
    """So many that any two values meet, of launches that are small and that a device allows."""
    every = checked_cases(small_plan(own_launches=True), ("numba_cuda",))
    return by_kernel(in_pairs(case for case in every if _is_possible(case.launch)))


def _is_possible(launch: Launch | None) -> bool:
    assert launch is not None
    small = launch.blocks * launch.threads_per_block <= MAX_THREADS
    return small and launch_fault(launch, ARCHITECTURE_LIMITS) is None


def verify_all(cases: Iterable[Case], tried: tuple[str, ...]) -> dict[str, Verified]:
    """Return what became of each case, from processes side by side."""
    asked = list(cases)
    manner = Manner(requested(), tried if requested() else (), sanitize=requested())
    return {name(asked[place]): one for place, one in verified(asked, manner)}


def faults_of(cases: Iterable[Case], found: dict[str, Verified]) -> dict[str, str]:
    """Return what is wrong, by the name of a case."""
    wrong = {}
    for case in cases:
        outcome = found[name(case)]
        few = all(case.values[size] <= FEW for size in case.group.axes.size_names)
        if few and (outcome.reason or "").startswith("vacuous check"):
            # Of few elements the right result may be zero (the first is the largest): that proves
            # nothing, and is compared all the same.
            reason = fault(case)
        else:
            reason = None if outcome.status == "right" else f"{outcome.status}: {outcome.reason}"
        if reason:
            wrong[name(case)] = reason
    return wrong


def asked_kernels(request: pytest.FixtureRequest) -> list[str]:
    """Return the kernels that the tests of this module are run for."""
    here = (
        item
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path.samefile(__file__)
    )
    return list(dict.fromkeys(item.callspec.params["kernel"] for item in here))


@pytest.fixture(scope="module")
def with_values(request: pytest.FixtureRequest) -> dict[str, Verified]:
    """What became of cases in which each value is there."""
    asked = (case for one in asked_kernels(request) for case in with_each_value(of(one)))
    return verify_all(asked, orders(3)[-1:])


@pytest.fixture(scope="module")
def with_pairs(request: pytest.FixtureRequest) -> dict[str, Verified]:
    """What became of cases in which any two values meet."""
    return verify_all((case for one in asked_kernels(request) for case in of(one)), orders(3))


def of(kernel: str) -> list[Case]:
    return cases_of_kernels()[kernel]


@pytest.mark.parametrize("kernel", of_each(KERNELS, pytest.mark.ci))
def test_the_cuda_forms_compute_what_the_baseline_computes(
    kernel: str, with_values: dict[str, Verified]
) -> None:
    assert faults_of(with_each_value(of(kernel)), with_values) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_cuda_forms_are_right_in_every_order_where_any_two_values_meet(
    kernel: str, with_pairs: dict[str, Verified]
) -> None:
    assert faults_of(of(kernel), with_pairs) == {}
