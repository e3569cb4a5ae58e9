"""Every case ends on record: ready, skipped or failed, and why."""

from contextlib import suppress

import numpy as np
import pytest
from builders import SCALE, Recording, case_of, scale_with

from gpubench.backends import registry
from gpubench.backends.numba import NumbaSession
from gpubench.backends.numpy import NumpySession
from gpubench.backends.protocol import DeviceLostError
from gpubench.backends.scripted import ScriptedSession
from gpubench.errors import GpubenchError
from gpubench.measure.bound_case import BoundCase
from gpubench.measure.direct import Job, take_turn
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.outcomes import Skipped
from gpubench.measure.targets import load_target
from gpubench.measure.verify_cases import Manner, Verifier
from gpubench.record import RunRecord

CUDA = """
sizes: {n: [64]}
arrays:
  a: {shape: [n], dtype: float32}
  b: {shape: [n], dtype: float32, intent: inout}
call: [a, b]
implementations:
  numpy: {function: measured_kernels:add_in_place}
  cuda: {function: measured_kernels:add_in_place, backend: numba_cuda, launch: {LAUNCH}}
devices: [cpu, 'cuda:0']
"""


def cuda_case(folder, launch):
    return case_of(folder, CUDA.replace("LAUNCH", launch), "cuda")


@pytest.mark.parametrize(
    ("launch", "reason"),
    [
        ("block: [2048]", "block of 2048 threads: the limit is 1024 threads per block"),
        ("block: [64], grid: [[2**50]]", "the limit is 2147483647 blocks along x"),
    ],
)
def test_an_impossible_launch_is_skipped_with_the_limit(tmp_path, launch, reason):
    record = Recording(tmp_path, cuda_case(tmp_path, launch)).refusal(Skipped)
    assert record.status == "skipped"
    assert reason in record.reason


def test_a_machine_without_a_gpu_skips_cuda_cases_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(
        registry.get("numba_cuda"), "unavailable", lambda device: "no NVIDIA GPU was found"
    )
    record = Recording(tmp_path, cuda_case(tmp_path, "block: [64]")).refusal(Skipped)
    assert (record.status, record.reason) == ("skipped", "no NVIDIA GPU was found")
    assert (record.block, record.grid) == ((64, 1, 1), (1, 1, 1))


def test_a_skip_rule_gives_its_reason(tmp_path):
    rule = "skip: [{when: n > 32, reason: too large for a test}]\n"
    record = Recording(tmp_path, scale_with(tmp_path, "scale", rule)).refusal(Skipped)
    assert record.reason == "too large for a test"


def test_a_missing_requirement_says_what_to_install(tmp_path):
    kernel = SCALE + (
        "  candidate: {function: measured_kernels:scale, backend: numpy, requires: [none_such]}\n"
    )
    record = Recording(tmp_path, case_of(tmp_path, kernel, "candidate")).refusal(Skipped)
    assert "pip install none_such" in record.reason


def test_a_kernel_that_leaves_python_is_put_on_record(tmp_path):
    """It ends its process, and what only ``started`` would count as killed."""
    kernel = SCALE + "  candidate: {function: misbehaving_kernels:leave, backend: numpy}\n"
    recording = Recording(tmp_path, case_of(tmp_path, kernel, "candidate"))
    with pytest.raises(SystemExit):
        recording.run.prepare()
    said = "SystemExit: 3 in leave (misbehaving_kernels.py:"
    assert (recording.last.status, recording.last.reason[: len(said)]) == ("failed", said)


def test_a_failure_while_timing_is_put_on_record(tmp_path):
    kernel = SCALE + (
        "  candidate: {function: measured_kernels:fail_when_timed, backend: scripted}\n"
    )
    recording = Recording(tmp_path, case_of(tmp_path, kernel, "candidate"))
    with pytest.raises(GpubenchError):
        recording.run.prepare()
    assert recording.last.status == "failed"
    assert recording.last.reason == "the work crashed on cpu, as its script says"


@pytest.fixture
def device_that_stays_lost(monkeypatch):
    """A scripted device that answers nothing once work has crashed on it, as CUDA's do."""
    synchronize = ScriptedSession.synchronize

    def lost(session):
        if getattr(session, "is_lost", False):
            raise DeviceLostError("the device is lost")
        try:
            synchronize(session)
        except DeviceLostError:
            session.is_lost = True
            raise

    monkeypatch.setattr(ScriptedSession, "synchronize", lost)


@pytest.mark.parametrize("function", ["crash_at_once", "crash_when_timed"])
def test_a_lost_device_leaves_its_reason_on_record(tmp_path, device_that_stays_lost, function):
    kernel = SCALE + (
        f"  candidate: {{function: measured_kernels:{function}, backend: scripted}}\n"
    )
    case = case_of(tmp_path, kernel, "candidate")
    recording = Recording(tmp_path, case)
    with pytest.raises(DeviceLostError, match="crashed on cpu"):
        recording.run.prepare()
    assert recording.last.status == "failed"
    assert recording.last.reason == "the work crashed on cpu, as its script says"
    assert take_turn(Job(case)).record.status == "failed"


def test_the_record_begins_with_facts_and_a_start_and_ends_with_the_outcome(tmp_path):
    recording = Recording(tmp_path, scale_with(tmp_path, "scale"))
    recording.run.prepare()
    facts, started, outcome = recording.lines
    assert isinstance(facts, RunRecord)
    assert facts.facts["numpy"] == np.__version__
    assert (started.status, outcome.status) == ("started", "ok")
    assert outcome.values == {"n": 64}
    assert outcome.sizes == ("n",)
    assert outcome.method == "host loop"


def test_facts_are_written_once_for_many_cases(tmp_path):
    for _ in range(2):
        recording = Recording(tmp_path, scale_with(tmp_path, "scale"))
        recording.run.prepare()
    assert sum(isinstance(line, RunRecord) for line in recording.lines) == 1


def test_arrays_that_a_kernel_overwrites_are_restored(tmp_path):
    case = case_of(tmp_path, CUDA.replace("LAUNCH", "block: [64]"), "numpy")
    inputs = draw_inputs(case)
    with registry.get("numpy").open("cpu") as session:
        execution = BoundCase(session, case, load_target(case), inputs)
        once = execution.outputs()["b"]
        twice = execution.outputs()["b"]
        execution.restore()
        again = execution.outputs()["b"]
    np.testing.assert_allclose(twice, once + inputs.arrays["a"], rtol=1e-6)
    np.testing.assert_array_equal(again, once)


@pytest.mark.slow
def test_a_scripted_time_is_the_time_that_asv_would_store(tmp_path):
    kernel = SCALE + (
        "  candidate: {function: measured_kernels:scale_scripted, backend: scripted}\n"
    )
    sampling = Recording(tmp_path, case_of(tmp_path, kernel, "candidate")).run.prepare()
    begin = sampling.elapsed()
    sampling.sample()
    assert (sampling.elapsed() - begin) == pytest.approx(64e-9)


@pytest.mark.parametrize(
    ("implementation", "compiled"),
    [
        ("{function: measured_kernels:scale, backend: numpy}", False),
        ("{function: measured_kernels:total_compiled, backend: numba}", True),
        ("{function: measured_kernels:scale, backend: no_such_backend}", None),
    ],
)
def test_the_record_says_whether_a_backend_compiles(tmp_path, implementation, compiled):
    case = case_of(tmp_path, SCALE + f"  candidate: {implementation}\n", "candidate")
    recording = Recording(tmp_path, case)
    with suppress(Exception):  # what becomes of it is not asked here
        recording.run.prepare()
    assert recording.last.compiled is compiled


IN_FORTRAN_ORDER = SCALE.replace("[n], dtype: float32", "[2, n], dtype: float32, order: F")


def test_layouts_that_are_not_c_order_are_on_record(tmp_path):
    recording = Recording(tmp_path, case_of(tmp_path, IN_FORTRAN_ORDER, "numpy"))
    recording.run.prepare()
    assert recording.last.layouts == {"a": "F", "out": "F"}


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        (NumbaSession, "compiled (numba) cannot take `a` with Fortran order; give it an array in"),
        (NumpySession, "numpy cannot take `a` with Fortran order; give it an array in C order"),
    ],
)
def test_a_backend_that_cannot_take_a_layout_is_skipped(tmp_path, monkeypatch, session, reason):
    """The baseline's too."""
    monkeypatch.setattr(session, "layouts", ("C",))
    compiled = "  compiled: {function: measured_kernels:scale, backend: numba}\n"
    case = case_of(tmp_path, IN_FORTRAN_ORDER + compiled, "compiled")
    record = Recording(tmp_path, case).refusal(Skipped)
    assert (record.status, record.layouts) == ("skipped", {"a": "F", "out": "F"})
    assert record.reason.startswith(reason)
    assert Verifier(Manner())((0, case)).status == "skipped"
