"""Work that a device does later is waited for, and what fails meanwhile is put on record."""

from unittest.mock import Mock

import pytest
from builders import Recording, plan_of

from gpubench.asv_benchmarks import TimedBenchmark
from gpubench.backends.protocol import DeviceLostError
from gpubench.backends.scripted import ScriptedSession
from gpubench.measure.asv_settings import AsvSettings
from gpubench.measure.case_run import State
from gpubench.measure.outcomes import WrongResult
from gpubench.plan.expansion import expand

KERNEL = """
sizes: {n: [64]}
arrays:
  a: {shape: [n], dtype: float32}
  out: {shape: [n], dtype: float32, intent: out}
call: [a, out]
devices: [cpu, 'scripted:0']
measure: [kernel, launch]
sampling: {warmup_time: 0, repeat: 500}
implementations:
  numpy: {function: misbehaving_kernels:scale}
  candidate: {function: misbehaving_kernels:FUNCTION, backend: scripted}
"""


def group_of(folder, function):
    (group,) = (
        group
        for group in plan_of(folder, KERNEL.replace("FUNCTION", function)).groups()
        if group.implementation_name == "candidate"
    )
    return group


def launches(folder, function):
    """The run of the one time that does not wait for the device."""
    case = expand(group_of(folder, function)).cases[0]
    return Recording(folder, case, "launch")


def test_outputs_are_read_when_the_device_is_done(tmp_path):
    launches(tmp_path, "scale_asynchronously").run.prepare()


def test_outputs_that_are_read_too_early_are_wrong(tmp_path, monkeypatch):
    monkeypatch.setattr(ScriptedSession, "synchronize", lambda session: None)
    record = launches(tmp_path, "scale_asynchronously").refusal(WrongResult)
    assert "out: 64 of 64 elements are NaN or infinite on one side only" in record.reason


def test_a_crash_that_no_sample_waited_for_is_put_on_record(tmp_path):
    recording = launches(tmp_path, "crash_while_timed")
    recording.run.advance(State.SAMPLED)
    assert recording.last.status == "ok"
    for _ in range(500):
        recording.run.bound.call()
    with pytest.raises(DeviceLostError):
        recording.run.advance(State.SETTLED)
    assert (recording.last.status, recording.last.reason) == (
        "failed",
        "the work crashed on cpu, as its script says",
    )


def test_asv_hears_of_a_crash_between_samples(tmp_path, monkeypatch):
    # A sample that is taken again would wait for the device, however busy the machine is.
    monkeypatch.setattr("gpubench.measure.observers.disturbance.watch_samples", lambda *_: Mock())
    recording = launches(tmp_path, "crash_while_timed")
    monkeypatch.setattr(AsvSettings, "record", recording.path)
    timed = TimedBenchmark(expand(group_of(tmp_path, "crash_while_timed")), "launch")
    identity = recording.run.case.identity
    timed.setup(identity)
    with pytest.raises(DeviceLostError):
        for _ in range(timed.repeat):
            timed.run(identity)
            timed.teardown(identity)
            timed.setup(identity)
    assert recording.last.status == "failed"
    timed.teardown(identity)  # as asv does after a failure
