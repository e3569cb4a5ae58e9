"""The table of the instructions that can be translated, by their opcodes.

``arithmetic``, ``selection``, ``conversion``, ``memory`` and ``control`` fill it; ``function``,
which looks instructions up, imports them for that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpubench.softcuda.translation.operands import Code
from gpubench.softcuda.translation.ptx import KINDS, Instruction

Translate = Callable[[Code, Instruction], str]


@dataclass(frozen=True)
class Handler:
    """How one opcode becomes a C statement, and which modifiers that takes account of."""

    translate: Translate
    modifiers: frozenset[str]
    faults: bool  # whether it asks the device for something, which may find a fault in it


HANDLERS: dict[str, Handler] = {}


def handles(
    opcodes: str, modifiers: str = "", *, faults: bool = False
) -> Callable[[Translate], Translate]:
    """Enter a function into the table. Any other modifier than those, and types, is refused: it
    would mean something that the function does not know of."""

    def enter(translate: Translate) -> Translate:
        for opcode in opcodes.split():
            assert opcode not in HANDLERS, opcode
            HANDLERS[opcode] = Handler(translate, frozenset(modifiers.split()), faults)
        return translate

    return enter


def translate_instruction(code: Code, one: Instruction) -> str:
    """The C statement of an instruction, without its guard."""
    handler = HANDLERS.get(one.opcode)
    if handler is None:
        raise code.error("this instruction is not supported")
    for modifier in one.modifiers:
        if modifier not in handler.modifiers and modifier not in KINDS:
            raise code.error(f".{modifier} is not supported here")
    try:
        return handler.translate(code, one)
    except (IndexError, KeyError, TypeError, ValueError) as error:  # operands of another form
        raise code.error(f"not supported in this form ({type(error).__name__}: {error})") from error


def kinds_of(one: Instruction) -> list[str]:
    """The types among the modifiers."""
    return [modifier for modifier in one.modifiers if modifier in KINDS]


def only_kind(code: Code, one: Instruction) -> str:
    """The type of an instruction that has one."""
    kinds = kinds_of(one)
    if len(kinds) != 1:
        raise code.error("not supported with these types")
    return kinds[0]


def unsigned(kind: str) -> str:
    """The type of as many bits that wraps around in C."""
    return kind if kind[0] in "fp" else f"u{KINDS[kind] * 8}"
