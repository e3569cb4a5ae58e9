"""Measuring without asv: cases in turns, and none of them ends the run."""

from collections import Counter
from dataclasses import replace

import pytest
import timed_kernels
from timed import scripted_cases

from gpubench.measure import case_run, inputs
from gpubench.measure.bound_case import BoundCase
from gpubench.measure.direct import Job, Measured, bench, jobs, measure, take_turn, turns_of
from gpubench.measure.outcomes import case_record
from gpubench.measure.worker import Worker
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite

ON_A_DEVICE = "['scripted:0']"


def measured(cases, take=take_turn):
    """What became of each implementation, by its name."""
    work = jobs(cases)
    return {work[i].case.implementation_name: found for i, found in measure(work, take)}


def test_a_time_is_what_the_script_says(tmp_path):
    found = measured(scripted_cases(tmp_path, "one_ms"))
    assert found["one_ms"].samples == pytest.approx([1e-3] * 10)
    assert found["base"].samples == pytest.approx([2e-3] * 10)
    assert found["one_ms"].processes == ((pytest.approx((1e-3,)),) * 10,)
    assert found["one_ms"].record.status == "ok"
    assert found["one_ms"].record.method == "scripted"


def test_cases_take_turns_and_every_second_turn_goes_backwards(tmp_path):
    work = jobs(scripted_cases(tmp_path, "one_ms", sampling="repeat: 4, rounds: 6"))
    taken = []

    def take(job):
        taken.append(job.case.implementation_name)
        return Measured(case_record(job.case, job.time, "ok"), (((1.0,),),))

    last = dict(measure(work, take))
    assert taken == ["base", "one_ms", "one_ms", "base"] * 3
    assert [found.processes for found in last.values()] == [(((1.0,),),) * 6] * 2
    assert turns_of(work) == 12


def test_a_job_is_sampled_as_its_suite_says_or_as_often_as_somebody_asks(tmp_path):
    (case, *_) = scripted_cases(tmp_path, sampling="rounds: 3, repeat: 10")
    assert (Job(case).plan.processes, Job(case).plan.most) == (3, 10)
    asked = Job(case, samples=2).plan
    assert (asked.processes, asked.least, asked.most) == (2, 1, 1)


def test_a_case_is_prepared_once_for_each_turn_and_moved_for_each_round(tmp_path, monkeypatch):
    drawn, moved = [], []
    draw, move = inputs.draw_inputs, BoundCase.move
    monkeypatch.setattr(case_run, "draw_inputs", lambda case: drawn.append(1) or draw(case))
    monkeypatch.setattr(
        BoundCase, "move", lambda *how, **more: moved.append(1) or move(*how, **more)
    )
    (base,) = scripted_cases(tmp_path, sampling="rounds: 2, repeat: 3")
    found = measured([base])["base"]
    sizes = [[len(samples) for samples in rounds] for rounds in found.processes]
    assert (len(drawn), sizes) == (2, [[1] * 3] * 2)
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

    found = measured(scripted_cases(tmp_path, "wrong", sampling="rounds: 2"), take)
    assert found["wrong"].samples == ()
    assert found["wrong"].record.status == "wrong"
    assert "differs from the baseline 'base'" in found["wrong"].record.reason
    assert (turns.count("wrong"), turns.count("base")) == (1, 2)


def test_warnings_of_all_turns_are_told_once(tmp_path):
    found = measured(scripted_cases(tmp_path, "tiny", sampling="rounds: 2"))
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
        return Measured(replace(record, warnings=told), (((1.0,),),))

    (base,) = scripted_cases(tmp_path, sampling="repeat: 1, rounds: 2")
    ((_, found),) = dict(measure(jobs([base]), take)).items()
    assert found.record.warnings == ("near the floor: 0 µs", "two runs differ: at one place")


def test_a_lost_device_ends_one_case_and_the_others_go_on_in_a_fresh_process(tmp_path):
    cases = scripted_cases(tmp_path, "lost", "one_ms", devices=ON_A_DEVICE)
    with bench() as take:
        found = measured(cases, take)
    assert found["lost"].record.status == "failed"
    assert found["lost"].record.reason == "the work crashed on scripted:0, as its script says"
    assert found["one_ms"].samples == pytest.approx([1e-3] * 10)


@pytest.mark.parametrize("devices", [ON_A_DEVICE, "[cpu]"])
def test_a_process_that_hangs_ends_one_case(tmp_path, devices):
    # However busy the machine is, what hangs outlasts its timeout; others might too, so that only
    # this one is asked.
    cases = scripted_cases(tmp_path, "hangs", sampling="repeat: 5, timeout: 0.5", devices=devices)
    (case,) = (case for case in cases if case.implementation_name == "hangs")
    with bench() as take:
        found = take(Job(case))
    assert found.record.status == "timed_out"
    assert found.record.reason.startswith("stopped by its timeout of 0.5 s; raise")


@pytest.mark.parametrize("devices", [ON_A_DEVICE, "[cpu]"])
@pytest.mark.parametrize(
    ("function", "status", "reason"),
    [
        ("crashes", "killed", "its process ended without an outcome (exit code 3)"),
        ("faults", "killed", "its process ended without an outcome (signal SIGSEGV)"),
        (
            "has_no_memory",
            "killed",
            "its process ended without an outcome (signal SIGKILL, as where memory runs out)",
        ),
        ("exits", "failed", "SystemExit: 7"),
        ("interrupts", "failed", "KeyboardInterrupt"),
    ],
)
def test_what_ends_a_process_ends_one_case_and_the_others_go_on(
    tmp_path, devices, function, status, reason
):
    cases = scripted_cases(tmp_path, function, "one_ms", sampling="repeat: 5", devices=devices)
    with bench() as take:
        found = measured(cases, take)
    assert (found[function].record.status, found[function].record.reason) == (status, reason)
    assert found[function].samples == ()
    assert found["base"].samples == pytest.approx([2e-3] * 5)
    assert found["one_ms"].samples == pytest.approx([1e-3] * 5)


def test_what_hangs_in_compiled_code_is_ended_after_the_timeout_of_its_suite(tmp_path):
    """It holds the interpreter: no signal reaches Python there."""
    sampling = "repeat: 5, timeout: 0.5"
    cases = scripted_cases(tmp_path, "hangs_in_compiled_code", sampling=sampling)
    (case,) = (case for case in cases if case.implementation_name == "hangs_in_compiled_code")
    with bench() as take:
        found = take(Job(case))
    assert found.record.status == "timed_out"


def test_a_process_that_a_function_forked_and_let_return_answers_for_nothing(tmp_path):
    cases = scripted_cases(tmp_path, "forks", "one_ms", sampling="repeat: 5")
    with bench() as take:
        found = measured(cases, take)
    assert found["forks"].samples == pytest.approx([1e-3] * 5)
    assert found["one_ms"].record.benchmark == "suites.sample__one_ms.time_kernel"


def test_a_process_that_ends_is_seen_while_one_that_it_forked_goes_on(tmp_path):
    cases = scripted_cases(tmp_path, "leaves_a_process", sampling="repeat: 5, timeout: 50")
    with bench() as take:
        found = measured(cases, take)
    assert found["leaves_a_process"].record.status == "killed"


def processes_of(work, monkeypatch):
    """How many processes these jobs are measured in."""
    started = []
    start = Worker._start
    monkeypatch.setattr(Worker, "_start", lambda worker: started.append(1) or start(worker))
    with bench() as take:
        dict(measure(work, take))
    return len(started)


def test_the_cases_of_a_kernel_share_a_process(tmp_path, monkeypatch):
    work = jobs(scripted_cases(tmp_path, "one_ms", "tiny", sampling="repeat: 5"))
    assert processes_of(work, monkeypatch) == 1


def test_each_turn_that_a_suite_asks_for_has_its_own_process(tmp_path, monkeypatch):
    work = jobs(scripted_cases(tmp_path, "one_ms", sampling="repeat: 2, rounds: 3"))
    assert processes_of(work, monkeypatch) == 3


def test_another_kernel_has_another_process(tmp_path, monkeypatch):
    work = jobs(scripted_cases(tmp_path, sampling="repeat: 5"))
    path = tmp_path / "other.yaml"
    path.write_text((tmp_path / "sample.yaml").read_text().replace("suite: sample", "suite: other"))
    work += jobs(build_plan([load_suite(path)], gpu_count=0).cases())
    assert processes_of(work, monkeypatch) == 2


def test_after_a_case_without_success_there_is_another_process(tmp_path, monkeypatch):
    work = jobs(scripted_cases(tmp_path, "lost", "wrong", "one_ms", sampling="repeat: 5"))
    assert processes_of(work, monkeypatch) == 3


def test_a_process_that_does_not_start_fails_the_case(tmp_path, monkeypatch):
    monkeypatch.setattr("gpubench.measure.worker.MAX_PROCESS_START_SECONDS", 0.05)
    monkeypatch.setattr("gpubench.measure.worker._serve", timed_kernels.sleep_long)
    (base,) = scripted_cases(tmp_path)
    with bench() as take:
        record = take(Job(base)).record
    assert (record.status, record.reason) == ("killed", "no process started within 0.05 s")


def test_a_function_may_start_processes_of_its_own(tmp_path):
    cases = scripted_cases(tmp_path, "with_a_process", sampling="repeat: 1, rounds: 1")
    with bench() as take:
        found = measured(cases, take)
    assert found["with_a_process"].record.status == "ok"


def test_pythons_warnings_are_counted_once_for_a_case_and_not_shown(tmp_path, capfd):
    cases = scripted_cases(tmp_path, "warns", "one_ms", sampling="repeat: 5")
    warned = Counter()
    with bench(warned=warned) as take:
        measured(cases, take)
    assert warned == {"RuntimeWarning: slow": 1}
    assert capfd.readouterr() == ("", "")


def test_what_a_function_prints_is_no_part_of_the_output(tmp_path, capfd):
    cases = scripted_cases(tmp_path, "prints", sampling="repeat: 5")
    with bench() as take:
        measured(cases, take)
    assert capfd.readouterr().out == ""
