"""``scripts/gpu_check.py`` on a scripted device: what it compares, and when something differs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import pytest

from gpubench.backends import devices
from gpubench.measure.direct import Job, Measured, take_turn
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

SCRIPT = Path(__file__).parents[2] / "scripts" / "gpu_check.py"


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, with a scripted device in place of Numba's."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("gpu_check", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "gpu_check", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "_session", scripted)
    monkeypatch.setattr(module, "SIZES", (2**12, 2**16))
    return module


@contextmanager
def scripted(device: str) -> Iterator[Any]:
    from scripted_cuda import ScriptedCuda

    yield ScriptedCuda()


def test_without_a_gpu_it_says_why_and_exits_with_two(tmp_path: Path) -> None:
    if devices.no_gpu_reason() is None:
        pytest.skip("this machine has a GPU")
    command = [sys.executable, str(SCRIPT), "--output", str(tmp_path / "figures.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stdout.startswith("gpu-check: nothing checked: cuda:0: ")
    assert len(done.stdout.splitlines()) == 1
    assert not (tmp_path / "figures.json").exists()


def test_a_device_in_software_is_not_checked(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--output", str(tmp_path / "figures.json")]
    environment = os.environ | {"GPUBENCH_SOFTCUDA": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 2
    assert done.stdout == (
        "gpu-check: nothing checked: a device in software has no times; unset GPUBENCH_SOFTCUDA\n"
    )


def test_the_three_ways_are_timed_on_every_size(check: ModuleType) -> None:
    lines = list(check._ways("cuda:0"))
    assert [line.figures["elements"] for line in lines] == [4096, 65536]
    for line in lines:
        assert set(line.figures["seconds"]) == {"graph", "held back", "plain"}


@pytest.mark.parametrize(
    ("graph", "plain", "ok"),
    [(200e-6, 205e-6, True), (200e-6, 207e-6, False), (9e-6, 14e-6, None)],
    ids=["agree", "differ", "too short"],
)
def test_ways_have_to_agree_where_the_kernel_is_long(
    check: ModuleType, graph: float, plain: float, ok: bool | None
) -> None:
    assert check._agreement(4096, {"graph": graph, "plain": plain}).ok is ok


def test_bandwidth_is_held_against_the_devices_own_copy(check: ModuleType) -> None:
    (line,) = check._bandwidth("cuda:0")
    assert line.figures["rates"] == {
        "copy": pytest.approx(4e12),
        "triad": pytest.approx(4e12),
        "the device's own copy": pytest.approx(4e12),
    }
    assert line.ok


def test_ours_are_taken_as_kernel_and_cold_are(check: ModuleType) -> None:
    ours = check._our_seconds("cuda:0", 2**16)
    assert ours == {
        "kernel": pytest.approx(3 * 8 * 2**16 / 4e12),
        "cold": pytest.approx(3 * 8 * 2**16 / 4e12),
    }


@pytest.mark.parametrize(
    ("label", "ours", "theirs", "ok"),
    [
        ("cold", 10.9e-6, 10e-6, True),
        ("cold", 11.1e-6, 10e-6, False),
        ("cold", 1.049e-3, 1e-3, True),
        ("cold", 1.051e-3, 1e-3, False),
        ("kernel", 1.029e-3, 1e-3, True),
        ("kernel", 1.031e-3, 1e-3, False),
        ("kernel", 3e-6, 90e-6, None),  # by Python's launches
        ("kernel", 1e-3, None, None),
    ],
)
def test_cuda_bench_may_differ_by_some_percent_or_a_microsecond(
    check: ModuleType, label: str, ours: float, theirs: float | None, ok: bool | None
) -> None:
    assert check._comparison(label, 4096, ours, theirs).ok is ok


def test_cuda_benchs_figures_are_found_by_their_tags(check: ModuleType) -> None:
    def summary(tag: str, value: str) -> dict[str, Any]:
        return {"tag": tag, "data": [{"name": "value", "type": "float64", "value": value}]}

    state = {
        "axis_values": [{"name": "elements", "type": "int64", "value": "4096"}],
        "summaries": [
            summary("nv/cold/time/gpu/mean", "2e-6"),
            summary("nv/cold/time/cpu/mean", "9e-6"),
            summary("nv/batch/time/gpu/mean", "1e-6"),
        ],
    }
    assert check._elements(state) == 4096
    assert check._summaries(state) == {"kernel": 1e-6, "cold": 2e-6}


def test_a_part_that_fails_is_a_line_and_the_others_go_on(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(device: str) -> Iterator[Any]:
        raise RuntimeError("no such kernel")
        yield

    def fine(device: str) -> Iterator[Any]:
        yield check.Line("fine", "as it should be", True)

    monkeypatch.setattr(check, "CHECKS", {"broken": broken, "fine": fine, "left": broken})
    lines = list(check._checked("cuda:0", ["left"]))
    assert [(line.check, line.ok) for line in lines] == [("broken", False), ("fine", True)]
    assert lines[0].found == "RuntimeError: no such kernel"


@pytest.fixture
def library(check: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The library's part with a GPU that has no limits and reaches 3.8e12 bytes per second."""
    import gpu_library

    def seconds(case: Any) -> float:
        return float((case.work()[0] or 0) / (3.8e12 if case.block == (256,) else 3.1e12))

    monkeypatch.setattr(gpu_library, "_seconds", seconds)
    monkeypatch.setattr(gpu_library, "why_not", lambda case: None)
    return gpu_library


@pytest.mark.parametrize(("reach", "ok"), [(0.9, True), (0.96, False)])
def test_streaming_kernels_are_held_against_the_devices_own_copy(
    check: ModuleType, library: ModuleType, monkeypatch: pytest.MonkeyPatch, reach: float, ok: bool
) -> None:
    monkeypatch.setattr(check, "STREAMS_REACH", reach)  # the scripted device copies at 4e12
    copy = check._own_copy
    monkeypatch.setattr(check, "_own_copy", lambda session, _: copy(session, 2**20))
    lines = list(check._streaming("cuda:0"))
    assert [line.check for line in lines] == list(library.STREAMING)
    assert {line.ok for line in lines} == {ok}
    assert lines[0].figures["rate"] == pytest.approx(3.8e12)
    assert lines[0].found == "3800 GB/s, 95% of the device's own copy"


def test_the_largest_size_and_the_fastest_launch_count(library: ModuleType) -> None:
    found = library.fastest(
        library.largest(library.cuda_cases("cuda:0"), "streaming.copy", "float64")
    )
    assert found.case.values == {"n": 2**24, "dtype": "float64"}
    assert found.case.block == (256,)
    with pytest.raises(ValueError, match="no case can run"):
        library.fastest(library.largest([], "streaming.copy", "float64"))


@pytest.mark.parametrize(("theirs", "ok"), [(1.0, True), (0.01, False)])
def test_three_kernels_stand_beside_cupys(
    check: ModuleType, library: ModuleType, monkeypatch: pytest.MonkeyPatch, theirs: float, ok: bool
) -> None:
    asked = []

    def cupy_seconds(peer: Any, case: Any) -> float:
        asked.append((peer.kernel, case.implementation_name, case.values["dtype"]))
        return library._seconds(case) * theirs

    monkeypatch.setattr(library, "has_cupy", lambda: True)
    monkeypatch.setattr(library, "_cupy_seconds", cupy_seconds)
    lines = list(check._cupy("cuda:0"))
    assert asked == [(peer.kernel, peer.implementation, peer.dtype) for peer in library.PEERS]
    assert {line.ok for line in lines} == {ok}


def test_without_cupy_the_table_says_what_to_install(
    check: ModuleType, library: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "has_cupy", lambda: False)
    (line,) = check._cupy("cuda:0")
    assert (line.ok, line.found) == (None, "CuPy is not installed: pip install cupy-cuda13x")


def test_every_cuda_case_of_the_smoke_presets_is_asked(check: ModuleType) -> None:
    import gpu_library

    cases = gpu_library.cuda_cases("cuda:0", "smoke")
    assert len({case.kernel_name for case in cases}) > 50
    assert gpu_library.faults(cases[:3]) == {}  # they cannot run here, which is no fault


def test_a_case_is_timed_by_five_samples(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gpu_library

    taken = []

    def noted(job: Job) -> Measured:
        taken.append(take_turn(job))
        return taken[-1]

    monkeypatch.setattr(gpu_library, "take_turn", noted)
    plan = build_plan(load_suites([gpu_library.SUITES / "norm.yaml"], "smoke"), gpu_count=1)
    on_the_cpu, on_a_gpu = (
        next(case for case in plan.cases() if case.backend == backend)
        for backend in ("numpy", "numba_cuda")
    )

    assert gpu_library._seconds(on_the_cpu) == median(taken[0].samples)
    assert len(taken[0].samples) == 5
    if devices.no_gpu_reason() is not None:
        assert gpu_library._seconds(on_a_gpu) == inf
