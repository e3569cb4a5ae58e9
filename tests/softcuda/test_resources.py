"""What the compiler makes of kernels: by its log, by its own PTX, and as a GPU would get it."""

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
from kernels_in_ptx import KERNELS
from softcuda_process import on_softcuda

from gpubench.softcuda import build, resources
from gpubench.softcuda.resources import (
    Resources,
    compile_resources,
    find_linker,
    link_module,
    read_log,
    strip_origin,
)

ARCHITECTURES = ((7, 5), (8, 0), (8, 9), (9, 0), (10, 0))
LIBRARY_ARCHITECTURES = {"sm_75": (7, 5), "sm_80": (8, 0), "sm_90a": (9, 0), "sm_100a": (10, 0)}
"""Those of ``cuda_compiler``, which compiles the library."""
needs_linker = pytest.mark.skipif(find_linker() is None, reason="nvJitLink is not installed")

LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Function properties for helper
ptxas         .     80 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Compiling entry function 'one' for 'sm_80'
ptxas info    : Function properties for one
ptxas         .     40 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 24 registers, used 2 barriers, 100 bytes smem, 360 bytes cmem[0]
ptxas info    : Compiling entry function 'two' for 'sm_80'
ptxas info    : Function properties for two
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 64 bytes cumulative stack size
"""
RECURSES = "warning : Stack size for entry function 'one' cannot be statically determined\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that is empty, so that each test sees what is made."""
    monkeypatch.setattr(resources, "cache_folder", lambda: tmp_path)
    return tmp_path


def test_a_log_tells_registers_memory_and_spills_of_each_kernel() -> None:
    assert read_log(LOG, (8, 0)) == {
        # What functions spill counts for kernels, which may call them.
        "one": Resources(24, 100, 40, 16, 24, (8, 0), barriers=2),
        "two": Resources(255, 0, 64, 12, 16, (8, 0)),
    }


def test_a_kernel_that_recurses_takes_one_call_at_least() -> None:
    assert read_log(LOG + RECURSES, (8, 0))["one"].local_bytes == 40 + 80


def test_a_log_without_kernels_tells_nothing() -> None:
    assert read_log("ptxas fatal : out of memory", (8, 0)) == {}


@needs_linker
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_ptx_is_assembled_for_every_architecture(architecture: tuple[int, int]) -> None:
    made = compile_resources(KERNELS, architecture)
    assert made.missing is None
    assert {"add_one", "count_at_barrier", "empty"} <= set(made.kernels)
    assert all(one.architecture == architecture and one.from_ptx for one in made.kernels.values())
    assert made.kernels["count_at_barrier"].barriers == 1
    assert 0 < made.kernels["empty"].registers <= made.kernels["add_one"].registers


@needs_linker
def test_ptx_for_one_newer_architecture_is_assembled_where_its_instructions_exist() -> None:
    newer = KERNELS.replace(".target sm_75", ".target sm_90a")
    assert compile_resources(newer, (7, 5)).missing is None
    # redux.sync came with compute capability 8.0
    reduces = newer.replace("add.u32 %r3, %r2, 1;", "redux.sync.add.s32 %r3, %r2, -1;")
    assert "sm_80" in str(compile_resources(reduces, (7, 5)).missing)
    assert compile_resources(reduces, (8, 0)).missing is None


@needs_linker
def test_what_cannot_be_assembled_says_why() -> None:
    made = compile_resources(KERNELS + "\n.nonsense", (8, 0))
    assert made.kernels == {}
    assert "nvJitLink for sm_80: ptxas" in str(made.missing)
    unknown = compile_resources(KERNELS, (99, 0))
    assert "refuses sm_990a" in str(unknown.missing)


@needs_linker
def test_what_was_made_is_read_from_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile_resources(KERNELS, (8, 0))
    (file,) = cache.glob("*-resources.json")
    with monkeypatch.context() as patch:
        patch.setattr(resources, "link_module", lambda *_: pytest.fail("linked again"))
        assert compile_resources(KERNELS, (8, 0)) == first
    file.write_text("{damaged", encoding="utf-8")
    assert compile_resources(KERNELS, (8, 0)) == first


def test_without_a_linker_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "find_linker", lambda: None)
    made = compile_resources(KERNELS, (8, 0))
    assert made.kernels == {}
    assert "pip install 'gpubench-suite[cuda]'" in str(made.missing)
    with pytest.raises(build.UnavailableError, match="nvJitLink is not installed"):
        link_module(KERNELS, (8, 0))


# ---- kernels of Numba ----------------------------------------------------------------------------


def make_kernels() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Kernels and types of their arguments by name: a plain one, one with shared memory, one with
    local memory, and one that spills."""
    from numba import cuda, float32, float64

    @cuda.jit
    def copy(a, b):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < a.size:
            b[i] = a[i]

    @cuda.jit
    def tile(a, b):  # type: ignore[no-untyped-def]
        tile = cuda.shared.array((32, 33), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        tile[y, x] = a[32 * y + x]
        cuda.syncthreads()
        b[32 * y + x] = tile[x, y]

    @cuda.jit
    def local(a, b):  # type: ignore[no-untyped-def]
        part = cuda.local.array(128, float32)
        for k in range(a.size):
            part[k % 128] += a[k]
        b[cuda.grid(1)] = part[int(a[0]) % 128]

    @cuda.jit(max_registers=24)
    def spill(a, b):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        p, q, r, s = a[i], a[i + 1], a[i + 2], a[i + 3]
        t, u, v, w = a[i + 4], a[i + 5], a[i + 6], a[i + 7]
        for _ in range(a.size):
            p, q, r, s = p * q + r, q * r + s, r * s + t, s * t + u
            t, u, v, w = t * u + v, u * v + w, v * w + p, w * p + q
        b[i] = p + q + r + s + t + u + v + w

    single, double = (float32[::1], float32[::1]), (float64[::1], float64[::1])
    return {
        "copy": (copy, single),
        "tile": (tile, single),
        "local": (local, single),
        "spill": (spill, double),
    }


def read_on_the_device() -> dict[str, Any]:
    """What the device in software tells of each kernel for each architecture."""
    from gpubench import softcuda

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
    program = f"import json, test_resources as t; print(json.dumps(t.{function.__name__}()))"
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


def read_of_a_debugged_kernel() -> Any:
    from numba import cuda, float32

    from gpubench import softcuda

    @cuda.jit(debug=True, opt=False, max_registers=32)
    def copy(a, b):  # type: ignore[no-untyped-def]
        b[cuda.grid(1)] = a[cuda.grid(1)]

    name = copy.compile((float32[::1], float32[::1])).entry_name
    return asdict(softcuda.start().resources(name, (7, 5)).kernels[name])


@needs_linker
def test_a_kernel_for_a_debugger_is_assembled_from_ptx_with_its_options() -> None:
    """Numba links no LTO-IR for it; its PTX is for the device's newer architecture."""
    one = on_softcuda(read_of_a_debugged_kernel)
    assert one["from_ptx"]
    assert 0 < one["registers"] <= 32


@needs_linker
def test_code_that_is_linked_again_is_the_ptx_that_runs() -> None:
    """What says how PTX was linked is no part of it."""
    image = KERNELS + "//softcuda-linked-from option -lto\n//softcuda-linked-from 3 AAAA\n"
    assert strip_origin(image) == KERNELS
    # The input is no LTO-IR: the linker refuses it, and the PTX is no substitute.
    assert "nvJitLink for sm_80" in str(compile_resources(image, (8, 0)).missing)


def ask_for_an_unknown_kernel() -> Any:
    from gpubench import softcuda

    return softcuda.start().resources("none", (8, 0)).missing


def test_a_kernel_that_was_not_loaded_is_named() -> None:
    assert on_softcuda(ask_for_an_unknown_kernel) == "no module with a kernel none was loaded"


def ask_without_numba() -> Any:
    """What is told of a module for an older GPU by who cannot have it compiled again."""
    import tempfile

    from gpubench import softcuda

    device = softcuda.start()
    kernel, signature = make_kernels()["copy"]
    image = device._images[kernel.compile(signature).entry_name]
    resources.cache_folder = lambda: Path(tempfile.mkdtemp())
    return resources.compile_resources(image, (7, 5)).missing


@needs_linker
def test_code_for_a_newer_gpu_alone_says_what_to_set() -> None:
    assert on_softcuda(ask_without_numba) == (
        "the code was made for sm_80 and cannot be linked for sm_75, which is older; "
        "set SOFTCUDA_CC=7.5"
    )
