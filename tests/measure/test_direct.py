"""Measuring without asv: in turns, each case once in a round, and none of them ends the run."""

import pytest
from timed import scripted_cases

from gpubench.measure.direct import Job, Measured, jobs, measure, rounds_of, take_round
from gpubench.measure.preparation import case_record
from gpubench.measure.worker import Bench

ON_A_DEVICE = "['scripted:0']"


def measured(cases, take=take_round):
    """What became of each implementation, by its name."""
    work = jobs(cases)
    return {work[i].case.implementation_name: found for i, found in measure(work, take)}


def test_a_time_is_what_the_script_says(tmp_path):
    found = measured(scripted_cases(tmp_path, "one_ms"))
    assert found["one_ms"].samples == pytest.approx([1e-3] * 20)
    assert found["base"].samples == pytest.approx([2e-3] * 20)
    assert found["one_ms"].record.status == "ok"
    assert found["one_ms"].record.method == "scripted"


def test_rounds_take_turns_and_every_second_one_goes_backwards(tmp_path):
    work = jobs(scripted_cases(tmp_path, "one_ms", sampling="repeat: 4, rounds: 5"))
    taken = []

    def take(job):
        taken.append(job.case.implementation_name)
        return Measured(case_record(job.case, job.time, "ok"), (1.0,))

    last = dict(measure(work, take))
    assert taken == ["base", "one_ms", "one_ms", "base"] * 2 + ["base", "one_ms"]
    assert [len(found.samples) for found in last.values()] == [5, 5]
    assert rounds_of(work) == 10


def test_samples_are_shared_among_five_rounds_at_least(tmp_path):
    (case, *_) = scripted_cases(tmp_path, sampling="rounds: 1, repeat: 10")
    assert (Job(case).plan.rounds, Job(case).plan.most) == (5, 2)
    assert (Job(case, samples=3).plan.rounds, Job(case, samples=3).plan.most) == (3, 1)
    (case, *_) = scripted_cases(tmp_path, sampling="rounds: 6, repeat: 10")
    assert (Job(case).plan.rounds, Job(case).plan.most) == (6, 10)


def test_baselines_are_measured_too_and_once(tmp_path):
    cases = scripted_cases(tmp_path, "one_ms", "uneven")
    candidates = [case for case in cases if case.implementation_name != "base"]
    names = [job.case.implementation_name for job in jobs(candidates)]
    assert names == ["base", "one_ms", "uneven"]


def test_a_wrong_case_has_no_samples_and_no_second_round(tmp_path):
    rounds = []

    def take(job):
        rounds.append(job.case.implementation_name)
        return take_round(job)

    found = measured(scripted_cases(tmp_path, "wrong"), take)
    assert found["wrong"].samples == ()
    assert found["wrong"].record.status == "wrong"
    assert "differs from the baseline 'base'" in found["wrong"].record.reason
    assert (rounds.count("wrong"), rounds.count("base")) == (1, 5)


def test_warnings_of_all_rounds_are_told_once(tmp_path):
    found = measured(scripted_cases(tmp_path, "tiny"))
    (warning,) = found["tiny"].record.warnings
    assert warning == "near the floor: a run takes 0.05 µs and an empty call 0.01 µs"
    assert found["tiny"].record.conditions["floor_seconds"] == pytest.approx(1e-8)
    assert found["base"].record.warnings == ()
    assert "floor_seconds" not in found["base"].record.conditions


def test_a_lost_device_ends_one_case_and_the_others_go_on_in_a_fresh_process(tmp_path):
    cases = scripted_cases(tmp_path, "lost", "one_ms", devices=ON_A_DEVICE)
    with Bench() as bench:
        found = measured(cases, bench.take)
    assert found["lost"].record.status == "failed"
    assert found["lost"].record.reason == "the work crashed on scripted:0, as its script says"
    assert found["one_ms"].samples == pytest.approx([1e-3] * 20)


def test_a_process_that_ends_and_one_that_hangs_end_one_case_each(tmp_path):
    cases = scripted_cases(
        tmp_path, "hangs", "crashes", sampling="repeat: 5, timeout: 0.5", devices=ON_A_DEVICE
    )
    with Bench() as bench:
        found = measured(cases, bench.take)
    assert found["hangs"].record.status == "timed_out"
    assert found["hangs"].record.reason.startswith("stopped by its timeout of 0.5 s; raise")
    assert found["crashes"].record.status == "failed"
    assert found["crashes"].record.reason == "its process ended without an outcome (exit code 3)"
    assert found["base"].samples == pytest.approx([2e-3] * 10)
