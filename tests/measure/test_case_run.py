"""One order of events for every run of a case, whoever advances it, and observers that see it."""

import gc

import pytest
from timed import scripted_cases

from gpubench.asv_benchmarks import TimedBenchmark
from gpubench.errors import GpubenchError
from gpubench.measure import case_run
from gpubench.measure.asv_settings import AsvSettings
from gpubench.measure.bound_case import BoundCase
from gpubench.measure.case_run import CaseRun, State
from gpubench.measure.direct import Job, take_turn
from gpubench.measure.observers.protocol import EVENTS, Observer
from gpubench.measure.recorder import Recorder
from gpubench.measure.sampling import CaseSampler
from gpubench.plan.expansion import expand

SAMPLE = ["on_sample_begin", "on_sample_end"]


def noting(log):
    """An observer that writes each event down, and the number of a round."""

    def method(event):
        def note(self, run, *what):
            log.append(" ".join([event, *(str(one) for one in what if isinstance(one, int))]))

        return note

    return type("Noting", (Observer,), {event: method(event) for event in EVENTS})()


@pytest.fixture
def log(monkeypatch):
    """Events of the runs that are made from now on."""
    events = []
    monkeypatch.setattr(case_run, "make_installed", lambda: [noting(events)])
    return events


def base_of(folder, sampling):
    return scripted_cases(folder, sampling=f"rounds: 1, {sampling}")[0]


def advance_as_asv_does(case, label="kernel"):
    """Call the hooks of one benchmark as asv does in a process of its own."""
    timed = TimedBenchmark(expand(case.group), label)
    timed.setup(case.identity)
    for number in range(timed.repeat):
        if number:
            timed.teardown(case.identity)
            timed.setup(case.identity)
        timed.run(case.identity)
    timed.teardown(case.identity)


def test_a_run_has_its_events_in_this_order(tmp_path, log):
    assert take_turn(Job(base_of(tmp_path, "repeat: 2"))).record.status == "ok"
    assert log == [
        "on_begin",
        "on_record_change",
        "on_verify",
        "on_size",
        "on_prepare",
        "on_record_change",
        "on_warm_up",
        *("on_round_begin 0", *SAMPLE, "on_round_end 0"),
        *("on_round_begin 1", *SAMPLE, "on_round_end 1"),
        "on_check",
        "on_finish",
        "on_close",
    ]


@pytest.mark.parametrize("label", ["kernel", "launch", "cold"])
@pytest.mark.parametrize("samples", [1, 2, 23])
def test_asv_and_time_give_the_same_events_in_the_same_order(tmp_path, log, samples, label):
    case = base_of(tmp_path, f"repeat: {samples}")
    assert take_turn(Job(case, label)).record.status == "ok"
    of_time = [*log]
    log.clear()
    advance_as_asv_does(case, label)
    assert log == of_time
    assert of_time.count("on_sample_end") == samples


def test_a_case_that_is_wrong_ends_alike(tmp_path, log, monkeypatch):
    (case,) = (
        one
        for one in scripted_cases(tmp_path, "wrong", sampling="rounds: 1, repeat: 2")
        if one.implementation_name == "wrong"
    )
    assert take_turn(Job(case)).record.status == "wrong"
    assert log == ["on_begin", "on_record_change", "on_record_change", "on_close"]
    of_time = [*log]
    log.clear()
    with pytest.raises(GpubenchError, match="differs from the baseline"):
        advance_as_asv_does(case)
    assert log == of_time


def test_where_asv_warms_up_its_samples_are_no_events(tmp_path, log, monkeypatch):
    case = base_of(tmp_path, "repeat: 2")
    settings = AsvSettings(attributes={"warmup_time": 1e-9})
    monkeypatch.setattr("gpubench.asv_benchmarks.asv_settings", lambda: settings)
    timed = TimedBenchmark(expand(case.group), "kernel")
    for _ in range(3):
        timed.setup(case.identity)
        timed.run(case.identity)
        timed.teardown(case.identity)
    assert [event for event in log if "sample" in event] == 2 * SAMPLE
    assert log[-1] == "on_close"


def test_a_run_that_is_over_goes_on_no_more(tmp_path):
    run = CaseRun(base_of(tmp_path, "repeat: 1"), "kernel", Recorder(None))
    run.advance(State.CLOSED)
    with pytest.raises(GpubenchError, match="is over: it is never SAMPLED again"):
        run.advance(State.SAMPLED)


def test_what_an_observer_finds_goes_on_record(tmp_path, monkeypatch):
    class Counting(Observer):
        samples = 0

        def on_prepare(self, run):
            run.put(conditions={"colour": "red"}, warnings=["odd: it is red"])

        def on_sample_end(self, run, seconds):
            self.samples += 1

        def on_finish(self, run):
            run.put(conditions={"samples_seen": self.samples}, warnings=["odd: once more"])

    monkeypatch.setattr(case_run, "make_installed", lambda: [Counting()])
    record = take_turn(Job(base_of(tmp_path, "repeat: 3"))).record
    assert (record.conditions["colour"], record.conditions["samples_seen"]) == ("red", 3)
    assert record.warnings == ("odd: it is red",)


def test_an_observer_of_another_package_that_fails_is_named_on_record(tmp_path, monkeypatch):
    class Failing(Observer):
        origin = "observer 'odd' of odd-package"

        def on_warm_up(self, run):
            raise ValueError("no sensor")

    monkeypatch.setattr(case_run, "make_installed", lambda: [Failing()])
    record = take_turn(Job(base_of(tmp_path, "repeat: 3"))).record
    assert (record.status, record.reason) == (
        "failed",
        "observer 'odd' of odd-package failed in on_warm_up: ValueError: no sensor; "
        "fix or uninstall it",
    )


def test_an_observer_that_cannot_be_had_fails_the_case_and_says_why(tmp_path, monkeypatch):
    def none():
        raise GpubenchError("observer 'odd' of odd-package cannot be loaded")

    monkeypatch.setattr(case_run, "make_installed", none)
    record = take_turn(Job(base_of(tmp_path, "repeat: 3"))).record
    assert (record.status, record.reason) == (
        "failed",
        "observer 'odd' of odd-package cannot be loaded",
    )


@pytest.mark.parametrize("sampling", ["repeat: 3", "repeat: 10, paired: true"])
def test_what_a_run_holds_is_free_once_it_is_over(tmp_path, sampling):
    """Arrays of the next case follow in the same process, where garbage may not be collected."""
    cases = scripted_cases(tmp_path, "one_ms", sampling=f"rounds: 1, {sampling}")
    gc.collect()
    gc.disable()
    try:
        assert take_turn(Job(cases[1])).record.status == "ok"
        # By `type`: `isinstance` would ask weak proxies for what they stood for.
        held = [one for one in gc.get_objects() if issubclass(type(one), BoundCase | CaseSampler)]
    finally:
        gc.enable()
    assert held == []
