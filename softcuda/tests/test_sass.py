"""Machine code of kernels by line of Python, and loads that ptxas joins."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from kernels_in_ptx import KERNELS
from softcuda_process import on_softcuda

from softcuda import sass
from softcuda.resources import find_linker
from softcuda.sass import (
    KernelCode,
    LineCode,
    LoopCode,
    disassemble,
    find_disassembler,
    read_sass,
    read_shared_load_bytes,
)

needs_tools = pytest.mark.skipif(
    find_disassembler() is None or find_linker() is None,
    reason="nvdisasm or nvJitLink is not installed",
)

TEXT = """\
\t.section\t.text.one,"ax",@progbits
one:
.text.one:
\t//## File "/k.py", line 8
        /*0000*/                   MOV R1, c[0x0][0x28] ;
\t//## File "/k.py", line 9
        /*0010*/              @!P0 LDS.128 R4, [R16] ;
        /*0020*/                   LDS R9, [R3.X4+0x80] ;
\t//## File "/k.py", line 8
        /*0030*/               @P0 BRA `(.L_x_0) ;
        /*0040*/                   EXIT ;
.L_x_1:
        /*0050*/                   BRA `(.L_x_1);
        /*0060*/                   NOP;
.L_x_2:
\t.section\t.text.two,"ax",@progbits
.text.two:
        /*0000*/                   EXIT ;
"""


def test_instructions_are_counted_by_line_without_what_fills_the_end() -> None:
    one, two = read_sass(TEXT, {"one": 4}).values()
    assert one == KernelCode(
        instructions=5,
        shared_loads=2,
        shared_load_bytes=20,
        joined_shared_loads=4.0,
        lines=(LineCode("/k.py", 8, 3), LineCode("/k.py", 9, 2)),
    )
    # Compiled without lines.
    assert two == KernelCode(1, 0, 0, 1.0, (LineCode("", 0, 1),))


LOOPS = """\
\t.section\t.text.one,"ax",@progbits
\t//## File "/k.py", line 4
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_0:
\t//## File "/k.py", line 5
        /*0010*/                   IADD3 R2, R2, 0x1, RZ ;
.L_x_1:
\t//## File "/k.py", line 6
        /*0020*/                   FADD R3, R3, R4 ;
        /*0030*/               @P0 BRA `(.L_x_1) ;
\t//## File "/k.py", line 5
        /*0040*/               @P1 BRA `(.L_x_0) ;
        /*0050*/               @P2 BRA `(.L_x_2) ;
        /*0060*/                   NOP;
.L_x_2:
        /*0070*/                   EXIT ;
"""


def test_loops_are_bodies_from_their_beginning_to_the_last_jump_back() -> None:
    (one,) = read_sass(LOOPS, {}).values()
    assert one.loops == (LoopCode(4, 1, "/k.py", 5, 6), LoopCode(2, 2, "/k.py", 6, 6))
    assert one.lines == (
        LineCode("/k.py", 4, 1, 0), LineCode("/k.py", 5, 4, 2), LineCode("/k.py", 6, 2, 2),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("instruction", "size"),
    [("LDS", 4), ("LDS.U8", 1), ("LDS.S16", 2), ("LDS.64", 8), ("LDS.U.128", 16)],
)
def test_a_load_names_its_width(instruction: str, size: int) -> None:
    text = TEXT.replace("LDS.128", instruction).replace("LDS R9", "MOV R9")
    assert read_sass(text, {})["one"].shared_load_bytes == size


def test_the_narrowest_shared_load_of_each_kernel_is_read_from_ptx() -> None:
    ptx = """
.visible .entry one(
\tld.shared.f32 %f1, [%r1];
\tld.volatile.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r1];
.visible .entry two(
\tld.shared::cta.v2.b64 {%d1, %d2}, [%r1];
\tld.global.u8 %r1, [%d1];
"""
    assert read_shared_load_bytes(ptx) == {"one": 4, "two": 16}


def test_without_a_disassembler_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sass, "find_disassembler", lambda: None)
    made = disassemble(KERNELS, (8, 0))
    assert made.kernels == {}
    assert "pip install nvidia-cuda-nvdisasm" in str(made.missing)


@needs_tools
def test_code_that_cannot_be_linked_says_why() -> None:
    assert "nvJitLink for sm_80" in str(disassemble(KERNELS + ".nonsense", (8, 0)).missing)


@needs_tools
def test_a_disassembler_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "nvdisasm"
    broken.write_text("#!/bin/sh\necho broken >&2\nexit 3\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setattr(sass, "find_disassembler", lambda: broken)
    assert disassemble(KERNELS, (8, 0)).missing == f"{broken}: broken"


def read_code_of_a_tile() -> Any:
    """Return the code of a product of tiles, whose rows four loads of 4 bytes read side by side,
    and of a copy."""
    from numba import cuda, float32

    import softcuda

    device = softcuda.start()
    device.add_lines()

    @cuda.jit
    def tile(a, b):  # type: ignore[no-untyped-def]
        part = cuda.shared.array((32, 32), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        part[y, x] = a[32 * y + x]
        cuda.syncthreads()
        total = float32(0)
        for k in range(32):
            total += part[y, k] * part[k, x]
        b[32 * y + x] = total

    @cuda.jit
    def copy(a, b):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        b[i] = a[i]

    found = []
    for kernel in (tile, copy):
        name = kernel.compile((float32[::1], float32[::1])).entry_name
        made = device.code(name, (8, 0))
        assert made.missing is None, made.missing
        assert device.code(name, (8, 0)) == made  # from the cache
        found.append(asdict(made.kernels[name]))
    return found


@needs_tools
def test_a_kernel_of_numba_has_code_by_line_and_loads_that_are_joined() -> None:
    tile, copy = on_softcuda(read_code_of_a_tile)
    assert (tile["joined_shared_loads"], copy["joined_shared_loads"]) == (4.0, 1.0)
    # 32 loads of a column, and 32 of a row by fours.
    assert (tile["shared_loads"], tile["shared_load_bytes"]) == (32 + 8, 4 * 64)
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    products = [
        line["instructions"]
        for line in tile["lines"]
        if line["file"] == __file__ and "part[k, x]" in source[line["line"] - 1]
    ]
    assert sum(products) >= 32 + 40
    assert sum(line["instructions"] for line in copy["lines"]) == copy["instructions"] > 0
