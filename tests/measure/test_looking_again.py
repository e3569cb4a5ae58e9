"""Outputs are compared again between rounds and after the last sample: what is wrong by then has
no time."""

import itertools

import pytest
import stateful_kernels
from builders import Recording, case_of
from test_leftovers import OUT, QUICK, candidate, measured

from gpubench.asv_benchmarks import TimedBenchmark
from gpubench.measure.asv_settings import AsvSettings
from gpubench.measure.bound_case import BoundCase
from gpubench.measure.direct import Job, take_turn
from gpubench.measure.outcomes import WrongResult
from gpubench.measure.sampling import rounds_to_verify
from gpubench.measure.verification import verify_again
from gpubench.plan.expansion import expand
from gpubench.record import CaseRecord, RoundsRecord


@pytest.fixture(autouse=True)
def first_call(monkeypatch):
    monkeypatch.setattr(stateful_kernels, "calls", itertools.count())


RETURNS = """
sizes: {n: [64]}
arrays: {a: {shape: [n], dtype: float64}}
call: [a]
returns: [b]
sampling: {SAMPLING}
baseline: returns
implementations:
  returns: {function: stateful_kernels:returns, backend: scripted}
  candidate: {function: stateful_kernels:FUNCTION, backend: scripted}
"""


@pytest.mark.parametrize(
    ("kernel", "function", "output"),
    [(OUT, "wrong_later", "out"), (RETURNS, "returns_wrongly_later", "b")],
)
def test_what_is_wrong_from_some_call_on_has_no_time(tmp_path, kernel, function, output):
    found = measured(tmp_path, kernel, function)
    assert (found.record.status, found.samples) == ("wrong", ())
    assert found.record.reason.startswith("right at first, wrong after ")
    assert f" timed runs: {output}: 64 of 64 elements" in found.record.reason
    assert found.record.max_abs_error > 0.1


def test_what_is_wrong_once_among_the_first_runs_has_no_time(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "gpubench.measure.case_run.LOOKING", 60.0
    )  # it ends at the first that is wrong
    monkeypatch.setattr(stateful_kernels, "calls", itertools.count(-50))
    found = measured(tmp_path, OUT, "wrong_once")
    assert (found.record.status, found.samples) == ("wrong", ())
    assert "right at first, wrong in run 51: out: 64 of 64 elements" in found.record.reason


def test_results_that_are_kept_have_no_time(tmp_path):
    """Inputs become others after the last sample, where they lie."""
    found = measured(tmp_path, OUT, "remembers")
    assert (found.record.status, found.samples) == ("wrong", ())
    assert found.record.reason.startswith("remembers its results: ")


def test_a_baseline_that_keeps_its_results_has_no_time_either(tmp_path):
    kernel = OUT.replace("baseline: steady", "baseline: candidate")
    assert measured(tmp_path, kernel, "remembers").record.status == "wrong"


def test_inputs_that_no_random_numbers_fill_stay_what_they_are(tmp_path):
    drawn = "a: {shape: [n], dtype: float64"
    kernel = OUT.replace(drawn, f"{drawn}, fill: arange")
    assert kernel != OUT
    assert measured(tmp_path, kernel, "remembers").record.status == "ok"


def test_inputs_of_another_shape_cannot_be_put_where_the_first_ones_lie(tmp_path):
    kernel = """
    sizes: {n: [5]}
    init: {function: 'measured_kernels:of_any_length', returns: [a]}
    call: [a]
    returns: [sum]
    sampling: {rounds: 1, repeat: 5, warmup_time: 0}
    implementations:
      numpy: {function: 'measured_kernels:total'}
    """
    record = take_turn(Job(case_of(tmp_path, kernel, "numpy"))).record
    assert record.status == "ok", record.reason


def test_a_baseline_is_compared_with_its_own_first_outputs(tmp_path):
    kernel = OUT.replace("stateful_kernels:steady", "stateful_kernels:wrong_later")
    kernel = kernel.replace("baseline: steady", "baseline: candidate")
    found = measured(tmp_path, kernel, "wrong_later")
    assert found.record.status == "wrong"


def test_an_opponent_that_is_wrong_by_then_ends_the_case(tmp_path):
    kernel = OUT.replace("stateful_kernels:steady", "stateful_kernels:wrong_later")
    found = measured(tmp_path, kernel, "steady", f"paired: true, {QUICK}")
    assert found.record.status == "wrong"
    words = "steady, with which it is paired, is right at first, wrong after "
    assert found.record.reason.startswith(words)


@pytest.mark.parametrize(
    ("rounds", "looks"), [(1, {0}), (2, {0, 1}), (5, {0, 2, 4}), (20, {0, 10, 19})]
)
def test_a_look_is_taken_at_the_first_round_the_middle_and_the_last(rounds, looks):
    assert rounds_to_verify(rounds) == looks


@pytest.mark.parametrize(("small", "looks"), [(10**6, 5), (8, 2)])
def test_large_outputs_are_compared_only_at_the_end(tmp_path, monkeypatch, small, looks):
    monkeypatch.setattr("gpubench.measure.case_run.SMALL", small)
    seen = []
    again = "gpubench.measure.case_run.verify_again"
    monkeypatch.setattr(again, lambda *given: seen.append(1) or verify_again(*given))
    assert measured(tmp_path, OUT, "steady").record.status == "ok"
    assert len(seen) == looks


def test_a_look_between_rounds_needs_no_run_of_its_own(tmp_path, monkeypatch):
    counts = []
    for small in (10**6, 8):
        monkeypatch.setattr("gpubench.measure.case_run.SMALL", small)
        monkeypatch.setattr(stateful_kernels, "calls", itertools.count(-(10**6)))
        assert measured(tmp_path, OUT, "wrong_later").record.status == "ok"
        counts.append(next(stateful_kernels.calls))
    assert counts[0] == counts[1]


class Asv:
    """Calls the hooks of one case as asv does in a process of its own."""

    def __init__(self, folder, monkeypatch, function, **settings):
        self.case = candidate(folder, OUT, function)
        self.recording = Recording(folder, self.case)
        monkeypatch.setattr(AsvSettings, "record", self.recording.path)
        plan = AsvSettings(run="one", **settings)
        monkeypatch.setattr("gpubench.asv_benchmarks.asv_settings", lambda: plan)

    def samples(self, least=0):
        timed, identity = TimedBenchmark(expand(self.case.group), "kernel"), self.case.identity
        timed.setup(identity)
        try:
            for number in range(timed.repeat):
                if number:
                    timed.teardown(identity)
                    timed.setup(identity)
                timed.run(identity)
                if number + 1 == least:
                    break
        finally:
            timed.teardown(identity)

    @property
    def lines(self):
        return self.recording.lines


def test_asv_gets_no_value_and_the_record_no_rounds(tmp_path, monkeypatch):
    asv = Asv(tmp_path, monkeypatch, "wrong_later")
    with pytest.raises(WrongResult, match="right at first, wrong after"):
        asv.samples()
    assert not any(isinstance(line, RoundsRecord) for line in asv.lines)
    assert asv.recording.last.status == "wrong"


def test_asv_gets_its_value_where_nothing_is_wrong(tmp_path, monkeypatch):
    asv = Asv(tmp_path, monkeypatch, "steady")
    asv.samples()
    assert isinstance(asv.lines[-1], RoundsRecord)
    assert len(asv.lines[-1].rounds) == 5


def test_where_asv_may_stop_at_any_sample_a_look_follows_each(tmp_path, monkeypatch):
    asv = Asv(tmp_path, monkeypatch, "wrong_later", attributes={"repeat": [1, 30, 60.0]})
    with pytest.raises(WrongResult):
        asv.samples(least=25)


def test_another_process_of_the_same_run_measures_no_more(tmp_path, monkeypatch):
    asv = Asv(tmp_path, monkeypatch, "wrong_later")
    with pytest.raises(WrongResult):
        asv.samples()
    reason = asv.recording.last.reason
    monkeypatch.setattr(stateful_kernels, "calls", itertools.count(-(10**6)))
    moved = []
    monkeypatch.setattr(BoundCase, "move", lambda *_: moved.append(1))
    with pytest.raises(WrongResult):
        asv.samples()
    assert moved == []
    last = asv.recording.last
    assert isinstance(last, CaseRecord)
    assert (last.status, last.reason) == ("wrong", reason)
