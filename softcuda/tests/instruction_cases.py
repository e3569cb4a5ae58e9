"""What single instructions have to give, calculated by Python without the translator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from exact_numbers import (
    DIGITS,
    IEEE,
    Value,
    bfloat,
    bfloat_bits,
    bits_of,
    clamp,
    corners,
    exactly,
    float_of,
    least,
    minus,
    numbers,
    over,
    plus,
    rounded,
    saturated,
    square_root,
    times,
    times_plus,
    to_integer,
    wrap,
)


@dataclass(frozen=True)
class Case:
    """An instruction, and what it gives for given operands.

    ``text`` names its operands %d, %a, %b, %c where it is more than an opcode with just those.
    """

    text: str
    result: str  # type of %d
    sources: tuple[str, ...]  # types of %a, %b, %c
    expected: Callable[..., Value]
    values: tuple[Sequence[Value], ...] = ()  # for each operand; () takes those of its type
    tolerance: float = 0.0  # relative, of approximate instructions

    @property
    def name(self) -> str:
        return " ".join(self.text.replace("%", "").split())

    @property
    def statement(self) -> str:
        if "%" in self.text:
            return self.text if self.text.startswith("{") else f"{self.text};"
        operands = ["%d", "%a", "%b", "%c"][: len(self.sources) + 1]
        return f"{self.text} {', '.join(operands)};"


# ---- integers ----------------------------------------------------------------------------------


def divide(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _integer_cases() -> list[Case]:
    cases = []
    for kind in ("u16", "s16", "u32", "s32", "u64", "s64"):
        bits = int(kind[1:])
        two = (kind, kind)

        def case(
            text: str, function: Callable[..., int], sources: tuple[str, ...], to: str = kind
        ) -> Case:
            return Case(text, to, sources, lambda *values: wrap(function(*values), to))

        cases += [
            case(f"add.{kind}", lambda a, b: a + b, two),
            case(f"sub.{kind}", lambda a, b: a - b, two),
            case(f"mul.lo.{kind}", lambda a, b: a * b, two),
            case(f"mul.hi.{kind}", lambda a, b, n=bits: a * b >> n, two),
            case(f"mad.lo.{kind}", lambda a, b, c: a * b + c, (kind, kind, kind)),
            case(
                f"mad.hi.{kind}",
                lambda a, b, c, n=bits: (a * b >> n) + c,
                (kind, kind, kind),
            ),
            case(f"min.{kind}", min, two),
            case(f"max.{kind}", max, two),
            case(f"div.{kind}", lambda a, b: divide(a, b) if b else -1, two),
            case(f"rem.{kind}", lambda a, b: a - b * divide(a, b) if b else a, two),
            case(
                f"sad.{kind}",
                lambda a, b, c: c + abs(a - b),
                (kind, kind, f"u{bits}"),
                f"u{bits}",
            ),
            case(
                f"shr.{kind}",
                lambda a, n, w=bits: a >> min(n, w),
                (kind, "u32"),
            ),
        ]
        if kind[0] == "s":
            cases += [
                case(f"neg.{kind}", lambda a: -a, (kind,)),
                case(f"abs.{kind}", abs, (kind,)),
            ]
        else:
            cases += [
                case(f"shl.b{bits}", lambda a, n: a << min(n, 64), (kind, "u32")),
                case(f"not.b{bits}", lambda a: ~a, (kind,)),
                case(f"cnot.b{bits}", lambda a: int(a == 0), (kind,)),
                case(f"and.b{bits}", lambda a, b: a & b, two),
                case(f"or.b{bits}", lambda a, b: a | b, two),
                case(f"xor.b{bits}", lambda a, b: a ^ b, two),
            ]
        if bits < 64:
            wide = f"{kind[0]}{bits * 2}"
            cases += [
                case(f"mul.wide.{kind}", lambda a, b: a * b, two, wide),
                case(
                    f"mad.wide.{kind}",
                    lambda a, b, c: a * b + c,
                    (kind, kind, wide),
                    wide,
                ),
            ]
    return cases + _bit_cases() + _wide_cases()


def _bit_field(a: int, start: int, length: int, kind: str) -> int:
    """Extract a bit field as the ISA's pseudo-code has it (9.7.1.20 bfe)."""
    start, length, msb = start & 255, length & 255, int(kind[1:]) - 1
    sign = 0 if kind[0] == "u" or length == 0 else a >> min(start + length - 1, msb) & 1
    bits = [a >> start + i & 1 if i < length and start + i <= msb else sign for i in range(msb + 1)]
    return sum(bit << i for i, bit in enumerate(bits))


def _insert(a: int, b: int, start: int, length: int, bits: int) -> int:
    start, length = start & 255, length & 255
    for i in range(length):
        if start + i < bits:
            b = b & ~(1 << start + i) | (a >> i & 1) << start + i
    return b


def _permute(a: int, b: int, c: int) -> int:
    both, result = b << 32 | a, 0
    for i in range(4):
        nibble = c >> 4 * i & 15
        byte = both >> 8 * (nibble & 7) & 255
        result |= (255 * (byte >> 7) if nibble & 8 else byte) << 8 * i
    return result


_PERMUTATIONS = {
    "f4e": ["0123", "1234", "2345", "3456"],
    "b4e": ["0765", "1076", "2107", "3210"],
    "rc8": ["0000", "1111", "2222", "3333"],
    "ecl": ["0123", "1123", "2223", "3333"],
    "ecr": ["0000", "0111", "0122", "0123"],
    "rc16": ["0101", "2323", "0101", "2323"],
}
"""Which bytes the modes of prmt take, from the lowest byte of the result (9.7.9.7)."""


def _bytes(mode: str, a: int, b: int, c: int) -> int:
    both = b << 32 | a
    chosen = _PERMUTATIONS[mode][c & 3]
    return sum((both >> 8 * int(one) & 255) << 8 * i for i, one in enumerate(chosen))


def _products(a: int, b: int, c: int, kinds: tuple[str, str], bits: int, first: int) -> int:
    def lanes(word: int, kind: str, width: int) -> list[int]:
        return [wrap(word >> width * i, f"{kind[0]}{width}") for i in range(32 // width)]

    return c + sum(
        x * y for x, y in zip(lanes(a, kinds[0], bits), lanes(b, kinds[1], 8)[first:], strict=False)
    )


def _bit_cases() -> list[Case]:
    few = (0, 1, 5, 0x80000000, 0xFFFFFFFF, 0xDEADBEEF, 0x12345678)
    counts = (0, 1, 4, 8, 31, 32, 33, 63, 64, 65, 255, 256, 0x105)
    lengths = (0, 1, 7, 8, 31, 32, 33, 64, 200, 256)
    wide = (0, 1, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF, 0xDEADBEEF12345678, 0x8000000080000000)
    u32, word = ("u32",), "u32"
    cases = [
        Case("popc.b32", word, u32, lambda a: a.bit_count()),
        Case("popc.b64", word, ("u64",), lambda a: a.bit_count()),
        Case("clz.b32", word, u32, lambda a: 32 - a.bit_length()),
        Case("clz.b64", word, ("u64",), lambda a: 64 - a.bit_length()),
        Case("brev.b32", word, u32, lambda a: int(f"{a:032b}"[::-1], 2)),
        Case("brev.b64", "u64", ("u64",), lambda a: int(f"{a:064b}"[::-1], 2)),
        Case("bmsk.clamp.b32", word, u32 * 2, _mask, (counts, counts)),
        Case(
            "bmsk.wrap.b32",
            word,
            u32 * 2,
            lambda a, b: _mask(a & 31, b & 31),
            (counts, counts),
        ),
        Case("szext.clamp.u32", word, u32 * 2, partial(_extend, "u"), (few, counts)),
        Case("szext.clamp.s32", word, u32 * 2, partial(_extend, "s"), (few, counts)),
        Case(
            "szext.wrap.s32",
            word,
            u32 * 2,
            lambda a, b: _extend("s", a, b & 31),
            (few, counts),
        ),
        Case("prmt.b32", word, u32 * 3, _permute, (few, few, (0x3210, 0x7654, 0xFEDC, 0x8091))),
        Case(
            "dp4a.u32.u32",
            word,
            u32 * 3,
            lambda a, b, c: wrap(_products(a, b, c, ("u", "u"), 8, 0), word),
            (few, few, few),
        ),
        Case(
            "dp4a.s32.u32",
            word,
            u32 * 3,
            lambda a, b, c: wrap(_products(a, b, c, ("s", "u"), 8, 0), word),
            (few, few, few),
        ),
        Case(
            "dp4a.s32.s32",
            word,
            u32 * 3,
            lambda a, b, c: wrap(_products(a, b, c, ("s", "s"), 8, 0), word),
            (few, few, few),
        ),
        Case(
            "dp2a.lo.s32.u32",
            word,
            u32 * 3,
            lambda a, b, c: wrap(_products(a, b, c, ("s", "u"), 16, 0), word),
            (few, few, few),
        ),
        Case(
            "dp2a.hi.u32.s32",
            word,
            u32 * 3,
            lambda a, b, c: wrap(_products(a, b, c, ("u", "s"), 16, 2), word),
            (few, few, few),
        ),
        Case(
            "mul24.lo.u32", word, u32 * 2, lambda a, b: wrap((a & 0xFFFFFF) * (b & 0xFFFFFF), word)
        ),
        Case(
            "mul24.hi.s32",
            "s32",
            ("s32", "s32"),
            lambda a, b: wrap(wrap(a, "s24") * wrap(b, "s24") >> 16, "s32"),
        ),
        Case(
            "mad24.lo.s32",
            "s32",
            ("s32",) * 3,
            lambda a, b, c: wrap(wrap(a, "s24") * wrap(b, "s24") + c, "s32"),
        ),
        Case("add.sat.s32", "s32", ("s32",) * 2, lambda a, b: clamp(a + b, "s32")),
        Case("sub.sat.s32", "s32", ("s32",) * 2, lambda a, b: clamp(a - b, "s32")),
    ]
    for kind, values in (("u32", few), ("s32", few), ("u64", wide), ("s64", wide)):
        bits = f"u{kind[1:]}"
        cases.append(
            Case(
                f"bfe.{kind}",
                bits,
                (bits, "u32", "u32"),
                partial(_bit_field, kind=kind),
                (values, counts, lengths),
            )
        )
        cases.append(
            Case(
                f"bfind.{kind}",
                "u32",
                (kind,),
                lambda a: (~a if a < 0 else a).bit_length() - 1 & 0xFFFFFFFF,
            )
        )
        cases.append(
            Case(f"bfind.shiftamt.{kind}", "u32", (kind,), partial(_shift_amount, int(kind[1:])))
        )
    for bits, values in (("u32", few), ("u64", wide)):
        text = f"bfi.b{bits[1:]} %d, %a, %b, %c, 8"
        cases.append(
            Case(
                text,
                bits,
                (bits, bits, "u32"),
                lambda a, b, c, n=int(bits[1:]): _insert(a, b, c, 8, n),
                (values, values, counts),
            )
        )
    cases += [
        Case(
            f"lop3.b32 %d, %a, %b, %c, {table}", word, u32 * 3, partial(_lookup, table), (few,) * 3
        )
        for table in (0xF8, 0x96, 0x01, 0xCA, 0x00, 0xFF)
    ]
    chosen = (few, few, (0, 1, 2, 3, 6))
    cases += [
        Case(f"prmt.b32.{mode}", word, u32 * 3, partial(_bytes, mode), chosen)
        for mode in _PERMUTATIONS
    ]
    cases += [
        Case(
            f"shf.{direction}.{mode}.b32",
            word,
            u32 * 3,
            partial(_funnel, direction, mode),
            (few, few, counts),
        )
        for direction in "lr"
        for mode in ("wrap", "clamp")
    ]
    return cases


def _mask(start: int, length: int) -> int:
    return ((1 << length) - 1 << start) & 0xFFFFFFFF if start < 32 else 0


def _extend(sign: str, a: int, n: int) -> int:
    if n == 0:
        return 0
    return a if n >= 32 else wrap(wrap(a, f"{sign}{n}"), "u32")


def _shift_amount(bits: int, a: int) -> int:
    top = (~a if a < 0 else a).bit_length() - 1
    return 0xFFFFFFFF if top < 0 else bits - 1 - top


def _lookup(table: int, a: int, b: int, c: int) -> int:
    place = [(a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1) for i in range(32)]
    return sum((table >> one & 1) << i for i, one in enumerate(place))


def _funnel(direction: str, mode: str, a: int, b: int, n: int) -> int:
    n = n & 31 if mode == "wrap" else min(n, 32)
    both = b << 32 | a
    return (both << n >> 32 if direction == "l" else both >> n) & 0xFFFFFFFF


def _wide_cases() -> list[Case]:
    """Carries, over two words each: what the second gives depends on what the first carried."""
    pair = ("u64", "u64")

    def two(first: str, second: str, more: str = "") -> str:
        return (
            "{ .reg .b32 %al, %ah, %bl, %bh, %dl, %dh; "
            "mov.b64 {%al, %ah}, %a; mov.b64 {%bl, %bh}, %b; "
            f"{first}.u32 %dl, %al, %bl{more}; {second}.u32 %dh, %ah, %bh{more}; "
            "mov.b64 %d, {%dl, %dh}; }"
        )

    return [
        Case(two("add.cc", "addc"), "u64", pair, lambda a, b: wrap(a + b, "u64")),
        Case(two("sub.cc", "subc"), "u64", pair, lambda a, b: wrap(a - b, "u64")),
        Case(
            two("mad.lo.cc", "madc.lo", ", 7"),
            "u64",
            pair,
            lambda a, b: _two_products(a, b),
        ),
        Case(
            "{ .reg .b64 %x; add.cc.u64 %x, %a, %b; addc.u64 %d, 0, 0; }",
            "u64",
            pair,
            lambda a, b: a + b >> 64,
        ),
    ]


def _two_products(a: int, b: int) -> int:
    low = (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF) & 0xFFFFFFFF
    carry = low + 7 >> 32
    high = (a >> 32) * (b >> 32) + 7 + carry
    return (high & 0xFFFFFFFF) << 32 | low + 7 & 0xFFFFFFFF


# ---- floating point ----------------------------------------------------------------------------


def _float_cases() -> list[Case]:
    cases = []
    for kind in ("f32", "f64"):
        one, two = (kind,), (kind, kind)
        for mode in ("rn", "rz", "rm", "rp"):
            for name, operation in (("add", plus), ("sub", minus), ("mul", times), ("div", over)):
                call = partial(exactly, operation, kind, mode, IEEE[operation])
                cases.append(Case(f"{name}.{mode}.{kind}", kind, two, call))
            call = partial(exactly, times_plus, kind, mode, IEEE[times_plus])
            cases.append(Case(f"fma.{mode}.{kind}", kind, (kind,) * 3, call))
            root = partial(square_root, kind, mode)
            cases.append(Case(f"sqrt.{mode}.{kind}", kind, one, root))
            inverse = partial(exactly, lambda a: 1 / a, kind, mode, lambda a: 1 / a)
            cases.append(Case(f"rcp.{mode}.{kind}", kind, one, inverse))
        cases += [
            Case(f"neg.{kind}", kind, one, lambda a: -a),
            Case(f"abs.{kind}", kind, one, abs),
            Case(f"min.{kind}", kind, two, least),
            Case(f"max.{kind}", kind, two, partial(least, sign=-1)),
            Case(f"copysign.{kind}", kind, two, lambda a, b: math.copysign(b, a)),
        ]
        for test, function in _TESTS.items():
            cases.append(Case(f"testp.{test}.{kind}", "pred", one, partial(function, kind)))
    two = ("f32", "f32")
    add = partial(exactly, plus, "f32", "rn", IEEE[plus])
    cases += [
        Case("min.NaN.f32", "f32", two, partial(least, nan=True)),
        Case("max.NaN.f32", "f32", two, partial(least, nan=True, sign=-1)),
        Case("min.f32 %d, %a, %b, %c", "f32", ("f32",) * 3, lambda a, b, c: least(least(a, b), c)),
        Case("add.sat.f32", "f32", two, lambda a, b: saturated(add(a, b))),
        Case("add.ftz.f32", "f32", two, add, ((1.5, -3.0), (2.0, 4.0))),
        Case("slct.f32.f32", "f32", ("f32",) * 3, lambda a, b, c: a if c >= 0 else b),
        Case("slct.u32.s32", "u32", ("u32", "u32", "s32"), lambda a, b, c: a if c >= 0 else b),
        Case("selp.f32", "f32", ("f32", "f32", "pred"), lambda a, b, c: a if c else b),
        Case("selp.b16", "u16", ("u16", "u16", "pred"), lambda a, b, c: a if c else b),
        *_approximate_cases(),
        *_half_cases(),
    ]
    return cases


def _is_normal(kind: str, a: float) -> bool:
    return math.isfinite(a) and abs(a) >= 2.0 ** DIGITS[kind][1]


_TESTS: dict[str, Callable[[str, float], bool]] = {
    "finite": lambda _, a: math.isfinite(a),
    "infinite": lambda _, a: math.isinf(a),
    "number": lambda _, a: not math.isnan(a),
    "notanumber": lambda _, a: math.isnan(a),
    "normal": _is_normal,
    "subnormal": lambda kind, a: math.isfinite(a) and a != 0 and not _is_normal(kind, a),
}


def _approximate_cases() -> list[Case]:
    some = (0.5, 1.0, 2.5, 17.0, 1e-3, 123.456)
    values = (numbers("f32", *some),)
    one = ("f32",)
    functions: dict[str, Callable[[float], float]] = {
        "sin.approx.f32": math.sin,
        "cos.approx.ftz.f32": math.cos,
        "ex2.approx.ftz.f32": lambda a: 2.0**a,
        "lg2.approx.f32": math.log2,
        "tanh.approx.f32": math.tanh,
        "rsqrt.approx.f32": lambda a: 1 / math.sqrt(a),
        "rcp.approx.ftz.f32": lambda a: 1 / a,
        "sqrt.approx.f32": math.sqrt,
    }
    cases = [
        Case(f"{name}", "f32", one, function, values, 1e-5) for name, function in functions.items()
    ]
    cases += [
        Case("rsqrt.approx.f64", "f64", ("f64",), lambda a: 1 / math.sqrt(a), values, 1e-14),
        Case("rcp.approx.ftz.f64", "f64", ("f64",), lambda a: 1 / a, values, 1e-6),
        Case("div.full.f32", "f32", one * 2, lambda a, b: a / b, values * 2, 1e-6),
        Case("div.approx.f32", "f32", one * 2, lambda a, b: a / b, values * 2, 1e-6),
    ]
    return cases


def _half_cases() -> list[Case]:
    brain = (0x0000, 0x8000, 0x3F80, 0xBFC0, 0x3EAB, 0x7F80, 0xFF80, 0x7F7F, 0x0001, 0x4049)
    cases = []
    for name, operation, count in (
        ("add", plus, 2),
        ("sub", minus, 2),
        ("mul", times, 2),
        ("fma", times_plus, 3),
    ):
        mode = ".rn" if count == 3 else ""
        call = partial(exactly, operation, "f16", "rn", IEEE[operation])
        cases.append(Case(f"{name}{mode}.f16", "f16", ("f16",) * count, call))
        call = partial(_brain, partial(exactly, operation, "bf16", "rn", IEEE[operation]))
        rn = mode or ".rn"
        cases.append(Case(f"{name}{rn}.bf16", "bf16", ("bf16",) * count, call, (brain,) * count))
        if count == 2:
            pairs = (0x3C00BC00, 0x7BFF0001, 0x00008000, 0x7C005555)
            call = partial(_pairs, partial(exactly, operation, "f16", "rn", IEEE[operation]))
            cases.append(Case(f"{name}.f16x2", "f16x2", ("f16x2",) * 2, call, (pairs, pairs)))
    cases += [
        Case("neg.f16", "f16", ("f16",), lambda a: -a),
        Case("abs.f16", "f16", ("f16",), abs),
        Case("min.f16", "f16", ("f16",) * 2, least),
        Case("max.NaN.f16", "f16", ("f16",) * 2, partial(least, nan=True, sign=-1)),
        Case("setp.lt.f16", "pred", ("f16",) * 2, lambda a, b: a < b),
        Case(
            "setp.geu.bf16",
            "pred",
            ("bf16",) * 2,
            lambda a, b: not bfloat(a) < bfloat(b),
            (brain, brain),
        ),
        Case("set.le.f16.f16", "f16", ("f16",) * 2, lambda a, b: float(a <= b)),
    ]
    return cases


def _brain(function: Callable[..., float], *values: int) -> int:
    return bfloat_bits(function(*map(bfloat, values)))


def _pairs(function: Callable[..., float], *values: int) -> int:
    halves = []
    for shift in (0, 16):
        numbers = [float_of(one >> shift & 0xFFFF, "f16") for one in values]
        result = function(*numbers)
        halves.append(0x7FFF if math.isnan(result) else bits_of(result, "f16"))
    return halves[1] << 16 | halves[0]


# ---- comparisons -------------------------------------------------------------------------------

_ORDERED: dict[str, Callable[[Value, Value], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _compare(word: str, a: Value, b: Value) -> bool:
    """With NaN as the ISA has it (9.3.1.2): only what ends in u is true for it."""
    unordered = math.isnan(a) or math.isnan(b)
    if word in ("num", "nan"):
        return unordered == (word == "nan")
    unsigned = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(word, word)
    if unordered:
        return word.endswith("u")
    return _ORDERED[unsigned.removesuffix("u") if unsigned not in _ORDERED else unsigned](a, b)


def _comparison_cases() -> list[Case]:
    cases = []
    for kind in ("s16", "u32", "s32", "u64", "s64", "b32", "f32", "f64"):
        words = ["eq", "ne"]
        if kind[0] != "b":
            words += ["lt", "le", "gt", "ge"]
        if kind[0] == "u":
            words += ["lo", "ls", "hi", "hs"]
        if kind[0] == "f":
            words += ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
        for word in words:
            call = partial(_compare, word)
            cases.append(Case(f"setp.{word}.{kind}", "pred", (kind, kind), call))
    three = ("s32", "s32", "pred")
    both = "{{ .reg .pred %p, %q; .reg .b32 %x, %y; setp.{} %p|%q, %a, %b{}; " + (
        "selp.b32 %x, 1, 0, %p; selp.b32 %y, 2, 0, %q; or.b32 %d, %x, %y; }}"
    )
    cases += [
        Case("setp.lt.and.s32", "pred", three, lambda a, b, c: a < b and c),
        Case("setp.lt.or.s32 %d, %a, %b, !%c", "pred", three, lambda a, b, c: a < b or not c),
        Case("setp.lt.xor.s32", "pred", three, lambda a, b, c: (a < b) != bool(c)),
        Case(both.format("lt.s32", ""), "u32", ("s32", "s32"), lambda a, b: 1 if a < b else 2),
        Case(both.format("ltu.f32", ""), "u32", ("f32", "f32"), lambda a, b: 2 if a >= b else 1),
        Case(
            both.format("lt.and.s32", ", %c"),
            "u32",
            three,
            lambda a, b, c: (1 if a < b else 2) if c else 0,
        ),
        Case("set.gt.u32.f32", "u32", ("f32", "f32"), lambda a, b: 0xFFFFFFFF * (a > b)),
        Case("set.eq.f32.s32", "f32", ("s32", "s32"), lambda a, b: float(a == b)),
        Case(
            "set.lt.or.u32.u32",
            "u32",
            ("u32", "u32", "pred"),
            lambda a, b, c: 0xFFFFFFFF * bool(a < b or c),
        ),
        Case("and.pred", "pred", ("pred",) * 2, lambda a, b: a & b),
        Case("or.pred", "pred", ("pred",) * 2, lambda a, b: a | b),
        Case("xor.pred", "pred", ("pred",) * 2, lambda a, b: a ^ b),
        Case("not.pred", "pred", ("pred",), lambda a: 1 - a),
    ]
    return cases


# ---- conversions -------------------------------------------------------------------------------


def _nan_to(to: str, kind: str) -> int:
    if kind == "f64" or to in ("s64", "u64"):
        return wrap(1 << int(to[1:]) - 1, to)
    return 0


def _float_to_integer(to: str, kind: str, mode: str, a: float) -> int:
    if math.isnan(a):
        return _nan_to(to, kind)
    if math.isinf(a):
        return clamp(int(math.copysign(1 << 100, a)), to)
    return clamp(to_integer(Fraction(a), mode), to)


def _between_floats(to: str, mode: str, a: float) -> float:
    return a if a == 0 or not math.isfinite(a) else rounded(Fraction(a), to, mode)


def _integral(mode: str, a: float) -> float:
    return a if not math.isfinite(a) else math.copysign(float(to_integer(Fraction(a), mode)), a)


def _conversion_cases() -> list[Case]:
    cases = []
    integers = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
    halfway = (0.5, 1.5, 2.5, -0.5, -2.5, 127.5, 255.9, -129.0, 300.0, 4294967295.5, 2.0**31)
    large = (9.3e18, -9.3e18, 1.9e19)
    floats = {
        "f16": numbers("f16", *corners("f16"), *halfway[:9]),
        "f32": numbers("f32", *corners("f32"), *halfway, *large),
        "f64": numbers("f64", *corners("f64"), *halfway, *large),
    }
    for to in integers:
        for kind in integers:
            call: Callable[..., Value] = lambda a, to=to: wrap(a, to)  # noqa: E731
            cases.append(Case(f"cvt.{to}.{kind}", to, (kind,), call))
            call = lambda a, to=to: clamp(a, to)  # noqa: E731
            if any(
                clamp(one, to) != one for one in corners(kind)
            ):  # it is refused where it does nothing
                cases.append(Case(f"cvt.sat.{to}.{kind}", to, (kind,), call))
        for kind, values in floats.items():
            for mode in ("rni", "rzi", "rmi", "rpi"):
                call = partial(_float_to_integer, to, kind, mode)
                cases.append(Case(f"cvt.{mode}.{to}.{kind}", to, (kind,), call, (values,)))
    for kind in integers:
        for to in ("f16", "f32", "f64"):
            for mode in ("rn", "rz", "rm", "rp"):
                if to == "f16" and kind[1:] == "64" and mode != "rn":
                    continue
                call = lambda a, to=to, mode=mode: rounded(Fraction(a), to, mode)  # noqa: E731
                cases.append(Case(f"cvt.{mode}.{to}.{kind}", to, (kind,), call))
    for kind, to in (("f64", "f32"), ("f32", "f16"), ("f64", "f16")):
        more = (
            65519.9,
            65520.0,
            -65520.0,
            1e-8,
            2.0**-25,
            2.0**-24 * 1.5,
            2049.0,
            2051.0,
            3e39,
            1e-46,
        )
        values = (
            *floats[kind],
            *numbers(kind, *(one for one in more if kind == "f64" or one < 3e38)),
        )
        for mode in ("rn", "rz", "rm", "rp"):
            call = partial(_between_floats, to, mode)
            cases.append(Case(f"cvt.{mode}.{to}.{kind}", to, (kind,), call, (values,)))
    for kind, to in (("f32", "f64"), ("f16", "f32"), ("f16", "f64")):
        cases.append(Case(f"cvt.{to}.{kind}", to, (kind,), lambda a: a, (floats[kind],)))
    for kind in ("f32", "f64"):
        for mode in ("rni", "rzi", "rmi", "rpi"):
            call = partial(_integral, mode)
            text = f"cvt.{mode}.{kind}.{kind}"
            cases.append(Case(text, kind, (kind,), call, (floats[kind],)))
    bf16 = (*corners("f32"), 1.00390625, 1.01171875, 1.0000001, 3.39e38, 2.0**-134, 1e-40)
    single = (numbers("f32", *bf16),)
    cases += [
        Case("cvt.sat.f32.f32", "f32", ("f32",), saturated),
        Case(
            "cvt.rn.sat.f32.f64",
            "f32",
            ("f64",),
            lambda a: saturated(_between_floats("f32", "rn", a)),
        ),
        Case(
            "cvt.rn.relu.f16.f32",
            "f16",
            ("f32",),
            lambda a: a if math.isnan(a) else max(_between_floats("f16", "rn", a), 0.0) + 0.0,
        ),
        Case(
            "cvt.f32.bf16",
            "f32",
            ("bf16",),
            bfloat,
            ((0, 0x8000, 0x3F80, 0x7F80, 0xFFFF, 1, 0x4049),),
        ),
        Case(
            "cvt.rn.bf16.f32",
            "bf16",
            ("f32",),
            lambda a: bfloat_bits(_between_floats("bf16", "rn", a)),
            single,
        ),
        Case(
            "cvt.rz.bf16.f32",
            "bf16",
            ("f32",),
            lambda a: bfloat_bits(_between_floats("bf16", "rz", a)),
            single,
        ),
        Case("cvt.rn.f16x2.f32", "f16x2", ("f32", "f32"), partial(_pack_halves, "f16")),
        Case("cvt.rn.bf16x2.f32", "bf16x2", ("f32", "f32"), partial(_pack_halves, "bf16")),
        Case(
            "cvt.rna.tf32.f32",
            "u32",
            ("f32",),
            lambda a: bits_of(a, "f32") + 0x1000 & ~0x1FFF,
            ((1.0, 1.00048828125, 1.000244140625, -3.7),),
        ),
        Case(
            "cvt.pack.sat.s16.s32",
            "u32",
            ("s32", "s32"),
            lambda a, b: wrap(clamp(a, "s16"), "u16") << 16 | wrap(clamp(b, "s16"), "u16"),
        ),
        Case(
            "cvt.pack.sat.u8.s32.b32",
            "u32",
            ("s32", "s32", "u32"),
            lambda a, b, c: (c & 0xFFFF) << 16 | clamp(a, "u8") << 8 | clamp(b, "u8"),
        ),
    ]
    return cases


def _pack_halves(to: str, a: float, b: float) -> int:
    def half(value: float) -> int:
        value = _between_floats(to, "rn", value)
        if to == "bf16":
            return bfloat_bits(value)
        return 0x7FFF if math.isnan(value) else bits_of(value, "f16")

    return half(a) << 16 | half(b)


# ---- moving bits -------------------------------------------------------------------------------


def _move_cases() -> list[Case]:
    return [
        Case("mov.b64 %d, {%a, %b}", "u64", ("u32", "u32"), lambda a, b: b << 32 | a),
        Case(
            "{ .reg .b32 %l, %h; mov.b64 {%l, %h}, %a; mov.b64 %d, {%h, %l}; }",
            "u64",
            ("u64",),
            lambda a: a >> 32 | (a & 0xFFFFFFFF) << 32,
        ),
        Case(
            "{ .reg .b32 %h; mov.b64 {_, %h}, %a; cvt.u64.u32 %d, %h; }",
            "u64",
            ("u64",),
            lambda a: a >> 32,
        ),
        Case("mov.b32 %d, {%a, %b}", "u32", ("u16", "u16"), lambda a, b: b << 16 | a),
        Case("mov.b32", "u32", ("f32",), lambda a: bits_of(a, "f32"), ((1.5, -0.0, math.inf),)),
        Case("mov.b64", "f64", ("u64",), lambda a: float_of(a, "f64"), ((0, 1 << 63, 1),)),
        Case("add.f32 %d, %a, 0f3FC00000", "f32", ("f32",), lambda a: a + 1.5, ((1.0, -1.5),)),
        Case("add.f64 %d, %a, 0dBFF8000000000000", "f64", ("f64",), lambda a: a - 1.5, ((1.0,),)),
        Case("add.s32 %d, %a, -0x10", "s32", ("s32",), lambda a: wrap(a - 16, "s32")),
        Case("add.u32 %d, %a, 017", "u32", ("u32",), lambda a: wrap(a + 15, "u32")),
        Case("mov.b64 %d, 0xFFFFFFFFFFFFFFFF", "u64", (), lambda: 2**64 - 1),
        Case("mov.u32 %d, WARP_SZ", "u32", (), lambda: 32),
        Case("mov.f32 %d, 0f7F800000", "f32", (), lambda: math.inf),
        Case("mov.b32 %d, 0fFFC00000", "u32", (), lambda: 0xFFC00000),
    ]


CASES = [
    *_integer_cases(),
    *_float_cases(),
    *_comparison_cases(),
    *_conversion_cases(),
    *_move_cases(),
]


# ---- kernels out of them -----------------------------------------------------------------------


def kernel(number: int, case: Case) -> str:
    """Return an entry that stores what the instruction gives for its parameters."""
    lines = [".reg .b64 %out;", "ld.param.u64 %out, [out];"]
    parameters = [".param .u64 out"]
    for name, kind in zip("abc", case.sources, strict=False):
        memory, register = _memory(kind), _register(kind)
        parameters.append(f".param .{memory} {name}")
        lines.append(f".reg .{register} %{name};")
        if kind == "pred":
            lines.append(f".reg .b32 %{name}x; ld.param.u32 %{name}x, [{name}];")
            lines.append(f"setp.ne.u32 %{name}, %{name}x, 0;")
        else:
            lines.append(f"ld.param.{memory} %{name}, [{name}];")
    lines += [f".reg .{_register(case.result)} %d;", case.statement]
    if case.result == "pred":
        lines.append(".reg .b32 %dx; selp.b32 %dx, 1, 0, %d; st.global.u32 [%out], %dx;")
    else:
        lines.append(f"st.global.{_memory(case.result)} [%out], %d;")
    body = "\n  ".join([*lines, "ret;"])
    return f".visible .entry k{number}({', '.join(parameters)})\n{{\n  {body}\n}}\n"


def _memory(kind: str) -> str:
    """Return the type with which a value is loaded and stored."""
    if kind in ("f16", "bf16"):
        return "b16"
    return {"f16x2": "b32", "bf16x2": "b32", "pred": "u32"}.get(kind, kind)


def _register(kind: str) -> str:
    if kind in ("f32", "f64", "pred"):
        return kind
    return f"b{max(int(_memory(kind)[1:]), 16)}"
