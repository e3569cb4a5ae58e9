"""PTX to C: every entry of a module becomes a function that runs one thread.

The C text includes ``runtime.h`` and defines the symbol ``softcuda_module`` of ``device.h``.
Nothing here depends on the rest of gpubench.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterable, Sequence

from gpubench.softcuda.translation.function import FunctionWriter
from gpubench.softcuda.translation.layout import Layout, packed
from gpubench.softcuda.translation.operands import bits_of, number_of
from gpubench.softcuda.translation.ptx import KINDS, Function, TranslationError, Variable, parse

__all__ = ["TranslationError", "translate"]

_MANY_ACCESSES = 300
"""In a module with more, checking an access is a function of its own. Inlined, it is faster, but
the compiler takes more than twice as long for code that NVVM did not optimise (debug=True)."""

_ELEMENT = re.compile(r"[{},]|[^{},\s]+")


def translate(ptx: str) -> str:
    """The C text of a module. Raises ``TranslationError`` for PTX that is not understood, where a
    kernel can reach it."""
    try:
        return _translated(Layout(parse(ptx)))
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # What no compiler writes is met at any place of the translation, which knows no line there.
        reason = f"the module is not understood: {type(error).__name__}: {error}"
        raise TranslationError(1, ptx[:200], reason) from error


def _translated(layout: Layout) -> str:
    site, functions = 1, []
    for name in layout.reached:
        writer = FunctionWriter(layout, layout.functions[name], site)
        functions.append(writer.text())
        site += writer.instructions
    accesses = sum(text.count("_at(t, ") for text in functions)
    files = ", ".join(json.dumps(name, ensure_ascii=False) for name in layout.files)
    parts = [
        *(["#define SC_MANY_ACCESSES"] if accesses > _MANY_ACCESSES else []),
        '#include "runtime.h"\n',
        *_declarations(layout),
        *functions,
        *_variables("globals", layout, [(one, 0) for one in layout.globals]),
        *_variables("shared", layout, layout.shared),
        *_kernels(layout),
        f"static const char *const files[] = {{{files}}};\n",
        _module(layout),
    ]
    return "\n".join(parts)


def _declarations(layout: Layout) -> Iterable[str]:
    """Functions may be called before they stand in the text, and by their addresses."""
    for name, number in layout.numbers.items():
        if not layout.functions[name].entry:
            yield f"static sc_code function{number};"
    if layout.addressed:
        names = ", ".join(f"function{layout.numbers[name]}" for name in layout.addressed)
        yield f"static sc_code *const addressed[] = {{{names}}};"
    yield ""


def _variables(table: str, layout: Layout, variables: Sequence[tuple[Variable, int]]) -> list[str]:
    initials, rows = [], []
    for number, (one, at) in enumerate(variables):
        initial = "NULL"
        needed = table != "globals" or number in layout.used_globals
        if one.initial and (needed or not _has_addresses(one)):
            initial = f"{table}_initial{number}"
            values = ",".join(map(str, _initial_bytes(one)))
            initials.append(f"static const uint8_t {initial}[{one.bytes}] = {{{values}}};")
        constant = int(one.space == "const")
        name = json.dumps(one.name)
        rows.append(f"  {{{name}, {one.bytes}, {one.align}, {at}, {initial}, {constant}}},")
    if not rows:
        return []
    return [*initials, f"static const sc_variable {table}[] = {{", *rows, "};", ""]


def _has_addresses(one: Variable) -> bool:
    return any(text[0] not in "{},+-0123456789" for text in _ELEMENT.findall(one.initial))


def _initial_bytes(one: Variable) -> bytes:
    """The initial value of a variable (PTX ISA, 5.4.4 "Initializers")."""
    size = KINDS[one.kind]
    tokens = _ELEMENT.findall(one.initial)
    if tokens[0] != "{":
        tokens = ["{", *tokens, "}"]
    values = _list_of(one, tokens, one.shape or (1,))
    mask = (1 << 8 * size) - 1
    return b"".join((value & mask).to_bytes(size, "little") for value in values)


def _list_of(one: Variable, tokens: list[str], shape: tuple[int, ...]) -> list[int]:
    """The elements of ``{...}``, filled up with zeros; takes the tokens away."""
    tokens.pop(0)
    values: list[int] = []
    while tokens[0] != "}":
        if tokens[0] == ",":
            tokens.pop(0)
        elif tokens[0] == "{":
            values += _list_of(one, tokens, shape[1:])
        else:
            values.append(_constant(one, tokens.pop(0)))
    tokens.pop(0)
    return values + [0] * (math.prod(shape) - len(values))


def _constant(one: Variable, text: str) -> int:
    if not (text[0].isdigit() or text[0] in "+-"):
        raise TranslationError(
            one.ptx_line,
            f"{one.name} = {one.initial}",
            "addresses in initial values are not supported",
        )
    if one.kind in ("f32", "f64"):
        form = "<f" if one.kind == "f32" else "<d"
        return int.from_bytes(struct.pack(form, number_of(text)), "little")
    return bits_of(text)


def _kernels(layout: Layout) -> Iterable[str]:
    rows = []
    for one in layout.entries:
        number = layout.numbers[one.name]
        offsets, size = packed(one.parameters)
        if offsets:
            yield _array(f"offsets{number}", offsets)
            yield _array(f"sizes{number}", [parameter.bytes for parameter in one.parameters])
        rows.append(_kernel(layout, one, number, size))
    if rows:
        yield "\n".join(["static const sc_kernel kernels[] = {", *rows, "};", ""])


def _array(name: str, values: Sequence[int]) -> str:
    return f"static const uint32_t {name}[] = {{{', '.join(map(str, values))}}};"


def _kernel(layout: Layout, one: Function, number: int, size: int) -> str:
    tables = (f"offsets{number}", f"sizes{number}") if one.parameters else ("NULL", "NULL")
    fields = {
        "name": json.dumps(one.name),
        "run": f"entry{number}",
        "parameters": len(one.parameters),
        "offsets": tables[0],
        "sizes": tables[1],
        "parameter_bytes": size,
        "local_bytes": layout.local_bytes(one.name),
        "max_threads": one.max_threads,
        "waits": int(layout.waits(one.name)),
        "cooperative": int(layout.cooperates(one.name)),
    }
    return f"  {{{', '.join(f'.{name} = {value}' for name, value in fields.items())}}},"


def _module(layout: Layout) -> str:
    fields = {
        "abi": "SC_ABI",
        "kernels": "kernels" if layout.entries else "NULL",
        "kernel_count": len(layout.entries),
        "globals": "globals" if layout.globals else "NULL",
        "global_count": len(layout.globals),
        "shared": "shared" if layout.shared else "NULL",
        "shared_count": len(layout.shared),
        "shared_window": layout.shared_window,
        "shared_bytes": layout.shared_bytes,
        "files": "files",
        "file_count": len(layout.files),
    }
    rows = "".join(f"  .{name} = {value},\n" for name, value in fields.items())
    return f"SC_EXPORT const sc_module softcuda_module = {{\n{rows}}};\n"
