"""Measuring without asv: cases in turns, and none of them ends the run."""

from dataclasses import replace

import pytest
from timed import scripted_cases

from gpubench.measure import inputs, preparation
from gpubench.measure.direct import Job, Measured, jobs, measure, take_turn, turns_of
from gpubench.measure.execution import Execution
from gpubench.measure.preparation import case_record
from gpubench.measure.worker import Bench

ON_A_DEVICE = "['scripted:0']"


def measured(cases, take=take_turn):
    """What became of each implementation, by its name."""
    work = jobs(cases)
    return {work[i].case.implementation_name: found for i, found in measure(work, take)}


def test_a_time_is_what_the_script_says(tmp_path):
    found = measured(scripted_cases(tmp_path, "one_ms"))
    assert found["one_ms"].samples == pytest.approx([1e-3] * 20)
    assert found["base"].samples == pytest.approx([2e-3] * 20)
    assert found["one_ms"].sizes == (1,) * 20
    assert found["one_ms"].by_round == [pytest.approx((1e-3,))] * 20
    assert found["one_ms"].record.status == "ok"
    assert found["one_ms"].record.method == "scripted"


def test_cases_take_turns_and_every_second_turn_goes_backwards(tmp_path):
    work = jobs(scripted_cases(tmp_path, "one_ms", sampling="repeat: 4, rounds: 6"))
    taken = []

    def take(job):
        taken.append(job.case.implementation_name)
        return Measured(case_record(job.case, job.time, "ok"), (1.0,), (1,))

    last = dict(measure(work, take))
    assert taken == ["base", "one_ms", "one_ms", "base"] * 3
    assert [found.sizes for found in last.values()] == [(1,) * 6] * 2
    assert turns_of(work) == 12


def test_a_job_is_sampled_as_its_suite_says_or_as_often_as_somebody_asks(tmp_path):
    (case, *_) = scripted_cases(tmp_path, sampling="rounds: 3, repeat: 10")
    assert (Job(case).plan.processes, Job(case).plan.most) == (3, 10)
    asked = Job(case, samples=2).plan
    assert (asked.processes, asked.least, asked.most) == (2, 1, 1)


def test_a_case_is_prepared_once_for_each_turn_and_moved_for_each_round(tmp_path, monkeypatch):
    drawn, moved = [], []
    draw, move = inputs.draw_inputs, Execution.move
    monkeypatch.setattr(preparation, "draw_inputs", lambda case: drawn.append(1) or draw(case))
    monkeypatch.setattr(Execution, "move", lambda execution: moved.append(1) or move(execution))
    (base,) = scripted_cases(tmp_path, sampling="rounds: 2, repeat: 3")
    found = measured([base])["base"]
    assert (len(drawn), found.sizes) == (2, (1, 1, 1) * 2)
    assert len(moved) == 2 * 3


def test_baselines_are_measured_too_and_once(tmp_path):
    cases = scripted_cases(tmp_path, "one_ms", "uneven")
    candidates = [case for case in cases if case.implementation_name != "base"]
    names = [job.case.implementation_name for job in jobs(candidates)]
    assert names == ["base", "one_ms", "uneven"]


def test_a_wrong_case_has_no_samples_and_no_second_turn(tmp_path):
    turns = []

    def take(job):
        turns.append(job.case.implementation_name)
        return take_turn(job)

    found = measured(scripted_cases(tmp_path, "wrong"), take)
    assert found["wrong"].samples == ()
    assert found["wrong"].record.status == "wrong"
    assert "differs from the baseline 'base'" in found["wrong"].record.reason
    assert (turns.count("wrong"), turns.count("base")) == (1, 2)


def test_warnings_of_all_turns_are_told_once(tmp_path):
    found = measured(scripted_cases(tmp_path, "tiny"))
    (warning,) = found["tiny"].record.warnings
    assert warning == "near the floor: a run takes 0.05 µs and an empty call 0.01 µs"
    assert found["tiny"].record.conditions["floor_seconds"] == pytest.approx(1e-8)
    assert found["base"].record.warnings == ()
    assert "floor_seconds" not in found["base"].record.conditions


def test_warnings_of_a_kind_are_told_once_whatever_their_numbers(tmp_path):
    turns = iter(range(2))

    def take(job):
        record = case_record(job.case, job.time, "ok")
        told = (f"near the floor: {next(turns)} µs", "two runs differ: at one place")
        return Measured(replace(record, warnings=told), (1.0,), (1,))

    (base,) = scripted_cases(tmp_path, sampling="repeat: 1")
    ((_, found),) = dict(measure(jobs([base]), take)).items()
    assert found.record.warnings == ("near the floor: 0 µs", "two runs differ: at one place")


def test_a_lost_device_ends_one_case_and_the_others_go_on_in_a_fresh_process(tmp_path):
    cases = scripted_cases(tmp_path, "lost", "one_ms", devices=ON_A_DEVICE)
    with Bench() as bench:
        found = measured(cases, bench.take)
    assert found["lost"].record.status == "failed"
    assert found["lost"].record.reason == "the work crashed on scripted:0, as its script says"
    assert found["one_ms"].samples == pytest.approx([1e-3] * 20)


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
    assert found["base"].samples == pytest.approx([2e-3] * 10)
