"""Results that may differ in every number: how good they are decides, and proves something."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import Recording, case_of

from gpubench.errors import KernelError
from gpubench.measure.direct import Job, take_turn
from gpubench.measure.outcomes import WrongResult
from gpubench.measure.verification import VacuousCheckError
from gpubench.measure.verify_cases import Manner, Verifier
from gpubench.record import CaseRecord
from gpubench.tables.times import report, rows_of, time_row

RETURNED = """
sizes: {n: [60]}
let: {groups: 2}
arrays: {values: {shape: [n], dtype: float64, fill: {function: scored_kernels:two_heaps}}}
call: [values]
returns: [labels, centres]
implementations:
  numpy: {function: scored_kernels:grouped}
  candidate: {function: scored_kernels:FUNCTION, backend: numpy}
check: CHECK
sampling: {rounds: 1, repeat: 2, sample_time: 0.001, warmup_time: 0}
"""

WRITTEN = """
sizes: {n: [60]}
arrays:
  values: {shape: [n], dtype: float64, fill: {function: scored_kernels:two_heaps}}
  labels: {shape: [n], dtype: int64, intent: out}
  centres: {shape: [2], dtype: float64, intent: out}
call: [values, labels, centres]
implementations:
  numpy: {function: scored_kernels:grouped_into}
  candidate: {function: scored_kernels:FUNCTION, backend: numpy}
check: CHECK
"""

INERTIA = "{score: scored_kernels:inertia, at_most: 1.05}"
APARTNESS = """
  score: scored_kernels:apartness
  at_least: 0.9
  outputs: {centres: {compare: false, reason: looked at by another kernel}}
"""


def recording(
    folder: Path,
    function: str = "grouped_the_other_way",
    check: str = INERTIA,
    implementation: str = "candidate",
    kernel: str = RETURNED,
) -> Recording:
    body = kernel.replace("FUNCTION", function).replace("CHECK", check)
    return Recording(folder, case_of(folder, body, implementation))


def prepared(folder: Path, *how: str) -> CaseRecord:
    """The record of a case that is right."""
    found = recording(folder, *how)
    found.run.prepare()
    found.run.close()
    return found.last


def wrong(folder: Path, *how: str) -> CaseRecord:
    return recording(folder, *how).refusal(WrongResult)


def vacuous(folder: Path, check: str, function: str = "grouped", kernel: str = RETURNED) -> str:
    """Why the check is refused, whichever implementation is asked for."""
    reasons = set()
    for implementation in ("numpy", "candidate"):
        found = recording(folder, function, check, implementation, kernel)
        record = found.refusal(VacuousCheckError)
        assert record.status == "failed"
        reasons.add(record.reason)
    (reason,) = reasons
    assert reason is not None
    return reason.removeprefix("vacuous check: ")


def test_another_order_of_the_same_groups_is_as_good_and_its_score_on_record(
    tmp_path: Path,
) -> None:
    record = prepared(tmp_path)
    assert record.status == "ok" and record.score is not None
    assert (record.max_abs_error, record.max_rel_error) == (None, None)
    baseline = prepared(tmp_path, "grouped_the_other_way", INERTIA, "numpy")
    assert baseline.score == pytest.approx(record.score)
    assert 20 < record.score < 120  # sixty numbers of variance 1


def test_the_same_result_is_wrong_where_numbers_are_compared(tmp_path: Path) -> None:
    assert wrong(tmp_path, "grouped_the_other_way", "{rtol: 1.0e-6}").score is None


def test_a_worse_score_is_wrong_and_says_both(tmp_path: Path) -> None:
    record = wrong(tmp_path, "grouped_badly")
    assert record.score is not None and record.score > 1000
    assert record.reason is not None
    assert record.reason.startswith(
        f"differs from the baseline 'numpy': the score {record.score:.6g} is above "
    )
    assert "which is 1.05 times that of the baseline (" in record.reason
    assert record.reason.endswith("; lower is better)")


def test_a_factor_may_allow_it(tmp_path: Path) -> None:
    check = INERTIA.replace("1.05", "40")
    assert prepared(tmp_path, "grouped_badly", check).status == "ok"


def test_where_higher_is_better_less_is_wrong(tmp_path: Path) -> None:
    assert prepared(tmp_path, "grouped_the_other_way", APARTNESS).score == 1
    record = wrong(tmp_path, "grouped_badly", APARTNESS)
    assert record.score == pytest.approx(1 / 3)
    assert record.reason is not None
    assert record.reason.endswith(
        "the score 0.333333 is below 0.9, which is 0.9 times that of the baseline (1; higher is "
        "better)"
    )


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        ("labels_of_nothing", "no score: scored_kernels:inertia(outputs, inputs) failed: IndexErr"),
        ("in_another_dtype", "labels: dtype int32, the baseline gives int64"),
        ("zeros", "the score "),
    ],
)
def test_outputs_without_a_score_are_wrong(tmp_path: Path, function: str, fault: str) -> None:
    record = wrong(tmp_path, function)
    assert record.reason is not None
    assert record.reason.startswith(f"differs from the baseline 'numpy': {fault}")


def test_infinite_outputs_are_wrong_and_have_no_score(tmp_path: Path) -> None:
    record = wrong(tmp_path, "centres_of_nothing")
    assert record.score is None
    assert "centres: 2 of 2 elements are NaN or infinite on one side only" in str(record.reason)


def test_a_score_that_is_no_number_is_none(tmp_path: Path) -> None:
    check = "{score: scored_kernels:inertia_of_ascending_centres, at_most: 1.05}"
    record = wrong(tmp_path, "grouped_the_other_way", check)
    assert record.score is None
    assert "the score is nan, that of the baseline " in str(record.reason)


def test_two_runs_may_differ_and_be_as_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    record = prepared(tmp_path, "grouped_either_way")
    assert record.status == "ok" and record.score == prepared(tmp_path).score
    assert record.warnings[0].startswith("two runs differ: labels: 60 of 60 elements")


def test_arrays_that_are_not_written_are_wrong(tmp_path: Path) -> None:
    record = wrong(tmp_path, "writes_nothing", INERTIA, "candidate", WRITTEN)
    assert "centres: 2 of 2 elements are NaN" in str(record.reason)
    right = prepared(tmp_path, "grouped_into", INERTIA, "candidate", WRITTEN)
    assert right.score is not None


@pytest.mark.parametrize("call", [2, 3])
def test_later_runs_are_scored_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    calls = tmp_path / "calls"
    monkeypatch.setenv("CALLS", str(calls))
    calls.write_text("." * (3 - call))
    body = RETURNED.replace("FUNCTION", "right_at_first").replace("CHECK", INERTIA)
    record = take_turn(Job(case_of(tmp_path, body, "candidate"))).record
    assert record.status == "wrong"
    # The third is compared where the first runs are short enough, else one after the last sample.
    when = "a second run on the same inputs is wrong" if call == 2 else "right at first, wrong "
    assert when in str(record.reason) and "the score " in str(record.reason)


def test_verifying_gives_the_score(tmp_path: Path) -> None:
    body = RETURNED.replace("FUNCTION", "grouped_the_other_way").replace("CHECK", INERTIA)
    verifier = Verifier(Manner())
    found = [
        verifier((0, case_of(tmp_path, body, implementation)))
        for implementation in ("numpy", "candidate")
    ]
    assert [one.status for one in found] == ["right", "right"]
    assert found[0].score == pytest.approx(found[1].score) and found[0].score
    assert [one.max_rel_error for one in found] == [None, None]


def test_the_table_of_times_has_a_column_for_it_and_json_a_number(tmp_path: Path) -> None:
    record = prepared(tmp_path)
    measured = take_turn(Job(recording(tmp_path).run.case))
    assert measured.record.score == record.score
    (row,) = rows_of([measured])
    assert (row.score, time_row(row)["score"]) == (record.score, record.score)
    (table, *_) = report([row])
    columns = [str(column.header) for column in table.columns]
    assert "score" in columns and "error" not in columns
    (bare, *_) = report([replace(row, score=None)])
    assert "score" not in [str(column.header) for column in bare.columns]


# --- scores that prove nothing


@pytest.mark.parametrize(
    ("function", "value"), [("not_a_number", "nan"), ("zero", "0"), ("negative", "-")]
)
@pytest.mark.parametrize("limit", ["at_most: 1.05", "at_least: 0.95"])
def test_a_factor_of_it_has_to_mean_something(
    tmp_path: Path, function: str, value: str, limit: str
) -> None:
    reason = vacuous(tmp_path, f"{{score: scored_kernels:{function}, {limit}}}")
    assert reason.startswith(f"scored_kernels:{function} gives the baseline's outputs {value}")
    assert reason.endswith("have it give a finite number above 0")


def test_a_score_that_any_result_reaches_is_refused(tmp_path: Path) -> None:
    reason = vacuous(tmp_path, "{score: scored_kernels:number_of_labels, at_least: 0.9}")
    assert reason == (
        "all outputs: the score scored_kernels:number_of_labels takes zeros for the right result: "
        "60 beside the baseline's 60; set at_least nearer to 1, choose inputs whose result differs "
        "more, or have the score look at that"
    )


def test_what_the_arrays_held_before_must_not_be_as_good(tmp_path: Path) -> None:
    kernel = WRITTEN.replace(
        "labels: {shape: [n], dtype: int64, intent: out}",
        "labels: {shape: [n], dtype: int64, intent: inout, fill: arange}",
    ).replace(
        "centres: {shape: [2], dtype: float64, intent: out}",
        "centres: {shape: [2], dtype: float64, intent: inout, fill: ones}",
    )
    score = "scored_kernels:distance_from_zero"
    reason = vacuous(tmp_path, f"{{score: {score}, at_least: 0.01}}", "grouped_into", kernel)
    assert reason.startswith(f"all outputs: the score {score} takes what was there before for")


def test_every_output_has_to_count(tmp_path: Path) -> None:
    reason = vacuous(tmp_path, "{score: scored_kernels:of_labels_alone, at_most: 1.05}")
    assert reason.startswith(
        "centres: the score scored_kernels:of_labels_alone takes zeros for the right result: "
    )
    assert reason.endswith(
        "or say `compare: false` of centres in `check: {outputs: ...}`, with a reason"
    )


def test_outputs_that_agree_with_each_other_must_not_be_enough(tmp_path: Path) -> None:
    reason = vacuous(tmp_path, "{score: scored_kernels:disagreement, at_most: 1.05}")
    assert reason.startswith("all outputs: the score scored_kernels:disagreement takes zeros for")


# --- the function


def failed(folder: Path, function: str) -> str:
    check = f"{{score: scored_kernels:{function}, at_most: 1.05}}"
    record = recording(folder, "grouped", check).refusal(KernelError)
    assert record.status == "failed"
    return str(record.reason)


def test_it_is_given_what_a_run_starts_from_by_name(tmp_path: Path) -> None:
    given = "ValueError: n=0, groups=0, values=1"
    said = failed(tmp_path, "names_of_inputs")
    assert f"(outputs, inputs) failed: {given} in names_of_inputs (scored_kernels.py:" in said


def test_it_gives_one_number(tmp_path: Path) -> None:
    assert failed(tmp_path, "a_list") == (
        "scored_kernels:a_list(outputs, inputs) gave a list; a score is one number"
    )


def test_it_cannot_change_what_is_checked(tmp_path: Path) -> None:
    assert "read-only" in failed(tmp_path, "overwriting")
