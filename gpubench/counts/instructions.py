"""What one instruction of LLVM's optimized code counts each time that it runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from gpubench.counts.ir import Type, leading_type, parse_type, split_arguments

LANE_WIDTHS = (1, 2, 4, 8, 16, 32, 64)
"""Lanes of the vectors that processors have: 64 of a byte in 512 bits."""

CPU_COUNTS: Mapping[str, str] = {
    "ir_instructions": "instructions of LLVM's optimized code that ran",
    "ir_integer": "of ir_instructions: calculations and comparisons of integers and bits",
    "ir_float": "of ir_instructions: calculations and comparisons of floating-point numbers",
    "ir_memory": "of ir_instructions: loads, stores, atomic operations, copies of memory",
    "ir_address": "of ir_instructions: addresses of elements and fields",
    "ir_move": "of ir_instructions: choices, and lanes that are moved, put in or taken out",
    "ir_convert": "of ir_instructions: conversions of numbers",
    "ir_control": "of ir_instructions: branches, calls and returns",
    "ir_other": "of ir_instructions: intrinsic functions that are named nowhere here",
    "parallel_instructions": "of ir_instructions: those of loops that threads share",
    "flops_float16": "additions, subtractions and multiplications in half precision, each lane "
    "once; a fused multiply-add is two",
    "flops_float32": "the same in single precision",
    "flops_float64": "the same in double precision",
    **{
        f"flops_lanes_{lanes}": f"of all flops: those in vectors of {lanes} lanes"
        if lanes > 1
        else "of all flops: those outside vectors"
        for lanes in LANE_WIDTHS
    },
    "special_functions": "divisions and libm_functions together",
    "divisions": "divisions and remainders of floating-point numbers, each lane once",
    "libm_functions": "roots, exponentials, sines and the like, each lane once, also in vectors",
    "integer_divisions": "divisions and remainders of integers, each lane once",
    "loads": "instructions that read memory, also the stack",
    "load_bytes": "bytes that they read; where a mask or a length decides, those of the run",
    "stores": "instructions that write memory, also the stack and what a function returns",
    "store_bytes": "bytes that they write",
    "atomics": "atomic operations",
    "branches": "branches",
    "conditional_branches": "of branches: those that depend on a condition or an index",
    "calls": "calls of functions that were not inlined, libm and memory management included",
    "allocations": "calls that take memory",
}
"""By name, what is counted. ``docs/counts.md`` has this table."""


def format_cpu_reference() -> str:
    """Return the table of counts for ``docs/counts.md``."""
    rows = (f"| `{name}` | {meaning} |" for name, meaning in CPU_COUNTS.items())
    return "\n".join(["| count | meaning |", "| --- | --- |", *rows, ""])


_FLOAT_PRECISION = {"half": "16", "bfloat": "16", "float": "32", "double": "64"}

_ASSIGNED = re.compile(
    r'^\s*(?:%(?:"[^"]+"|[-\w.$]+) = )?(?:(?:tail|musttail|notail) )?(\w+) ?(.*)$', re.S
)
_FLAGS = re.compile(
    r"(?:(?:fast|nnan|ninf|nsz|arcp|contract|afn|reassoc|nuw|nsw|nneg|exact|disjoint|samesign"
    r"|inbounds|volatile|atomic|tail|fastcc|coldcc|ccc|noundef|noalias|nonnull|zeroext|signext"
    r"|range\([^)]*\)|dereferenceable\(\d+\)|dereferenceable_or_null\(\d+\)|align \d+|weak"
    r"|eq|ne|[us][gl][te]|o(?:eq|gt|ge|lt|le|ne|rd)|u(?:eq|ne|no)|true|false) )*"
)
_CALLEE = re.compile(r'@("[^"]+"|[-\w.$]+)\(')
_FUNCTION = re.compile(r'@("[^"]+"|[-\w.$]+)')
_METADATA_TAIL = re.compile(r", ![\w.]+ !\d+")
_NUMBER_IN_NAME = re.compile(r"\.(?:v\d+)?[fi]\d+.*|\.p0.*")

_MARKS = ("dbg.", "lifetime.", "assume", "experimental.noalias", "invariant.", "donothing")
"""Intrinsics that no processor executes."""
_ROOTS_AND_POWERS = (
    "sqrt|cbrt|hypot|exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|powi|sin|cos|tan|asin|acos|atan"
    "|atan2|sinh|cosh|tanh|asinh|acosh|atanh|sincos|erf|erfc|gamma|tgamma|lgamma|fmod|remainder"
    "|ldexp|frexp|modf"
)
_LIBM = re.compile(
    rf"^(?:llvm\.(?:{_ROOTS_AND_POWERS})\.\S+|(?:numba_|npy_)?(?:{_ROOTS_AND_POWERS})f?"
    rf"|numba_(?:c?pow|gamma|lgamma|erf|erfc|ldexp|frexp)\w*|__svml_\w+)$"
)
_VECTOR_OF_SVML = re.compile(r"__svml_[a-z]+\d*?(f?)(2|4|8|16)(?:_|$)")
_ALLOCATING = re.compile(r"^(?:NRT_\w*alloc\w*|malloc|calloc|realloc)$", re.IGNORECASE)

_INTEGER = frozenset(("add", "sub", "mul", "shl", "lshr", "ashr", "and", "or", "xor", "icmp"))
_DIVIDING = frozenset(("sdiv", "udiv", "srem", "urem"))
_FLOP = frozenset(("fadd", "fsub", "fmul"))
_CONVERTING = frozenset(
    ("sitofp", "uitofp", "fptosi", "fptoui", "fpext", "fptrunc", "sext", "zext", "trunc")
)
_ADDRESSING = frozenset(("getelementptr", "ptrtoint", "inttoptr", "bitcast", "addrspacecast"))
_BRANCHING = frozenset(("br", "switch", "indirectbr"))
_FLOAT_INTRINSICS = re.compile(
    r"^llvm\.(?:fabs|copysign|minnum|maxnum|minimum|maximum|minimumnum|maximumnum|floor|ceil|trunc"
    r"|rint|nearbyint|round|roundeven|lround|llround|is\.fpclass|vector\.reduce\.f)"
)
_INTEGER_INTRINSICS = re.compile(
    r"^llvm\.(?:[su](?:min|max|add|sub|mul|shl|cmp)|abs|ctpop|ctlz|cttz|fshl|fshr|bswap|bitreverse"
    r"|vector\.reduce\.)"
)
_CONVERTING_INTRINSICS = re.compile(r"^llvm\.fpto[su]i\.sat")
_MOVING_INTRINSICS = re.compile(r"^llvm\.(?:vector\.|stepvector|experimental\.vector)")


@dataclass(frozen=True, slots=True)
class Measured:
    """What an instruction counts that only the run tells."""

    name: str
    """Of the count."""
    unit: int
    """What each unit of ``value`` counts."""
    value: str
    """Of a length its operand in the text, of a mask the mask."""
    mask_bits: int
    """Lanes of the mask; 0 of a length, which is an ``i64``."""


@lru_cache(maxsize=50_000)
def count_instruction(text: str) -> Mapping[str, int]:
    """Return what an instruction counts each time that it runs; do not change it.

    An instruction that no processor executes counts nothing: a ``phi`` chooses a register, and
    marks tell the compiler something.
    """
    match = _ASSIGNED.match(_METADATA_TAIL.sub("", text))
    if match is None:
        return {}
    operation, rest = match[1], match[2]
    if operation == "phi":
        return {}
    body = rest[_FLAGS.match(rest).end() :]  # type: ignore[union-attr]  # it matches nothing too
    return _of_call(rest, body) if operation == "call" else _of_operation(operation, rest, body)


def _of_operation(operation: str, rest: str, body: str) -> Counter[str]:
    counts: Counter[str] = Counter(ir_instructions=1)
    kind = parse_type(leading_type(body))
    if operation in ("load", "store"):
        counts.update({"ir_memory": 1, f"{operation}s": 1, f"{operation}_bytes": kind.bytes})
    elif operation in _FLOP:
        counts.update(ir_float=1, **_flops(kind, kind.lanes))
    elif operation in ("fdiv", "frem"):
        counts.update(ir_float=1, divisions=kind.lanes, special_functions=kind.lanes)
    elif operation in ("fneg", "fcmp"):
        counts["ir_float"] += 1
    elif operation in _INTEGER:
        counts["ir_integer"] += 1
    elif operation in _DIVIDING:
        counts.update(ir_integer=1, integer_divisions=kind.lanes)
    elif operation in _CONVERTING:
        counts["ir_convert"] += 1
    elif operation in _ADDRESSING:
        counts["ir_address"] += 1
    elif operation in _BRANCHING:
        is_conditional = operation != "br" or rest.startswith("i1 ")
        counts.update(ir_control=1, branches=1, conditional_branches=int(is_conditional))
    elif operation in ("ret", "unreachable", "resume"):
        counts["ir_control"] += 1
    elif operation in ("atomicrmw", "cmpxchg"):
        counts.update(ir_memory=1, atomics=1)
    elif operation in ("fence", "alloca"):
        counts["ir_memory"] += 1
    else:  # select, extractelement, insertelement, shufflevector, extractvalue, insertvalue, freeze
        counts["ir_move"] += 1
    return counts


def _flops(kind: Type, flops: int) -> dict[str, int]:
    precision = _FLOAT_PRECISION.get(kind.element)
    if precision is None:
        return {}
    lanes = next((width for width in reversed(LANE_WIDTHS) if width <= kind.lanes), 1)
    return {f"flops_float{precision}": flops, f"flops_lanes_{lanes}": flops}


def _of_call(rest: str, body: str) -> Counter[str]:
    callee = _CALLEE.search(rest)
    name = callee[1].strip('"') if callee else ""
    if name.startswith("llvm.") and name.removeprefix("llvm.").startswith(_MARKS):
        return Counter()
    counts: Counter[str] = Counter(ir_instructions=1)
    kind = parse_type(leading_type(body))
    arguments = split_arguments(rest[callee.end() : rest.rindex(")")]) if callee else []
    if name.startswith(("llvm.fma.", "llvm.fmuladd.")):
        counts.update(ir_float=1, **_flops(kind, 2 * kind.lanes))
    elif name.startswith(("llvm.vector.reduce.fadd.", "llvm.vector.reduce.fmul.")):
        start, vector = arguments[0], parse_type(leading_type(arguments[1]))
        is_neutral = re.search(r" (?:-?0\.0+e\+00|1\.0+e\+00)$", start)
        counts.update(ir_float=1, **_flops(vector, vector.lanes - bool(is_neutral)))
    elif name.startswith(("llvm.masked.load.", "llvm.masked.gather.", "llvm.masked.expandload.")):
        counts.update(ir_memory=1, loads=1)
    elif name.startswith(("llvm.masked.store.", "llvm.masked.scatter.", "llvm.masked.compress")):
        counts.update(ir_memory=1, stores=1)
    elif name.startswith(("llvm.memcpy.", "llvm.memmove.")):
        counts.update(ir_memory=1, loads=1, stores=1)
    elif name.startswith("llvm.memset."):
        counts.update(ir_memory=1, stores=1)
    elif _LIBM.match(name):
        lanes = _lanes_of_function(name, kind)
        counts.update(libm_functions=lanes, special_functions=lanes)
        counts.update(
            {"ir_float": 1} if name.startswith("llvm.") else {"ir_control": 1, "calls": 1}
        )
    elif name.startswith("llvm."):
        counts[_class_of_intrinsic(name)] += 1
    else:
        counts.update(ir_control=1, calls=1, allocations=int(bool(_ALLOCATING.match(name))))
    return counts


def _lanes_of_function(name: str, kind: Type) -> int:
    if kind.lanes == 1 and (match := _VECTOR_OF_SVML.match(name)):
        return int(match[2])
    return kind.lanes


def _class_of_intrinsic(name: str) -> str:
    for pattern, its_class in (
        (_FLOAT_INTRINSICS, "ir_float"),
        (_INTEGER_INTRINSICS, "ir_integer"),
        (_CONVERTING_INTRINSICS, "ir_convert"),
        (_MOVING_INTRINSICS, "ir_move"),
    ):
        if pattern.match(name):
            return its_class
    return "ir_other"


def named_functions(text: str) -> Iterator[str]:
    """Yield the functions that an instruction names: calls, or hands on."""
    return (name.strip('"') for name in _FUNCTION.findall(text))


def called_function(text: str) -> str | None:
    """Return the function that an instruction calls and that was not inlined; ``None`` where it
    calls none. Through a pointer it is ``indirect``."""
    if "calls" not in count_instruction(text):
        return None
    callee = _CALLEE.search(text)
    return callee[1].strip('"') if callee else "indirect"


_MEMORY_CALL = re.compile(
    r"call .*?@llvm\.(?P<kind>memcpy|memmove|memset|masked\.(?:load|gather|expandload|store|scatter"
    r"|compressstore))\.[\w.]*\("
)
_READING = ("memcpy", "memmove", "masked.load", "masked.gather", "masked.expandload")
_WRITING = ("memcpy", "memmove", "memset", "masked.store", "masked.scatter", "masked.compressstore")
_MASK = re.compile(r"^<(\d+) x i1> (?:noundef |zeroext )*(.+)$", re.S)


def measured_counts(text: str) -> Iterator[Measured]:
    """Yield what only the run tells of an instruction: bytes of a masked access, which go by the
    lanes that are on, and of a copy, which go by its length."""
    match = _MEMORY_CALL.search(text)
    if match is None:
        return
    kind = match["kind"]
    arguments = split_arguments(text[match.end() : text.rindex(")")])
    names = [
        name
        for name, kinds in (("load_bytes", _READING), ("store_bytes", _WRITING))
        if kind in kinds
    ]
    if kind.startswith("mem"):
        length = arguments[2]
        if length.startswith("i64 "):
            yield from (Measured(name, 1, length.split()[-1], 0) for name in names)
        return
    mask = next((found for one in arguments if (found := _MASK.match(one))), None)
    if mask is None:
        return
    value_type = text[text.index("call ") + 5 :] if names == ["load_bytes"] else arguments[0]
    body = value_type[_FLAGS.match(value_type).end() :]  # type: ignore[union-attr]
    vector = parse_type(leading_type(body))
    unit = max(1, vector.bytes // vector.lanes)
    yield from (Measured(name, unit, mask[2], int(mask[1])) for name in names)
