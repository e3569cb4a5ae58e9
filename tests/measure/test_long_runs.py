"""A long run on the host is spent on samples and on what proves them, and on nothing else."""

import math

import pytest
from builders import Recording, case_of

from gpubench.measure.direct import Job, take_turn

KERNEL = """
sizes: {n: [64]}
arrays:
  a: {shape: [n], dtype: float64}
  out: {shape: [n], dtype: float64, intent: out}
call: [a, out]
sampling: {rounds: 1, repeat: 5, warmup_time: 0}
implementations:
  numpy: {function: long_kernels:double}
  candidate: {function: long_kernels:double_and_count, backend: numpy}
"""

KERNELS = """
from itertools import count
from time import sleep

calls, wrong_from = count(1), 1000


def double(a, out):
    out[:] = 2 * a


def double_in_place(out):
    sleep(0.02)
    out *= 2


def double_and_count(a, out):
    sleep(0.02)
    out[:] = 2 * a if next(calls) < wrong_from else 0
"""


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    (tmp_path / "long_kernels.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "long_kernels", raising=False)
    monkeypatch.setattr("gpubench.measure.sampling.LONG", 0.01)
    # Whatever else runs beside the tests: no sample is taken again.
    monkeypatch.setattr("gpubench.measure.retaking.WAITED", math.inf)
    import long_kernels

    return long_kernels


def test_five_samples_take_seven_runs(tmp_path, kernels):
    found = take_turn(Job(case_of(tmp_path, KERNEL, "candidate")))
    assert (found.record.status, len(found.samples)) == ("ok", 5)
    # Two that are compared before, and the samples, the last of which is compared too.
    assert next(kernels.calls) == 8


def test_the_last_sample_is_looked_at(tmp_path, kernels):
    kernels.wrong_from = 7
    found = take_turn(Job(case_of(tmp_path, KERNEL, "candidate")))
    assert (found.record.status, found.samples) == ("wrong", ())
    assert found.record.reason.startswith("right at first, wrong after 5 timed runs: out: 64 of 64")


def test_what_works_in_place_may_have_run_several_times_in_the_last_sample(tmp_path, kernels):
    """As with asv's ``-a number=2``, which runs twice before arrays are restored."""
    text = KERNEL.replace("intent: out", "intent: inout").replace("call: [a, out]", "call: [out]")
    text = text.replace("  a: {shape: [n], dtype: float64}\n", "").replace(
        "_and_count", "_in_place"
    )
    text = text.replace("long_kernels:double}", "long_kernels:double_in_place}")
    recording = Recording(tmp_path, case_of(tmp_path, text, "candidate"))
    measurement = recording.run.prepare()
    measurement.restored_sample()
    measurement.sample()
    recording.run.verify_at_last()
    assert recording.last.status == "ok"
