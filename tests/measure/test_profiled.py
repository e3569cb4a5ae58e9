"""``gpubench profile``: what a profiler gets to see, and what is shown where there is none."""

from __future__ import annotations

import ctypes
import shlex
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from gpubench.backends import devices
from gpubench.cli import main
from gpubench.measure import nvtx, profiled

SUITE = """\
version: 1
suite: s
kernels:
  add:
    sizes: {n: [8]}
    arrays: {x: {shape: [n], dtype: float64}, y: {shape: [n], dtype: float64, intent: inout}}
    call: [x, y]
    baseline: numpy
    implementations:
      numpy: {function: "kernels_of_profiled:add"}
      good: {function: "kernels_of_profiled:add_logged", backend: numpy}
      bad: {function: "kernels_of_profiled:wrong", backend: numpy}
      numba_cuda: {function: "kernels_of_profiled:add_cuda", launch: {block: [8], grid: cover}}
    devices: [cpu, "cuda:0"]
"""
KERNELS = """\
from numba import cuda
log = []
def add(x, y):
    y += x
def add_logged(x, y):
    log.append(float(y[0]))
    y += x
def wrong(x, y):
    y -= x
@cuda.jit
def add_cuda(x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] += x[i]
"""
GOOD = "suites.s__add__good.time_kernel n=8"
BAD = "suites.s__add__bad.time_kernel n=8"
ON_CUDA = "suites.s__add__numba_cuda.time_kernel n=8 block=8 device=cuda:0"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites/s.yaml").write_text(SUITE)
    (tmp_path / "kernels_of_profiled.py").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "kernels_of_profiled", raising=False)
    return tmp_path


def run(*arguments: str, code: int) -> Result:
    result = CliRunner().invoke(main, ["profile", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return result


def test_each_range_holds_one_run_on_fresh_inputs(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    events: list[object] = []
    mark = (lambda name: events.append(name), lambda: events.append("end"))
    monkeypatch.setattr(profiled, "find_nvtx", lambda: mark)

    def logged() -> list[float]:
        return sys.modules["kernels_of_profiled"].log

    code = profiled.main(["--runs", "3", GOOD])

    assert code == 0
    assert events == [b"gpubench", "end"] * 3
    *_, first, second, third = logged()
    assert first == second == third  # each found what the suite says, not what a run left
    assert len(logged()) > 3  # it was checked and warmed up before
    assert "3 runs of s.add" in capsys.readouterr().err


def test_a_wrong_case_is_not_profiled(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert profiled.main([BAD]) == 1
    assert "gpubench: " in capsys.readouterr().err


def test_on_the_cpu_it_runs_until_the_time_is_over(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiled, "CPU_SECONDS", 0.0)
    assert profiled.run_profiled(profiled.find_case(GOOD, None), None) == 1
    monkeypatch.setattr(profiled, "CPU_SECONDS", 1e9)
    monkeypatch.setattr(profiled, "MAX_RUNS", 7)
    assert profiled.run_profiled(profiled.find_case(GOOD, None), None) == 7


def test_the_program_is_appended_and_the_profilers_exit_code_kept(project: Path) -> None:
    profiler = project / "profiler"
    profiler.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >arguments\nexit 7\n')
    profiler.chmod(0o755)

    run(GOOD, "--runs", "5", "--", str(profiler), "--set", "full", "--", code=7)

    program = [sys.executable, "-m", "gpubench.measure.profiled", "--runs", "5", GOOD]
    assert (project / "arguments").read_text().splitlines() == ["--set", "full", "--", *program]


def test_a_profiler_that_is_missing_has_its_command_shown(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)

    result = run(GOOD, "--", "ncu", "--set", "full", code=2)

    assert shlex.split(result.stdout)[:3] == ["ncu", "--set", "full"]
    assert shlex.split(result.stdout)[-1] == GOOD
    assert "nothing was profiled: ncu is not installed here" in result.stderr
    assert '--nvtx-include "gpubench/"' in result.stderr


def test_without_a_gpu_the_command_of_a_cuda_case_is_shown(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(devices, "gpu_count", lambda: 0)
    monkeypatch.setattr(devices, "no_gpu_reason", lambda: "there is no driver")

    result = run(ON_CUDA, "--", "nsys", "profile", code=2)

    assert result.stdout.startswith("nsys profile ")
    assert "nothing was profiled: there is no driver" in result.stderr


def test_show_runs_nothing(project: Path) -> None:
    result = run(GOOD, "--show", "--", "perf", "record", "-g", code=0)
    assert result.stdout.startswith("perf record -g ")
    assert "nothing was profiled" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((GOOD,), "give a profiler after --, such as"),
        (("suites.s__add__god.time_kernel n=8", "--", "perf"), "god"),
        ((GOOD.replace("n=8", "n=9"), "--", "perf"), "n=9"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    project: Path, arguments: tuple[str, ...], words: str
) -> None:
    assert words in run(*arguments, code=2).stderr


def test_without_nvtx_a_range_is_nothing() -> None:
    with nvtx.nvtx_range(None):
        pass


def test_a_range_is_closed_after_an_error() -> None:
    events: list[object] = []
    mark = (lambda name: events.append(name), lambda: events.append("end"))
    with pytest.raises(ValueError, match="within"), nvtx.nvtx_range(mark):
        raise ValueError("within")
    assert events == [b"gpubench", "end"]


def test_a_library_of_nvidias_package_opens_the_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / nvtx.LIBRARY_FOLDERS[1] / nvtx.LIBRARIES[0]
    path.parent.mkdir(parents=True)
    path.touch()
    loaded: list[str] = []

    def load(place: str) -> SimpleNamespace:
        loaded.append(place)
        return SimpleNamespace(nvtxRangePushA=lambda name: name, nvtxRangePop=lambda: None)

    monkeypatch.setitem(sys.modules, "nvtx", None)
    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])

    assert nvtx.find_nvtx() is not None
    assert loaded == [str(path)]


def test_without_any_library_there_are_no_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(place: str) -> SimpleNamespace:
        raise OSError(place)

    monkeypatch.setitem(sys.modules, "nvtx", None)
    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert nvtx.find_nvtx() is None
