"""Several implementations at once: portions by speed, whole results, and parts that fail."""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import divided_kernels
import numpy as np
import pytest

from gpubench.backends.numpy import NumpySession
from gpubench.backends.protocol import DeviceLostError, LayoutError
from gpubench.backends.scripted import ScriptedSession
from gpubench.backends.together import Piece, Runner, lengths_of
from gpubench.errors import KernelError, SuiteError
from gpubench.measure.bound_case import BoundCase, opened
from gpubench.measure.case_run import CaseRun
from gpubench.measure.conditions import why_not
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.outcomes import WrongResult, devices_of
from gpubench.measure.recorder import Recorder
from gpubench.measure.verification import expected_outputs, verify
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.plan.version import benchmark_version
from gpubench.suite.loading import load_suite

SUITE = Path(__file__).parents[2] / "gpubench/edge/systems/suites/together.yaml"

SCALE = """
sizes: {n: [1000]}
arrays:
  a: {shape: [n], dtype: float64}
  out: {shape: [n], dtype: float64, intent: out}
call: [a, out]
devices: [cpu, "scripted:0"]
sampling: {repeat: 2, sample_time: 0.001, warmup_time: 0}
implementations:
  numpy: {function: "divided_kernels:scale"}
"""


CUDA = """
sizes: {n: [5000]}
arrays:
  a: {shape: [n], dtype: float32}
  b: {shape: [n], dtype: float32, intent: inout}
call: [a, b, n]
implementations:
  numpy: {function: "gpubench.kernels.elementwise:vector_add_numpy"}
  numba_parallel: {function: "gpubench.kernels.elementwise:vector_add_parallel", backend: numba}
  numba_cuda:
    function: "gpubench.kernels.elementwise:vector_add_cuda"
    launch: {block: [64], grid: cover}
  together: {split: n, parts: [numba_parallel, numba_cuda]}
devices: [cpu, "cuda:*"]
"""


def case_of(folder: Path, kernel: str, implementation: str = "together") -> Case:
    path = folder / "sample.yaml"
    body = textwrap.indent(textwrap.dedent(kernel), "    ")
    path.write_text(f"version: 1\nsuite: sample\nbackend: numpy\nkernels:\n  sample:\n{body}\n")
    cases = build_plan([load_suite(path)], gpu_count=0).cases()
    return next(case for case in cases if case.implementation_name == implementation)


def scale_by(folder: Path, *parts: str, n: int = 1000, backend: str = "scripted") -> Case:
    """``out = 2 a`` by these functions together."""
    lines = [
        f'  {part}: {{function: "divided_kernels:{part}", backend: {backend}}}\n' for part in parts
    ]
    together = f"  together: {{split: n, parts: [{', '.join(parts)}]}}\n"
    return case_of(folder, SCALE.replace("1000", str(n)) + "".join(lines) + together)


@contextmanager
def verified(case: Case) -> Iterator[BoundCase]:
    """A case whose outputs are right, still open."""
    inputs = draw_inputs(case)
    expected = expected_outputs(case, inputs)
    with opened(case, inputs) as execution:
        result = verify(execution, expected)
        assert result.fault is None
        assert result.warnings == ()
        yield execution


@pytest.mark.parametrize(
    ("length", "speeds", "lengths"),
    [
        (10, [1.0, 1.0], (5, 5)),
        (7, [1.0, 1.0, 1.0], (2, 3, 2)),
        (7, [1.0, 4.0], (1, 6)),
        (1, [3.0, 1.0], (1, 0)),
        (2, [1e-9, 1.0, 1.0], (0, 1, 1)),
        (5, [0.0, 2.0], (0, 5)),
    ],
)
def test_portions_are_whole_and_add_up(
    length: int, speeds: list[float], lengths: tuple[int, ...]
) -> None:
    assert lengths_of(length, speeds) == lengths
    assert sum(lengths) == length


@pytest.mark.parametrize(
    ("parts", "n", "portions"),
    [
        (("quick", "slow"), 1000, "0.80 quick on scripted:0, 0.20 slow on scripted:0"),
        (("slow", "quick"), 7, "0.14 slow on scripted:0, 0.86 quick on scripted:0"),
        # 1.1 microseconds for every one of 550, and the launch and 450: both end together.
        (("quick", "launched"), 1000, "0.55 quick on scripted:0, 0.45 launched on scripted:0"),
        (("endless", "quick"), 1000, "0.00 endless on scripted:0, 1.00 quick on scripted:0"),
        (
            ("quick", "slow", "launched"), 2000,
            "0.47 quick on scripted:0, 0.12 slow on scripted:0, 0.42 launched on scripted:0",
        ),
    ],
)  # fmt: skip
def test_work_is_divided_by_measured_speed(
    tmp_path: Path, parts: tuple[str, ...], n: int, portions: str
) -> None:
    with verified(scale_by(tmp_path, *parts, n=n)) as execution:
        assert execution.session.facts()["parts"] == portions


def test_parts_run_at_once(tmp_path: Path) -> None:
    """Each waits for the other one inside of its call."""
    lines = [
        f'  {name}: {{function: "divided_kernels:wait_for_the_other"}}\n' for name in ("one", "two")
    ]
    text = SCALE + "".join(lines) + "  together: {split: n, parts: [one, two]}\n"
    case = case_of(tmp_path, text)
    inputs = draw_inputs(case)
    with opened(case, inputs) as execution:
        # Their speeds are measured one after the other, in which nobody would come.
        execution.session.simulated = True
        assert np.array_equal(execution.outputs()["out"], inputs.arrays["a"] * 2)


def test_any_dimension_is_cut_and_what_is_not_cut_goes_to_all(tmp_path: Path) -> None:
    text = """
    sizes: {n: [11]}
    arrays:
      weights: {shape: [3], dtype: float64}
      table: {shape: [3, n], dtype: float64}
      out: {shape: [3, n], dtype: float64, intent: inout}
    call: [weights, table, n, out]
    implementations:
      numpy: {function: "divided_kernels:add_in_place"}
      same: {function: "divided_kernels:add_in_place"}
      together: {split: n, parts: [numpy, same]}
    """
    with verified(case_of(tmp_path, text)) as execution:
        inputs = execution.inputs.arrays
        once = inputs["weights"][:, None] * inputs["table"]
        execution.restore()
        for runs in (1, 2):  # a run goes on with what the one before left
            assert np.allclose(execution.outputs()["out"], inputs["out"] + runs * once)
        assert np.array_equal(
            execution.session.to_host(execution._native["table"]), inputs["table"]
        )


LAID_OUT = """
    sizes: {n: [12]}
    arrays:
      table: {shape: [3, n], dtype: float64, %s}
      out: {shape: [3, n], dtype: float64, intent: out}
    call: [table, out]
    implementations:
      numpy: {function: "divided_kernels:note_strides"}
      same: {function: "divided_kernels:note_strides"}
      together: {split: n, parts: [numpy, same]}
"""


@pytest.mark.parametrize(
    ("table", "strides"),
    [
        ("order: C", {(8 * cut, 8) for cut in range(1, 12)}),
        ("order: F", {(8, 24)}),
        ("fill: {function: 'divided_kernels:every_second'}", {(192, 16)}),
        ("fill: {function: 'divided_kernels:backwards'}", {(-96, -8)}),
    ],
)
def test_portions_lie_in_memory_as_the_whole_does(
    tmp_path: Path, table: str, strides: set[tuple[int, int]]
) -> None:
    with verified(case_of(tmp_path, LAID_OUT % table)):
        divided_kernels.strides.clear()
    with opened(case := case_of(tmp_path, LAID_OUT % table), draw_inputs(case)) as execution:
        execution.outputs()
    assert set() < divided_kernels.strides <= strides
    divided_kernels.strides.clear()


def test_it_is_skipped_where_a_part_cannot_have_an_array_in_its_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NumpySession, "layouts", ("C",))
    case = case_of(tmp_path, LAID_OUT % "order: F")
    with pytest.raises(LayoutError, match="numpy on cpu cannot take `table` with Fortran order"):
        opened(case, draw_inputs(case)).__enter__()


def test_a_part_may_return_what_the_others_write(tmp_path: Path) -> None:
    text = (
        SCALE + '  returning: {function: "divided_kernels:scaled", returns: [out]}\n'
        "  together: {split: n, parts: [numpy, returning]}\n"
    )
    with verified(case_of(tmp_path, text)) as execution:
        assert np.array_equal(execution.outputs()["out"], execution.inputs.arrays["a"] * 2)


def test_a_part_that_returns_what_it_is_given_finds_it_restored(tmp_path: Path) -> None:
    text = (
        SCALE.replace("intent: out", "intent: inout").replace(":scale", ":double")
        + '  returning: {function: "divided_kernels:doubled", returns: [out]}\n'
        "  together: {split: n, parts: [numpy, returning]}\n"
    )
    with verified(case_of(tmp_path, text)) as execution:
        execution.outputs()
        execution.restore()
        native = execution._native["out"]
        assert np.array_equal(execution.session.to_host(native), execution.inputs.arrays["out"])


def test_sessions_of_all_parts_are_closed_on_their_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    monkeypatch.setattr(
        ScriptedSession, "close", lambda _: closed.append(threading.current_thread().name)
    )
    with verified(scale_by(tmp_path, "quick", "slow")):
        assert closed == []
    assert closed == ["slow_0", "quick_0"]


def test_a_piece_that_is_collected_waits_for_no_lock_and_is_released_on_its_thread() -> None:
    """Python may collect it within a method of the pool of threads, which holds its lock then."""
    released: list[str] = []

    class Memory:
        def __del__(self) -> None:
            released.append(threading.current_thread().name)

    session = SimpleNamespace(close=lambda: None)
    part: Any = SimpleNamespace(name="one", implementation="one", open=lambda: session)
    with ExitStack() as ending:
        runner = Runner(part, ending)
        pieces = [Piece(runner, slice(0, 1))]
        pieces[0]._native["a"] = Memory()
        with runner._thread._shutdown_lock:
            collecting = threading.Thread(target=pieces.clear)
            collecting.start()
            collecting.join(20)
            waits = collecting.is_alive()
        collecting.join()
        assert not waits
        assert released == []
        runner.do(int)
        assert released == ["one_0"]


def recording(folder: Path, case: Case, time: str = "kernel") -> CaseRun:
    return CaseRun(case, time, Recorder(folder / "record.jsonl"))


@pytest.mark.parametrize("time", ["kernel", "end_to_end"])
def test_it_is_timed_and_the_record_has_the_portions(tmp_path: Path, time: str) -> None:
    text = (
        SCALE + '  same: {function: "divided_kernels:scale"}\n'
        "  together: {split: n, parts: [numpy, same]}\n"
    )
    run = recording(tmp_path, case_of(tmp_path, text), time)
    try:
        sampler = run.prepare()
        assert sampler.runs >= 1
        assert run.record.status == "ok"
        portions = str(run.record.conditions["parts"])
        assert [one.partition(" ")[2] for one in portions.split(", ")] == [
            "numpy on cpu", "same on cpu",
        ]  # fmt: skip
        sampler.restored_sample()  # a look is at what a sample has left
        run.verify_at_last()
    finally:
        run.close()


def test_one_wrong_part_makes_the_whole_wrong(tmp_path: Path) -> None:
    text = (
        SCALE + '  other: {function: "divided_kernels:scale_wrongly_at_the_end"}\n'
        "  together: {split: n, parts: [numpy, other]}\n"
    )
    run = recording(tmp_path, case_of(tmp_path, text))
    with pytest.raises(WrongResult):
        run.prepare()
    assert run.record.status == "wrong"
    reason = str(run.record.reason)
    assert reason.startswith("differs from the baseline 'numpy': out: 1 of 1000 elements")
    assert "at [999]: 0.0 instead of" in reason


def test_a_part_that_fails_is_named_and_nothing_stays_behind(tmp_path: Path) -> None:
    before = threading.active_count()
    case = scale_by(tmp_path, "scale", "fail", backend="numpy")
    with (
        pytest.raises(KernelError, match=r"^fail on cpu: ZeroDivisionError: nothing to divide by$"),
        opened(case, draw_inputs(case)) as execution,
    ):
        execution.outputs()
    assert threading.active_count() == before


def test_a_part_whose_device_is_lost_loses_the_device(tmp_path: Path) -> None:
    case = scale_by(tmp_path, "quick", "lost")
    with opened(case, draw_inputs(case)) as execution, pytest.raises(DeviceLostError) as failure:
        for _ in range(20):
            execution.outputs()
    assert str(failure.value).startswith("lost on scripted:0: the work crashed")


def test_it_is_skipped_where_a_part_cannot_run(tmp_path: Path) -> None:
    text = (
        SCALE + '  later: {function: "divided_kernels:scale", requires: [no_such_module]}\n'
        "  together: {split: n, parts: [numpy, later]}\n"
    )
    reason = why_not(case_of(tmp_path, text))
    assert reason is not None
    assert reason.startswith("its part later on cpu cannot run: needs the module 'no_such_module'")


def test_a_part_that_no_device_serves_is_a_fault(tmp_path: Path) -> None:
    text = SCALE.replace('[cpu, "scripted:0"]', "[cpu]") + (
        '  gpu: {function: "divided_kernels:scale", backend: numba_cuda, launch: {block: [64]}}\n'
        "  together: {split: n, parts: [numpy, gpu]}\n"
    )
    fault = case_of(tmp_path, text).fault
    assert fault == "its part sample gpu: the backend numba_cuda runs on none of cpu"


@pytest.mark.parametrize(
    ("implementation", "arrays", "message"),
    [
        ("{parts: [numpy]}", "", "parts and split go together; give both or none"),
        ("{split: n, parts: [nunpy]}", "", "unknown implementation 'nunpy'"),
        ("{split: n, parts: [numpy, together]}", "", "unknown implementation 'together'"),
        ("{split: m, parts: [numpy]}", "", "unknown size 'm'"),
        ("{split: n, parts: [numpy], threads: [2]}", "", "parts have their own; remove threads"),
        ("{split: n, parts: [numpy], cast: float32}", "", "parts have their own; remove cast"),
        (
            "{split: n, parts: [numpy]}", "  b: {shape: [n + 1], dtype: float64}\n",
            "array 'b' cannot be cut: n is one extent of it, or none",
        ),
        (
            "{split: n, parts: [numpy]}", "  b: {shape: [n, n], dtype: float64}\n",
            "array 'b' cannot be cut: n is one extent of it, or none",
        ),
        (
            "{split: n, parts: [numpy]}", "  b: {shape: [1], dtype: float64, intent: out}\n",
            "array 'b' is written and has no extent n: who writes it?",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_divided_is_a_fault_of_the_suite(
    tmp_path: Path, implementation: str, arrays: str, message: str
) -> None:
    text = SCALE.replace("call: [a, out]", f"{arrays}call: [a, out{', b' if arrays else ''}]")
    with pytest.raises(SuiteError) as failure:
        case_of(tmp_path, f"{text}  together: {implementation}\n")
    assert message in str(failure.value)


def test_what_a_part_reads_is_an_axis_of_the_whole_and_parts_decide_the_version(
    tmp_path: Path,
) -> None:
    text = SCALE.replace("call:", "parameters: {count: [1, 2]}\ncall:") + (
        '  more: {function: "divided_kernels:scale", threads: [count]}\n'
        "  together: {split: n, parts: [numpy, more]}\n"
        "  alone: {split: n, parts: [numpy]}\n"
    )
    together = case_of(tmp_path, text)
    assert together.identity == "n=1000 count=1"
    assert [part.threads for part in together.parts()] == [None, 1]
    assert case_of(tmp_path, text, "alone").identity == "n=1000"
    kernel = together.kernel
    versions = {benchmark_version(kernel, name, "kernel") for name in ("together", "alone")}
    assert len(versions) == 2


def test_the_suite_that_divides_two_kernels_is_right_with_what_every_machine_has() -> None:
    cases = build_plan([load_suite(SUITE, "smoke")], gpu_count=0).cases()
    serial = next(case for case in cases if case.implementation_name == "serial")
    with verified(serial) as execution:
        facts = str(execution.session.facts()["parts"])
        assert facts.endswith(" numba_serial on cpu")
        assert " numpy on cpu, " in facts


def test_where_a_part_runs_the_whole_runs(tmp_path: Path) -> None:
    assert devices_of(case_of(tmp_path, CUDA)) == {"cpu", "cuda:0"}


@pytest.mark.gpu
def test_threads_and_a_gpu_compute_what_numpy_does(tmp_path: Path) -> None:
    with verified(case_of(tmp_path, CUDA)) as execution:
        session = execution.session
        assert [part.device for part in execution.case.parts()] == ["cpu", "cuda:0"]
        assert session.facts()["devices"] == "cpu and cuda:0"
        for _ in range(3):  # arrays of the GPU are given back on the thread that has its context
            execution.move()
        if session.simulated:
            facts = session.facts()["parts"]
            assert facts == "0.50 numba_parallel on cpu, 0.50 numba_cuda on cuda:0"


@pytest.mark.systems
def test_workers_of_dask_take_their_portion(tmp_path: Path) -> None:
    pytest.importorskip("dask.array")
    text = CUDA.replace('devices: [cpu, "cuda:*"]', 'devices: [cpu, "threads:1", "threads:2"]')
    start = text.index("  numba_cuda:")
    text = (
        text[:start]
        + '  dask: {function: "gpubench.edge.systems.kernels.cluster_arrays:vector_add_dask",'
        " returns: [b]}\n"
        "  together: {split: n, parts: [numba_parallel, dask]}\n" + text[text.index("devices") :]
    )
    with verified(case_of(tmp_path, text)) as execution:
        assert [part.device for part in execution.case.parts()] == ["cpu", "threads:2"]
