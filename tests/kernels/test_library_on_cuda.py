"""Every CUDA kernel of every suite at small, odd sizes, against its baseline.

On a device in software each runs in three orders of threads and blocks, and is watched at every
access to memory. Launches are small ones, and those that the suites declare. `make test` runs so
many that each value of an axis and of a launch is there, `make test-thorough` so many that any two
values meet.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from library_cases import checked_cases, fault, in_pairs, name, small_plan, with_each_value

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


def cuda_cases() -> Iterator[Case]:
    """So many that any two values meet, of launches that are small and that a device allows."""
    every = checked_cases(small_plan(own_launches=True), ("numba_cuda",))
    return in_pairs(case for case in every if _is_possible(case.launch))


def _is_possible(launch: Launch | None) -> bool:
    assert launch is not None
    small = launch.blocks * launch.threads_per_block <= MAX_THREADS
    return small and launch_fault(launch, ARCHITECTURE_LIMITS) is None


CASES = {name(case): case for case in cuda_cases()}
FEWER = {name(case) for case in with_each_value(CASES.values())}


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest) -> dict[str, Verified]:
    """What became of the cases that are asked for, from processes side by side."""
    ids = [item.callspec.params["case"] for item in request.session.items if _is_here(item)]
    manner = Manner(requested(), orders(3) if requested() else (), sanitize=requested())
    done = verified([CASES[one] for one in ids], manner)
    return {ids[place]: one for place, one in done}


def _is_here(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and item.path.samefile(__file__)


@pytest.mark.parametrize(
    "case",
    [case if case in FEWER else pytest.param(case, marks=pytest.mark.thorough) for case in CASES],
)
def test_the_cuda_form_computes_what_the_baseline_computes(
    case: str, found: dict[str, Verified]
) -> None:
    outcome = found[case]
    if outcome.reason and outcome.reason.startswith("vacuous check"):
        # Of few elements the right result may be zero (the first is the largest): that proves
        # nothing, and is compared all the same.
        assert all(CASES[case].values[size] <= FEW for size in CASES[case].group.axes.size_names)
        assert fault(CASES[case]) is None
    else:
        assert (outcome.reason, outcome.status) == (None, "right")
