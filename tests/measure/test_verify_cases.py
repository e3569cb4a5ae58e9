"""Cases are verified side by side, and one that crashes or hangs ends no other."""

import pytest
import timed_kernels
from builders import SCALE, plan_of

from gpubench.measure.verify_cases import Manner, orders, verified
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite


def outcomes(folder, *implementations, extra="", **manner):
    """What became of each implementation of ``out = 2 a``, by its name."""
    text = SCALE.replace("measured_kernels:scale", "verified_kernels:scale")
    for name in implementations:
        text += f"  {name}: {{function: verified_kernels:{name}, backend: numpy}}\n"
    cases = list(plan_of(folder, text + extra).cases())
    found = dict(verified(cases, Manner(processes=1, **manner)))
    assert len(found) == len(cases)
    return {cases[place].implementation_name: one for place, one in found.items()}


def test_a_right_one_has_its_error_and_a_baseline_has_none(tmp_path):
    found = outcomes(tmp_path, "scale")
    assert (found["scale"].status, found["scale"].reason) == ("right", None)
    assert (found["scale"].max_abs_error, found["numpy"].max_abs_error) == (0.0, None)


def test_a_wrong_one_says_where_and_by_how_much(tmp_path):
    wrong = outcomes(tmp_path, "scale_wrongly")["scale_wrongly"]
    assert wrong.status == "wrong"
    assert wrong.reason is not None
    assert wrong.reason.startswith("differs from the baseline 'numpy': out: 1 of 64 elements")
    assert "at [3]: -1.0 instead of" in wrong.reason
    assert wrong.max_abs_error is not None and wrong.max_abs_error > 1e-5


def test_a_crash_is_told_of_its_case_and_the_others_go_on(tmp_path):
    found = outcomes(tmp_path, "crash", "scale")
    assert {name: one.status for name, one in found.items()} == {
        "numpy": "right",
        "crash": "killed",
        "scale": "right",
    }
    assert found["crash"].reason == "its process ended without an outcome (signal SIGABRT)"


def test_a_process_that_does_not_start_fails_its_case_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("gpubench.measure.worker.MAX_PROCESS_START_SECONDS", 0.05)
    monkeypatch.setattr("gpubench.measure.worker._serve", timed_kernels.sleep_long)
    found = outcomes(tmp_path, "scale")
    assert {one.status for one in found.values()} == {"killed"}
    assert found["scale"].reason.startswith("no process started within 0.05 s")


@pytest.mark.slow
def test_a_hang_is_given_up_and_the_others_go_on(tmp_path):
    found = outcomes(tmp_path, "hang", "scale", limit=4.0)
    assert (found["hang"].status, found["scale"].status) == ("timed_out", "right")
    assert found["hang"].reason.startswith("stopped by its timeout of 4 s; raise `timeout`")


@pytest.mark.slow
def test_the_timeout_of_the_suite_counts(tmp_path):
    found = outcomes(tmp_path, "hang", "scale", extra="sampling: {timeout: 4}\n")
    assert (found["hang"].status, found["scale"].status) == ("timed_out", "right")
    assert found["hang"].reason.startswith("stopped by its timeout of 4 s; raise `timeout`")


def test_a_function_that_is_missing_fails_with_its_cause(tmp_path):
    missing = outcomes(tmp_path, "missing")["missing"]
    assert missing.status == "failed"
    assert "verified_kernels" in missing.reason


def test_one_that_cannot_run_here_is_skipped_with_the_reason(tmp_path):
    extra = "skip: [{when: implementation == 'scale', reason: not today}]\n"
    found = outcomes(tmp_path, "scale", extra=extra)
    assert (found["scale"].status, found["scale"].reason) == ("skipped", "not today")


def test_kernels_are_shared_among_processes_and_all_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    text = SCALE.replace("measured_kernels:scale", "verified_kernels:count_calls")
    cases = []
    for name in ("one", "two", "three", "four"):
        folder = tmp_path / name
        folder.mkdir()
        path = folder / f"{name}.yaml"
        indented = "".join(f"    {line}\n" for line in text.strip().splitlines())
        path.write_text(f"version: 1\nsuite: {name}\nkernels:\n  {name}:\n{indented}")
        cases += build_plan([load_suite(path)], gpu_count=0).cases()
    found = dict(verified(cases, Manner(processes=2)))
    assert [found[place].status for place in range(4)] == ["right"] * 4
    assert len(set((tmp_path / "calls").read_text().split())) == 2


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, ("ascending",)),
        (2, ("ascending", "descending")),
        (4, ("ascending", "descending", "1", "2")),
    ],
)
def test_orders_are_both_straight_ones_and_then_seeds(count, expected):
    assert orders(count) == expected
