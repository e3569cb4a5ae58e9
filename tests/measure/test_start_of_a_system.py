"""The labelled time ``start``: a fresh process imports, opens, uploads and calls once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from builders import case_of, plan_of

from gpubench.asv_benchmarks import benchmark_class
from gpubench.backends.numpy import NumpyBackend
from gpubench.backends.scripted import ScriptedBackend
from gpubench.measure import cold_start
from gpubench.measure.cold_start import ColdStartSampler
from gpubench.measure.direct import Job, bench, jobs, take_turn
from gpubench.measure.sampling import COMPILATIONS, sample_plan
from gpubench.plan.asked import with_values
from gpubench.plan.expansion import expand

KERNEL = """
sizes: {n: [8, 64]}
parameters: {dtype: [float32, float64]}
arrays:
  a: {shape: [n], dtype: dtype}
  out: {shape: [n], dtype: dtype, intent: out}
call: [a, out]
measure: [kernel, start]
baseline: base
sampling: {number: 1, repeat: 5, timeout: TIMEOUT}
implementations:
  base: {function: returning_kernels:twice, backend: scripted}
  candidate: {function: returning_kernels:FUNCTION, backend: scripted}
  numpy: {function: returning_kernels:write_twice, backend: numpy}
"""


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    """Where a kernel says what it did."""
    path = tmp_path / "said.txt"
    monkeypatch.setenv("RETURNING_KERNELS", str(path))
    return path


def kernel(function, timeout="60"):
    return KERNEL.replace("FUNCTION", function).replace("TIMEOUT", timeout)


@pytest.mark.slow
def test_every_sample_is_a_process_that_calls_once(tmp_path, file):
    case = case_of(tmp_path, kernel("says_where"), "candidate")
    assert ColdStartSampler(case, "start").seconds(3) > 0
    processes = file.read_text().split()
    assert len(processes) == len(set(processes)) == 3
    assert str(os.getpid()) not in processes


def test_it_contains_the_import_and_the_opening(tmp_path, monkeypatch):
    """By a clock that only they advance."""
    case = case_of(tmp_path, kernel("twice"), "candidate")
    clock = [0.0]
    load, start = cold_start.opened.__wrapped__.__globals__["load_target"], ScriptedBackend.start

    def slowly(seconds, work):
        def done(*arguments):
            clock[0] += seconds
            return work(*arguments)

        return done

    monkeypatch.setattr("gpubench.measure.bound_case.load_target", slowly(4.0, load))
    monkeypatch.setattr(ScriptedBackend, "start", slowly(2.0, start))
    monkeypatch.setattr(cold_start, "draw_inputs", slowly(8.0, cold_start.draw_inputs))
    monkeypatch.setattr(cold_start.time, "perf_counter", lambda: clock[0])
    assert cold_start.start_seconds(case) == 6.0


@pytest.mark.slow
def test_what_is_kept_between_processes_is_used(tmp_path, monkeypatch):
    """Unlike ``compile``, which begins with empty caches."""
    seen = []

    def run(command, env, **options):
        seen.append(env.get("SCRIPTED_CACHE"))
        return really_run(command, env=env, **options)

    really_run = cold_start.subprocess.run
    monkeypatch.setattr(cold_start.subprocess, "run", run)
    monkeypatch.setattr(ScriptedBackend, "caches", ("SCRIPTED_CACHE",))
    monkeypatch.setenv("SCRIPTED_CACHE", "as it is")
    case = case_of(tmp_path, kernel("twice"), "candidate")
    for time in ("start", "compile"):
        ColdStartSampler(case, time).seconds(1)
    first, second = seen
    assert first == "as it is"
    assert second != "as it is" and not Path(second).exists()


def test_cases_that_are_alike_start_once_and_other_backends_never(tmp_path, monkeypatch):
    monkeypatch.setattr(NumpyBackend, "times", ("kernel",))
    plan = plan_of(tmp_path, kernel("twice"))
    started = [job for job in jobs(plan.cases()) if job.time == "start"]
    names = [(job.case.implementation_name, job.case.identity) for job in started]
    expected = [f"n=8 dtype={dtype}" for dtype in ("float32", "float64")]
    assert names == [(name, one) for name in ("base", "candidate") for one in expected]


def test_asv_takes_few_samples_of_those_cases(tmp_path):
    group = plan_of(tmp_path, kernel("twice")).group("sample__candidate")
    made = benchmark_class(expand(group), 0)
    assert made.time_start.params == (["n=8 dtype=float32", "n=8 dtype=float64"],)
    assert (made.time_start.rounds, made.time_start.repeat) == (1, COMPILATIONS)
    assert len(made.params[0]) == 4
    assert made.time_start.version != made.time_kernel.version


@pytest.mark.slow
def test_it_is_measured_and_on_record(tmp_path):
    case = case_of(tmp_path, kernel("twice"), "candidate")
    with bench() as take:
        found = take(Job(case, "start", samples=2))
    assert found.record.status == "ok"
    assert found.record.benchmark == "suites.sample__candidate.time_start"
    assert found.record.method == "fresh process"
    assert len(found.samples) == 2
    assert all(seconds > 0 for seconds in found.samples)
    assert sample_plan(case.kernel.sampling, "start").processes == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "cause"),
    [("fails", "ValueError: there is no cluster"), ("exits", "SystemExit: 0")],
)
def test_a_process_that_fails_ends_the_case_with_its_cause(tmp_path, monkeypatch, function, cause):
    monkeypatch.setenv("RETURNING_KERNELS", str(os.getpid()))
    case = case_of(tmp_path, kernel(function), "candidate")
    record = take_turn(Job(case, "start")).record
    assert record.status == "failed"
    assert record.reason == f"the fresh process for start failed: {cause}"


@pytest.mark.slow
def test_a_fresh_process_finds_a_case_that_no_suite_declares(tmp_path):
    asked = with_values(plan_of(tmp_path, kernel("twice")), ["n=5", "dtype=int32"])
    group = next(one for one in asked.groups() if one.implementation_name == "candidate")

    case = asked.expansion(group).find("n=5 dtype=int32")

    assert ColdStartSampler(case, "start").seconds(1) > 0
