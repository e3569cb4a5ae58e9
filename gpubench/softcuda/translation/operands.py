"""How the operands of PTX instructions are written in C: registers, literals, names, addresses.

A register becomes a variable of its own name, of the C type with as many bits (PTX ISA, 5.2.2
"Restricted Use of Sub-Word Sizes", and 9.2 "Type Information for Instructions and Operands": an
instruction says how it takes the bits).
"""

from __future__ import annotations

import re
import struct
from collections import ChainMap, Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpubench.softcuda.translation.layout import Layout, frame_bytes, packed, round_up
from gpubench.softcuda.translation.ptx import (
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
}

_ADDRESS = re.compile(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\w+)|-\s*(\w+))?\s*\]$")
_REGISTER = re.compile(r"%[\w$]+")
_NAME_AND_OFFSET = re.compile(r"([A-Za-z_$][\w$]*)\s*(?:\+\s*(-?\w+))?$")


@dataclass
class Scope:
    """What a block declares, names of the blocks around it behind its own, and what it uses."""

    outer: Scope | None = None
    number: int = 0
    registers: dict[str, str] = field(default_factory=dict)
    families: dict[str, str] = field(default_factory=dict)
    symbols: ChainMap[str, str] = field(default_factory=ChainMap)
    labels: ChainMap[str, str] = field(default_factory=ChainMap)
    targets: ChainMap[str, Targets] = field(default_factory=ChainMap)
    prototypes: ChainMap[str, Prototype] = field(default_factory=ChainMap)
    parameters: dict[str, int] = field(default_factory=dict)  # arrays for calls, bytes
    used: dict[str, str] = field(default_factory=dict)  # C names of registers, with their kinds

    def inner(self, number: int) -> Scope:
        return Scope(
            self,
            number,
            symbols=self.symbols.new_child(),
            labels=self.labels.new_child(),
            targets=self.targets.new_child(),
            prototypes=self.prototypes.new_child(),
        )


class Code:
    """One function on its way to C: its scopes, and the instruction that is being written."""

    def __init__(self, layout: Layout, function: Function, first_site: int) -> None:
        self.layout = layout
        self.function = function
        self.first_site = first_site
        self.frame = frame_bytes(function)
        self.ordinal = -1  # of the instruction in the function
        self.instruction: Instruction | None = None
        self.scope = Scope()
        self.carries = False  # whether it has add.cc and the like
        self.ends = False  # whether a call may end the thread
        self.shares = False  # whether it touches shared memory
        self._scopes = 0
        self._local_end = 0
        self._uses: Counter[str] | None = None  # how often each register stands in the text
        offsets, _ = packed(function.parameters)
        self._parameters = {
            one.name: f"(uint64_t)(parameters + {at})"
            for one, at in zip(function.parameters, offsets, strict=True)
        }
        if function.returned:
            self._parameters[function.returned.name] = "(uint64_t)returned"

    # ---- scopes

    def enter(self, block: Block) -> Scope:
        """Declare what the block declares; labels may be used before they stand in the text."""
        scope = self.scope = self.scope.inner(self._scopes)
        self._scopes += 1
        for one in block.statements:
            if isinstance(one, Registers):
                names = scope.registers if one.count is None else scope.families
                names[one.name] = one.kind
            elif isinstance(one, Label):
                suffix = f"_{scope.number}" if scope.number else ""
                scope.labels[one.name] = f"L_{one.name}{suffix}"
            elif isinstance(one, Targets):
                scope.targets[one.name] = one
            elif isinstance(one, Prototype):
                scope.prototypes[one.name] = one
            elif isinstance(one, Variable):
                scope.symbols[one.name] = self._declare(scope, one)
        return scope

    def leave(self) -> None:
        assert self.scope.outer
        self.scope = self.scope.outer

    def _declare(self, scope: Scope, one: Variable) -> str:
        if one.space == "shared":
            return shared_offset(self.layout, one)
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
        return str(self.first_site + self.ordinal)

    # ---- values

    def read(self, text: str, kind: str) -> str:
        """A C expression of the type ``kind`` for an operand."""
        first = text[0]
        if first == "%":
            if text in _SPECIAL:
                expression, have = _SPECIAL[text]
                return converted(expression, have, kind)
            if text in ("%total_smem_size", "%aggr_smem_size"):
                total = f"({self.layout.shared_bytes}u + t->dynamic_shared)"
                return converted(total, "u32", kind)
            return converted(*self.register(text), kind)
        if first == "!":
            return f"!{self.read(text[1:].strip(), kind)}"
        if first.isdigit() or first in "-+.":
            try:
                return literal(text, kind)
            except ValueError:
                raise self.error(f"{text!r} is no number") from None
        if text == "WARP_SZ":
            return "32"
        if register := self.find_register(text):
            return converted(*register, kind)
        return converted(self.symbol(text), "u64", kind)

    def write(self, text: str, kind: str, value: str) -> str:
        """A C statement that puts a value of the type ``kind`` into a register."""
        if text == "_":
            return f"(void)({value});"
        name, have = self.register(text)
        floats = ("f32", "f64")
        if have == kind or (have not in floats and kind not in floats):
            if KINDS[have] > KINDS[kind] and kind != "pred":
                value = f"({C_TYPES[kind]})({value})"  # the type decides on the sign above it
            return f"{name} = {value};"
        if kind in floats:
            bits = KINDS[kind] * 8
            return f"{name} = sc_b{bits}_of_{kind}({value});"
        bits = KINDS[have] * 8
        return f"{name} = sc_{have}_of_b{bits}((uint{bits}_t)({value}));"

    def register(self, text: str) -> tuple[str, str]:
        """The C variable of a register, and its type."""
        if register := self.find_register(text):
            return register
        raise self.error(f"the register {text} is not declared, or not supported")

    def find_register(self, text: str) -> tuple[str, str] | None:
        """The same, or None: names of registers need not begin with %."""
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
        """Whether a register that is written here stands anywhere else in the function."""
        if self._uses is None:
            assert self.function.body
            self._uses = Counter(
                name
                for one in self.function.body.walk()
                if isinstance(one, Instruction)
                for text in (one.guard, *one.operands)
                for name in _REGISTER.findall(text)
            )
        return register != "_" and self._uses[register] != 1

    # ---- names

    def symbol(self, text: str) -> str:
        """The address of a name in its own state space, as uint64_t."""
        found = _NAME_AND_OFFSET.match(text)
        if not found:
            raise self.error(f"{text!r} is no operand that is supported")
        address = self._address_of(found[1])
        return f"({address} + {int(found[2], 0)})" if found[2] else address

    def _address_of(self, name: str) -> str:
        if name in self.scope.symbols:
            return self.scope.symbols[name]
        layout = self.layout
        if name in self._parameters:
            return self._parameters[name]
        if name in layout.global_numbers:
            number = layout.global_numbers[name]
            layout.used_globals.add(number)
            return f"(uint64_t)t->globals[{number}]"
        if name in layout.shared_names:
            return shared_offset(layout, layout.shared_names[name])
        if name in layout.numbers:
            return f"(uint64_t)(uintptr_t)&function{layout.numbers[name]}"
        raise self.error(f"the name {name} is defined in no module here, or not supported")

    def label(self, name: str) -> str:
        if name in self.scope.labels:
            return self.scope.labels[name]
        raise self.error(f"the label {name} is not in this function")

    # ---- addresses

    def address(self, text: str, space: str) -> str:
        """The host's address of ``[name+offset]`` in a state space, as uint64_t."""
        found = _ADDRESS.match(text)
        if not found:
            raise self.error(f"{text!r} is no address that is supported")
        base, plus, minus = found.groups()
        where = self.read(base, "u64")
        offset = int(plus, 0) if plus else -int(minus, 0) if minus else 0
        if offset:
            where = f"{where} + {offset}" if offset > 0 else f"{where} - {-offset}"
        return f"(uint64_t)t->shared + {where}" if space == "shared" else where

    def at(self, text: str, space: str, size: int, how: str) -> str:
        """A pointer to what an instruction touches. Parameters lie in the caller's own memory."""
        return self.pointer(self.address(text, space), space, size, how)

    def pointer(self, where: str, space: str, size: int, how: str) -> str:
        if space == "param":
            return f"(void *)({where})"
        if space == "shared":
            self.shares = True
            return f"sc_shared_at(t, &shared_recent, {where}, {size}, {how})"
        if self.frame and space in ("local", "generic"):
            return f"sc_frame_at(t, frame, {self.frame}, {where}, {size}, {how})"
        return f"sc_at(t, {where}, {size}, {how})"


def shared_offset(layout: Layout, one: Variable) -> str:
    at = layout.shared_at[one]
    return "(uint64_t)t->dynamic_at" if at is None else f"(uint64_t){at}"


def converted(expression: str, have: str, kind: str) -> str:
    """A name, or an expression in brackets, of the type ``have`` as one of the type ``kind``."""
    if C_TYPES[have] == C_TYPES[kind]:
        return expression
    if kind in ("f32", "f64"):
        bits = KINDS[kind] * 8
        return f"sc_{kind}_of_b{bits}((uint{bits}_t){expression})"
    if have in ("f32", "f64"):
        bits = KINDS[have] * 8
        expression = f"sc_b{bits}_of_{have}({expression})"
        if C_TYPES[kind] == f"uint{bits}_t":
            return expression
    return f"({C_TYPES[kind]}){expression}"


def literal(text: str, kind: str) -> str:
    """A C constant of the type (PTX ISA, 4.5 "Constants"); ``ValueError`` for anything else."""
    if kind in ("f32", "f64"):
        return _float_literal(number_of(text), kind)
    if kind == "pred":
        return "true" if int(text, 0) else "false"
    value = bits_of(text)
    bits = KINDS[kind] * 8
    value &= (1 << bits) - 1
    if kind[0] == "s":
        value -= (value >> (bits - 1)) << bits
        if value == -(1 << 63):
            return "INT64_MIN"
        suffix = "ll" if bits == 64 else ""
        return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"
    if bits == 128:
        return f"((unsigned __int128){value >> 64}ull << 64 | {value & (1 << 64) - 1}ull)"
    return f"{value}{'ull' if bits == 64 else 'u'}"


def integer_of(text: str) -> int:
    """The value of an integer constant: decimal, or octal, binary or hexadecimal by its prefix."""
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-").rstrip("U")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def bits_of(text: str) -> int:
    """The bits of an integer constant, or of a floating point one that is given by its bits."""
    if text[:2] in ("0f", "0F", "0d", "0D"):
        return int(text[2:], 16)
    return integer_of(text)


def number_of(text: str) -> float:
    """The value of a constant in a floating point instruction."""
    if text[:2] in ("0f", "0F"):
        return float(struct.unpack(">f", bytes.fromhex(text[2:]))[0])
    if text[:2] in ("0d", "0D"):
        return float(struct.unpack(">d", bytes.fromhex(text[2:]))[0])
    return float(text) if "." in text or "e" in text.lower() else float(integer_of(text))


def _float_literal(value: float, kind: str) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        sign = "-" if value < 0 else ""
        name = "NAN" if value != value else "INFINITY"
        return f"({sign}({C_TYPES[kind]}){name})"
    text = value.hex() + ("f" if kind == "f32" else "")
    return f"({text})" if text[0] == "-" else text
