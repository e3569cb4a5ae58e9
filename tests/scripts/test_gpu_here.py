"""``make gpu-check`` without a GPU says why at once, and installs nothing."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_here", ROOT / "scripts/gpu_here.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Nvml:
    """The management library of a driver with so many GPUs, or one that does not start."""

    def __init__(self, count: int = 0, error: int = 0) -> None:
        self.count, self.error = count, error

    def nvmlInit_v2(self) -> int:
        return self.error

    def nvmlDeviceGetCount_v2(self, found: Any) -> int:
        found._obj.value = self.count
        return 0


@pytest.mark.parametrize(
    ("nvml", "reason"),
    [
        (Nvml(count=1), None),
        (Nvml(count=0), "the NVIDIA driver is here and finds no GPU"),
        (
            Nvml(count=1, error=9),
            "the NVIDIA driver does not answer (NVML error 9); nvidia-smi says more",
        ),
    ],
)
def test_the_driver_is_asked(
    nvml: Nvml, reason: str | None, script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script.ctypes, "CDLL", lambda library: nvml)
    assert script.why_none() == reason


def test_make_ends_with_2_and_one_reason_before_it_installs(
    script: ModuleType, tmp_path: Path
) -> None:
    if shutil.which("make") is None:
        pytest.skip("there is no make on this machine")
    if script.why_none() is None:
        pytest.skip("this machine has a GPU")
    environment = tmp_path / "environment"
    done = subprocess.run(
        ["make", "--no-print-directory", "gpu-check", f"VENV={environment}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stdout.splitlines() == [f"gpu-check: nothing checked: {script.why_none()}"]
    assert not environment.exists()
