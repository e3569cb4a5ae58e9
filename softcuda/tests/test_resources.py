"""What the compiler makes of kernels: by its log, by its own PTX, and as a GPU would get it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from kernels_in_ptx import KERNELS
from numba_kernels import make_kernels
from softcuda_process import on_softcuda

from softcuda import build, resources
from softcuda.resources import (
    Resources,
    compile_resources,
    find_linker,
    link_module,
    read_log,
    strip_origin,
)

ARCHITECTURES = ((7, 5), (8, 0), (8, 9), (9, 0), (10, 0))
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
    """Return a cache that is empty, so that each test sees what is made."""
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
    assert "pip install 'numba-cuda[cu13]'" in str(made.missing)
    with pytest.raises(build.UnavailableError, match="nvJitLink is not installed"):
        link_module(KERNELS, (8, 0))


# ---- kernels of Numba ----------------------------------------------------------------------------


def read_of_a_debugged_kernel() -> Any:
    from numba import cuda, float32

    import softcuda

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
    """Keep what says how PTX was linked out of it."""
    image = KERNELS + "//softcuda-linked-from option -lto\n//softcuda-linked-from 3 AAAA\n"
    assert strip_origin(image) == KERNELS
    # The input is no LTO-IR: the linker refuses it, and the PTX is no substitute.
    assert "nvJitLink for sm_80" in str(compile_resources(image, (8, 0)).missing)


def ask_for_an_unknown_kernel() -> Any:
    import softcuda

    return softcuda.start().resources("none", (8, 0)).missing


def test_a_kernel_that_was_not_loaded_is_named() -> None:
    assert on_softcuda(ask_for_an_unknown_kernel) == "no module with a kernel none was loaded"


def ask_without_numba() -> Any:
    """Return what is told of a module for an older GPU by who cannot have it compiled again."""
    import tempfile

    import softcuda

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
