"""Instructions that compare, choose, and move bits (PTX ISA, 9.7.6 to 9.7.9)."""

from __future__ import annotations

from softcuda.translation.arithmetic import bounded
from softcuda.translation.instructions import (
    FLOATS,
    HALVES,
    calculate,
    element_of,
    handles,
    is_written,
    kinds_of,
    numbers,
    only_kind,
)
from softcuda.translation.operands import C_TYPES, Code
from softcuda.translation.ptx import KINDS, Instruction, split_operands

_ORDERS = {"eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ORDERS |= {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_OPPOSITES = {"ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
_COMPARISONS = {
    **{word: f"({{0}} {sign} {{1}})" for word, sign in _ORDERS.items()},
    # True for NaN too (PTX ISA, 9.3.1.2).
    **{f"{word}u": f"!({{0}} {_ORDERS[other]} {{1}})" for word, other in _OPPOSITES.items()},
    "ne": "({0} < {1} || {0} > {1})",
    "equ": "!({0} < {1} || {0} > {1})",
    "nan": "(isnan({0}) || isnan({1}))",
    "num": "!(isnan({0}) || isnan({1}))",
}
_COMBINATIONS = {"and": "&", "or": "|", "xor": "^"}

# ---- min, max, comparisons, selection ----------------------------------------------------------


@handles("min max", "ftz NaN xorsign abs relu")
def _min(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    element = element_of(kind)
    if element not in FLOATS:
        value = f"({{0}} {'<' if one.opcode == 'min' else '>'} {{1}} ? {{0}} : {{1}})"
        return calculate(code, one, kind, bounded(one, value))
    nan = "_nan" if "NaN" in one.modifiers else ""
    name = f"sc_{one.opcode}{nan}_{'f64' if element == 'f64' else 'f32'}"
    term = "fabsf({{{}}})" if "abs" in one.modifiers else "{{{}}}"
    value, *more = map(term.format, range(len(one.operands) - 1))
    for other in more:
        value = f"{name}({value}, {other})"
    if "xorsign" in one.modifiers:
        value = f"sc_xorsign({value}, {{0}}, {{1}})"
    return calculate(code, one, kind, bounded(one, value))


_COMPARE = " ".join([*_COMPARISONS, *_COMBINATIONS, "ftz"])


@handles("setp", _COMPARE)
def _setp(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    first, _, second = (name.strip() for name in one.operands[0].partition("|"))
    if not second:
        return code.write(first, "pred", _conditions(code, one, kind)[0])
    p, q = _conditions(code, one, kind, opposite=kind not in HALVES)
    writes = f"{code.write(first, 'pred', 'p')} {code.write(second, 'pred', 'q')}"
    return f"bool p = {p}, q = {q}; {writes}"


def _conditions(code: Code, one: Instruction, kind: str, opposite: bool = False) -> list[str]:
    """Return the condition of the comparison, or those of both halves; with ``opposite``, its
    opposite too. With ``.and``, ``.or`` and ``.xor`` each of them and the predicate behind."""
    condition = _COMPARISONS[one.modifiers[0]]
    a, b = (numbers(code, source, kind) for source in one.operands[1:3])
    conditions = [condition.format(*pair) for pair in zip(a, b, strict=True)]
    if opposite:
        conditions.append(f"!{conditions[0]}")
    if sign := one.chosen(_COMBINATIONS):
        predicate = code.read(one.operands[3], "pred")
        return [f"({condition} {sign} {predicate})" for condition in conditions]
    return conditions


@handles("set", _COMPARE)
def _set(code: Code, one: Instruction) -> str:
    to, kind = kinds_of(one)
    ones = {"f32": "0x1p+0f", "f16": "0x3c00", "bf16": "0x3f80"}.get(element_of(to), "-1")
    values = [f"({condition} ? {ones} : 0)" for condition in _conditions(code, one, kind)]
    if kind not in HALVES:
        return code.write(one.operands[0], to, f"({C_TYPES[to]}){values[0]}")
    low, high = (f"(uint16_t){value}" for value in values)
    return code.write(one.operands[0], "u32", f"{low} | (uint32_t){high} << 16")


is_written("selp", "t t t pred", "{2} ? {0} : {1}")
is_written("copysign", "t t t", "copysign{f}({1}, {0})")  # the sign is that of the first
is_written(
    "testp",
    "pred t",
    {
        "finite": "isfinite({0})",
        "infinite": "isinf({0})",
        "number": "!isnan({0})",
        "notanumber": "isnan({0})",
        "normal": "isnormal({0})",
        "subnormal": "(fpclassify({0}) == FP_SUBNORMAL)",
    },
)


@handles("slct", "ftz")
def _slct(code: Code, one: Instruction) -> str:
    kind, sign = kinds_of(one)
    d, a, b, c = one.operands
    value = f"{code.read(c, sign)} >= 0 ? {code.read(a, kind)} : {code.read(b, kind)}"
    return code.write(d, kind, value)


# ---- bits --------------------------------------------------------------------------------------


for _opcode, _sign in _COMBINATIONS.items():
    is_written(_opcode, "u u u", f"{{0}} {_sign} {{1}}")
is_written("bfe", "u u u32 u32", "sc_bfe({0}, {1}, {2}, {signed}, {bits})")
is_written("bfi", "u u u u32 u32", "sc_bfi({0}, {1}, {2}, {3}, {bits})")
is_written("fns", "u32 u32 u32 s32", "sc_fns({0}, {1}, {2})")


is_written("shl", "t t u32", "sc_shl_b{bits}({0}, {1})")
is_written("shr", "t t u32", "sc_shr_{sign}{bits}({0}, {1})")
is_written(
    "shf",
    "u32 u32 u32 u32",
    {
        "l wrap": "sc_shf_l({0}, {1}, {2} & 31)",
        "r wrap": "sc_shf_r({0}, {1}, {2} & 31)",
        "l clamp": "sc_shf_l({0}, {1}, {2} > 32 ? 32 : {2})",
        "r clamp": "sc_shf_r({0}, {1}, {2} > 32 ? 32 : {2})",
    },
)
is_written(
    "bmsk",
    "u32 u32 u32",
    {"clamp": "sc_bmsk({0}, {1})", "wrap": "sc_bmsk({0} & 31, {1} & 31)"},
)
is_written(
    "szext",
    "u32 u32 u32",
    {"clamp": "sc_szext({0}, {1}, {signed})", "wrap": "sc_szext({0}, {1} & 31, {signed})"},
)


@handles("lop3", "and or")
def _lop3(code: Code, one: Instruction) -> str:
    a, b, c, table = (code.read(source, "u32") for source in one.operands[1:5])
    value = f"sc_lop3({a}, {b}, {c}, {table})"
    if len(one.operands) == 5:
        return code.write(one.operands[0], "u32", value)
    d, p = (name.strip() for name in one.operands[0].split("|"))
    condition = f"(v != 0) {one.chosen(_COMBINATIONS)} {code.read(one.operands[5], 'pred')}"
    writes = f"{code.write(d, 'u32', 'v')} {code.write(p, 'pred', 'p')}"
    return f"uint32_t v = {value}; bool p = {condition}; {writes}"


_SELECTORS = {
    "f4e": 0x6543_5432_4321_3210,
    "b4e": 0x0123_7012_6701_5670,
    "rc8": 0x3333_2222_1111_0000,
    "ecl": 0x3333_3222_3211_3210,
    "ecr": 0x3210_2210_1110_0000,
    "rc16": 0x3232_1010_3232_1010,
}
"""Of the modes of prmt, for the lower two bits of c from 3 to 0 (PTX ISA, 9.7.9.7)."""


_PRMT = {
    mode: f"sc_prmt({{0}}, {{1}}, sc_selector({selector:#x}ull, {{2}}))"
    for mode, selector in _SELECTORS.items()
}
is_written("prmt", "u32 u32 u32 u32", {"": "sc_prmt({0}, {1}, {2})", **_PRMT})


# ---- mov ---------------------------------------------------------------------------------------


@handles("mov")
def _mov(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    d, a = one.operands
    bits = KINDS[kind] * 8
    if d[0] == "{":
        parts = split_operands(d[1:-1])
        width = bits // len(parts)
        value = code.read(a, f"b{bits}")
        writes = [
            code.write(part, f"b{width}", f"(uint{width}_t)(v >> {width * i})")
            for i, part in enumerate(parts)
            if part != "_"
        ]
        return f"{C_TYPES[f'b{bits}']} v = {value}; {' '.join(writes)}"
    if a[0] == "{":
        parts = split_operands(a[1:-1])
        width = bits // len(parts)
        c_type = C_TYPES[f"b{bits}"]
        terms = [
            f"({c_type}){code.read(part, f'b{width}')} << {width * i}"
            for i, part in enumerate(parts)
        ]
        return code.write(d, f"b{bits}", " | ".join(terms))
    return code.write(d, kind, code.read(a, kind))
