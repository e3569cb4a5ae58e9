"""Counters in machine code: how many instructions of x86-64 Numba's compiled code executes.

LLVM writes the assembly of a module, each piece of straight code gets a counter, and LLVM assembles
it again. Registers and flags stay as they were, so that the code is what runs without counters.

Before the head of a loop LLVM puts instructions that do nothing, so that the head begins at a
multiple of 16 bytes. Code that falls through into the loop executes them. How many there are
depends on addresses, and counters move these: so the code without counters is assembled too.
"""

from __future__ import annotations

import itertools
import platform
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from gpubench.counts.cpu import CpuCounts
from gpubench.counts.hooks import (
    CountedCode,
    NotCountable,
    Values,
    count_call,
    engine_of,
    hook_caches,
    hook_modules,
    refuse_other_hooks,
)

COUNTED_MACHINE = "x86_64"

MACHINE_INSTRUCTIONS = "machine_instructions"
MACHINE_PADDING = "machine_instructions_padding"
"""Of the instructions those that do nothing but fill up space before the head of a loop."""
VECTOR_REGISTERS = {"zmm": 512, "ymm": 256, "xmm": 128}
"""Bits of registers by what their names begin with."""

_COUNT = (
    # The 128 bytes below the stack may hold a function's values (System V ABI, "The Red Zone").
    "\tleaq -128(%rsp), %rsp",
    "\tpushfq",
    "\tpushq %rax",
    "\tmovabsq ${address}, %rax",
    "\tlock incq (%rax)",
    "\tpopq %rax",
    "\tpopfq",
    "\tleaq 128(%rsp), %rsp",
)
_ASSEMBLY_LABEL = re.compile(r'^("[^"]+"|[\w.$]+):')
_SECTION = re.compile(r"^\s*\.(?:text|section|data|bss)\b")
_ALIGNMENT = re.compile(r"^\s*\.(?:p2align|balign)\b")
_JUMP = re.compile(r"^\tj\w+\s")
_ESCAPES = str.maketrans({"\\": "\\5C", '"': "\\22", "\t": "\\09"})

_PADDING = "nop"
_PADDING_SECTION = ".gpubench_padding"
_LONGEST_NOP_BYTES = {"haswell": 15}
"""By the processor that is compiled for; ``TuningFast15ByteNOP`` in LLVM's ``X86.td``."""
_ANY_LONGEST_NOP_BYTES = 10
"""Of other processors in 64 bits: ``getMaximumNopSize`` in LLVM's ``X86AsmBackend.cpp``."""


@dataclass(frozen=True, slots=True)
class CountedAssembly:
    """Assembly with counters."""

    text: str
    symbol: str
    """Of the array of counts, ``i64`` each."""
    pieces: tuple[tuple[str, ...], ...]
    """Instructions of each piece of straight code, in the order of the array."""


def instrument_assembly(text: str, number: int, paddings: Sequence[int]) -> CountedAssembly:
    """Put a counter before the first instruction after each label and each jump, and before
    padding.

    ``paddings``: of each alignment inside code, in the order of the text, the instructions that
    fill it up.
    """
    symbol = f"gpubench_machine_{number}"
    lines: list[str] = []
    pieces: list[list[str]] = []

    def begin_piece() -> None:
        address = f"{symbol}+{8 * len(pieces)}"
        lines.extend(one.replace("{address}", address) for one in _COUNT)
        pieces.append([])

    remaining = iter(paddings)
    begins = False
    for kind, line in _kinds_of_lines(text):
        if kind == "label":
            begins = True
        elif kind == "alignment":
            begin_piece()
            pieces[-1] += [_PADDING] * next(remaining)
            begins = True
        elif kind == "instruction":
            if begins:
                begin_piece()
            pieces[-1].append(line.strip())
            begins = bool(_JUMP.match(line))
        lines.append(line)
    lines += ["\t.data", "\t.p2align 6", f"\t.globl {symbol}", f"{symbol}:"]
    lines.append(f"\t.zero {8 * max(1, len(pieces))}")
    return CountedAssembly("\n".join(lines), symbol, tuple(map(tuple, pieces)))


def _kinds_of_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line of assembly without its comment, and what it is inside code: ``label``,
    ``alignment`` or ``instruction``; else nothing."""
    is_code = False
    for raw in text.split("\n"):
        line = raw if '"' in raw else raw.split("#")[0].rstrip()
        kind = ""
        if _SECTION.match(line):
            is_code = "text" in line.split(",")[0]
        elif is_code and _ASSEMBLY_LABEL.match(line):
            kind = "label"
        elif is_code and _ALIGNMENT.match(line):
            kind = "alignment"
        elif is_code and re.match(r"^\t[a-z]", line):
            kind = "instruction"
        yield kind, line


def mark_paddings(text: str) -> str:
    """Add a section with the bytes of padding at each alignment inside code, ``i32`` each."""
    lines: list[str] = []
    sizes: list[str] = []
    for kind, line in _kinds_of_lines(text):
        if kind == "alignment":
            begin, end = (f".Lgpubench_{edge}_{len(sizes)}" for edge in ("begin", "end"))
            lines += [f"{begin}:", line, f"{end}:"]
            sizes.append(f"\t.long {end}-{begin}")
        else:
            lines.append(line)
    return "\n".join([*lines, f'\t.section {_PADDING_SECTION},"a"', *sizes])


def count_nops(padding_bytes: int, processor: str | None) -> int:
    """Return how many instructions LLVM's assembler fills space up with: as long ones as the
    processor decodes fast."""
    return -(-padding_bytes // _LONGEST_NOP_BYTES.get(processor or "", _ANY_LONGEST_NOP_BYTES))


@dataclass(frozen=True)
class _MachineModule(CountedCode):
    pieces: tuple[tuple[str, ...], ...]
    keeps: tuple[Any, bytes]
    """What the engine uses for as long as the code lives."""


class MachineCounter:
    """Counts calls in this process, in which Numba must not have compiled anything before."""

    def __init__(self) -> None:
        """Put the hooks in place; raise ``NotCountable`` where there is no such machine code."""
        if platform.machine() != COUNTED_MACHINE:
            raise NotCountable(
                f"machine instructions are counted on x86-64, and this is {platform.machine()}"
            )
        refuse_other_hooks()
        self._llvm = import_module("llvmlite.binding")
        self._llvm.initialize_native_asmparser()
        self._modules: list[_MachineModule] = []
        self._numbers = itertools.count()

        def add_module(codegen: Any, module: Any) -> None:
            self._add_counted(codegen, module)

        hook_modules(add_module)
        hook_caches(set())

    def count(self, call: Callable[[], Any]) -> tuple[Any, Values]:
        """Call once; return what it returns, and what the counters of all modules say then."""
        return count_call(self._modules, call)

    def read(self, values: Values) -> CpuCounts:
        """Add up what a call counted: all instructions, and those with vector registers by the
        widest of them, and padding. The wrapper between Python and the kernel is in it."""
        totals: Counter[str] = Counter()
        for module, of_module in zip(self._modules, values, strict=False):
            for piece, times in zip(module.pieces, of_module, strict=False):
                if times:
                    for name, count in _counts_of(piece):
                        totals[name] += int(times) * count
        return CpuCounts(dict(totals), {}, {})

    def _add_counted(self, codegen: Any, module: Any) -> None:
        # Of the module itself: making machine code changes it, and what Numba links into later
        # modules is what that left.
        assembly = codegen._tm.emit_assembly(module)
        paddings = self._paddings(codegen, assembly)
        counted = instrument_assembly(assembly, next(self._numbers), paddings)
        object_file, code = self._assemble(codegen, counted.text)
        engine = engine_of(codegen, module)
        engine._ee.add_object_file(object_file)
        self._modules.append(
            _MachineModule(
                engine=engine,
                symbol=counted.symbol,
                length=max(1, len(counted.pieces)),
                pieces=counted.pieces,
                keeps=(object_file, code),
            )
        )

    def _paddings(self, codegen: Any, assembly: str) -> list[int]:
        """Return the instructions that fill up space at each alignment inside code."""
        object_file, _code = self._assemble(codegen, mark_paddings(assembly))
        sections = {section.name(): section.data() for section in object_file.sections()}
        sizes = np.frombuffer(sections.get(_PADDING_SECTION.encode(), b""), "<i4")
        processor = import_module("numba").config.CPU_NAME
        return [count_nops(int(size), processor) for size in sizes]

    def _assemble(self, codegen: Any, assembly: str) -> tuple[Any, bytes]:
        """Return assembly as an object file, and the bytes that it reads."""
        lines = filter(str.strip, assembly.split("\n"))
        text = "\n".join(f'module asm "{line.translate(_ESCAPES)}"' for line in lines)
        triple = f'target triple = "{self._llvm.get_process_triple()}"'
        code = codegen._tm.emit_object(self._llvm.parse_assembly(f"{triple}\n{text}"))
        return self._llvm.ObjectFileRef.from_data(code), code


def _counts_of(piece: Sequence[str]) -> Iterator[tuple[str, int]]:
    yield MACHINE_INSTRUCTIONS, len(piece)
    if padding := piece.count(_PADDING):
        yield MACHINE_PADDING, padding
    for instruction in piece:
        widest = next((name for name in VECTOR_REGISTERS if f"%{name}" in instruction), None)
        if widest:
            yield f"{MACHINE_INSTRUCTIONS}_{VECTOR_REGISTERS[widest]}_bits", 1
