"""How the operands of PTX instructions are written in C: registers, literals, names, addresses.

A register becomes a variable of its own name, of the C type with as many bits (PTX ISA, 5.2.2
"Restricted Use of Sub-Word Sizes", and 9.2 "Type Information for Instructions and Operands": an
instruction says how it takes the bits).
"""

from __future__ import annotations

import re
import struct
import sys
from collections import ChainMap, Counter
from collections.abc import Mapping
from ctypes import c_double, c_float
from dataclasses import dataclass, field
from functools import cached_property

from softcuda.translation.layout import Layout, frame_bytes, packed, round_up
from softcuda.translation.ptx import (
    KINDS,
    Block,
    Function,
    Instruction,
    Label,
    Prototype,
    Registers,
    Targets,
    TranslationError,
    Variable,
)

C_TYPES: Mapping[str, str] = {
    **{kind: f"uint{size * 8}_t" for kind, size in KINDS.items()},
    **{f"s{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    "f32": "float",
    "f64": "double",
    "pred": "bool",
    "b128": "unsigned __int128",
}

_FLOATS = {"f32": c_float, "f64": c_double}
"""Types that C has as such."""

_SPECIAL: Mapping[str, tuple[str, str]] = {
    **{
        f"%{name}.{axis}": (f"t->{name}[{i}]", "u32")
        for name in ("tid", "ntid", "ctaid", "nctaid")
        for i, axis in enumerate("xyz")
    },
    # A cluster of one block (PTX ISA, 10.12 to 10.19).
    **{f"%clusterid.{axis}": (f"t->ctaid[{i}]", "u32") for i, axis in enumerate("xyz")},
    **{f"%nclusterid.{axis}": (f"t->nctaid[{i}]", "u32") for i, axis in enumerate("xyz")},
    **{f"%cluster_ctaid.{axis}": ("0u", "u32") for axis in "xyz"},
    **{f"%cluster_nctaid.{axis}": ("1u", "u32") for axis in "xyz"},
    "%cluster_ctarank": ("0u", "u32"),
    "%cluster_nctarank": ("1u", "u32"),
    "%is_explicit_cluster": ("false", "pred"),
    "%laneid": ("sc_lane_id(t)", "u32"),
    "%warpid": ("(t->linear / SC_WARP)", "u32"),
    "%nwarpid": ("sc_warps(t)", "u32"),
    # Blocks run one after another, as on a device of one multiprocessor.
    "%smid": ("0u", "u32"),
    "%nsmid": ("1u", "u32"),
    "%gridid": ("1ull", "u64"),
    "%lanemask_eq": ("(1u << sc_lane_id(t))", "u32"),
    "%lanemask_lt": ("((1u << sc_lane_id(t)) - 1)", "u32"),
    "%lanemask_le": ("((2u << sc_lane_id(t)) - 1)", "u32"),
    "%lanemask_gt": ("~((2u << sc_lane_id(t)) - 1)", "u32"),
    "%lanemask_ge": ("~((1u << sc_lane_id(t)) - 1)", "u32"),
    "%clock": ("(uint32_t)t->services->clock(t)", "u32"),
    "%clock_hi": ("(uint32_t)(t->services->clock(t) >> 32)", "u32"),
    "%clock64": ("t->services->clock(t)", "u64"),
    "%globaltimer": ("t->services->clock(t)", "u64"),
    "%globaltimer_lo": ("(uint32_t)t->services->clock(t)", "u32"),
    "%globaltimer_hi": ("(uint32_t)(t->services->clock(t) >> 32)", "u32"),
    "%dynamic_smem_size": ("t->dynamic_shared", "u32"),
    # With the static shared memory of the module, in bytes.
    **dict.fromkeys(("%total_smem_size", "%aggr_smem_size"), ("({}u + t->dynamic_shared)", "u32")),
}

_ADDRESS = re.compile(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\w+)|-\s*(\w+))?\s*\]$")
_REGISTER = re.compile(r"%[\w$]+")
_NAME_AND_OFFSET = re.compile(r"([A-Za-z_$][\w$]*)\s*(?:\+\s*(-?\w+))?$")


@dataclass
class Scope:
    """What a block declares, names of the blocks around it behind its own, and what it uses."""

    outer: Scope | None = None
    registers: dict[str, str] = field(default_factory=dict)
    families: dict[str, str] = field(default_factory=dict)
    symbols: ChainMap[str, str] = field(default_factory=ChainMap)
    labels: ChainMap[str, str] = field(default_factory=ChainMap)
    lists: ChainMap[str, Targets | Prototype] = field(default_factory=ChainMap)
    parameters: dict[str, int] = field(default_factory=dict)  # arrays for calls, bytes
    used: dict[str, str] = field(default_factory=dict)  # C names of registers, with their kinds

    def inner(self) -> Scope:
        return Scope(
            self,
            symbols=self.symbols.new_child(),
            labels=self.labels.new_child(),
            lists=self.lists.new_child(),
        )


class Code:
    """One function on its way to C: its scopes, and the instruction that is being written."""

    def __init__(self, layout: Layout, function: Function, first_site: int) -> None:
        self.layout = layout
        self.function = function
        self.frame = frame_bytes(function)
        self.ordinal = -1  # of the instruction in the function
        self.instruction: Instruction | None = None
        self._first_site = first_site
        self._scopes = 0
        self._local_end = 0
        variables = layout.module.variables
        shared = {one.name: layout.shared_at[one] for one in variables if one.space == "shared"}
        offsets, _ = packed(function.parameters)
        parameters = {
            one.name: f"(uint64_t)(parameters + {at})"
            for one, at in zip(function.parameters, offsets, strict=True)
        }
        if function.returned:
            parameters[function.returned.name] = "(uint64_t)returned"
        self.scope = Scope(symbols=ChainMap(parameters, shared))

    # ---- scopes

    def enter(self, block: Block) -> Scope:
        """Declare what the block declares; labels may be used before they stand in the text."""
        number, scope = self._scopes, self.scope.inner()
        self.scope = scope
        self._scopes += 1
        for one in block.statements:
            if isinstance(one, Registers):
                names = scope.registers if one.count is None else scope.families
                names[one.name] = one.kind
            elif isinstance(one, Label):
                scope.labels[one.name] = f"L_{one.name}{f'_{number}' if number else ''}"
            elif isinstance(one, Targets | Prototype):
                scope.lists[one.name] = one
            elif isinstance(one, Variable):
                scope.symbols[one.name] = self._declare(scope, one)
        return scope

    def leave(self) -> None:
        assert self.scope.outer
        self.scope = self.scope.outer

    def _declare(self, scope: Scope, one: Variable) -> str:
        if one.space == "shared":
            return self.layout.shared_at[one]
        if one.space == "local":
            at = round_up(self._local_end, one.align)
            self._local_end = at + one.bytes
            return f"(uint64_t)(frame + {at})"
        if one.space == "param":
            scope.parameters[one.name] = max(one.bytes, 1)
            return f"(uint64_t)p_{one.name}"
        raise TranslationError(one.ptx_line, one.name, f"a .{one.space} variable in a function")

    # ---- errors, sites

    def error(self, reason: str) -> TranslationError:
        assert self.instruction
        return TranslationError(self.instruction.ptx_line, str(self.instruction), reason)

    @property
    def site(self) -> str:
        """The number of the instruction in its module."""
        return str(self._first_site + self.ordinal)

    # ---- values

    def read(self, text: str, kind: str) -> str:
        """Return a C expression of the type ``kind`` for an operand."""
        first = text[0]
        if first == "%":
            if text in _SPECIAL:
                expression, have = _SPECIAL[text]
                return converted(expression.format(self.layout.shared_bytes), have, kind)
            return converted(*self.register(text), kind)
        if first == "!":
            return f"!{self.read(text[1:].strip(), kind)}"
        if first.isdigit() or first in "-+.":
            try:
                return literal(text, kind)
            except (ValueError, OverflowError):
                raise self.error(f"{text!r} is no number") from None
        if text == "WARP_SZ":
            return "32"
        if register := self.find_register(text):
            return converted(*register, kind)
        return converted(self.symbol(text), "u64", kind)

    def write(self, text: str, kind: str, value: str) -> str:
        """Return a C statement that puts a value of the type ``kind`` into a register."""
        if text == "_":
            return f"(void)({value});"
        name, have = self.register(text)
        if have == kind or (have not in _FLOATS and kind not in _FLOATS):
            if KINDS[have] > KINDS[kind] and kind != "pred":
                value = f"({C_TYPES[kind]})({value})"  # the type decides on the sign above it
            return f"{name} = {value};"
        return f"{name} = {converted(f'({value})', kind, have)};"

    def register(self, text: str) -> tuple[str, str]:
        """Return the C variable of a register, and its type."""
        if register := self.find_register(text):
            return register
        raise self.error(f"the register {text} is not declared, or not supported")

    def find_register(self, text: str) -> tuple[str, str] | None:
        """Return the same, or None: names of registers need not begin with %."""
        scope: Scope | None = self.scope
        family = text.rstrip("0123456789")
        while scope:
            kind = scope.registers.get(text) or scope.families.get(family)
            if kind:
                name = f"r_{text[1:]}" if text[0] == "%" else f"n_{text}"
                scope.used[name] = kind
                return name, kind
            scope = scope.outer
        return None

    def is_read(self, register: str) -> bool:
        """Return whether a register that is written here stands anywhere else in the function."""
        return register != "_" and self._uses[register] != 1

    @cached_property
    def _uses(self) -> Counter[str]:
        """How often each register stands in the text."""
        return Counter(
            name
            for one in self.function.instructions()
            for text in (one.guard, *one.operands)
            for name in _REGISTER.findall(text)
        )

    # ---- names

    def symbol(self, text: str) -> str:
        """Return the address of a name in its own state space, as uint64_t."""
        match = _NAME_AND_OFFSET.match(text)
        if not match:
            raise self.error(f"{text!r} is no operand that is supported")
        address = self._address_of(match[1])
        return f"({address} + {int(match[2], 0)})" if match[2] else address

    def _address_of(self, name: str) -> str:
        if name in self.scope.symbols:
            return self.scope.symbols[name]
        layout = self.layout
        if name in layout.global_numbers:
            number = layout.global_numbers[name]
            layout.used_globals.add(number)
            return f"(uint64_t)t->globals[{number}]"
        if name in layout.numbers:
            return f"(uint64_t)(uintptr_t)&function{layout.numbers[name]}"
        raise self.error(f"the name {name} is defined in no module here, or not supported")

    def label(self, name: str) -> str:
        if name in self.scope.labels:
            return self.scope.labels[name]
        raise self.error(f"the label {name} is not in this function")

    # ---- addresses

    def address(self, text: str, space: str) -> str:
        """Return the host's address of ``[name+offset]`` in a state space, as uint64_t."""
        match = _ADDRESS.match(text)
        if not match:
            raise self.error(f"{text!r} is no address that is supported")
        base, plus, minus = match.groups()
        where = self.read(base, "u64")
        offset = int(plus, 0) if plus else -int(minus, 0) if minus else 0
        if offset:
            where = f"{where} + {offset}" if offset > 0 else f"{where} - {-offset}"
        return f"(uint64_t)t->shared + {where}" if space == "shared" else where

    def at(self, text: str, space: str, size: int, how: str) -> str:
        """Return a pointer to what an instruction touches at ``[name+offset]``."""
        return self.pointer(self.address(text, space), space, size, how)

    def pointer(self, where: str, space: str, size: int, how: str) -> str:
        """Return the same at an address. Parameters lie in the caller's own memory."""
        if space == "param":
            return f"(void *)({where})"
        if space == "shared":
            return f"sc_shared_at(t, &shared_recent, {where}, {size}, {how})"
        if self.frame and space in ("local", "generic"):
            return f"sc_frame_at(t, frame, {self.frame}, {where}, {size}, {how})"
        return f"sc_at(t, {where}, {size}, {how})"


def converted(expression: str, have: str, kind: str) -> str:
    """Return a name, or an expression in brackets, of the type ``have`` as one of the type
    ``kind``."""
    if C_TYPES[have] == C_TYPES[kind]:
        return expression
    if kind in _FLOATS:
        bits = KINDS[kind] * 8
        return f"sc_{kind}_of_b{bits}((uint{bits}_t){expression})"
    if have in _FLOATS:
        bits = KINDS[have] * 8
        expression = f"sc_b{bits}_of_{have}({expression})"
        if C_TYPES[kind] == f"uint{bits}_t":
            return expression
    return f"({C_TYPES[kind]}){expression}"


def literal(text: str, kind: str) -> str:
    """Return a C constant of the type (PTX ISA, 4.5 "Constants"); ``ValueError`` for anything
    else."""
    bits = bits_of(text, kind)
    if kind in _FLOATS:
        return f"sc_{kind}_of_b{KINDS[kind] * 8}({bits}ull)"
    if kind == "pred":
        return "true" if bits else "false"
    if kind == "b128":
        return f"((unsigned __int128){bits >> 64}ull << 64 | {bits % 2**64}ull)"
    return f"({C_TYPES[kind]}){bits}{'ull' if bits >> 32 else 'u'}"


def bits_of(text: str, kind: str) -> int:
    """Return the bits of a constant of the type; ``0f`` and ``0d`` stand before those of a floating
    point number."""
    exact = {"0f": ">f", "0d": ">d"}.get(text[:2].lower())
    if kind not in _FLOATS:
        number = int(text[2:], 16) if exact else _integer(text)
        return number % (1 << 8 * KINDS[kind])
    if exact:
        (value,) = struct.unpack(exact, bytes.fromhex(text[2:]))
    else:
        value = float(text) if "." in text or "e" in text.lower() else _integer(text)
    return int.from_bytes(bytes(_FLOATS[kind](value)), sys.byteorder)


def _integer(text: str) -> int:
    """Return an integer constant: decimal, or octal, binary or hexadecimal by its prefix."""
    digits = text.lstrip("+-").rstrip("U")
    is_octal = digits[0] == "0" and digits[1:].isdigit()
    return int(digits, 8 if is_octal else 0) * (-1 if text[0] == "-" else 1)
