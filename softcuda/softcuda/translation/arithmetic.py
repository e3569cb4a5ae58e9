"""Instructions that calculate with numbers, or convert them (PTX ISA, 9.7.1 to 9.7.5, and ``cvt``
of 9.7.9)."""

from __future__ import annotations

from softcuda.translation.instructions import (
    FLOATS,
    HALVES,
    calculate,
    element_of,
    handles,
    is_written,
    kinds_of,
    only_kind,
    unsigned,
    widened,
)
from softcuda.translation.operands import C_TYPES, Code
from softcuda.translation.ptx import KINDS, Instruction

_ROUNDINGS = {"rz": "FE_TOWARDZERO", "rm": "FE_DOWNWARD", "rp": "FE_UPWARD"}
"""Modes of rounding other than to nearest, and what <fenv.h> calls them."""
_FLOAT_MODIFIERS = "rn rz rm rp ftz sat"


def bounded(one: Instruction, value: str) -> str:
    """With .sat and .relu."""
    if "sat" in one.modifiers:
        return f"sc_sat({value})"
    return f"sc_relu({value})" if "relu" in one.modifiers else value


# ---- add, sub, mul, fma, div, rem -------------------------------------------------------------

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


def _rounded(code: Code, one: Instruction, kind: str) -> str:
    """Return the C of one of ``_SIGNS`` between floating point numbers, rounded as the instruction
    says."""
    value = f"{{0}} {_SIGNS[one.opcode]} {{1}}"
    if mode := one.chosen(_ROUNDINGS):
        value = f"sc_{one.opcode}_{element_of(kind)}_in({mode}, {{0}}, {{1}}, 0)"
    return calculate(code, one, kind, bounded(one, value))


@handles("add sub", f"{_FLOAT_MODIFIERS} cc noftz")
def _add(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    if "cc" in one.modifiers:
        return _carried(code, one)
    if element_of(kind) in FLOATS:
        return _rounded(code, one, kind)
    sign = _SIGNS[one.opcode]
    if "sat" in one.modifiers:
        return calculate(code, one, "s32", f"sc_clamp_s32((int64_t){{0}} {sign} {{1}})")
    return calculate(code, one, unsigned(kind), f"{{0}} {sign} {{1}}")


@handles("addc subc", "cc")
def _carried(code: Code, one: Instruction) -> str:
    bits = KINDS[only_kind(code, one)] * 8
    a, b = (code.read(source, f"u{bits}") for source in one.operands[1:])
    name = "sc_sub_borrow" if one.opcode.startswith("sub") else "sc_add_carry"
    return _with_carry(code, one, f"{name}_{bits}({a}, {b}, &carry)", f"u{bits}")


def _with_carry(code: Code, one: Instruction, value: str, kind: str) -> str:
    """Only addc, subc and madc take a carry in; without .cc, what goes out is not kept (PTX ISA,
    9.7.2)."""
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
    """Return the type and the value of a product of integers."""
    bits = KINDS[kind] * 8
    a, b = (code.read(source, kind) for source in one.operands[1:3])
    if "wide" in one.modifiers:
        wide = f"{kind[0]}{bits * 2}"
        return wide, f"({C_TYPES[wide]}){a} * ({C_TYPES[wide]}){b}"
    if "hi" in one.modifiers:
        return kind, f"sc_mul_hi_{kind}({a}, {b})"
    # Halves would be multiplied as int, which cannot hold the product.
    low = C_TYPES[f"u{max(bits, 32)}"]
    return f"u{bits}", f"({low}){a} * ({low}){b}"


@handles("mad madc", f"{_FLOAT_MODIFIERS} lo hi wide cc")
def _mad(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    if kind in ("f32", "f64"):
        return _fma(code, one)
    result, product = _product(code, one, kind)
    kind = unsigned(result)
    c = code.read(one.operands[3], kind)
    if one.opcode == "madc" or "cc" in one.modifiers:
        value = f"sc_add_carry_{KINDS[result] * 8}({product}, {c}, &carry)"
        return _with_carry(code, one, value, kind)
    if "sat" in one.modifiers:
        c = code.read(one.operands[3], "s32")
        return code.write(one.operands[0], "s32", f"sc_clamp_s32((int64_t){product} + {c})")
    return code.write(one.operands[0], kind, f"{product} + {c}")


@handles("fma", f"{_FLOAT_MODIFIERS} relu")
def _fma(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    element = element_of(kind)
    if element in ("f16", "bf16"):
        value = "sc_fma_half({0}, {1}, {2})"
    elif mode := one.chosen(_ROUNDINGS):
        value = f"sc_fma_{element}_in({mode}, {{0}}, {{1}}, {{2}})"
    else:
        value = "fma{f}({0}, {1}, {2})"
    return calculate(code, one, kind, bounded(one, value))


@handles("div", "rn rz rm rp ftz approx full")
def _div(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    if kind in FLOATS:
        return _rounded(code, one, kind)
    return calculate(code, one, kind, f"sc_div_{kind}({{0}}, {{1}})")


_PRODUCT_24 = {
    "lo": "(uint32_t)sc_mul24_{t}({0}, {1})",
    "hi": "(uint32_t)(sc_mul24_{t}({0}, {1}) >> 16)",
}

is_written("rem", "t t t", "sc_rem_{t}({0}, {1})")
is_written("sad", "u t t u", "{2} + ({0} < {1} ? ({u}){1} - ({u}){0} : ({u}){0} - ({u}){1})")
is_written("mul24", "u t t", _PRODUCT_24)
is_written("mad24", "u t t u", {word: f"{value} + {{2}}" for word, value in _PRODUCT_24.items()})


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
    return calculate(code, one, unsigned(only_kind(code, one)), "-{0}")


@handles("abs", "ftz")
def _abs(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    if element_of(kind) not in FLOATS:
        return calculate(code, one, kind, "{0} < 0 ? -{0} : {0}")
    return calculate(code, one, kind, "fabs{f}({0})")


_FUNCTIONS = {
    "rcp": "1 / {0}",
    "sqrt": "sqrt{f}({0})",
    "rsqrt": "1 / sqrt({0})",
    "sin": "sin{f}({0})",
    "cos": "cos{f}({0})",
    "lg2": "log2{f}({0})",
    "ex2": "exp2{f}({0})",
    "tanh": "tanh{f}({0})",
}


@handles(" ".join(_FUNCTIONS), "rn rz rm rp ftz approx")
def _function(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    mode = one.chosen(_ROUNDINGS)
    value = _FUNCTIONS[one.opcode]
    if mode and one.opcode == "rcp":
        value = f"sc_div_{kind}_in({mode}, 1, {{0}}, 0)"
    elif mode:
        value = f"sc_{one.opcode}_{kind}_in({mode}, {{0}}, 0, 0)"
    return calculate(code, one, kind, value)


is_written("not", "u u", {"": "~{0}", "pred": "!{0}"})
is_written("cnot", "u u", "!{0}")
is_written("popc", "u32 u", "(uint32_t)__builtin_popcountll({0})")
is_written("clz", "u32 u", "sc_clz_b{bits}({0})")
is_written("brev", "u u", "sc_brev_b{bits}({0})")
_BFIND = "sc_bfind_{sign}64({0})"
# All ones stay so with .shiftamt: there is no shift.
_SHIFT = f"{_BFIND} == UINT32_MAX ? UINT32_MAX : {{bits}} - 1 - {_BFIND}"
is_written("bfind", "u32 t", {"": _BFIND, "shiftamt": _SHIFT})

# ---- cvt ---------------------------------------------------------------------------------------

_INTEGRAL = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_CONVERSIONS = {**_ROUNDINGS, "rn": "FE_TONEAREST", "rna": "SC_TIES_AWAY"}


@handles("cvt", " ".join([*_CONVERSIONS, *_INTEGRAL, "ftz sat relu tf32 pack"]))
def _cvt(code: Code, one: Instruction) -> str:
    d, a = one.operands[:2]
    mode = one.chosen(_CONVERSIONS) or "FE_TONEAREST"
    if "pack" in one.modifiers:
        return _pack(code, one)
    if "tf32" in one.modifiers:
        return code.write(d, "u32", f"sc_tf32_in({mode}, {code.read(a, 'f32')})")
    to, kind = kinds_of(one)
    if to in HALVES:  # cvt.rn.f16x2.f32 d, a, b: a becomes the upper half
        if kind != "f32":
            raise code.error("not supported from this type")
        high, low = (
            f"(uint32_t)sc_{HALVES[to]}_in({mode}, {bounded(one, code.read(source, 'f32'))})"
            for source in one.operands[1:]
        )
        return code.write(d, "u32", f"{high} << 16 | {low}")
    value = widened(kind, code.read(a, kind))
    if integral := one.chosen(_INTEGRAL):
        value = f"{integral}({value})"
    elif kind in FLOATS and to not in FLOATS:
        raise code.error("a conversion to an integer has to say how it rounds")
    if to not in FLOATS:
        return code.write(d, to, _integer(one, to, kind, value))
    if to in ("f16", "bf16"):
        return code.write(d, to, f"sc_{to}_in({mode}, {bounded(one, f'(double){value}')})")
    if mode != "FE_TONEAREST" and kind not in FLOATS:
        value = f"sc_{to}_of_{kind[0]}64_in({mode}, {value})"
    elif mode != "FE_TONEAREST" and (to, kind) == ("f32", "f64"):
        value = f"sc_f32_of_f64_in({mode}, {value})"
    return code.write(d, to, f"({C_TYPES[to]}){bounded(one, f'({value})')}")


def _integer(one: Instruction, to: str, kind: str, value: str) -> str:
    """Return an integral number as one of an integer type."""
    if kind in FLOATS:
        large = kind == "f64" or to in ("s64", "u64")
        of_nan = f"({C_TYPES[to]})(1ull << {KINDS[to] * 8 - 1})" if large else "0"
        return f"sc_{to}_of_float({value}, {of_nan})"
    if "sat" in one.modifiers:
        value = _clamped(value, to)
    return f"({C_TYPES[to]}){value}"


def _pack(code: Code, one: Instruction) -> str:
    """``cvt.pack.sat.s16.s32 d, a, b``: a above b; of bytes the lower half of c goes above both."""
    to, kind, *_ = kinds_of(one)
    bits = KINDS[to] * 8
    high, low = (
        f"(uint32_t)(uint{bits}_t){_clamped(code.read(source, kind), to)}"
        for source in one.operands[1:3]
    )
    value = f"{high} << {bits} | {low}"
    if len(one.operands) == 4:
        value = f"{code.read(one.operands[3], 'u32')} << {2 * bits} | {value}"
    return code.write(one.operands[0], "u32", value)


def _clamped(value: str, kind: str) -> str:
    """Return the nearest number of an integer type."""
    bits = KINDS[kind] * 8
    bounds = f"INT{bits}_MIN, INT{bits}_MAX" if kind[0] == "s" else f"0, UINT{bits}_MAX"
    return f"sc_clamp({value}, {bounds})"
