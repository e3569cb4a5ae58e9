"""Where the variables of a module lie, and what each of its functions needs of the device."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import chain

from softcuda.translation.ptx import (
    Function,
    Instruction,
    Label,
    Module,
    TranslationError,
    Variable,
)

GUARD = 16
"""Bytes behind every shared variable that belong to none, so that a step beyond it is seen."""

RECURSIVE_BYTES = 1 << 20
"""Local memory of a kernel whose functions call themselves: how deep they go is not known."""

WAITING = {
    *("bar", "barrier", "shfl", "vote", "match", "redux", "activemask", "elect", "nanosleep"),
}
"""Instructions at which a thread may wait for others."""
_NAME = re.compile(r"[\w$]+")
_REGISTER = re.compile(r"%[\w$]+")
_STORES = {"st", "red", "bra", "bar", "barrier", "call", "ret", "exit", "membar", "fence"}
_FRESH = {"volatile", "relaxed", "acquire", "mmio"}


def round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def packed(parameters: Sequence[Variable]) -> tuple[tuple[int, ...], int]:
    """Return the offset of each parameter in the block that a caller fills, and the bytes of that
    block.

    Each stands at the next multiple of its alignment (CUDA Driver API, cuLaunchKernel, on
    ``CU_LAUNCH_PARAM_BUFFER_POINTER``).
    """
    offsets, end = [], 0
    for one in parameters:
        end = round_up(end, one.align)
        offsets.append(end)
        end += one.bytes
    return tuple(offsets), end


@dataclass(frozen=True, slots=True)
class Facts:
    """What the body of one function does, without those that it calls."""

    calls: Set[str]
    addressed: Set[str]  # functions whose addresses it takes
    calls_addresses: bool
    waits: bool
    polling: Set[int]  # branches that close a loop in which a thread waits for another


class Layout:
    """The module's variables and functions by their names and numbers."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.functions = _by_name(module.functions)
        self.facts = {name: _facts(one, self.functions) for name, one in self.functions.items()}
        self.entries = [one for one in module.functions if one.entry and one.body]
        self.reached = self._reached(one.name for one in self.entries)
        self._below = {name: self._reached([name]) for name in self.reached}
        self.numbers = {name: i for i, name in enumerate(self.reached)}
        """Of every function with a body that a kernel may reach."""
        taken = {name for one in self.reached for name in self.facts[one].addressed}
        self.addressed = [name for name in self.functions if name in taken]
        """Functions that may be called by their addresses, in the order of the module."""
        # One that is only declared here is another module's: see ``Code.symbol``.
        self.globals = [
            one for one in module.variables if one.space in ("global", "const") and not one.extern
        ]
        self.global_numbers = {one.name: i for i, one in enumerate(self.globals)}
        self.used_globals: set[int] = set()  # those that functions name, as they are written
        self._place_shared()

    def waits(self, name: str) -> bool:
        """Return whether threads wait for each other in the function, or in one that it may
        call."""
        return any(self.facts[one].waits for one in self._below[name]) or self.cooperates(name)

    def cooperates(self, name: str) -> bool:
        """Return whether it synchronises the grid."""
        return any("cudaCGSynchronize" in self.facts[one].calls for one in self._below[name])

    def local_bytes(self, name: str) -> int:
        """Frames of local memory along the deepest path of calls."""

        @cache
        def depth(name: str) -> int:
            facts = self.facts[name]
            called = facts.calls | set(self.addressed if facts.calls_addresses else ())
            below = [depth(one) for one in called if self.functions[one].body]
            return max(below, default=0) + round_up(frame_bytes(self.functions[name]), 16)

        try:
            return depth(name)
        except RecursionError:
            return RECURSIVE_BYTES

    def _reached(self, names: Iterable[str]) -> list[str]:
        """Functions with bodies that may run once these do, in the order of the module."""
        reached: set[str] = set()
        waiting = set(names)
        while waiting:
            name = waiting.pop()
            reached.add(name)
            near = self.facts[name].calls | self.facts[name].addressed
            waiting |= {one for one in near - reached if self.functions[one].body}
        return [name for name in self.functions if name in reached]

    def _place_shared(self) -> None:
        """Place static shared variables one after another, with guards between them; dynamic shared
        memory begins behind the last guard."""
        self.shared: list[tuple[Variable, int]] = []
        self.shared_at: dict[Variable, str] = {}
        """Where each begins in shared memory, as C has it."""
        end = declared = 0
        widest = 16
        inside = (one for name in self.reached for one in self.functions[name].walk())
        for one in chain(self.module.variables, inside):
            if not isinstance(one, Variable) or one.space != "shared":
                continue
            widest = max(widest, one.align)
            if one.extern or not one.bytes:
                self.shared_at[one] = "(uint64_t)t->dynamic_at"
                continue
            at = round_up(end, one.align)
            self.shared.append((one, at))
            self.shared_at[one] = f"(uint64_t){at}"
            end = at + one.bytes + GUARD
            declared = round_up(declared, one.align) + one.bytes
        self.shared_window = round_up(end, widest)
        self.shared_bytes = declared


def frame_bytes(function: Function) -> int:
    """Bytes of local memory of one call of the function: its variables, and its parameters where
    their addresses are taken."""
    end = 0
    for one in function.walk():
        if isinstance(one, Variable) and one.space == "local":
            end = round_up(end, one.align) + one.bytes
    if keeps_parameters(function):
        end = round_up(end, 16) + packed(function.parameters)[1]
    return end


def keeps_parameters(function: Function) -> bool:
    """Return whether a program may reach the parameters by generic addresses (PTX ISA, 5.1.6)."""
    names = {one.name for one in function.parameters}
    sources = (
        _NAME.match(one.operands[1])
        for one in function.instructions()
        if one.opcode in ("mov", "cvta") and len(one.operands) > 1
    )
    return any(source and source[0] in names for source in sources)


def _by_name(functions: Sequence[Function]) -> dict[str, Function]:
    """Prefer a definition to declarations of its name, and the first to weak ones (PTX ISA,
    11.6.4)."""
    of_name: dict[str, Function] = {}
    for one in functions:
        other = of_name.get(one.name)
        if other and other.body and one.body and not (one.weak or other.weak):
            raise TranslationError(one.ptx_line, one.name, "this function is defined twice")
        if not other or (one.body and (not other.body or (other.weak and not one.weak))):
            of_name[one.name] = one
    return of_name


def _facts(function: Function, functions: Mapping[str, Function]) -> Facts:
    opcodes = {one.opcode for one in function.instructions()}
    called = {
        one.operands[1] if one.operands[0].startswith("(") else one.operands[0]
        for one in function.instructions()
        if one.opcode == "call"
    }
    moved = {one.operands[-1] for one in function.instructions() if one.opcode == "mov"}
    polling = _polling_branches(function)
    return Facts(
        calls=called & functions.keys(),
        addressed=moved & functions.keys(),
        calls_addresses=any(name.startswith("%") for name in called),
        waits=bool(polling or WAITING & opcodes),
        polling=polling,
    )


def _polling_branches(function: Function) -> Set[int]:
    """Return the numbers, among the instructions of a function, of branches that close a loop in
    which a thread waits for what another one writes.

    The threads of a block take turns on one thread of the host, so that such a loop has to let
    others run. It reads the same place again and again: with a load that the compiler must not
    save, or an atomic operation that changes nothing until the awaited value is there. A loop that
    only repeats an update which another thread came before (compare and swap with the value that
    was read last) gets on by itself, and is left as fast as it is.
    """
    instructions: list[Instruction] = []
    places: dict[str, int] = {}
    for one in function.walk():
        if isinstance(one, Instruction):
            instructions.append(one)
        elif isinstance(one, Label):
            places[one.name] = len(instructions)
    numbers = set()
    for number, branch in enumerate(instructions):
        if branch.opcode != "bra":
            continue
        loop = instructions[places.get(branch.operands[0], number) : number]
        if reads := [one for one in loop if _reads_again(one)]:
            written = _written(loop)
            if any(_is_fixed(one, written) for one in reads):
                numbers.add(number)
    return numbers


def _reads_again(one: Instruction) -> bool:
    if one.opcode == "ld":
        return bool(_FRESH.intersection(one.modifiers)) and "local" not in one.modifiers
    if one.opcode == "atom":
        kept = one.operands[2] == "0" and bool({"add", "or"}.intersection(one.modifiers))
        return kept or bool({"cas", "exch"}.intersection(one.modifiers))
    return False


def _is_fixed(one: Instruction, written: set[str]) -> bool:
    """Return whether place and comparison are the same each time that the loop comes by."""
    operands = one.operands[1:3] if "cas" in one.modifiers else one.operands[1:2]
    return not written.intersection(_REGISTER.findall(" ".join(operands)))


def _written(instructions: Sequence[Instruction]) -> set[str]:
    return {
        register
        for one in instructions
        if one.operands and one.opcode not in _STORES
        for register in _REGISTER.findall(one.operands[0])
    }
