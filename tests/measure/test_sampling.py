"""A sample is a batch of runs; asv gets the seconds of one run."""

import pytest

from gpubench.measure.disturbance import Counters, Thread
from gpubench.measure.sampling import CaseSampler, sample_plan
from gpubench.suite.sampling import Sampling


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Nothing waits for a core, however busy this machine is."""
    monkeypatch.setattr("gpubench.measure.sampling.counters", lambda: Counters(0.0, {}))


class Ticking:
    """A sampler whose runs take a given time; it says how many runs its last batch had, as a
    device's sampler tells its method."""

    warnings = ()

    def __init__(self, seconds_per_run, log=None):
        self.seconds_per_run, self.log = seconds_per_run, [] if log is None else log
        self.method = "before any batch"

    def seconds(self, runs):
        self.log.append(runs)
        self.method = f"batch of {runs}"
        return runs * self.seconds_per_run


def measurement(sampler, restore=lambda: None, **labelled):
    return CaseSampler(lambda again: sampler, restore, **labelled)


def sized(seconds_per_run, most_runs=1_000_000, **declared):
    made = measurement(Ticking(seconds_per_run), most_runs=most_runs)
    made.size(Sampling(**declared))
    return made


def test_a_short_run_is_repeated_until_the_sample_is_long_enough():
    assert 10_000 <= sized(1e-6).runs <= 12_000


def test_a_long_run_is_a_sample_by_itself():
    assert sized(0.02).runs == 1


def test_one_run_that_was_held_up_does_not_size_the_samples():
    class HeldUp(Ticking):
        def seconds(self, runs):
            held_up = 0.0 if self.log else 0.03
            return super().seconds(runs) + held_up

    made = measurement(HeldUp(1e-4))
    made.size(Sampling())
    assert made.runs >= 100
    assert made.run_seconds == pytest.approx(1e-4)


def test_samples_that_wait_for_a_core_do_not_size_one(monkeypatch):
    """Two of three wait 20 ms, which would fill a sample's time with a single run."""

    class Waiting(Ticking):
        waited = 0.0

        def seconds(self, runs):
            waits = len(self.log) % 3 and 0.02
            self.waited += waits
            return super().seconds(runs) + waits

    sampler = Waiting(1e-4)
    monkeypatch.setattr(
        "gpubench.measure.sampling.counters",
        lambda: Counters(0.0, {"1": Thread(1.0, sampler.waited)}),
    )
    made = measurement(sampler)
    made.size(Sampling())
    assert made.runs >= 100
    assert made.run_seconds == pytest.approx(1e-4)


def test_the_number_of_runs_is_bounded():
    assert sized(1e-12, most_runs=500).runs == 500
    assert sized(0.0, most_runs=500).runs == 500


def test_a_suite_says_how_long_a_sample_is_or_how_many_runs_it_has():
    assert 1_000 <= sized(1e-6, sample_time=0.001).runs <= 1_200
    assert sized(1e-6, number=7).runs == 7


def test_what_a_sample_takes_is_known_before_the_first():
    made = sized(0.02)
    assert made.run_seconds == 0.02
    assert made.sample_seconds >= 0.02


def test_a_run_that_is_dear_is_not_tried_before():
    sampler = Ticking(1.0)
    made = measurement(sampler, most_runs=1, dear=True)
    made.size(Sampling())
    assert (made.runs, made.run_seconds, sampler.log) == (1, None, [])
    assert sample_plan(Sampling(), "compile").samples(made.sample_seconds) == 2


def test_arrays_are_restored_before_every_trial_and_after_the_last():
    log = []
    made = measurement(Ticking(1e-3, log), lambda: log.append("restore"))
    made.size(Sampling())
    assert log == ["restore", 1, "restore", 10, "restore"]


def test_arrays_are_restored_after_the_warm_up(monkeypatch):
    log, clock = [], iter(range(100))
    monkeypatch.setattr("gpubench.measure.sampling.time.perf_counter", lambda: next(clock))
    made = measurement(Ticking(1e-3, log), lambda: log.append("restore"))
    made.warm_up(2.5)
    assert log == ["restore", 1, "restore", 1, "restore"]
    made.warm_up(0.0)
    assert log[5:] == ["restore"]


def test_the_timer_advances_by_the_seconds_of_one_run():
    made = sized(2e-3, number=50)
    begin = made.elapsed()
    assert made.sample() == pytest.approx(2e-3)
    assert made.elapsed() - begin == pytest.approx(2e-3)


def test_a_round_has_a_sampler_of_its_own_and_the_one_before_is_gone():
    log = []

    class Counted(Ticking):
        def __del__(self):
            log.append("gone")

    def sampler(again):
        log.append("again" if again else "first")
        return Counted(1e-3, [])

    moved = lambda: log.append("moved")  # noqa: E731
    made = CaseSampler(sampler, lambda: log.append("restored"), moved)
    made.begin_round()
    assert log == ["first", "gone", "moved", "again", "restored"]


@pytest.mark.parametrize("number", [None, 1, 7])
def test_what_a_sampler_says_of_itself_is_about_the_batches_that_count(number):
    made = sized(1e-3, number=number)
    assert made.method == f"batch of {made.runs}"
    assert made.runs == (number or 10)


def test_a_time_of_single_runs_stays_one_whatever_number_says():
    made = sized(1e-3, most_runs=1, number=100)
    assert (made.runs, made.method) == (1, "batch of 1")


def test_a_sample_after_something_else_has_a_run_before_it_that_does_not_count():
    log = []
    made = measurement(Ticking(1e-3, log), lambda: log.append("restore"))
    made.runs = 5
    assert made.warmed_sample() == pytest.approx(1e-3)
    assert log == ["restore", 1, "restore", 5]
    assert made.elapsed() == pytest.approx(1e-3)
