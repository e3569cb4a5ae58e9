"""``cvt`` and ``cvt.pack``: numbers of one type as those of another (PTX ISA, 9.7.9)."""

from __future__ import annotations

from gpubench.softcuda.translation.arithmetic import (
    FLOATS,
    HALVES,
    ROUNDINGS,
    bounded,
    widened,
)
from gpubench.softcuda.translation.instructions import handles, kinds_of
from gpubench.softcuda.translation.operands import C_TYPES, Code
from gpubench.softcuda.translation.ptx import KINDS, Instruction

_INTEGRAL = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_TO_HALVES = {**ROUNDINGS, "rn": "FE_TONEAREST", "rna": "SC_TIES_AWAY"}
_MODIFIERS = " ".join([*_TO_HALVES, *_INTEGRAL, "ftz", "sat", "relu", "tf32"])


@handles("cvt", f"{_MODIFIERS} pack")
def _cvt(code: Code, one: Instruction) -> str:
    if "pack" in one.modifiers:
        return _pack(code, one)
    if "tf32" in one.modifiers:
        value = f"sc_tf32_in({_rounding(one)}, {code.read(one.operands[1], 'f32')})"
        return code.write(one.operands[0], "u32", value)
    to, kind = kinds_of(one)
    if to in HALVES:
        return _halves(code, one, to, kind)
    value = code.read(one.operands[1], kind)
    if kind in FLOATS:
        value = widened(kind, value)
        if to in FLOATS:
            return code.write(one.operands[0], to, _between_floats(one, to, kind, value))
        return code.write(one.operands[0], to, _to_integer(one, to, kind, value))
    if to in FLOATS:
        return code.write(one.operands[0], to, _from_integer(one, to, kind, value))
    if "sat" in one.modifiers:
        least, most = _range(to)
        value = f"sc_clamp({value}, {least}, {most})"
    return code.write(one.operands[0], to, f"({C_TYPES[to]}){value}")


def _rounding(one: Instruction) -> str:
    return one.chosen(_TO_HALVES) or "FE_TONEAREST"


def _between_floats(one: Instruction, to: str, kind: str, value: str) -> str:
    integral = one.chosen(_INTEGRAL)
    if integral:
        value = f"{integral}({value})"
    mode = _rounding(one)
    if to in ("f16", "bf16"):
        return f"sc_{to}_in({mode}, {bounded(one, value)})"
    if to == "f32" and kind == "f64" and mode != "FE_TONEAREST":
        value = f"sc_f32_of_f64_in({mode}, {value})"
    return f"({C_TYPES[to]}){bounded(one, f'({value})')}"


def _to_integer(one: Instruction, to: str, kind: str, value: str) -> str:
    integral = next(_INTEGRAL[word] for word in one.modifiers if word in _INTEGRAL)
    large = kind == "f64" or to in ("s64", "u64")
    of_nan = f"({C_TYPES[to]})(1ull << {KINDS[to] * 8 - 1})" if large else "0"
    return f"sc_{to}_of_float({integral}({value}), {of_nan})"


def _from_integer(one: Instruction, to: str, kind: str, value: str) -> str:
    mode = _rounding(one)
    if to in ("f16", "bf16"):
        return f"sc_{to}_in({mode}, {bounded(one, f'(double){value}')})"
    if mode != "FE_TONEAREST":
        value = f"sc_{to}_of_{kind[0]}64_in({mode}, {value})"
    return f"({C_TYPES[to]}){bounded(one, value)}"


def _halves(code: Code, one: Instruction, to: str, kind: str) -> str:
    """``cvt.rn.f16x2.f32 d, a, b``: a becomes the upper half."""
    if kind != "f32":
        raise code.error("not supported from this type")
    high, low = (bounded(one, code.read(source, "f32")) for source in one.operands[1:])
    name = f"sc_{HALVES[to]}_in({_rounding(one)}"
    value = f"(uint32_t){name}, {high}) << 16 | {name}, {low})"
    return code.write(one.operands[0], "u32", value)


def _pack(code: Code, one: Instruction) -> str:
    """``cvt.pack.sat.s16.s32 d, a, b``: a above b; of bytes the lower half of c goes above both."""
    to, kind, *_ = kinds_of(one)
    bits = KINDS[to] * 8
    least, most = _range(to)
    word = f"uint{bits}_t"
    high, low = (
        f"(uint32_t)({word})sc_clamp({code.read(source, kind)}, {least}, {most})"
        for source in one.operands[1:3]
    )
    value = f"{high} << {bits} | {low}"
    if len(one.operands) == 4:
        value = f"{code.read(one.operands[3], 'u32')} << {2 * bits} | {value}"
    return code.write(one.operands[0], "u32", value)


def _range(kind: str) -> tuple[str, str]:
    """The least and the greatest number of an integer type, as constants of C."""
    bits = KINDS[kind] * 8
    if kind[0] == "s":
        return f"INT{bits}_MIN", f"INT{bits}_MAX"
    return "0", f"UINT{bits}_MAX"
