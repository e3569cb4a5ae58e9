"""How often is measured, and in which rounds."""

import gc

import pytest

from gpubench.measure.repeats import Repeats, repeated, repeats, with_attributes
from gpubench.suite.model import Sampling


@pytest.mark.parametrize(
    ("declared", "rounds", "least", "most", "seconds", "warm_up"),
    [
        ({}, 2, 1, 5, 10.0, 0.1),
        ({"rounds": 1}, 1, 1, 10, 20.0, 0.1),
        ({"rounds": 4, "repeat": 7}, 4, 7, 7, 60.0, 0.1),
        ({"paired": True}, 8, 1, 5, 10.0, 0.1),
        ({"rounds": 3, "paired": True}, 3, 1, 5, 10.0, 0.1),
        ({"repeat": 7, "timeout": 5}, 2, 7, 7, 5.0, 0.1),
        ({"repeat": (2, 8, 1.5), "warmup_time": 0}, 2, 2, 8, 1.5, 0.0),
    ],
)
def test_a_suite_is_sampled_as_asv_would(declared, rounds, least, most, seconds, warm_up):
    assert repeats(Sampling(**declared)) == Repeats(rounds, least, most, seconds, warm_up)


def test_compilation_is_taken_two_or_three_times_without_a_warm_up():
    assert repeats(Sampling(repeat=10), "compile") == Repeats(1, 2, 3, 10.0, warm_up=0.0)


def test_what_asv_s_command_line_sets_comes_before_the_suite():
    declared = Sampling(repeat=3, sample_time=0.01, number=5, paired=True)
    given = {"repeat": [1, 9, 2.5], "sample_time": 0.1, "number": 1, "version": "x"}
    found = with_attributes(declared, given)
    assert (found.repeat, found.sample_time) == ((1, 9, 2.5), 0.1)
    assert (found.number, found.paired) == (5, True)
    assert repeats(found) == Repeats(8, 1, 9, 2.5, 0.1)
    assert repeats(with_attributes(declared, {})) == repeats(declared)


def test_more_rounds_share_the_same_samples_and_seconds():
    plan = Repeats(2, 10, 10, 20.0, 0.1)
    assert plan.spread(5) == Repeats(5, 4, 4, 8.0, pytest.approx(0.04))
    assert plan.spread(2) is plan
    assert Repeats(8, 1, 1, 1.0).spread(5).rounds == 8


def test_a_number_of_samples_is_shared_among_the_rounds():
    plan = Repeats(5, 2, 4, 1.0)
    assert (plan.with_samples(12).rounds, plan.with_samples(12).most) == (5, 3)
    assert (plan.with_samples(2).rounds, plan.with_samples(2).most) == (2, 1)
    assert (plan.with_samples(50).rounds, plan.with_samples(50).most) == (10, 5)


class Watch:
    """A clock on which every turn takes a second."""

    def __init__(self):
        self.now = 0.0
        self.turns = []

    def turn(self, number):
        self.turns.append(number)
        self.now += 1.0
        return self.now


def test_nothing_of_the_warm_up_is_kept():
    watch = Watch()
    assert repeated(watch.turn, Repeats(1, 2, 2, 60.0, 3.0), lambda: watch.now) == [4.0, 5.0]
    assert watch.turns == [0, 1, 2, 0, 1]


def test_sampling_ends_when_its_seconds_are_over_but_not_below_the_least():
    def kept(least, most, seconds):
        watch = Watch()
        return len(repeated(watch.turn, Repeats(1, least, most, seconds, 0.0), lambda: watch.now))

    assert kept(1, 9, 3.5) == 4
    assert kept(6, 9, 3.5) == 6
    assert kept(1, 9, 60.0) == 9


def test_no_garbage_is_collected_between_samples_and_all_of_it_afterwards():
    states = repeated(lambda _: gc.isenabled(), Repeats(1, 2, 2, 60.0, 0.0))
    assert states == [False, False]
    assert gc.isenabled()
