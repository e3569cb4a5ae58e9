"""Arrays that an implementation returns where the others write them: how it is called, compared
and timed."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from builders import Recording, case_of

from gpubench.backends.host import HostSession
from gpubench.measure.bound_case import opened
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.outcomes import WrongResult
from gpubench.measure.times import end_to_end, transfer

KERNEL = """
sizes: {n: [64]}
arrays:
  a: {shape: [n], dtype: float32}
  b: {shape: [n], dtype: float32, intent: inout}
  out: {shape: [n], dtype: float32, intent: out}
call: [a, b, out]
returns: [total]
implementations:
  numpy: {function: returning_kernels:add_and_sum}
  candidate: {function: returning_kernels:FUNCTION, returns: [out, b]}
"""


def candidate(tmp_path, function="returns_all"):
    return case_of(tmp_path, KERNEL.replace("FUNCTION", function), "candidate")


@contextmanager
def running(case):
    with opened(case, draw_inputs(case)) as execution:
        yield execution


def test_what_is_returned_is_compared_under_the_arrays_names(tmp_path):
    case = candidate(tmp_path)
    recording = Recording(tmp_path, case)
    recording.run.prepare().sample()
    assert recording.last.status == "ok"
    with running(case) as execution:
        a, b = execution.inputs.arrays["a"], execution.inputs.arrays["b"]
        outputs = execution.outputs()
    assert list(outputs) == ["out", "b", "total"]
    np.testing.assert_array_equal(outputs["out"], 2 * a)
    np.testing.assert_array_equal(outputs["b"], a + b)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("returns_in_another_order", "b: 64 of 64 elements"),
        ("returns_wrongly", "b: 64 of 64 elements"),
        ("returns_another_dtype", "b: dtype float64, the baseline gives float32"),
        (
            "returns_what_it_wrote",
            "the run changed b, which the suite declares to be read only; if that is meant, ",
        ),
    ],
)
def test_wrong_results_and_written_arrays_have_no_time(tmp_path, function, reason):
    record = Recording(tmp_path, candidate(tmp_path, function)).refusal(WrongResult)
    assert record.status == "wrong"
    assert reason in record.reason


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (
            "returns_too_few",
            "candidate returned tuple; the suite declares `returns: [out, b, total]`",
        ),
        ("returns_text", "candidate returned a str as 'b'; allowed: an array, or a number."),
    ],
)
def test_results_that_fit_no_names_fail_the_case(tmp_path, function, reason):
    record = Recording(tmp_path, candidate(tmp_path, function)).refusal(Exception)
    assert record.status == "failed"
    assert reason in record.reason


def test_a_result_of_another_shape_in_a_second_run_is_wrong(tmp_path):
    text = """
    sizes: {n: [64]}
    arrays: {a: {shape: [n], dtype: float32}}
    call: [a]
    returns: [ones]
    implementations: {numpy: {function: returning_kernels:returns_one_more_each_time}}
    """
    record = Recording(tmp_path, case_of(tmp_path, text, "numpy")).refusal(WrongResult)
    assert record.reason.startswith("a second run on the same inputs is wrong")
    assert "ones: shape (" in record.reason


def test_arrays_that_it_makes_are_not_given_and_the_others_are_only_read(tmp_path):
    case = candidate(tmp_path)
    with running(case) as execution:
        assert sorted(execution.upload()) == ["a", "b"]
        assert not execution.in_place
        assert execution.changing == []
        execution.call()
        assert execution.changed_inputs() == []
    with running(case.baseline()) as execution:
        assert sorted(execution.upload()) == ["a", "b", "out"]
        assert execution.in_place


def test_end_to_end_fetches_what_is_returned_and_a_transfer_what_was_given_of_it(
    tmp_path, monkeypatch
):
    fetched = []
    to_host = HostSession.to_host
    monkeypatch.setattr(
        HostSession, "to_host", lambda *both: fetched.append(both[1]) or to_host(*both)
    )
    with running(candidate(tmp_path)) as execution:
        a, b = execution.inputs.arrays["a"], execution.inputs.arrays["b"]
        end_to_end(execution).sample()
        out, added, total = fetched
        np.testing.assert_array_equal(out, 2 * a)
        np.testing.assert_array_equal(added, a + b)
        assert total == a.sum()
        fetched.clear()
        transfer(execution).sample()
        (given,) = fetched
        np.testing.assert_array_equal(given, b)


def test_end_to_end_fetches_results_beside_the_arrays_that_a_call_writes(tmp_path, monkeypatch):
    fetched = []
    to_host = HostSession.to_host
    monkeypatch.setattr(
        HostSession, "to_host", lambda *both: fetched.append(np.shape(both[1])) or to_host(*both)
    )
    with running(candidate(tmp_path).baseline()) as execution:
        end_to_end(execution).sample()
    assert sorted(fetched) == [(), (64,), (64,)]
