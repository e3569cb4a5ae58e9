"""Instructions that decide what runs next, and those of several threads together (PTX ISA, 9.7.12,
9.7.13, and the warp's of 9.7.9 and 9.7.19)."""

from __future__ import annotations

from collections.abc import Sequence

from softcuda.translation.instructions import always, handles, kinds_of
from softcuda.translation.layout import packed
from softcuda.translation.operands import C_TYPES, Code
from softcuda.translation.ptx import (
    Function,
    Instruction,
    Prototype,
    Targets,
    split_operands,
)

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
    targets = code.scope.lists.get(name)
    if not isinstance(targets, Targets):
        raise code.error(f"there is no list {name} of labels")
    cases = [f"case {i}: goto {code.label(label)};" for i, label in enumerate(targets.labels)]
    return f"switch ({code.read(index, 'u32')}) {{ {' '.join(cases)} }}"


always("ret", "goto end;", "uni")
always("exit", "goto thread_end;")
always("trap brkpt", "t->services->trap(t);", faults=True)
# Hints to a scheduler that is not there.
always("pragma griddepcontrol setmaxnreg", "", "launch_dependents wait inc dec sync aligned")


# ---- calls -------------------------------------------------------------------------------------


@handles("call", "uni", faults=True)
def _call(code: Code, one: Instruction) -> str:
    """Copy what is given into one block, and call with that."""
    operands = list(one.operands)
    returned = operands.pop(0)[1:-1].strip() if operands[0][0] == "(" else ""
    name = operands.pop(0)
    given = split_operands(operands.pop(0)[1:-1].strip()) if operands else []
    callee: Function | Prototype
    if name[0] == "%":
        prototype = code.scope.lists.get(operands[0]) if operands else None
        if not isinstance(prototype, Prototype):
            raise code.error("a call of an address needs a .callprototype")
        count = len(code.layout.addressed)
        table = "addressed" if count else "NULL"  # a call that would fail, and may never be made
        target = f"sc_function_at(t, {code.read(name, 'u64')}, {table}, {count})"
        callee = prototype
    else:
        if name not in code.layout.functions:
            raise code.error(f"the function {name} is not declared")
        callee = code.layout.functions[name]
        if not callee.body:
            return _call_runtime(code, name, returned, given)
        target = f"function{code.layout.numbers[name]}"
    parameters, result = callee.parameters, callee.returned
    if len(parameters) != len(given):
        raise code.error(f"{len(given)} parameters are given, and {len(parameters)} are wanted")
    offsets, size = packed(parameters)
    lines = [f"_Alignas(16) char given[{max(size, 1)}], result[{result.bytes if result else 1}];"]
    for parameter, at, text in zip(parameters, offsets, given, strict=True):
        if parameter.shape:
            lines.append(f"memcpy(given + {at}, (char *)({code.symbol(text)}), {parameter.bytes});")
        else:
            value = _given(code, text, parameter.kind)
            lines.append(f"*({C_TYPES[parameter.kind]} *)(given + {at}) = {value};")
    lines.append(f"if ({target}(t, result, given)) goto thread_end;")
    if result and result.shape and returned not in ("", "_"):
        lines.append(f"memcpy((char *)({code.symbol(returned)}), result, {result.bytes});")
    elif result:
        lines.append(_kept(code, returned, result.kind, f"*({C_TYPES[result.kind]} *)result"))
    return " ".join(lines)


def _call_runtime(code: Code, name: str, returned: str, given: Sequence[str]) -> str:
    """Functions of the CUDA runtime that the driver brings along."""
    if name not in _RUNTIME:
        raise code.error(f"the function {name} is defined in no module here")
    result, kinds, call = _RUNTIME[name]
    values = [_given(code, text, kind) for text, kind in zip(given, kinds, strict=True)]
    return _kept(code, returned if result else "", result, call.format(*values, site=code.site))


def _given(code: Code, text: str, kind: str) -> str:
    """Return a parameter: a register or a number, or a variable of the space .param."""
    if text[0] == "-" or text[0].isdigit() or code.find_register(text):
        return code.read(text, kind)
    return f"*({C_TYPES[kind]} *)({code.symbol(text)})"


def _kept(code: Code, returned: str, kind: str, value: str) -> str:
    """Put what a function returns into a register or a variable of the space .param."""
    if returned in ("", "_"):
        return f"{value};"
    if code.find_register(returned):
        return code.write(returned, kind, value)
    return f"*({C_TYPES[kind]} *)({code.symbol(returned)}) = {value};"


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
    operands, d, predicate = list(one.operands), "", "0"
    if "warp" in one.modifiers:
        return f"sc_warp(t, SC_SYNC, {code.read(operands[0], 'u32')}, 0, 0, 0, {code.site}, NULL);"
    if "red" in one.modifiers:
        d, *operands, condition = operands
        predicate = code.read(condition, "pred")
    number, threads = [*(code.read(operand, "u32") for operand in operands), "0"][:2]
    if "arrive" in one.modifiers:
        return f"t->services->arrive(t, {number}, {threads}, {code.site});"
    op = one.chosen({"popc": "POPC", "and": "AND", "or": "OR"}) or "SYNC"
    arguments = f"t, {number}, {threads}, SC_BARRIER_{op}, {predicate}, {code.site}"
    value = f"t->services->barrier({arguments})"
    return code.write(d, "u32" if op == "POPC" else "pred", value) if d else f"{value};"


_SCOPES = {"cta": 0, "cluster": 1, "gl": 1, "gpu": 1, "sys": 2}


@handles(
    "membar fence",
    f"{' '.join(_SCOPES)} sc acq_rel acquire release proxy alias async async.global mbarrier_init "
    + "sync_restrict::shared::cta sync_restrict::shared::cluster",
)
def _fence(code: Code, one: Instruction) -> str:
    scope = one.chosen(_SCOPES)
    return f"t->services->fence(t, {2 if scope is None else scope});"


always("nanosleep", "t->services->yield(t);", faults=True)


# ---- warps -------------------------------------------------------------------------------------


_WARP = {
    "shfl": ("SHUFFLE", "u32 u32 u32", ("up", "down", "bfly", "idx")),
    "vote": ("VOTE", "pred", ("all", "any", "uni", "ballot")),
    "match": ("MATCH", "t", ("any", "all")),
    "redux": ("REDUX", "u32", ("add", "min", "max", "and", "or", "xor")),
    "elect": ("ELECT", "", ()),
}
"""What the device calls an instruction, the types of its operands before the mask, and its modes.
``t`` is the instruction's own type."""


def _of_warp(code: Code, one: Instruction) -> str:
    """Return an instruction of ``_WARP``, whose result and whose predicate go into ``d|p``, or
    ``d`` alone."""
    name, types, modes = _WARP[one.opcode]
    if "sync" not in one.modifiers:
        raise code.error(f"{one.opcode} without .sync is not supported")
    target, *sources, mask = one.operands
    own = next(iter(kinds_of(one)), "")
    kinds = [own if word == "t" else word for word in types.split()]
    values = [code.read(*pair) for pair in zip(sources, kinds, strict=True)]
    op = "_".join([name, *(word.upper() for word in one.modifiers if word in modes)])
    if modes and op == name:
        raise code.error(f"{one.opcode} needs one of {', '.join(modes)}")
    if one.opcode == "redux":
        if own not in ("u32", "s32", "b32"):
            raise code.error("not supported with this type")
        if op in ("REDUX_MIN", "REDUX_MAX"):
            op = f"{op}_{own[0].upper()}"
    value, b, c = [*values, "0", "0", "0"][:3]
    d, p = (part.strip() for part in target.partition("|")[::2])
    sync = f"t, SC_{op}, {code.read(mask, 'u32')}, {value}, {b}, {c}, {code.site}"
    is_true = op in ("VOTE_ALL", "VOTE_ANY", "VOTE_UNI")
    write = code.write(d, "pred" if is_true else "b32", f"sc_warp({sync}, {'&p' if p else 'NULL'})")
    return f"bool p; {write} {code.write(p, 'pred', 'p')}" if p else write


for _opcode, (_, _, _modes) in _WARP.items():
    handles(_opcode, f"sync {' '.join(_modes)}", faults=True)(_of_warp)


@handles("activemask", faults=True)
def _activemask(code: Code, one: Instruction) -> str:
    call = f"sc_warp(t, SC_ACTIVE, UINT32_MAX, 0, 0, 0, {code.site}, NULL)"
    return code.write(one.operands[0], "u32", call)
