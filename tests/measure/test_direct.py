"""Measuring without asv: in turns, each case once in a round, and none of them ends the run."""

from dataclasses import replace

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
    assert found["one_ms"].samples == pytest.approx([1e-3] * 24)
    assert found["base"].samples == pytest.approx([2e-3] * 24)
    assert found["one_ms"].by_round == [pytest.approx([1e-3] * 4)] * 6
    assert found["one_ms"].record.status == "ok"
    assert found["one_ms"].record.method == "scripted"


def test_rounds_take_turns_and_every_second_one_goes_backwards(tmp_path):
    work = jobs(scripted_cases(tmp_path, "one_ms", sampling="repeat: 4, rounds: 6"))
    taken = []

    def take(job):
        taken.append(job.case.implementation_name)
        return Measured(case_record(job.case, job.time, "ok"), (1.0,))

    last = dict(measure(work, take))
    assert taken == ["base", "one_ms", "one_ms", "base"] * 3
    assert [len(found.samples) for found in last.values()] == [6, 6]
    assert rounds_of(work) == 12


def test_samples_are_shared_among_six_rounds_at_least(tmp_path):
    (case, *_) = scripted_cases(tmp_path, sampling="rounds: 1, repeat: 10")
    assert (Job(case).plan.rounds, Job(case).plan.most) == (6, 2)
    assert (Job(case, samples=3).plan.rounds, Job(case, samples=3).plan.most) == (3, 1)
    (case, *_) = scripted_cases(tmp_path, sampling="rounds: 7, repeat: 10")
    assert (Job(case).plan.rounds, Job(case).plan.most) == (7, 10)


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
    assert (rounds.count("wrong"), rounds.count("base")) == (1, 6)


def test_warnings_of_all_rounds_are_told_once(tmp_path):
    found = measured(scripted_cases(tmp_path, "tiny"))
    (warning,) = found["tiny"].record.warnings
    assert warning == "near the floor: a run takes 0.05 µs and an empty call 0.01 µs"
    assert found["tiny"].record.conditions["floor_seconds"] == pytest.approx(1e-8)
    assert found["base"].record.warnings == ()
    assert "floor_seconds" not in found["base"].record.conditions


def test_warnings_of_a_kind_are_told_once_whatever_their_numbers(tmp_path):
    rounds = iter(range(6))

    def take(job):
        record = case_record(job.case, job.time, "ok")
        told = (f"near the floor: {next(rounds)} µs", "two runs differ: at one place")
        return Measured(replace(record, warnings=told), (1.0,))

    (base,) = scripted_cases(tmp_path, sampling="repeat: 1")
    ((_, found),) = dict(measure(jobs([base]), take)).items()
    assert found.record.warnings == ("near the floor: 0 µs", "two runs differ: at one place")


def test_a_lost_device_ends_one_case_and_the_others_go_on_in_a_fresh_process(tmp_path):
    cases = scripted_cases(tmp_path, "lost", "one_ms", devices=ON_A_DEVICE)
    with Bench() as bench:
        found = measured(cases, bench.take)
    assert found["lost"].record.status == "failed"
    assert found["lost"].record.reason == "the work crashed on scripted:0, as its script says"
    assert found["one_ms"].samples == pytest.approx([1e-3] * 24)


def test_a_process_that_hangs_ends_one_case(tmp_path):
    # However busy the machine is, what hangs outlasts its timeout; others might too, so that only
    # this one is asked.
    cases = scripted_cases(
        tmp_path, "hangs", sampling="repeat: 5, timeout: 0.5", devices=ON_A_DEVICE
    )
    (case,) = (case for case in cases if case.implementation_name == "hangs")
    with Bench() as bench:
        found = bench.take(Job(case))
    assert found.record.status == "timed_out"
    assert found.record.reason.startswith("stopped by its timeout of 0.5 s; raise")


def test_a_process_that_ends_ends_one_case_and_the_others_go_on(tmp_path):
    cases = scripted_cases(tmp_path, "crashes", sampling="repeat: 5", devices=ON_A_DEVICE)
    with Bench() as bench:
        found = measured(cases, bench.take)
    assert found["crashes"].record.status == "failed"
    assert found["crashes"].record.reason == "its process ended without an outcome (exit code 3)"
    assert found["base"].samples == pytest.approx([2e-3] * 12)
