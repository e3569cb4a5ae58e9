"""Instructions that touch memory, or calculate with its addresses (PTX ISA, 9.7.9 and 9.7.13)."""

from __future__ import annotations

from softcuda.translation.instructions import (
    always,
    handles,
    is_written,
    kinds_of,
    only_kind,
)
from softcuda.translation.operands import C_TYPES, Code
from softcuda.translation.ptx import KINDS, Instruction, split_operands

_SPACES = {
    **{name: name for name in ("global", "shared", "local", "const", "param")},
    "shared::cta": "shared",
    "shared::cluster": "shared",
    "param::entry": "param",
    "param::func": "param",
}
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
# A thread that waits for another must see what that writes: the compiler may not keep the value.
# These are "strong" (PTX ISA, 8.3 and 8.6): no race with an atomic operation on the same place.
_FRESH = {"volatile", "relaxed", "acquire", "release", "mmio"}
_ORDER = "weak volatile relaxed acquire release acq_rel mmio cta cluster gpu sys"
_CACHES = """ca cg cs lu cv wb wt nc unified L1::evict_normal L1::evict_unchanged L1::evict_first
    L1::evict_last L1::no_allocate L2::evict_normal L2::evict_last L2::evict_first L2::cache_hint
    L2::64B L2::128B L2::256B"""
_ACCESS = f"{' '.join(_SPACES)} {' '.join(_VECTORS)} {_ORDER} {_CACHES}"


def _space(one: Instruction) -> str:
    return one.chosen(_SPACES) or "generic"


def _count(one: Instruction) -> int:
    return one.chosen(_VECTORS) or 1


def _pointed(one: Instruction, kind: str) -> str:
    """Return the C type of what is accessed."""
    return f"{'volatile ' if _FRESH.intersection(one.modifiers) else ''}{C_TYPES[kind]}"


def _how_read(one: Instruction) -> str:
    """Return how a load touches memory, as ``enum sc_how`` has it."""
    return "SC_READ | SC_ATOMIC" if _FRESH.intersection(one.modifiers) else "SC_READ"


def accesses_of(one: Instruction) -> list[tuple[str, str, str, int]]:
    """Return the operands with addresses, their spaces, ``load``, ``store`` or ``atomic``, and the
    bytes of a lane: what is counted of an instruction. Parameters and constants are not."""
    if one.opcode == "cp":
        if len(one.operands) < 3:  # it commits a group or waits for one
            return []
        to, source, size = one.operands[:3]
        return [(source, "global", "load", int(size)), (to, "shared", "store", int(size))]
    kind = _ACCESSES.get(one.opcode)
    space = _space(one)
    if kind is None or space in ("param", "const"):
        return []
    operand = one.operands[0 if one.opcode in ("st", "red") else 1]
    return [(operand, space, kind, KINDS[kinds_of(one)[0]] * _count(one))]


_ACCESSES = {"ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic"}


def tell_accesses(code: Code, one: Instruction, first: int) -> list[str]:
    """Write the statements that tell the addresses of ``accesses_of``, from number ``first`` of the
    basic block on; 0 stands for a lane whose guard is off."""
    guard = f"{'!' * one.negated}{code.read(one.guard, 'pred')} ? " if one.guard else ""
    return [
        f"SC_TOUCH({first + i}, {guard}{code.address(operand, space)}{' : 0' * bool(guard)});"
        for i, (operand, space, _, _) in enumerate(accesses_of(one))
    ]


@handles("ld ldu", _ACCESS, faults=True)
def _ld(code: Code, one: Instruction) -> str:
    kind, count, space = only_kind(code, one), _count(one), _space(one)
    size, c_type, how = KINDS[kind], _pointed(one, kind), _how_read(one)
    d, a = one.operands[:2]
    if count == 1:
        return code.write(d, kind, f"*({c_type} *){code.at(a, space, size, how)}")
    parts = split_operands(d[1:-1])
    wanted = [i for i, part in enumerate(parts) if code.is_read(part)]
    if len(wanted) in (0, count):
        reads = [code.write(part, kind, f"v[{i}]") for i, part in enumerate(parts)]
        return f"{c_type} *v = {code.at(a, space, size * count, how)}; {' '.join(reads)}"
    # NVVM joins loads to a vector also where it has to load what nobody asked for, up to the end of
    # the 16 bytes. That may lie beyond an array, and no device minds.
    reads = []
    for i in wanted:
        element = code.pointer(f"at + {i * size}", space, size, how)
        reads.append(code.write(parts[i], kind, f"*({c_type} *){element}"))
    return f"uint64_t at = {code.address(a, space)}; {' '.join(reads)}"


@handles("st", _ACCESS, faults=True)
def _st(code: Code, one: Instruction) -> str:
    kind, count = only_kind(code, one), _count(one)
    c_type = _pointed(one, kind)
    a, b = one.operands[:2]
    where = code.at(a, _space(one), KINDS[kind] * count, "SC_WRITE")
    if count == 1:
        return f"*({c_type} *){where} = {code.read(b, kind)};"
    parts = split_operands(b[1:-1])
    writes = [f"v[{i}] = {code.read(part, kind)};" for i, part in enumerate(parts) if part != "_"]
    return f"{c_type} *v = {where}; {' '.join(writes)}"


_OPERATIONS = ("add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec")
_ATOMIC = f"{' '.join(_OPERATIONS)} {_ACCESS} noftz"


@handles("atom red", f"{_ATOMIC} async", faults=True)
def _atomic(code: Code, one: Instruction) -> str:
    if "async" in one.modifiers:
        raise code.error("this instruction is not supported")
    operands = one.operands if one.opcode == "atom" else ("_", *one.operands)
    d, a, *given = operands
    operation = next(word for word in one.modifiers if word in _OPERATIONS)
    kind = only_kind(code, one)
    if operation in ("exch", "cas", "and", "or", "xor"):
        kind = f"b{KINDS[kind] * 8}"
        if kind == "b128" or (kind == "b16" and operation != "cas"):
            raise code.error("not supported with this type")
    count = _count(one)
    where = code.at(a, _space(one), KINDS[kind] * count, "SC_ATOMIC")
    name = f"sc_atom_{operation}_{kind}"
    if count == 1:
        # A hint to a cache may stand behind them.
        values = [code.read(value, kind) for value in given[: 2 if operation == "cas" else 1]]
        return code.write(d, kind, f"{name}({where}, {', '.join(values)})")
    # Each element by itself; together they are not atomic (PTX ISA, 9.7.13.6).
    values = [code.read(value, kind) for value in split_operands(given[0][1:-1])]
    results = split_operands(d[1:-1]) if d != "_" else ["_"] * count
    calls = [
        code.write(result, kind, f"{name}(v + {i}, {value})")
        for i, (result, value) in enumerate(zip(results, values, strict=True))
    ]
    return f"{C_TYPES[kind]} *v = {where}; {' '.join(calls)}"


@handles("cvta", f"to {' '.join(_SPACES)}")
def _cvta(code: Code, one: Instruction) -> str:
    d, a = one.operands
    value = code.read(a, "u64")
    if _space(one) == "shared":
        value = f"{value} {'-' if 'to' in one.modifiers else '+'} (uint64_t)t->shared"
    return code.write(d, kinds_of(one)[-1], value)


@handles("isspacep", " ".join(_SPACES))
def _isspacep(code: Code, one: Instruction) -> str:
    """Return whether a generic address lies in a space: in global memory where in none of the
    others."""
    p, a = one.operands
    address, space = code.read(a, "u64"), _space(one)
    constants = [
        f"{address} - (uint64_t)t->globals[{number}] < {variable.bytes}"
        for number, variable in enumerate(code.layout.globals)
        if variable.space == "const"
    ]
    insides = {
        "shared": f"sc_is_shared(t, {address})",
        "local": f"sc_is_local(t, {address})",
        "const": " || ".join(constants) or "false",
        "param": "false",  # those that have a generic address were copied to local memory
    }
    insides["global"] = f"!({' || '.join(insides.values())})"
    return code.write(p, "pred", insides[space])


# A cluster has one block here, of rank 0, and its addresses are the block's own.
is_written("mapa", "t t u32", "{0}", ignored="shared::cluster")
is_written("getctarank", "t u64", "0", ignored="shared::cluster")
# Hints to caches that are not there.
always("prefetch prefetchu discard applypriority", "", f"{_ACCESS} L1 L2 tensormap")


@handles("createpolicy", f"fractional range {_CACHES}")
def _createpolicy(code: Code, one: Instruction) -> str:
    return code.write(one.operands[0], "u64", "0")


@handles("cp", f"async commit_group wait_group wait_all {_ACCESS}", faults=True)
def _cp(code: Code, one: Instruction) -> str:
    """``cp.async``: done at once, so that there is nothing to wait for."""
    if one.modifiers[0] != "async":
        raise code.error("this instruction is not supported")
    if "commit_group" in one.modifiers or {"wait_group", "wait_all"}.intersection(one.modifiers):
        return ""
    to, source, size, *given = one.operands
    filled = code.read(given[0], "u32") if given and "L2::cache_hint" not in one.modifiers else size
    return (
        f"sc_copy(t, {code.address(to, 'shared')}, {code.address(source, 'global')}, "
        + f"{size}, {filled});"
    )
