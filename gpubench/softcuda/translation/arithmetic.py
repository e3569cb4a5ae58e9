"""Instructions that calculate with numbers (PTX ISA, 9.7.1 to 9.7.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpubench.softcuda.translation.instructions import (
    handles,
    is_written,
    kinds_of,
    only_kind,
    unsigned,
)
from gpubench.softcuda.translation.operands import C_TYPES, Code
from gpubench.softcuda.translation.ptx import KINDS, Instruction

HALVES = {
    "f16x2": "f16",
    "bf16x2": "bf16",
    "s16x2": "s16",
    "u16x2": "u16",
    "f32x2": "f32",
}
"""Types of two numbers in one register, and the type of each."""

FLOATS = ("f16", "bf16", "f32", "f64")
ROUNDINGS = {"rz": "FE_TOWARDZERO", "rm": "FE_DOWNWARD", "rp": "FE_UPWARD"}
"""Modes of rounding other than to nearest, and what <fenv.h> calls them."""

_FLOAT_MODIFIERS = "rn rz rm rp ftz sat"
Make = Callable[..., str]


def widened(kind: str, value: str) -> str:
    """A number in the type in which it is calculated with: that of halves is float."""
    return f"sc_f32_of_{kind}({value})" if kind in ("f16", "bf16") else value


def narrowed(kind: str, value: str) -> str:
    return f"sc_{kind}_of({value})" if kind in ("f16", "bf16") else value


def numbers(code: Code, source: str, kind: str) -> list[str]:
    """The number in a register, or the lower and the upper one, as they are calculated with."""
    half = HALVES.get(kind)
    if not half:
        return [widened(kind, code.read(source, kind))]
    bits = KINDS[half] * 8
    both = code.read(source, f"u{bits * 2}")
    values = [f"(uint{bits}_t)({both} >> {shift})" for shift in (0, bits)]
    cast = {"f32": "sc_f32_of_b32({})", "s16": "(int16_t){}"}.get(half, "{}")
    return [widened(half, cast.format(value)) for value in values]


def calculate(code: Code, one: Instruction, kind: str, make: Make, sources: Sequence[str]) -> str:
    """``d = make(a, b, ...)``, for each half where a register holds two numbers."""
    half = HALVES.get(kind)
    columns = zip(*(numbers(code, source, kind) for source in sources), strict=True)
    results = [narrowed(half or kind, make(*values)) for values in columns]
    if not half:
        return code.write(one.operands[0], kind, results[0])
    bits = KINDS[half] * 8
    cast = "sc_b32_of_f32" if half == "f32" else f"(uint{bits}_t)"
    low, high = (f"(uint{bits * 2}_t){cast}({result})" for result in results)
    return code.write(one.operands[0], f"u{bits * 2}", f"{low} | {high} << {bits}")


def bounded(one: Instruction, value: str) -> str:
    """With .sat and .relu."""
    if "sat" in one.modifiers:
        return f"sc_sat({value})"
    return f"sc_relu({value})" if "relu" in one.modifiers else value


def element_of(kind: str) -> str:
    return HALVES.get(kind, kind)


# ---- add, sub, mul, fma, div, rem -------------------------------------------------------------

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


def _rounded(code: Code, one: Instruction, kind: str) -> str:
    """One of ``_SIGNS`` between floating point numbers, rounded as the instruction says."""
    mode = one.chosen(ROUNDINGS)

    def make(a: str, b: str) -> str:
        rounded = f"sc_{one.opcode}_{element_of(kind)}_in({mode}, {a}, {b}, 0)"
        return bounded(one, rounded if mode else f"{a} {_SIGNS[one.opcode]} {b}")

    return calculate(code, one, kind, make, one.operands[1:])


@handles("add sub", f"{_FLOAT_MODIFIERS} cc noftz")
def _add(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    sign = _SIGNS[one.opcode]
    sources = one.operands[1:]
    if "cc" in one.modifiers:
        return _carried(code, one)
    if element_of(kind) in FLOATS:
        return _rounded(code, one, kind)
    if "sat" in one.modifiers:
        a, b = (code.read(source, "s32") for source in sources)
        return code.write(one.operands[0], "s32", f"sc_clamp_s32((int64_t){a} {sign} {b})")
    kind = kind if kind in HALVES else unsigned(kind)
    return calculate(code, one, kind, lambda a, b: f"{a} {sign} {b}", sources)


@handles("addc subc", "cc")
def _carried(code: Code, one: Instruction) -> str:
    bits = KINDS[only_kind(code, one)] * 8
    a, b = (code.read(source, f"u{bits}") for source in one.operands[1:])
    name = "sc_sub_borrow" if one.opcode.startswith("sub") else "sc_add_carry"
    return _with_carry(code, one, f"{name}_{bits}({a}, {b}, &carry)", f"u{bits}")


def _with_carry(code: Code, one: Instruction, value: str, kind: str) -> str:
    """Only addc, subc and madc take a carry in; without .cc, what goes out is not kept (PTX ISA,
    9.7.2)."""
    code.carries = True
    write = code.write(one.operands[0], kind, value)
    if "cc" not in one.modifiers:
        return f"uint32_t kept = carry; {write} carry = kept;"
    return write if one.opcode in ("addc", "subc", "madc") else f"carry = 0; {write}"


@handles("mul", f"{_FLOAT_MODIFIERS} lo hi wide")
def _mul(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    if element_of(kind) in FLOATS:
        return _rounded(code, one, kind)
    return code.write(one.operands[0], *_product(code, one, kind))


def _product(code: Code, one: Instruction, kind: str) -> tuple[str, str]:
    """The type and the value of a product of integers."""
    bits = KINDS[kind] * 8
    a, b = (code.read(source, kind) for source in one.operands[1:3])
    if "wide" in one.modifiers:
        wide = f"{kind[0]}{bits * 2}"
        return wide, f"({C_TYPES[wide]}){a} * ({C_TYPES[wide]}){b}"
    if "hi" in one.modifiers:
        return kind, f"sc_mul_hi_{kind}({a}, {b})"
    # Halves would be multiplied as int, which cannot hold the product.
    low = f"u{max(bits, 32)}"
    return f"u{bits}", f"({C_TYPES[low]}){a} * ({C_TYPES[low]}){b}"


@handles("mad madc", f"{_FLOAT_MODIFIERS} lo hi wide cc")
def _mad(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    if kind in ("f32", "f64"):
        return _fma(code, one)
    result, product = _product(code, one, kind)
    result_unsigned = unsigned(result)
    c = code.read(one.operands[3], result_unsigned)
    if one.opcode == "madc" or "cc" in one.modifiers:
        bits = KINDS[result] * 8
        value = f"sc_add_carry_{bits}({product}, {c}, &carry)"
        return _with_carry(code, one, value, result_unsigned)
    if "sat" in one.modifiers:
        c = code.read(one.operands[3], "s32")
        return code.write(one.operands[0], "s32", f"sc_clamp_s32((int64_t){product} + {c})")
    return code.write(one.operands[0], result_unsigned, f"{product} + {c}")


@handles("fma", f"{_FLOAT_MODIFIERS} relu")
def _fma(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    element = element_of(kind)
    mode = one.chosen(ROUNDINGS)

    def make(a: str, b: str, c: str) -> str:
        if element in ("f16", "bf16"):
            return bounded(one, f"sc_fma_half({a}, {b}, {c})")
        name = "fmaf" if element == "f32" else "fma"
        value = f"sc_fma_{element}_in({mode}, {a}, {b}, {c})" if mode else f"{name}({a}, {b}, {c})"
        return bounded(one, value)

    return calculate(code, one, kind, make, one.operands[1:])


@handles("div", "rn rz rm rp ftz approx full")
def _div(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    if kind in FLOATS:
        return _rounded(code, one, kind)
    a, b = (code.read(source, kind) for source in one.operands[1:])
    return code.write(one.operands[0], kind, f"sc_div_{kind}({a}, {b})")


is_written("rem", "t t t", "sc_rem_{t}({0}, {1})")
is_written("sad", "u t t u", "{2} + ({0} < {1} ? ({u}){1} - ({u}){0} : ({u}){0} - ({u}){1})")


@handles("mul24 mad24", "lo hi")
def _mul24(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    a, b = (code.read(source, kind) for source in one.operands[1:3])
    product = (
        f"({C_TYPES[kind]})(sc_mul24_{kind}({a}, {b}) >> {16 if 'hi' in one.modifiers else 0})"
    )
    if one.opcode == "mad24":
        product = f"(uint32_t){product} + {code.read(one.operands[3], 'u32')}"
    return code.write(one.operands[0], kind, product)


@handles("dp4a dp2a", "lo hi")
def _dot(code: Code, one: Instruction) -> str:
    first, second = kinds_of(one)
    a, b, c = (code.read(source, "u32") for source in one.operands[1:])
    signs = ", ".join("true" if kind[0] == "s" else "false" for kind in (first, second))
    part = (", 2" if "hi" in one.modifiers else ", 0") if one.opcode == "dp2a" else ""
    return code.write(one.operands[0], "u32", f"sc_{one.opcode}({a}, {b}, {c}, {signs}{part})")


# ---- one operand -------------------------------------------------------------------------------


@handles("neg", "ftz")
def _neg(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    if element_of(kind) not in FLOATS:
        kind = unsigned(kind)
    return calculate(code, one, kind, lambda a: f"-{a}", one.operands[1:])


@handles("abs", "ftz")
def _abs(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    if element_of(kind) in FLOATS:
        name = "fabs" if kind == "f64" else "fabsf"
        return calculate(code, one, kind, lambda a: f"{name}({a})", one.operands[1:])
    a, bits = code.read(one.operands[1], kind), code.read(one.operands[1], unsigned(kind))
    return code.write(one.operands[0], unsigned(kind), f"{a} < 0 ? -{bits} : {bits}")


_FUNCTIONS = {
    "rcp": "1 / {a}",
    "sqrt": "sqrt{f}({a})",
    "rsqrt": "1 / sqrt({a})",
    "sin": "sin{f}({a})",
    "cos": "cos{f}({a})",
    "lg2": "log2{f}({a})",
    "ex2": "exp2{f}({a})",
    "tanh": "tanh{f}({a})",
}


@handles(" ".join(_FUNCTIONS), "rn rz rm rp ftz approx")
def _function(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    mode = one.chosen(ROUNDINGS)

    def make(a: str) -> str:
        if mode and one.opcode == "rcp":
            return f"sc_div_{kind}_in({mode}, 1, {a}, 0)"
        if mode:
            return f"sc_{one.opcode}_{kind}_in({mode}, {a}, 0, 0)"
        return _FUNCTIONS[one.opcode].format(a=a, f="" if kind == "f64" else "f")

    return calculate(code, one, kind, make, one.operands[1:])


@handles("not cnot")
def _not(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    a = code.read(one.operands[1], unsigned(kind))
    sign = "!" if one.opcode == "cnot" or kind == "pred" else "~"
    return code.write(one.operands[0], unsigned(kind), f"{sign}{a}")


is_written("popc", "u32 u", "(uint32_t)__builtin_popcountll({0})")
is_written("clz", "u32 u", "sc_clz_b{bits}({0})")
is_written("brev", "u u", "sc_brev_b{bits}({0})")


@handles("bfind", "shiftamt")
def _bfind(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    value = f"sc_bfind_{kind[0]}64({code.read(one.operands[1], kind)})"
    if "shiftamt" in one.modifiers:  # all ones stay so: there is no shift
        value = f"({value} == UINT32_MAX ? UINT32_MAX : {KINDS[kind] * 8 - 1} - {value})"
    return code.write(one.operands[0], "u32", value)
