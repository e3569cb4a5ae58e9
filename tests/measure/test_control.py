"""The A/A control: cases against themselves, in turn, as often as asked for."""

import pytest
from timed import scripted_cases

from gpubench.measure.direct import Measured, take_turn, twins
from gpubench.measure.outcomes import case_record


def compared(cases, comparisons, take=take_turn):
    return list(twins(cases, comparisons, take))


def test_comparisons_go_round_the_cases(tmp_path):
    found = compared(scripted_cases(tmp_path, "one_ms"), 5)
    names = [one.case.implementation_name for one in found]
    assert names == ["base", "one_ms", "base", "one_ms", "base"]


def test_both_sides_have_as_many_samples_as_a_case_and_in_turns(tmp_path):
    taken = []

    def take(job):
        taken.append(job)
        return Measured(case_record(job.case, job.time, "ok"), (((float(len(taken)),),),))

    (one,) = compared(scripted_cases(tmp_path, sampling="rounds: 6, repeat: 1"), 1, take)
    assert one.first.samples == (1.0, 4.0, 5.0, 8.0, 9.0, 12.0)
    assert one.second.samples == (2.0, 3.0, 6.0, 7.0, 10.0, 11.0)


@pytest.mark.parametrize(("rounds", "measured"), [(1, 1), (2, 4)])
def test_in_paired_mode_a_case_is_paired_with_itself(tmp_path, rounds, measured):
    """Once, where it has one turn."""
    taken = []

    def take(job):
        taken.append(job)
        return take_turn(job)

    sampling = f"rounds: {rounds}, repeat: {20 // rounds}, paired: true"
    (base,) = scripted_cases(tmp_path, sampling=sampling)
    (one,) = compared([base], 1, take)
    assert one.first.record.pair_ratios == (1.0,) * 60
    assert one.first.record.pair_rounds == (3,) * 20
    assert len(taken) == measured


def test_a_case_that_cannot_be_measured_is_told_once_and_not_counted(tmp_path):
    found = compared(scripted_cases(tmp_path, "wrong"), 3)
    told = [(one.case.implementation_name, one.succeeded) for one in found]
    assert told == [("base", True), ("wrong", False), ("base", True), ("base", True)]


def test_with_nothing_to_measure_it_ends(tmp_path):
    wrong = [c for c in scripted_cases(tmp_path, "wrong") if c.implementation_name == "wrong"]
    assert [one.succeeded for one in compared(wrong, 100)] == [False]
    assert compared([], 100) == []


@pytest.mark.parametrize("name", ["base", "one_ms"])
def test_a_script_never_differs_from_itself(tmp_path, name):
    cases = scripted_cases(tmp_path, "one_ms", sampling="paired: false")
    (one,) = compared([c for c in cases if c.implementation_name == name], 1)
    # How many samples were taken before, which depends on what else the machine does, rounds.
    assert one.first.samples == pytest.approx(one.second.samples, rel=1e-9)
