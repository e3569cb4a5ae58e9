"""Instructions that compare, choose, and move bits (PTX ISA, 9.7.6 to 9.7.9)."""

from __future__ import annotations

from gpubench.softcuda.translation.arithmetic import (
    FLOATS,
    HALVES,
    bounded,
    calculate,
    element_of,
    numbers,
)
from gpubench.softcuda.translation.instructions import handles, is_written, kinds_of, only_kind
from gpubench.softcuda.translation.operands import C_TYPES, Code
from gpubench.softcuda.translation.ptx import KINDS, Instruction, split_operands

_COMPARISONS = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
_OPPOSITES = {"neu": "==", "ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}
"""Comparisons that are true for NaN, and the one that is false for it (PTX ISA, 9.3.1.2)."""
_COMBINATIONS = {"and": "&", "or": "|", "xor": "^"}

# ---- min, max, comparisons, selection ----------------------------------------------------------


@handles("min max", "ftz NaN xorsign abs relu")
def _min(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    element = element_of(kind)
    sign = "<" if one.opcode == "min" else ">"

    def make(*values: str) -> str:
        if element not in FLOATS:
            value = "{0} {2} {1} ? {0} : {1}".format(*values, sign)
            return f"({value}) > 0 ? ({value}) : 0" if "relu" in one.modifiers else value
        name = f"sc_{one.opcode}{'_nan' if 'NaN' in one.modifiers else ''}"
        name = f"{name}_{'f64' if element == 'f64' else 'f32'}"
        absolute = "abs" in one.modifiers
        terms = [f"fabsf({value})" for value in values] if absolute else list(values)
        value = terms[0]
        for term in terms[1:]:
            value = f"{name}({value}, {term})"
        if "xorsign" in one.modifiers:
            value = f"sc_xorsign({value}, {values[0]}, {values[1]})"
        return bounded(one, value)

    return calculate(code, one, kind, make, one.operands[1:])


def _compared(one: Instruction, kind: str, a: str, b: str) -> str:
    """The C condition of a comparison, with NaN as PTX has it."""
    word = one.modifiers[0]
    real = element_of(kind) in FLOATS
    if word in ("num", "nan"):
        condition = f"(isnan({a}) || isnan({b}))"
        return condition if word == "nan" else f"!{condition}"
    if word == "equ":
        return f"(isnan({a}) || isnan({b}) || {a} == {b})"
    if word == "ne" and real:
        return f"(!isnan({a}) && !isnan({b}) && {a} != {b})"
    if word in _OPPOSITES:
        return f"!({a} {_OPPOSITES[word]} {b})"
    return f"({a} {_COMPARISONS[word]} {b})"


_COMPARE = " ".join([*_COMPARISONS, *_OPPOSITES, "equ", "num", "nan", *_COMBINATIONS, "ftz"])


@handles("setp", _COMPARE)
def _setp(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    results = one.operands[0].split("|")
    conditions = _conditions(code, one, kind)
    if kind not in HALVES and len(results) > 1:
        conditions.append(f"!{conditions[0]}")
    conditions = _combined(code, one, conditions)
    if len(results) == 1:
        return code.write(results[0].strip(), "pred", conditions[0])
    first, second = (name.strip() for name in results)
    return (
        f"bool p = {conditions[0]}, q = {conditions[1]}; "
        + f"{code.write(first, 'pred', 'p')} {code.write(second, 'pred', 'q')}"
    )


def _combined(code: Code, one: Instruction, conditions: list[str]) -> list[str]:
    """With ``.and``, ``.or`` and ``.xor`` each of them and the predicate behind."""
    sign = one.chosen(_COMBINATIONS)
    if sign is None:
        return conditions
    c = code.read(one.operands[3], "pred")
    return [f"({condition} {sign} {c})" for condition in conditions]


def _conditions(code: Code, one: Instruction, kind: str) -> list[str]:
    """The condition of the comparison, or those of both halves."""
    a, b = (numbers(code, source, kind) for source in one.operands[1:3])
    return [_compared(one, kind, *pair) for pair in zip(a, b, strict=True)]


@handles("set", _COMPARE)
def _set(code: Code, one: Instruction) -> str:
    to, kind = kinds_of(one)
    conditions = _combined(code, one, _conditions(code, one, kind))
    ones = {"f32": "0x1p+0f", "f16": "0x3c00", "bf16": "0x3f80"}.get(element_of(to), "-1")
    values = [f"({condition} ? {ones} : 0)" for condition in conditions]
    if kind not in HALVES:
        return code.write(one.operands[0], to, f"({C_TYPES[to]}){values[0]}")
    low, high = (f"(uint16_t){value}" for value in values)
    return code.write(one.operands[0], "u32", f"{low} | (uint32_t){high} << 16")


is_written("selp", "t t t pred", "{2} ? {0} : {1}")
is_written("copysign", "t t t", "copysign{f}({1}, {0})")  # the sign is that of the first


@handles("slct", "ftz")
def _slct(code: Code, one: Instruction) -> str:
    kind, sign = kinds_of(one)
    d, a, b, c = one.operands
    value = f"{code.read(c, sign)} >= 0 ? {code.read(a, kind)} : {code.read(b, kind)}"
    return code.write(d, kind, value)


_TESTS = {
    "finite": "isfinite({a})",
    "infinite": "isinf({a})",
    "number": "!isnan({a})",
    "notanumber": "isnan({a})",
    "normal": "isnormal({a})",
    "subnormal": "(fpclassify({a}) == FP_SUBNORMAL)",
}


@handles("testp", " ".join(_TESTS))
def _testp(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    test = _TESTS[one.modifiers[0]]
    return code.write(one.operands[0], "pred", test.format(a=code.read(one.operands[1], kind)))


# ---- bits --------------------------------------------------------------------------------------


for _opcode, _sign in _COMBINATIONS.items():
    is_written(_opcode, "u u u", f"{{0}} {_sign} {{1}}")
is_written("bfe", "u u u32 u32", "sc_bfe({0}, {1}, {2}, {signed}, {bits})")
is_written("bfi", "u u u u32 u32", "sc_bfi({0}, {1}, {2}, {3}, {bits})")
is_written("fns", "u32 u32 u32 s32", "sc_fns({0}, {1}, {2})")


@handles("shl shr")
def _shift(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    bits = KINDS[kind] * 8
    name = f"b{bits}" if one.opcode == "shl" else f"{'s' if kind[0] == 's' else 'u'}{bits}"
    a_kind = kind if name[0] == "s" else f"u{bits}"
    d, a, n = one.operands
    value, count = code.read(a, a_kind), code.read(n, "u32")
    if n.isdigit() and int(n) < bits:  # as most are
        sign = "<<" if one.opcode == "shl" else ">>"
        return code.write(d, a_kind, f"{value} {sign} {int(n)}")
    return code.write(d, a_kind, f"sc_{one.opcode}_{name}({value}, {count})")


@handles("shf", "l r wrap clamp")
def _shf(code: Code, one: Instruction) -> str:
    d, a, b, c = one.operands
    n = code.read(c, "u32")
    n = f"{n} & 31" if "wrap" in one.modifiers else f"({n} > 32 ? 32 : {n})"
    name = f"sc_shf_{one.modifiers[0]}"
    return code.write(d, "u32", f"{name}({code.read(a, 'u32')}, {code.read(b, 'u32')}, {n})")


@handles("bmsk szext", "clamp wrap")
def _mask(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    a, b = (code.read(source, "u32") for source in one.operands[1:])
    wraps = "wrap" in one.modifiers
    if one.opcode == "bmsk":
        value = f"sc_bmsk({a} & 31, {b} & 31)" if wraps else f"sc_bmsk({a}, {b})"
    else:
        b = f"{b} & 31" if wraps else b
        value = f"sc_szext({a}, {b}, {'true' if kind[0] == 's' else 'false'})"
    return code.write(one.operands[0], "u32", value)


@handles("lop3", "and or")
def _lop3(code: Code, one: Instruction) -> str:
    a, b, c, table = (code.read(source, "u32") for source in one.operands[1:5])
    value = f"sc_lop3({a}, {b}, {c}, {table})"
    if len(one.operands) == 5:
        return code.write(one.operands[0], "u32", value)
    d, p = (name.strip() for name in one.operands[0].split("|"))
    sign = "&" if "and" in one.modifiers else "|"
    q = code.read(one.operands[5], "pred")
    parts = ["uint32_t v = " + value + ";", f"bool p = (v != 0) {sign} {q};"]
    parts += [code.write(d, "u32", "v"), code.write(p, "pred", "p")]
    return " ".join(parts)


_SELECTORS = {
    "f4e": 0x6543_5432_4321_3210,
    "b4e": 0x0123_7012_6701_5670,
    "rc8": 0x3333_2222_1111_0000,
    "ecl": 0x3333_3222_3211_3210,
    "ecr": 0x3210_2210_1110_0000,
    "rc16": 0x3232_1010_3232_1010,
}
"""Of the modes of prmt, for the lower two bits of c from 3 to 0 (PTX ISA, 9.7.9.7)."""


@handles("prmt", " ".join(_SELECTORS))
def _prmt(code: Code, one: Instruction) -> str:
    d, *sources = one.operands
    a, b, c = (code.read(source, "u32") for source in sources)
    if selector := one.chosen(_SELECTORS):
        c = f"sc_selector({selector:#x}ull, {c})"
    return code.write(d, "u32", f"sc_prmt({a}, {b}, {c})")


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
