"""What a case's speedup is measured against, and why there may be none."""

from __future__ import annotations

import pytest

from gpubench.analysis.baseline import Compared, compare
from gpubench.analysis.headline import headline
from gpubench.record import CaseRecord
from gpubench.results import CaseName, Outcome, Timing


def outcome(
    implementation: str,
    case: str,
    median: float | None = 1.0,
    time: str = "kernel",
    record: CaseRecord | None = None,
) -> Outcome:
    name = CaseName("add", "add", implementation, time, case)
    if median is None:
        return Outcome(name, "failed", "broken", record=record)
    return Outcome(name, "ok", timing=Timing(median, median, median), record=record)


def compared(*outcomes: Outcome) -> dict[str, Compared]:
    found = compare({o.name: o for o in outcomes})
    return {f"{n.implementation} {n.time} {n.case}": c for n, c in found.items()}


def against(implementation: str, case: str) -> CaseRecord:
    benchmark = f"suites.add__{implementation}.time_kernel"
    return CaseRecord("", "", "ok", "", baseline_benchmark=benchmark, baseline_case=case)


def test_the_record_names_the_baseline() -> None:
    found = compared(
        outcome("reference", "n=4", 6.0),
        outcome("numpy", "n=4", 9.0, record=against("reference", "n=4")),
        outcome("cuda", "n=4 block=64", 2.0, record=against("reference", "n=4")),
    )

    assert found["reference kernel n=4"].is_baseline
    ratio = found["cuda kernel n=4 block=64"].speedup
    assert ratio is not None
    assert ratio.value == 3.0
    assert not found["numpy kernel n=4"].is_baseline


def test_without_a_record_numpy_at_the_projected_identity_is_the_baseline() -> None:
    found = compared(
        outcome("numpy", "n=4", 6.0),
        outcome("numpy", "n=8", 60.0),
        outcome("cuda", "n=8 block=64", 2.0),
    )

    case = found["cuda kernel n=8 block=64"]
    assert case.problem == "n=8"
    assert case.speedup is not None
    assert case.speedup.value == 30.0


def test_a_baseline_that_was_not_measured_is_said_with_the_command() -> None:
    found = compared(outcome("cuda", "n=4", record=against("numpy", "n=4")))["cuda kernel n=4"]

    assert found.speedup is None
    assert found.missing == (
        "the baseline numpy n=4 was not measured at this commit; run `asv run --bench add__numpy`"
    )


def test_a_baseline_without_a_time_is_said() -> None:
    found = compared(outcome("numpy", "n=4", None), outcome("cuda", "n=4"))["cuda kernel n=4"]

    assert (found.speedup, found.missing) == (None, "the baseline numpy n=4 has no time: failed")


def test_no_baseline_at_all_is_said() -> None:
    found = compared(outcome("numpy", "n=8"), outcome("cuda", "n=4"))["cuda kernel n=4"]

    assert found.missing == (
        "no baseline: `numpy` has no case for these sizes; name one with `baseline:`"
    )


def test_end_to_end_is_held_against_the_baseline_s_kernel_time() -> None:
    found = compared(outcome("numpy", "n=4", 6.0), outcome("cuda", "n=4", 2.0, "end_to_end"))

    ratio = found["cuda end_to_end n=4"].speedup
    assert ratio is not None
    assert ratio.value == 3.0


def test_a_transfer_has_no_speedup() -> None:
    found = compared(outcome("numpy", "n=4", 6.0), outcome("cuda", "n=4", 2.0, "transfer"))

    case = found["cuda transfer n=4"]
    assert (case.speedup, case.missing) == (None, None)


def test_the_headline_is_the_fastest_launch_at_the_largest_size() -> None:
    found = compared(
        outcome("numpy", "n=4", 6.0),
        outcome("numpy", "n=8", 60.0),
        outcome("cuda", "n=4 block=64", 0.1),
        outcome("cuda", "n=8 block=64", 6.0),
        outcome("cuda", "n=8 block=256", 3.0),
        outcome("cuda", "n=16 block=256", None),
    )

    chosen = headline(found.values(), "cuda")

    assert [c.outcome.name.case for c in chosen.cases] == ["n=8 block=256"]
    assert chosen.speedup is not None
    assert chosen.speedup.value == pytest.approx(20.0)


def test_data_types_at_the_largest_size_share_a_geometric_mean() -> None:
    found = compared(
        outcome("numpy", "n=8 dtype=float32", 8.0),
        outcome("numpy", "n=8 dtype=float64", 8.0),
        outcome("cuda", "n=8 dtype=float32", 1.0),
        outcome("cuda", "n=8 dtype=float64", 4.0),
    )

    chosen = headline(found.values(), "cuda")

    assert len(chosen.cases) == 2
    assert chosen.speedup is not None
    assert round(chosen.speedup.value, 9) == 4.0
