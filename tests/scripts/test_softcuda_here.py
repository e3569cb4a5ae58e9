"""``make bench`` without a GPU runs CUDA in software where it can, and says why where not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "softcuda_here", ROOT / "scripts/softcuda_here.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module.platform, "system", lambda: "Linux")
    monkeypatch.setattr(module.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(module.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(sys, "argv", ["softcuda_here.py"])
    return module


def test_linux_with_a_compiler_will_do(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main() == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("name", "value"), [("system", "Darwin"), ("machine", "riscv64")])
def test_another_system_is_named(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    value: str,
) -> None:
    monkeypatch.setattr(script.platform, name, lambda: value)
    assert script.main() == 2
    assert "that runs on Linux on x86-64 and 64-bit Arm, not on" in capsys.readouterr().out


def test_a_missing_compiler_is_named(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script.shutil, "which", lambda name: None)
    assert script.main() == 2
    assert "none of cc, gcc, clang is on the PATH; install one" in capsys.readouterr().out


OLD = """\
[project.optional-dependencies]
cuda = ["numba-cuda[cu13]>=0.30.4", "numpy<2.5"]
"""
"""Of a commit whose wheel holds softcuda too."""


def installed_from(
    checkout: Path, script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> list[list[str]]:
    """Return what pip is given, where it fails."""
    ran: list[list[str]] = []

    def fail(command: list[str], check: bool) -> subprocess.CompletedProcess[str]:
        ran.append(command[5:])
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(script.subprocess, "run", fail)
    monkeypatch.setattr(sys, "argv", ["softcuda_here.py", "--install", str(checkout)])
    assert script.main() == 0  # asv would end with an environment that cannot be made
    return ran


@pytest.mark.parametrize(("switch", "commands"), [(None, 0), ("0", 0), ("1", 1)])
def test_softcuda_of_the_commit_is_installed_where_cuda_in_software_is_asked_for(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    switch: str | None,
    commands: int,
) -> None:
    monkeypatch.delenv("GPUBENCH_SOFTCUDA", raising=False)
    if switch is not None:
        monkeypatch.setenv("GPUBENCH_SOFTCUDA", switch)
    assert installed_from(ROOT, script, monkeypatch) == [[str(ROOT / "softcuda")]] * commands
    said = capsys.readouterr().out
    assert said.startswith(f"CUDA is skipped: {ROOT}") if commands else said == ""


def test_a_commit_with_softcuda_in_its_own_wheel_needs_numba_cuda(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("GPUBENCH_SOFTCUDA", "1")
    (tmp_path / "pyproject.toml").write_text(f"[project]\n{OLD}")
    expected = [["numba-cuda[cu13]>=0.30.4", "numpy<2.5"]]
    assert installed_from(tmp_path, script, monkeypatch) == expected
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    assert installed_from(tmp_path, script, monkeypatch) == []
    assert "CUDA is skipped: " in capsys.readouterr().out
