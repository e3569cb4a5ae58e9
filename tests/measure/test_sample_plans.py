"""How often is measured, in which rounds, and what a round counts."""

import gc

import pytest
from timed import scripted_cases

from gpubench.collecting import without_collecting
from gpubench.measure.direct import Job, take_turn
from gpubench.measure.sampling import (
    ROUNDS,
    CaseSampler,
    SamplePlan,
    Schedule,
    apply_asv_attributes,
    begin_rounds,
    sample_plan,
    split_into_rounds,
)
from gpubench.suite.sampling import Sampling


@pytest.mark.parametrize(
    ("declared", "processes", "least", "most", "seconds", "warm_up"),
    [
        ({}, 2, 1, 5, 10.0, 0.1),
        ({"rounds": 1}, 1, 1, 10, 20.0, 0.1),
        ({"rounds": 4, "repeat": 7}, 4, 7, 7, 60.0, 0.1),
        ({"paired": True}, 2, 1, 5, 10.0, 0.1),
        ({"rounds": 3, "paired": True}, 3, 1, 5, 10.0, 0.1),
        ({"repeat": 7, "timeout": 5}, 2, 7, 7, 5.0, 0.1),
        ({"repeat": (2, 8, 1.5), "warmup_time": 0}, 2, 2, 8, 1.5, 0.0),
    ],
)
def test_a_suite_is_sampled_as_asv_would(declared, processes, least, most, seconds, warm_up):
    plan = sample_plan(Sampling(**declared))
    assert plan == SamplePlan(processes, least, most, seconds, warm_up)


def test_compilation_is_taken_two_or_three_times_without_a_warm_up():
    assert sample_plan(Sampling(repeat=10), "compile") == SamplePlan(1, 2, 3, 10.0, warm_up=0.0)


def test_what_asv_s_command_line_sets_comes_before_the_suite():
    declared = Sampling(repeat=3, sample_time=0.01, number=5, paired=True)
    given = {"repeat": [1, 9, 2.5], "sample_time": 0.1, "number": 1, "version": "x"}
    changed = apply_asv_attributes(declared, given)
    assert (changed.repeat, changed.sample_time) == ((1, 9, 2.5), 0.1)
    assert (changed.number, changed.paired) == (5, True)
    assert sample_plan(changed) == SamplePlan(2, 1, 9, 2.5, 0.1)
    assert sample_plan(apply_asv_attributes(declared, {})) == sample_plan(declared)


@pytest.mark.parametrize(
    ("seconds", "samples"), [(0.001, 12), (0.0, 12), (0.1, 10), (0.3, 5), (9.0, 5)]
)
def test_there_are_as_many_samples_as_fit_into_the_seconds(seconds, samples):
    assert SamplePlan(1, 5, 12, 1.0).samples(seconds) == samples


def test_a_number_of_samples_is_shared_among_the_processes():
    plan = SamplePlan(4, 2, 4, 1.0)
    assert (plan.with_samples(12).processes, plan.with_samples(12).most) == (4, 3)
    assert (plan.with_samples(2).processes, plan.with_samples(2).most) == (2, 1)
    assert (plan.with_samples(6).processes, plan.with_samples(6).least) == (3, 2)
    assert (plan.with_samples(7).processes, plan.with_samples(7).least) == (1, 7)


@pytest.mark.parametrize("samples", [1, 5, 19, 20, 21, 50, 100])
def test_samples_are_shared_among_rounds_as_evenly_as_they_can_be(samples):
    sizes = split_into_rounds(samples)
    assert sum(sizes) == samples
    assert len(sizes) == min(ROUNDS, samples)
    assert max(sizes) - min(sizes) <= 1


class Noted:
    """Stands where a sampler does, and notes what is asked of it."""

    def __init__(self):
        self.log = []

    def begin_round(self, *, verified):
        self.log.append("verify" if verified else "move")


def test_arrays_are_moved_before_every_round_but_the_first():
    one, other = Noted(), Noted()
    assert list(begin_rounds([one, other], ROUNDS)) == [*range(ROUNDS)]
    assert one.log == other.log
    assert (one.log.count("move"), one.log.count("verify")) == (ROUNDS - 3, 2)
    assert one.log[-1] == "verify"


@pytest.mark.parametrize(
    ("taken", "seconds", "is_over", "may_end"),
    [
        (4, 0.0, False, False),
        (5, 0.0, True, True),
    ],
)
def test_a_schedule_is_over_with_its_last_sample(taken, seconds, is_over, may_end):
    schedule = Schedule((3, 2))
    assert schedule.is_over(taken, seconds) == is_over
    assert schedule.may_end(taken) == may_end


def test_of_a_fresh_time_fewer_samples_are_enough_once_the_seconds_are_over():
    schedule = Schedule((3,), enough=2, seconds=10.0)
    assert [schedule.is_over(2, seconds) for seconds in (9.0, 11.0)] == [False, True]
    assert schedule.is_over(3, 9.0)
    assert not schedule.is_over(1, 11.0)


def test_no_garbage_is_collected_between_samples_and_all_of_it_afterwards(tmp_path, monkeypatch):
    collecting = []
    sample = CaseSampler.sample
    monkeypatch.setattr(
        CaseSampler, "sample", lambda self: collecting.append(gc.isenabled()) or sample(self)
    )
    (base,) = scripted_cases(tmp_path, sampling="repeat: 2")
    assert take_turn(Job(base)).record.status == "ok"
    assert collecting[-2:] == [False, False]
    assert gc.isenabled()
    gc.disable()
    try:
        with without_collecting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
