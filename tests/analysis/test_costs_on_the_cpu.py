"""Which differences of counts on the CPU fail the gate: lost vectors, lost parallel loops."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gpubench.analysis.costs import cost_pairs
from gpubench.record import LaunchRecord
from gpubench.results import CaseCounts

BEFORE = {
    "ir_instructions": 10_000,
    "parallel_instructions": 9_900,
    "flops_float64": 8_000,
    "flops_lanes_4": 8_000,
    "calls": 14,
}
LOST = {**BEFORE, "ir_instructions": 9_950, "parallel_instructions": 0, "calls": 0}


def counts(totals: Mapping[str, int]) -> CaseCounts:
    launch = LaunchRecord(kernel="k", grid=(1, 1, 1), block=(1, 1, 1), counts=totals)
    return CaseCounts(2, None, (launch,), target="cpu", made_by="numba")


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> set[str]:
    pairs = cost_pairs(counts(before), counts(after))
    return {pair.cost.name for pair in pairs if pair.is_change and pair.new > pair.old}


def test_a_lost_parallel_loop_grows_though_all_other_counts_fall() -> None:
    assert grown(BEFORE, LOST) == {"serial_permille"}
    assert grown(LOST, BEFORE) == set()


@pytest.mark.parametrize(
    ("totals", "names"),
    [
        # Two loops joined into one: less work around loops.
        ({**BEFORE, "ir_instructions": 9_950, "parallel_instructions": 9_900}, set()),
        ({**BEFORE, "parallel_instructions": 9_750}, set()),  # 2 % of all instructions
        ({**BEFORE, "parallel_instructions": 9_600}, {"serial_permille"}),
        ({**BEFORE, "ir_instructions": 10_150, "parallel_instructions": 10_050}, set()),
        (
            {**BEFORE, "flops_lanes_4": 4_000, "flops_lanes_1": 4_000},
            {"flop_instructions", "scalar_permille"},
        ),
    ],
)
def test_what_moves_a_little_is_no_growth(totals: Mapping[str, int], names: set[str]) -> None:
    assert grown(BEFORE, totals) == names
