"""A sample is a batch of runs; asv gets the seconds of one run."""

import pytest

from gpubench.measure import sampling as module
from gpubench.measure.sampling import Sampling, Trial, size_sample
from gpubench.measure.times import LabelledTime
from gpubench.suite.model import Sampling as Declared


class Ticking:
    """A sampler whose runs take a given time."""

    method, warnings = "ticking", ()

    def __init__(self, seconds_per_run):
        self.seconds_per_run, self.taken = seconds_per_run, 0

    def seconds(self, runs):
        self.taken += 1
        return runs * self.seconds_per_run


def sized(seconds_per_run, sample_time=0.01, most=1_000_000):
    return size_sample(Ticking(seconds_per_run), lambda: None, sample_time, most).runs


def test_a_short_run_is_repeated_until_the_sample_is_long_enough():
    assert 10_000 <= sized(1e-6) <= 12_000


def test_a_long_run_is_a_sample_by_itself():
    assert sized(0.02) == 1


def test_the_number_of_runs_is_bounded():
    assert sized(1e-12, most=500) == 500
    assert sized(0.0, most=500) == 500


def test_one_run_a_sample_needs_no_trial():
    sampler = Ticking(1.0)
    assert size_sample(sampler, lambda: None, 0.01, most=1) == Trial(1, None)
    assert sampler.taken == 0


def test_arrays_are_restored_before_every_trial():
    sampler, restored = Ticking(1e-3), []
    size_sample(sampler, lambda: restored.append(sampler.taken), 0.01)
    assert restored == list(range(sampler.taken))
    assert len(restored) >= 2


def test_the_timer_advances_by_the_seconds_of_one_run():
    sampling = Sampling(Ticking(2e-3), lambda: None, runs=50)
    begin = sampling.elapsed()
    assert sampling.sample() == pytest.approx(2e-3)
    assert sampling.elapsed() - begin == pytest.approx(2e-3)


class Telling(Ticking):
    """Says of itself how many runs its last batch had, as a device's sampler tells its method."""

    method = "before any batch"

    def seconds(self, runs):
        self.method = f"batch of {runs}"
        return super().seconds(runs)


@pytest.mark.parametrize("number", [None, 1, 7])
def test_what_a_sampler_says_of_itself_is_about_the_batches_that_count(number):
    found = module.sized(LabelledTime(Telling(1e-3), lambda: None), Declared(number=number))
    assert found.method == f"batch of {found.runs}"
    assert found.runs == (number or 10)


def test_a_time_of_single_runs_stays_one_whatever_number_says():
    single = LabelledTime(Telling(1e-3), lambda: None, most_runs=1)
    found = module.sized(single, Declared(number=100))
    assert (found.runs, found.method) == (1, "before any batch")
