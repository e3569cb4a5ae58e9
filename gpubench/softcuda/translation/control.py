"""Instructions that decide what runs next, and those of several threads together (PTX ISA, 9.7.12,
9.7.13, and the warp's of 9.7.9 and 9.7.19)."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.softcuda.translation.instructions import always, handles, only_kind
from gpubench.softcuda.translation.layout import packed
from gpubench.softcuda.translation.operands import C_TYPES, Code
from gpubench.softcuda.translation.ptx import Instruction, Parameter, split_operands

# ---- branches ----------------------------------------------------------------------------------


@handles("bra", "uni")
def _bra(code: Code, one: Instruction) -> str:
    jump = f"goto {code.label(one.operands[0])};"
    if code.ordinal in code.layout.facts[code.function.name].polling:
        return f"t->services->yield(t); {jump}"
    return jump


@handles("brx", "idx uni")
def _brx(code: Code, one: Instruction) -> str:
    index, name = one.operands
    targets = code.scope.targets.get(name)
    if not targets:
        raise code.error(f"there is no list {name} of labels")
    cases = [f"case {i}: goto {code.label(label)};" for i, label in enumerate(targets.labels)]
    return f"switch ({code.read(index, 'u32')}) {{ {' '.join(cases)} }}"


always("ret", "goto end;", "uni")
always("trap brkpt", "t->services->trap(t);", faults=True)
# Hints to a scheduler that is not there.
always("pragma griddepcontrol setmaxnreg", "", "launch_dependents wait inc dec sync aligned")


@handles("exit")
def _exit(code: Code, one: Instruction) -> str:
    if code.function.entry:
        return "goto end;"
    code.ends = True
    return "goto thread_end;"


# ---- calls -------------------------------------------------------------------------------------


@handles("call", "uni", faults=True)
def _call(code: Code, one: Instruction) -> str:
    operands = list(one.operands)
    returned = operands.pop(0)[1:-1].strip() if operands[0][0] == "(" else ""
    name = operands.pop(0)
    given = split_operands(operands.pop(0)[1:-1].strip()) if operands else []
    if name[0] == "%":
        return _call_address(code, name, operands[0] if operands else "", returned, given)
    function = code.layout.functions.get(name)
    if not function:
        raise code.error(f"the function {name} is not declared")
    if not function.body:
        return _call_runtime(code, name, returned, given)
    target = f"function{code.layout.numbers[name]}"
    ends = code.layout.exits(name)
    return _call_code(code, target, function.returned, function.parameters, returned, given, ends)


def _call_code(
    code: Code,
    target: str,
    result: Parameter | None,
    parameters: Sequence[Parameter],
    returned: str,
    given: Sequence[str],
    ends: bool,
) -> str:
    """Copies what is given into one block, and calls with that."""
    if len(parameters) != len(given):
        raise code.error(f"{len(given)} parameters are given, and {len(parameters)} are wanted")
    offsets, size = packed(parameters)
    lines = [f"_Alignas(16) char given[{max(size, 1)}];"]
    for one, at, text in zip(parameters, offsets, given, strict=True):
        if _is_value(code, text):
            lines.append(f"*({C_TYPES[one.kind]} *)(given + {at}) = {code.read(text, one.kind)};")
        else:
            lines.append(f"memcpy(given + {at}, (char *)({code.symbol(text)}), {one.bytes});")
    into, after = "NULL", ""
    if result:
        if returned and returned != "_" and not code.find_register(returned):
            into = f"(char *)({code.symbol(returned)})"
        else:
            into = "result"
            lines.append(f"_Alignas(16) char result[{max(result.bytes, 1)}];")
            if returned not in ("", "_"):
                value = f"*({C_TYPES[result.kind]} *)result"
                after = " " + code.write(returned, result.kind, value)
    call = f"{target}(t, {into}, given)"
    if ends:
        code.ends = True
        call = f"if ({call}) goto thread_end"
    return f"{' '.join(lines)} {call};{after}"


def _call_address(
    code: Code, register: str, prototype_name: str, returned: str, given: Sequence[str]
) -> str:
    prototype = code.scope.prototypes.get(prototype_name)
    if not prototype:
        raise code.error("a call of an address needs a .callprototype")
    count = len(code.layout.addressed)
    table = "addressed" if count else "NULL"  # a call that would fail, and may never be made
    target = f"sc_function_at(t, {code.read(register, 'u64')}, {table}, {count})"
    return _call_code(
        code, target, prototype.returned, prototype.parameters, returned, given, ends=True
    )


def _call_runtime(code: Code, name: str, returned: str, given: Sequence[str]) -> str:
    """Functions of the CUDA runtime that the driver brings along."""
    if name not in _RUNTIME:
        raise code.error(f"the function {name} is defined in no module here")
    result, kinds, call = _RUNTIME[name]
    values = [_argument(code, text, kind) for text, kind in zip(given, kinds, strict=True)]
    expression = call.format(*values, site=code.site)
    if returned in ("", "_") or not result:
        return f"{expression};"
    if code.find_register(returned):
        return code.write(returned, result, expression)
    return f"*({C_TYPES[result]} *)({code.symbol(returned)}) = {expression};"


def _argument(code: Code, text: str, kind: str) -> str:
    if _is_value(code, text):
        return code.read(text, kind)
    return f"*({C_TYPES[kind]} *)({code.symbol(text)})"


def _is_value(code: Code, text: str) -> bool:
    """Whether a register or a number is given, and no variable of the space .param."""
    return text[0] == "-" or text[0].isdigit() or code.find_register(text) is not None


_RUNTIME: dict[str, tuple[str, tuple[str, ...], str]] = {
    # CUDA C++ Programming Guide, 10.35 Formatted Output, 10.16 Assertion, 10.34 Dynamic Global
    # Memory Allocation.
    "vprintf": ("s32", ("u64", "u64"), "t->services->print(t, {0}, {1})"),
    "__assertfail": (
        "",
        ("u64", "u64", "u32", "u64", "u64"),
        "t->services->fail(t, {0}, {1}, {2}, {3})",
    ),
    "malloc": ("u64", ("u64",), "t->services->take(t, {0})"),
    "free": ("", ("u64",), "t->services->give_back(t, {0})"),
    # Of the device runtime, as <cooperative_groups.h> calls them; there is one grid: its handle is
    # never 0.
    "cudaCGGetIntrinsicHandle": ("u64", ("u32",), "1 + {0}"),
    "cudaCGSynchronize": ("u32", ("u64", "u32"), "((void){0}, t->services->grid(t, {site}), 0u)"),
    "cudaCGGetSize": ("u32", ("u64", "u64", "u64"), "sc_grid_size(t, {0}, {1})"),
    "cudaCGGetRank": ("u32", ("u64", "u64", "u64"), "sc_grid_rank(t, {0}, {1})"),
}
"""Type of the result, types of the parameters, and what is called in C."""


# ---- barriers and fences -----------------------------------------------------------------------


@handles("bar barrier", "cta sync arrive red popc and or aligned warp", faults=True)
def _barrier(code: Code, one: Instruction) -> str:
    modifiers = one.modifiers
    operands = list(one.operands)
    if "warp" in modifiers:
        return f"sc_warp(t, SC_SYNC, {code.read(operands[0], 'u32')}, 0, 0, 0, {code.site}, NULL);"
    if "red" in modifiers:
        d, number, *threads, predicate = operands
        count = code.read(threads[0], "u32") if threads else "0"
        kind = "u32" if "popc" in modifiers else "pred"
        op = next(word for word in ("popc", "and", "or") if word in modifiers).upper()
        value = (
            f"t->services->barrier(t, {code.read(number, 'u32')}, {count}, SC_BARRIER_{op}, "
            + f"{code.read(predicate, 'pred')}, {code.site})"
        )
        return code.write(d, kind, value)
    number = code.read(operands[0], "u32")
    count = code.read(operands[1], "u32") if len(operands) > 1 else "0"
    if "arrive" in modifiers:
        return f"t->services->arrive(t, {number}, {count}, {code.site});"
    return f"t->services->barrier(t, {number}, {count}, SC_BARRIER_SYNC, 0, {code.site});"


_SCOPES = {"cta": 0, "cluster": 1, "gl": 1, "gpu": 1, "sys": 2}


@handles(
    "membar fence",
    f"{' '.join(_SCOPES)} sc acq_rel acquire release proxy alias async async.global mbarrier_init "
    + "sync_restrict::shared::cta sync_restrict::shared::cluster",
)
def _fence(code: Code, one: Instruction) -> str:
    scope = next((_SCOPES[word] for word in one.modifiers if word in _SCOPES), 2)
    return f"t->services->fence(t, {scope});"


always("nanosleep", "t->services->yield(t);", faults=True)


# ---- warps -------------------------------------------------------------------------------------


def _warp(
    code: Code,
    op: str,
    target: str,
    mask: str,
    value: str = "0",
    more: tuple[str, str] = ("0", "0"),
    *,
    kind: str = "b32",
) -> str:
    """A warp operation whose result, of that type, and whose predicate go into ``d|p``, or ``d``
    alone."""
    d, p = (name.strip() for name in target.partition("|")[::2])
    to = "&p" if p else "NULL"
    call = f"sc_warp(t, SC_{op}, {mask}, {value}, {more[0]}, {more[1]}, {code.site}, {to})"
    write = code.write(d, kind, call)
    return f"bool p; {write} {code.write(p, 'pred', 'p')}" if p else write


def _mask(code: Code, one: Instruction, operands: Sequence[str]) -> str:
    """The last operand: old forms, without ``.sync``, do not have it."""
    if not operands:
        raise code.error(f"{one.opcode} without .sync is not supported")
    return code.read(operands[0], "u32")


@handles("shfl", "sync up down bfly idx", faults=True)
def _shfl(code: Code, one: Instruction) -> str:
    target, a, b, c, *rest = one.operands
    mask = _mask(code, one, rest)
    mode = next(word for word in one.modifiers if word in ("up", "down", "bfly", "idx"))
    more = (code.read(b, "u32"), code.read(c, "u32"))
    return _warp(code, f"SHUFFLE_{mode.upper()}", target, mask, code.read(a, "u32"), more)


@handles("vote", "sync all any uni ballot", faults=True)
def _vote(code: Code, one: Instruction) -> str:
    d, a, *rest = one.operands
    mask = _mask(code, one, rest)
    mode = next(word for word in one.modifiers if word in ("all", "any", "uni", "ballot"))
    kind = "b32" if mode == "ballot" else "pred"
    return _warp(code, f"VOTE_{mode.upper()}", d, mask, code.read(a, "pred"), kind=kind)


@handles("match", "any all sync", faults=True)
def _match(code: Code, one: Instruction) -> str:
    target, a, mask = one.operands
    op = "MATCH_ALL" if "all" in one.modifiers else "MATCH_ANY"
    value = code.read(a, only_kind(code, one))
    return _warp(code, op, target, code.read(mask, "u32"), value)


@handles("redux", "sync add min max and or xor", faults=True)
def _redux(code: Code, one: Instruction) -> str:
    kind = only_kind(code, one)
    if kind not in ("u32", "s32", "b32"):
        raise code.error("not supported with this type")
    d, a, mask = one.operands
    mode = next(word for word in one.modifiers if word not in ("sync", kind))
    op = f"REDUX_{mode.upper()}" + (f"_{kind[0].upper()}" if mode in ("min", "max") else "")
    return _warp(code, op, d, code.read(mask, "u32"), code.read(a, "u32"))


@handles("activemask", faults=True)
def _activemask(code: Code, one: Instruction) -> str:
    return _warp(code, "ACTIVE", one.operands[0], "UINT32_MAX")


@handles("elect", "sync", faults=True)
def _elect(code: Code, one: Instruction) -> str:
    target, mask = one.operands
    return _warp(code, "ELECT", target, code.read(mask, "u32"))
