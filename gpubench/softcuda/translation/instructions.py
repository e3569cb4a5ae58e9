"""The table of the instructions that can be translated, by their opcodes.

``arithmetic``, ``selection``, ``conversion``, ``memory`` and ``control`` fill it; ``function``,
which looks instructions up, imports them for that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpubench.softcuda.translation.operands import C_TYPES, Code
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


def always(opcodes: str, statement: str, modifiers: str = "", *, faults: bool = False) -> None:
    """Enter instructions that are one and the same statement, whatever their operands."""
    handles(opcodes, modifiers, faults=faults)(lambda code, one: statement)


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


def is_written(opcode: str, types: str, c: str) -> None:
    """Enter an instruction of one type that is one expression in C.

    ``types`` are those of the result and of the operands: ``t`` is the instruction's own, ``u`` the
    unsigned one of as many bits. In ``c`` operands have their numbers, ``{t}`` is the type,
    ``{u}`` the unsigned one as C has it, ``{bits}`` their width, ``{signed}`` ``true`` or
    ``false``, and ``{f}`` what functions of ``float`` end in.
    """

    @handles(opcode)
    def translate(code: Code, one: Instruction) -> str:
        kind = only_kind(code, one)
        named = {"t": kind, "u": unsigned(kind)}
        result, *operands = (named.get(word, word) for word in types.split())
        values = [code.read(*pair) for pair in zip(one.operands[1:], operands, strict=True)]
        value = c.format(
            *values,
            t=kind,
            u=C_TYPES[unsigned(kind)],
            bits=KINDS[kind] * 8,
            signed="true" if kind[0] == "s" else "false",
            f="f" if kind == "f32" else "",
        )
        return code.write(one.operands[0], result, value)
