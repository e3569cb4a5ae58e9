"""``options`` of an implementation reach its backend, whose refusal ends the case."""

from __future__ import annotations

import pytest
from builders import Recording, case_of

from gpubench.backends.scripted import ScriptedBackend
from gpubench.errors import BackendError
from gpubench.measure.bound_case import opened
from gpubench.measure.inputs import draw_inputs

KERNEL = """
sizes: {n: [64]}
arrays:
  a: {shape: [n], dtype: float32}
  out: {shape: [n], dtype: float32, intent: out}
call: [a, out]
baseline: base
implementations:
  base: {function: returning_kernels:twice, backend: scripted}
  candidate: {function: returning_kernels:twice, backend: scripted, options: {chunks: n // 4}}
"""


@pytest.fixture
def seen(monkeypatch):
    """The options of each session that was opened."""
    options, start = [], ScriptedBackend.start

    def started(backend, device, threads, **given):
        options.append(given)
        if given.get("chunks", 0) > 100:
            raise BackendError(f"the option chunks is {given['chunks']}; allowed: at most 100")
        return start(backend, device, threads)

    monkeypatch.setattr(ScriptedBackend, "options", {"chunks": "elements of a piece"})
    monkeypatch.setattr(ScriptedBackend, "start", started)
    return options


def test_a_case_is_opened_with_its_options_and_its_baseline_without(tmp_path, seen):
    case = case_of(tmp_path, KERNEL, "candidate")
    with opened(case, draw_inputs(case)):
        pass
    Recording(tmp_path, case).run.prepare()
    assert seen[:3] == [{"chunks": 16}, {}, {"chunks": 16}]


def test_a_value_that_the_backend_does_not_take_fails_the_case(tmp_path, seen):
    case = case_of(tmp_path, KERNEL.replace("n // 4", "n * 4"), "candidate")
    record = Recording(tmp_path, case).refusal(BackendError)
    assert (record.status, record.reason) == (
        "failed",
        "the option chunks is 256; allowed: at most 100",
    )
