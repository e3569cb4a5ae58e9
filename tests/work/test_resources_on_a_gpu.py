"""What softcuda says that Numba's kernels take is what numba-cuda's own link for a GPU says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from numba_kernels import make_kernels
from softcuda_process import on_softcuda

from softcuda.resources import find_linker

LIBRARY_ARCHITECTURES = {"sm_75": (7, 5), "sm_80": (8, 0), "sm_90a": (9, 0), "sm_100a": (10, 0)}
"""Those of ``cuda_compiler``, which compiles the library."""
needs_linker = pytest.mark.skipif(find_linker() is None, reason="nvJitLink is not installed")


def read_on_the_device() -> dict[str, Any]:
    """What the device in software tells of each kernel for each architecture."""
    import softcuda

    device = softcuda.start()
    found: dict[str, Any] = {}
    for name, (kernel, signature) in make_kernels().items():
        mangled = kernel.compile(signature).entry_name
        for architecture in LIBRARY_ARCHITECTURES.values():
            made = device.resources(mangled, architecture)
            assert made.missing is None, made.missing
            found[f"{name} {architecture}"] = asdict(made.kernels[mangled])
    return found


def read_as_on_a_gpu() -> dict[str, Any]:
    """What numba-cuda's own link for a GPU says of each kernel, by architecture."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))
    import cuda_compiler

    return {
        name: {
            entry: asdict(needs)
            for entry, needs in cuda_compiler.compile_kernel(kernel, signature).needs.items()
        }
        for name, (kernel, signature) in make_kernels().items()
    }


def run_without_the_device(function: Callable[[], Any]) -> Any:
    """What a function answers in a process that has no driver."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SOFTCUDA_", "GPUB"))}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    program = (
        f"import json, test_resources_on_a_gpu as t; print(json.dumps(t.{function.__name__}()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@needs_linker
def test_numbas_kernels_take_what_they_take_on_a_gpu() -> None:
    """Older architectures than the device's too, for which Numba compiles again."""
    told, real = on_softcuda(read_on_the_device), run_without_the_device(read_as_on_a_gpu)
    for kernel, by_architecture in real.items():
        for name, needs in by_architecture.items():
            one = told[f"{kernel} {LIBRARY_ARCHITECTURES[name]}"]
            assert not one["from_ptx"]
            assert one["registers"] == needs["registers"], (kernel, name)
            assert one["shared_bytes"] == needs["shared_bytes"]
            assert one["local_bytes"] == needs["stack_bytes"]
            assert one["spill_store_bytes"] == needs["spill_bytes"]
    assert told["tile (8, 0)"]["shared_bytes"] == 32 * 33 * 4
    assert told["local (8, 0)"]["local_bytes"] == 128 * 4
    assert told["spill (8, 0)"]["spill_store_bytes"] > 0
