"""Counts lines that Numba's compiled code touches, and misses of two modelled caches.

Each load and store of LLVM's optimized code calls the model first. NumPy and compiled code get
memory for arrays that begins at a page, so that two processes see the same lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from gpubench.counts.cache_model import FIGURES, MAX_PAGES, PAGE_BYTES, CacheModel
from gpubench.counts.cpu import CpuCounts
from gpubench.counts.hooks import (
    FIRST_UNTYPED_LLVM,
    NotCountable,
    Values,
    engine_of,
    hook_caches,
    hook_modules,
    refuse_other_hooks,
)
from gpubench.counts.ir import leading_type, parse, parse_type, split_arguments
from gpubench.counts.numpy_memory import take_memory_at_pages

_ACCESS = re.compile(r"^(?:%\S+ = )?(load|store) (?:atomic |volatile )*(.*)$")
_COPY = re.compile(r"@llvm\.(memcpy|memmove|memset)\.[\w.]*\((.*)\)")
_MASKED = re.compile(r"@llvm\.masked\.(load|store|gather|scatter)\.[\w.]*\((.*)\)")
_ALLOCATION = re.compile(
    r"(?P<result>%\S+) = (?P<before>.*@NRT_MemInfo_alloc(?:_safe)?_aligned\("
    r"i64 (?:\w+ )*?(?P<size>%?[-\w.]+), i32) (?:\w+ )*?%?[-\w.]+(?P<after>\).*)"
)
"""How compiled code gets memory for an array: size, alignment."""
_VALUE = re.compile(
    r"(?:getelementptr|inttoptr|bitcast|addrspacecast|splat)\b.*$|<.*>$|%\S+|\S+$", re.S
)
"""The value of an operand, which attributes stand before and orderings behind."""
_DATA_OFFSET = 24
"""Where Numba's ``MemInfo`` has the address of the data (numba/core/runtime/nrt.cpp)."""


class CacheCounter:
    """Counts calls in this process, in which Numba must not have compiled anything before."""

    def __init__(self) -> None:
        """Put the hooks in place; raise ``NotCountable`` where arrays do not begin at pages."""
        refuse_other_hooks()
        self._model = CacheModel()
        take_memory_at_pages(self._model)
        if np.empty(3).ctypes.data % PAGE_BYTES:
            raise NotCountable("caches are not modelled: NumPy takes memory otherwise here")
        self._llvm = import_module("llvmlite.binding")
        is_typed = self._llvm.llvm_version_info[0] < FIRST_UNTYPED_LLVM
        self._writer = _Writer(self._model, typed_pointers=is_typed)

        def add_module(codegen: Any, module: Any) -> None:
            compiled = self._llvm.parse_assembly("\n".join(self._writer.lines_of(str(module))))
            compiled.name = module.name
            # What other modules link calls no model: they get calls of their own.
            engine_of(codegen, module).add_module(compiled)

        hook_modules(add_module)
        hook_caches(set())

    def count(self, call: Callable[[], Any]) -> tuple[Any, Values]:
        """Call once with empty caches; return what it returns, and the model's figures."""
        self._model.reset()
        return call(), [self._model.figures()]

    def read(self, values: Values) -> CpuCounts:
        """Name the figures of a call; raise ``NotCountable`` where it had too many arrays."""
        ((*figures, too_many),) = values
        if too_many:
            most = MAX_PAGES * PAGE_BYTES >> 30
            raise NotCountable(f"caches are modelled for arrays of {most} GiB at most")
        return CpuCounts(dict(zip(FIGURES, map(int, figures), strict=True)), {}, {})


class _Writer:
    """Puts calls of the model into LLVM's code."""

    def __init__(self, model: CacheModel, *, typed_pointers: bool) -> None:
        pointer = "i64*" if typed_pointers else "ptr"
        function = f"void (i64, i64, {pointer})*" if typed_pointers else "ptr"
        state = f"inttoptr (i64 {model.state_address} to {pointer})"
        self._call, self._pointer, self._names = (
            f"  call void inttoptr (i64 {{address}} to {function})(i64 {{at}}, i64 {{size}}, "
            f"{pointer} {state})",
            pointer,
            0,
        )
        self._touch, self._register = model.touch_address, model.register_address

    def lines_of(self, text: str) -> Iterator[str]:
        """Yield the module's lines with a call of the model before each access of memory."""
        for part in parse(text).parts:
            if isinstance(part, str):
                yield part
                continue
            yield part.head
            for block in part.blocks:
                if block.label is not None:
                    yield block.label
                for instruction in block.instructions:
                    yield from self._instruction(instruction)
            yield "}"

    def _instruction(self, text: str) -> Iterator[str]:
        body = text.strip()
        if match := _ALLOCATION.match(body):
            yield f"  {match['result']} = {match['before']} {PAGE_BYTES}{match['after']}"
            yield from self._new_array(match["result"], match["size"])
            return
        if match := _ACCESS.match(body):
            value, pointer = split_arguments(match[2])[:2]
            yield from self._access(pointer, str(parse_type(leading_type(value)).bytes))
        elif match := _COPY.search(body):
            first, second, length = split_arguments(match[2])[:3]
            size = length.split()[-1]
            yield from self._access(first, size)
            if match[1] != "memset":
                yield from self._access(second, size)
        elif match := _MASKED.search(body):
            yield from self._masked(match[1], body, split_arguments(match[2]))
        yield text

    def _access(self, pointer: str, size: str) -> Iterator[str]:
        """Yield a call for one access of so many bytes: a number, or the name of one."""
        yield from self._address(at := self._new_name(), pointer)
        yield self._call.format(address=self._touch, at=at, size=size)

    def _address(self, name: str, pointer: str) -> Iterator[str]:
        kind, value = _typed_value(pointer)
        yield f"  {name} = ptrtoint {kind} {value} to i64"

    def _masked(self, kind: str, text: str, arguments: list[str]) -> Iterator[str]:
        """Yield a call for each lane, of no bytes where its mask is off."""
        is_store = kind in ("store", "scatter")
        pointer = arguments[1 if is_store else 0]
        mask = next(one for one in arguments if re.match(r"<\d+ x i1>", one))
        vector = arguments[0] if is_store else text[text.index("call ") + 5 :]
        vector_type = parse_type(vector[vector.index("<") : vector.index(">") + 1])
        size = vector_type.bytes // vector_type.lanes
        if kind in ("load", "store"):
            yield from self._address(base := self._new_name(), pointer)
        for lane in range(vector_type.lanes):
            at = self._new_name()
            if kind in ("load", "store"):
                yield f"  {at} = add i64 {base}, {lane * size}"
            else:
                kind_of_pointers, pointers = _typed_value(pointer)
                element = kind_of_pointers.partition(" x ")[2].removesuffix(">")
                yield f"  {at}_p = extractelement {kind_of_pointers} {pointers}, i32 {lane}"
                yield from self._address(at, f"{element} {at}_p")
            mask_type, mask_value = _typed_value(mask)
            yield f"  {at}_on = extractelement {mask_type} {mask_value}, i32 {lane}"
            yield f"  {at}_size = select i1 {at}_on, i64 {size}, i64 0"
            yield self._call.format(address=self._touch, at=at, size=f"{at}_size")

    def _new_array(self, info: str, size: str) -> Iterator[str]:
        """Yield a call for the data of a ``MemInfo``."""
        at, byte_type = self._new_name(), "i8*" if self._pointer != "ptr" else "ptr"
        yield f"  {at}_info = ptrtoint {byte_type} {info} to i64"
        yield f"  {at}_field = add i64 {at}_info, {_DATA_OFFSET}"
        yield f"  {at}_pointer = inttoptr i64 {at}_field to {self._pointer}"
        yield f"  {at} = load i64, {self._pointer} {at}_pointer, align 8"
        yield self._call.format(address=self._register, at=at, size=size)

    def _new_name(self) -> str:
        self._names += 1
        return f"%gpubench_at_{self._names}"


def _typed_value(text: str) -> tuple[str, str]:
    """Split an operand into its type and its value."""
    kind = leading_type(text)
    value = _VALUE.search(text.strip(), len(kind))
    assert value is not None
    return kind, value[0]
