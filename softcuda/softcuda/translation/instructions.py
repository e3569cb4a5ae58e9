"""The table of the instructions that can be translated, by their opcodes, and what it is made of.

``arithmetic``, ``selection``, ``memory`` and ``control`` fill it; ``translate``, which looks
instructions up, imports them for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from softcuda.translation.operands import C_TYPES, Code
from softcuda.translation.ptx import KINDS, Instruction

Translate = Callable[[Code, Instruction], str]

HALVES = {f"{kind}x2": kind for kind in ("f16", "bf16", "s16", "u16", "f32")}
"""Types of two numbers in one register, and the type of each."""
FLOATS = ("f16", "bf16", "f32", "f64")


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


def is_written(opcode: str, types: str, c: str | Mapping[str, str], ignored: str = "") -> None:
    """Enter an instruction of one type that is one expression in C, or one for each of the
    modifiers (several with spaces between) that it may have; those ``ignored`` change nothing.

    ``types`` are those of the result and of the operands: ``t`` is the instruction's own, ``u`` the
    unsigned one of as many bits. In ``c`` operands have their numbers, ``{t}`` is the type,
    ``{u}`` the unsigned one as C has it, ``{bits}`` their width, ``{sign}`` ``s`` or ``u``,
    ``{signed}`` ``true`` or ``false``, and ``{f}`` what functions of ``float`` end in.
    """
    by_modifiers = {"": c} if isinstance(c, str) else c
    words = {word for modifiers in by_modifiers for word in modifiers.split()}

    @handles(opcode, f"{' '.join(words)} {ignored}")
    def translate(code: Code, one: Instruction) -> str:
        kind = only_kind(code, one)
        named = {"t": kind, "u": unsigned(kind)}
        result, *operands = (named.get(word, word) for word in types.split())
        values = [code.read(*pair) for pair in zip(one.operands[1:], operands, strict=True)]
        modifiers = " ".join(word for word in one.modifiers if word in words)
        value = by_modifiers[modifiers].format(
            *values,
            t=kind,
            u=C_TYPES[unsigned(kind)],
            bits=KINDS[kind] * 8,
            sign="s" if kind[0] == "s" else "u",
            signed="true" if kind[0] == "s" else "false",
            f="f" if kind == "f32" else "",
        )
        return code.write(one.operands[0], result, value)


def translate_instruction(code: Code, one: Instruction) -> str:
    """Return the C statement of an instruction, without its guard."""
    handler = HANDLERS.get(one.opcode)
    if handler is None:
        raise code.error("this instruction is not supported")
    for modifier in one.modifiers:
        if modifier not in handler.modifiers and modifier not in KINDS:
            raise code.error(f".{modifier} is not supported here")
    try:
        return handler.translate(code, one)
    except (LookupError, StopIteration, TypeError, ValueError) as error:  # operands of another form
        raise code.error(f"not supported in this form ({type(error).__name__}: {error})") from error


def kinds_of(one: Instruction) -> list[str]:
    """Return the types among the modifiers."""
    return [modifier for modifier in one.modifiers if modifier in KINDS]


def only_kind(code: Code, one: Instruction) -> str:
    """Return the type of an instruction that has one."""
    kinds = kinds_of(one)
    if len(kinds) != 1:
        raise code.error("not supported with these types")
    return kinds[0]


def element_of(kind: str) -> str:
    return HALVES.get(kind, kind)


def unsigned(kind: str) -> str:
    """Return the type of as many bits that wraps around in C."""
    stays = kind in HALVES or kind in FLOATS or kind == "pred"
    return kind if stays else f"u{KINDS[kind] * 8}"


def widened(kind: str, value: str) -> str:
    """Return a number in the type in which it is calculated with: that of halves is float."""
    return f"sc_f32_of_{kind}({value})" if kind in ("f16", "bf16") else value


def numbers(code: Code, source: str, kind: str) -> list[str]:
    """Return the number in a register, or the lower and the upper one, as they are calculated
    with."""
    half = HALVES.get(kind)
    if not half:
        return [widened(kind, code.read(source, kind))]
    bits = KINDS[half] * 8
    both = code.read(source, f"u{bits * 2}")
    values = [f"(uint{bits}_t)({both} >> {shift})" for shift in (0, bits)]
    cast = {"f32": "sc_f32_of_b32({})", "s16": "(int16_t){}"}.get(half, "{}")
    return [widened(half, cast.format(value)) for value in values]


def calculate(code: Code, one: Instruction, kind: str, c: str) -> str:
    """Put ``c``, written as for ``is_written``, into the first operand: for each half where a
    register holds two numbers."""
    element = element_of(kind)
    columns = zip(*(numbers(code, source, kind) for source in one.operands[1:]), strict=True)
    results = [c.format(*values, f="" if element == "f64" else "f") for values in columns]
    if element in ("f16", "bf16"):
        results = [f"sc_{element}_of({result})" for result in results]
    if kind not in HALVES:
        return code.write(one.operands[0], kind, results[0])
    bits = KINDS[element] * 8
    cast = "sc_b32_of_f32" if element == "f32" else f"(uint{bits}_t)"
    low, high = (f"(uint{bits * 2}_t){cast}({result})" for result in results)
    return code.write(one.operands[0], f"u{bits * 2}", f"{low} | {high} << {bits}")
