"""Kernels in PTX whose counts theory predicts, and what the device in software counts of them.

Each access that a test is about stands on line 2 of the source ``k.py``, so that its counts are
those of that line; what leads there stands on line 1.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernels_in_ptx import function, launch, load
from softcuda_process import result, use_device

import softcuda
from softcuda.counts import LaunchCounts

HEADER = '.version 8.6\n.target sm_75\n.address_size 64\n.file 1 "k.py"\n'
OFF = -1
"""In place of an index: the lane's guard is off."""
ARRAY_BYTES = 1 << 20
SHARED_BYTES = 40 << 10
LOCAL_BYTES = 1024

Row = tuple[str, int, Sequence[int]]
"""A kernel, bytes of a lane, and the index of each lane in elements of that width."""

_TYPES = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "v4.u32"}
_REGISTERS = {1: "%h1", 2: "%h1", 4: "%w1", 8: "%d1", 16: "{%w1, %w2, %w3, %w4}"}

PROLOGUE = """
    .reg .pred %p<8>;
    .reg .b16 %h<8>;
    .reg .b32 %w<16>, %r<16>, %i, %n, %t;
    .reg .b64 %d<16>, %a, %b, %at;
    .reg .f32 %f<8>;
    .reg .f64 %g<8>;
    .loc 1 1 0
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    mov.u32 %t, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mad.lo.u32 %i, %r1, %r2, %t;
    mul.wide.u32 %d9, %i, 4;
    add.u64 %d9, %b, %d9;
    ld.global.u32 %n, [%d9];
"""
"""``%i`` is the number of the thread, ``%n`` the word of ``b`` with that number."""


def entry(name: str, body: str) -> str:
    """Return a kernel of the arrays ``a`` and ``b``."""
    return f".visible .entry {name}(.param .u64 a, .param .u64 b)\n{{{PROLOGUE}{body}    ret;\n}}\n"


def _access(space: str, what: str, width: int) -> str:
    """Return a kernel that does one access at the index that ``b`` has for the thread."""
    kind, value = _TYPES[width], _REGISTERS[width]
    base = {"global": "%a", "shared": "room", "local": "own"}[space]
    declared = {
        "global": "",
        "shared": f".shared .align 16 .b8 room[{SHARED_BYTES}];\n",
        "local": f".local .align 16 .b8 own[{LOCAL_BYTES}];\n",
    }[space]
    access = {
        "load": f"ld.{space}.{kind} {value}, [%at];",
        "store": f"st.{space}.{kind} [%at], {value};",
        "atom": f"atom.{space}.add.{kind} {value}, [%at], {value};",
        "red": f"red.{space}.add.{kind} [%at], {value};",
    }[what]
    return entry(
        f"{space}_{what}_{width}",
        f"""    {declared}
    mov.u64 %d10, {base};
    mul.wide.s32 %at, %n, {width};
    add.u64 %at, %at, %d10;
    setp.ne.s32 %p1, %n, {OFF};
    mov.u16 %h1, 0; mov.u32 %w1, 0; mov.u32 %w2, 0; mov.u32 %w3, 0; mov.u32 %w4, 0; mov.u64 %d1, 0;
    .loc 1 2 0
    @%p1 {access}
""",
    )


ACCESSES = [
    *((space, what, width) for width in _TYPES for space in ("global", "shared", "local")
      for what in ("load", "store")),
    *((space, what, width) for width in (4, 8) for space in ("global", "shared")
      for what in ("atom", "red")),
]  # fmt: skip


def access_kernels() -> str:
    return HEADER + "".join(_access(*one) for one in ACCESSES)


# ---- running -----------------------------------------------------------------------------------


class Bench:
    """Runs kernels of one module on arrays of this process's device, and takes their counts."""

    def __init__(self, ptx: str, *, sanitize: bool = False) -> None:
        from cuda.bindings import driver

        self.device = softcuda.start()
        self.device.set("count", "1")
        if sanitize:
            self.device.set("sanitize", "1")
        use_device()
        self.module = load(ptx)
        self.a, self.b = (int(result(driver.cuMemAlloc(ARRAY_BYTES))) for _ in range(2))
        for array in (self.a, self.b):
            result(driver.cuMemsetD8(array, 0, ARRAY_BYTES))

    def fill(self, array: int, words: Iterable[int]) -> None:
        from cuda.bindings import driver

        values = list(words)
        held = (ctypes.c_int32 * len(values))(*values)
        result(driver.cuMemcpyHtoD(array, ctypes.addressof(held), ctypes.sizeof(held)))

    def start(
        self, kernel: str, grid: tuple[int, ...] = (1,), block: tuple[int, ...] = (32,)
    ) -> str:
        """Launch and wait; return the error's name."""
        from cuda.bindings import driver

        pointers = [(array, ctypes.c_uint64) for array in (self.a, self.b)]
        extents = {
            "grid": (*grid, 1, 1)[:3],
            "block": (*block, 1, 1)[:3],
        }
        result(launch(function(kernel, self.module), pointers, **extents))
        return str(driver.cuCtxSynchronize()[0].name)

    def count(
        self, kernel: str, grid: tuple[int, ...] = (1,), block: tuple[int, ...] = (32,)
    ) -> LaunchCounts:
        self.device.counts()
        assert self.start(kernel, grid, block) == "CUDA_SUCCESS"
        (counted,) = self.device.counts()
        assert counted.missing is None, counted.missing
        return counted

    def count_lanes(self, kernel: str, indices: Sequence[int]) -> dict[str, int]:
        """Run one warp with these indices, and return what line 2 did."""
        self.fill(self.b, indices)
        return of_line(self.count(kernel, (1,), (len(indices),)), 2)


def of_line(counted: LaunchCounts, line: int) -> dict[str, int]:
    """Return the counts of a line of ``k.py``; none where it has none."""
    of_lines: Mapping[int, Mapping[str, int]] = {
        one.line: one.counts for one in counted.lines if one.file.endswith("k.py")
    }
    return dict(of_lines.get(line, {}))


def count_all(rows: Iterable[Any]) -> list[dict[str, int]]:
    """Count each row, in one process."""
    bench = Bench(access_kernels())
    return [bench.count_lanes(f"{kernel}_{width}", lanes) for kernel, width, lanes in rows]
