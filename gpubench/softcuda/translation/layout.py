"""Where the variables of a module lie, and what each of its functions needs of the device."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpubench.softcuda.translation.ptx import (
    Block,
    Function,
    Instruction,
    Label,
    Module,
    Parameter,
    Statement,
    TranslationError,
    Variable,
)

GUARD = 16
"""Bytes behind every shared variable that belong to none, so that a step beyond it is seen."""

RECURSIVE_BYTES = 1 << 20
"""Local memory of a kernel whose functions call themselves: how deep they go is not known."""

_WAITING = {
    *("bar", "barrier", "shfl", "vote", "match", "redux", "activemask", "elect", "nanosleep"),
}
_NAME = re.compile(r"[\w$]+")
_REGISTER = re.compile(r"%[\w$]+")
_STORES = {"st", "red", "bra", "bar", "barrier", "call", "ret", "exit", "membar", "fence"}
_FRESH = {"volatile", "relaxed", "acquire", "mmio"}


def round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def packed(parameters: Sequence[Parameter]) -> tuple[tuple[int, ...], int]:
    """The offset of each parameter in the block that a caller fills, and the bytes of that block.

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

    calls: frozenset[str]
    addressed: frozenset[str]  # functions whose addresses it takes
    calls_addresses: bool
    waits: bool
    exits: bool
    polling: frozenset[int]  # branches that close a loop in which a thread waits for another


class Layout:
    """The module's variables and functions by their names and numbers."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.functions = _by_name(module.functions)
        self.facts = {name: _facts(one, self.functions) for name, one in self.functions.items()}
        self._reached_from: dict[str, list[str]] = {}
        self.entries = [one for one in module.functions if one.entry and one.body]
        self.reached = self._reached([one.name for one in self.entries])
        # One that is only declared here is another module's: see ``Code.symbol``.
        self.globals = [
            one for one in module.variables if one.space in ("global", "const") and not one.extern
        ]
        self.global_numbers = {one.name: i for i, one in enumerate(self.globals)}
        self.used_globals: set[int] = set()  # those that functions name, as they are written
        self._place_shared()

    @cached_property
    def files(self) -> list[str]:
        """Source files by their numbers; there is none of the number 0."""
        files = self.module.files
        return [files.get(number, "") for number in range(max(files, default=0) + 1)]

    @cached_property
    def addressed(self) -> list[str]:
        """Functions that may be called by their addresses, in the order of the module."""
        taken = {name for one in self.reached for name in self.facts[one].addressed}
        return [name for name in self.functions if name in taken]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """A number for every function with a body that a kernel may reach."""
        return {name: i for i, name in enumerate(self.reached)}

    def waits(self, name: str) -> bool:
        """Whether threads wait for each other in the function, or in one that it may call."""
        return any(self.facts[one].waits for one in self._below(name)) or self.cooperates(name)

    def cooperates(self, name: str) -> bool:
        """Whether it synchronises the grid."""
        return any("cudaCGSynchronize" in self.facts[one].calls for one in self._below(name))

    def exits(self, name: str) -> bool:
        """Whether a thread may end in it."""
        return any(self.facts[one].exits for one in self._below(name))

    def local_bytes(self, name: str) -> int:
        """Frames of local memory along the deepest path of calls."""
        deepest: dict[str, int] = {}
        open_calls: set[str] = set()

        def depth(name: str) -> int:
            if name in open_calls:
                raise RecursionError
            if name not in deepest:
                open_calls.add(name)
                below = max((depth(one) for one in self._callees(name)), default=0)
                deepest[name] = below + round_up(frame_bytes(self.functions[name]), 16)
                open_calls.remove(name)
            return deepest[name]

        try:
            return depth(name)
        except RecursionError:
            return RECURSIVE_BYTES

    def _callees(self, name: str) -> Iterator[str]:
        facts = self.facts[name]
        called = [one for one in self.functions if one in facts.calls]
        for one in [*called, *(self.addressed if facts.calls_addresses else ())]:
            if self.functions[one].body:
                yield one

    def _below(self, name: str) -> list[str]:
        """The function, and those that it may call."""
        if name not in self._reached_from:
            self._reached_from[name] = self._reached([name])
        return self._reached_from[name]

    def _reached(self, names: Iterable[str]) -> list[str]:
        """Functions with bodies that may run once these do, in the order of the module."""
        reached: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in reached:
                continue
            reached.add(name)
            facts = self.facts[name]
            near = facts.calls | facts.addressed
            waiting.extend(one for one in near if self.functions[one].body)
        return [name for name in self.functions if name in reached]

    def _place_shared(self) -> None:
        """Static shared variables follow each other, with guards between them; dynamic shared
        memory begins behind the last guard."""
        self.shared: list[tuple[Variable, int]] = []
        self.shared_at: dict[Variable, int | None] = {}
        end = declared = 0
        widest = 16
        for one in self._shared_variables():
            widest = max(widest, one.align)
            if one.extern or not one.bytes:
                self.shared_at[one] = None  # dynamic
                continue
            at = round_up(end, one.align)
            self.shared.append((one, at))
            self.shared_at[one] = at
            end = at + one.bytes + GUARD
            declared = round_up(declared, one.align) + one.bytes
        self.shared_names = {
            one.name: one for one in self.module.variables if one.space == "shared"
        }
        self.shared_window = round_up(end, widest)
        self.shared_bytes = declared

    def _shared_variables(self) -> Iterator[Variable]:
        yield from (one for one in self.module.variables if one.space == "shared")
        for name in self.reached:
            body = self.functions[name].body
            for one in body.walk() if body else ():
                if isinstance(one, Variable) and one.space == "shared":
                    yield one


def frame_bytes(function: Function) -> int:
    """Bytes of local memory of one call of the function: its variables, and its parameters where
    their addresses are taken."""
    end = 0
    for one in function.body.walk() if function.body else ():
        if isinstance(one, Variable) and one.space == "local":
            end = round_up(end, one.align) + one.bytes
    if keeps_parameters(function):
        end = round_up(end, 16) + packed(function.parameters)[1]
    return end


def keeps_parameters(function: Function) -> bool:
    """Whether a program may reach the parameters by generic addresses (PTX ISA, 5.1.6)."""
    names = {one.name for one in function.parameters}
    for one in function.body.walk() if function.body else ():
        if isinstance(one, Instruction) and one.opcode in ("mov", "cvta"):
            source = _NAME.match(one.operands[1]) if len(one.operands) > 1 else None
            if source and source[0] in names:
                return True
    return False


def _by_name(functions: Sequence[Function]) -> dict[str, Function]:
    """A definition goes before declarations of its name, and the first before weak ones (PTX ISA,
    11.6.4)."""
    found: dict[str, Function] = {}
    for one in functions:
        other = found.get(one.name)
        if other and other.body and one.body and not (one.weak or other.weak):
            raise TranslationError(one.ptx_line, one.name, "this function is defined twice")
        if not other or (one.body and (not other.body or (other.weak and not one.weak))):
            found[one.name] = one
    return found


def _facts(function: Function, functions: Mapping[str, Function]) -> Facts:
    calls, addressed = set(), set()
    calls_addresses = waits = exits = False
    body = function.body or Block(())
    for one in body.walk():
        if not isinstance(one, Instruction):
            continue
        opcode = one.opcode
        if opcode == "call":
            name = one.operands[1] if one.operands[0].startswith("(") else one.operands[0]
            if name.startswith("%"):
                calls_addresses = True
            else:
                calls.add(name)
        elif opcode == "mov":
            if one.operands[-1] in functions:
                addressed.add(one.operands[-1])
        elif opcode in _WAITING:
            waits = True
        elif opcode == "exit":
            exits = True
    polling = _polling_branches(body)
    return Facts(
        calls=frozenset(name for name in calls if name in functions),
        addressed=frozenset(addressed),
        calls_addresses=calls_addresses,
        waits=waits or bool(polling),
        exits=exits,
        polling=polling,
    )


def _polling_branches(body: Block) -> frozenset[int]:
    """The numbers, among the instructions of a function, of branches that close a loop in which a
    thread waits for what another one writes.

    The threads of a block take turns on one thread of the host, so that such a loop has to let
    others run. It reads the same place again and again: with a load that the compiler must not
    save, or an atomic operation that changes nothing until the awaited value is there. A loop that
    only repeats an update which another thread came before (compare and swap with the value that
    was read last) gets on by itself, and is left as fast as it is.
    """
    statements = [one for one in body.walk() if isinstance(one, (Instruction, Label))]
    reads = [i for i, one in enumerate(statements) if _reads_again(one)]
    if not reads:
        return frozenset()
    places = {one.name: i for i, one in enumerate(statements) if isinstance(one, Label)}
    found, number = set(), -1
    for i, one in enumerate(statements):
        if isinstance(one, Label):
            continue
        number += 1
        start = places.get(one.operands[0], i) if one.opcode == "bra" else i
        if any(start <= read < i for read in reads):
            written = _written(statements[start:i])
            if any(_is_fixed(statements[read], written) for read in reads if start <= read < i):
                found.add(number)
    return frozenset(found)


def _reads_again(one: Statement) -> bool:
    if not isinstance(one, Instruction):
        return False
    if one.opcode == "ld":
        return bool(_FRESH.intersection(one.modifiers)) and "local" not in one.modifiers
    if one.opcode == "atom":
        kept = one.operands[2] == "0" and bool({"add", "or"}.intersection(one.modifiers))
        return kept or bool({"cas", "exch"}.intersection(one.modifiers))
    return False


def _is_fixed(one: Statement, written: set[str]) -> bool:
    """Whether place and comparison are the same each time that the loop comes by."""
    assert isinstance(one, Instruction)
    operands = one.operands[1:3] if "cas" in one.modifiers else one.operands[1:2]
    return not written.intersection(_REGISTER.findall(" ".join(operands)))


def _written(statements: Sequence[Statement]) -> set[str]:
    written: set[str] = set()
    for one in statements:
        if isinstance(one, Instruction) and one.operands and one.opcode not in _STORES:
            written.update(_REGISTER.findall(one.operands[0]))
    return written
