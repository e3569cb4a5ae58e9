"""Puts counters into LLVM's optimized code: one for each block, one for each measured count.

A function counts on its own stack and adds its counts to the module's when it returns, so that
threads need no locks inside loops. A function that calls itself counts in the module at once: its
stack would be full sooner than without counters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gpubench.counts.instructions import Measured, measured_counts
from gpubench.counts.ir import Block, Function, Module

_LOCATION_SUFFIX = re.compile(r",? !dbg !\d+")
_TOTAL = "{total}"
"""Stands for the length of the array of counts until all blocks are known."""
_MASK_WIDTH = re.compile(r"@llvm\.ctpop\.i(\d+)\(")


@dataclass(frozen=True, slots=True)
class Counter:
    """One number that a run counts."""

    block: Block
    measured: Measured | None
    """``None``: how often the block ran."""
    instruction: int
    """Place in the block of what is measured."""


@dataclass(frozen=True, slots=True)
class Instrumented:
    """A module with counters."""

    text: str
    symbol: str
    """Of the array of its counts, ``i64`` each."""
    counters: tuple[Counter, ...]
    """In the order of the array."""


def instrument(module: Module, number: int, *, typed_pointers: bool) -> Instrumented:
    """Return a module with counters, without what debuggers read.

    ``number`` tells its symbols from those of other modules. LLVM 22 ends the process over debug
    information of array expressions when it makes machine code of them.
    """
    writer = _Writer(number, typed_pointers)
    lines = [line for part in module.parts for line in writer.lines_of(part)]
    symbol = f"gpubench_counts_{number}"
    if writer.counters:
        lines += writer.helpers(symbol, lines)
    text = "\n".join(lines).replace(_TOTAL, str(len(writer.counters)))
    return Instrumented(text, symbol, tuple(writer.counters))


class _Writer:
    def __init__(self, number: int, typed_pointers: bool) -> None:
        self.counters: list[Counter] = []
        self._number = number
        self._typed = typed_pointers
        self._pointer = "i64*" if typed_pointers else "ptr"
        self._mask_bits: set[int] = set()
        self._names = 0

    def lines_of(self, part: str | Function) -> Iterator[str]:
        if isinstance(part, Function):
            yield from self._function(part)
        elif not part.startswith("!llvm.dbg.cu"):
            yield _LOCATION_SUFFIX.sub("", part) if part.startswith("define") else part

    def helpers(self, symbol: str, lines: list[str]) -> Iterator[str]:
        """Yield the array of counts, and the loops that empty and add up those of a call."""
        p, n = self._pointer, self._number
        yield f"@{symbol} = global [{len(self.counters)} x i64] zeroinitializer, align 64"
        yield f"""\
define private void @gpubench_zero_{n}({p} %a, i64 %n) noinline {{
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
  %at = getelementptr i64, {p} %a, i64 %i
  store i64 0, {p} %at, align 8
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}
define private void @gpubench_add_{n}({p} %a, {p} %to, i64 %n) noinline {{
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %rest ]
  %at = getelementptr i64, {p} %a, i64 %i
  %count = load i64, {p} %at, align 8
  %is_none = icmp eq i64 %count, 0
  br i1 %is_none, label %rest, label %some
some:
  %into = getelementptr i64, {p} %to, i64 %i
  %before = atomicrmw add {p} %into, i64 %count monotonic
  br label %rest
rest:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}"""
        declared = {int(bits) for line in lines if line.startswith("declare")
                    for bits in _MASK_WIDTH.findall(line)}  # fmt: skip
        for bits in sorted(self._mask_bits - declared):
            yield f"declare i{bits} @llvm.ctpop.i{bits}(i{bits})"

    def _function(self, function: Function) -> Iterator[str]:
        first, is_recursive = len(self.counters), _calls_itself(function)
        body: list[str] = []
        ends: list[int] = []
        for block in function.blocks:
            if block.label is not None:
                body.append(block.label)
            self._block(block, first, is_recursive, body, ends)
        count = len(self.counters) - first
        p, array = self._pointer, f"[{count} x i64]"
        yield _LOCATION_SUFFIX.sub("", function.head)
        start = 1 if function.blocks and function.blocks[0].label is not None else 0
        yield from body[:start]
        if not is_recursive and count:
            array_pointer = f"{array}*" if self._typed else "ptr"
            yield f"  %gpubench_array = alloca {array}, align 8"
            yield (
                f"  %gpubench_slots = getelementptr {array}, {array_pointer} %gpubench_array, "
                "i64 0, i64 0"
            )
            yield f"  call void @gpubench_zero_{self._number}({p} %gpubench_slots, i64 {count})"
        returns = set(ends)
        for index in range(start, len(body)):
            if index in returns and not is_recursive:
                yield (
                    f"  call void @gpubench_add_{self._number}({p} %gpubench_slots, "
                    f"{p} {self._in_module(first)}, i64 {count})"
                )
            yield body[index]
        yield "}"

    def _block(
        self, block: Block, first: int, is_recursive: bool, body: list[str], ends: list[int]
    ) -> None:
        """Append the block with its counters; ``ends`` gets the places of its returns."""
        slot = self._new_counter(Counter(block, None, 0))
        is_counted = False
        for place, instruction in enumerate(block.instructions):
            if not is_counted and " = phi " not in instruction.split("(")[0]:
                body += self._add(slot, first, "1", is_recursive)
                is_counted = True
            for measured in measured_counts(instruction):
                where = self._new_counter(Counter(block, measured, place))
                value = measured.value
                if measured.mask_bits:
                    value = self._count_lanes(measured, body)
                body += self._add(where, first, value, is_recursive)
            if re.match(r"\s*(?:ret|resume)\b", instruction):
                ends.append(len(body))
            body.append(_LOCATION_SUFFIX.sub("", instruction))

    def _new_counter(self, counter: Counter) -> int:
        self.counters.append(counter)
        return len(self.counters) - 1

    def _in_module(self, index: int) -> str:
        """Return the address of a count of the module, as a constant."""
        array, symbol = f"[{_TOTAL} x i64]", f"@gpubench_counts_{self._number}"
        pointer = f"{array}*" if self._typed else "ptr"
        return f"getelementptr ({array}, {pointer} {symbol}, i64 0, i64 {index})"

    def _add(self, index: int, first: int, value: str, is_recursive: bool) -> list[str]:
        p, name = self._pointer, f"%gpubench_{index}"
        if is_recursive:
            add = f"  {name} = atomicrmw add {p} {self._in_module(index)}, i64 {value} monotonic"
            return [add]
        return [
            f"  {name}_at = getelementptr i64, {p} %gpubench_slots, i64 {index - first}",
            f"  {name} = load i64, {p} {name}_at, align 8",
            f"  {name}_next = add i64 {name}, {value}",
            f"  store i64 {name}_next, {p} {name}_at, align 8",
        ]

    def _count_lanes(self, measured: Measured, body: list[str]) -> str:
        bits = measured.mask_bits
        self._mask_bits.add(bits)
        self._names += 1
        name = f"%gpubench_mask_{self._names}"
        widened = f"  {name}_wide = zext i{bits} {name}_on to i64"
        body += [
            f"  {name} = bitcast <{bits} x i1> {measured.value} to i{bits}",
            f"  {name}_on = call i{bits} @llvm.ctpop.i{bits}(i{bits} {name})",
            widened if bits < 64 else f"  {name}_wide = add i64 {name}_on, 0",
        ]
        return f"{name}_wide"


def _calls_itself(function: Function) -> bool:
    names = (f"@{function.name}(", f'@"{function.name}"(')
    return any(
        name in instruction
        for block in function.blocks
        for instruction in block.instructions
        for name in names
    )
