"""PTX to C: every function of a module becomes one of C, every entry one that runs one thread.

Statements stay in their order, one line each; scopes become blocks, registers local variables. The
C text includes ``runtime.h`` and defines the symbol ``softcuda_module`` of ``device.h``. Nothing
here depends on the rest of softcuda.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

# The modules that fill the table of instructions.
import softcuda.translation.arithmetic
import softcuda.translation.control
import softcuda.translation.memory
import softcuda.translation.selection  # noqa: F401
from softcuda.translation.counting import (
    BasicBlock,
    Blocks,
    describe,
    tell_guard,
    write_tables,
)
from softcuda.translation.instructions import HANDLERS, translate_instruction
from softcuda.translation.layout import Layout, keeps_parameters, packed
from softcuda.translation.memory import tell_accesses
from softcuda.translation.operands import C_TYPES, Code, Scope, bits_of, literal
from softcuda.translation.ptx import (
    KINDS,
    Block,
    Function,
    Instruction,
    Label,
    TranslationError,
    Variable,
    parse,
)

__all__ = ["TranslationError", "describe_counts", "translate"]

_MANY_ACCESSES = 300
"""In a module with more, checking an access is a function of its own. Inlined, it is faster, but
the compiler takes more than twice as long for code that NVVM did not optimise (debug=True)."""

_ELEMENT = re.compile(r"[^{},\s]+")


def translate(ptx: str, *, count: bool = False) -> str:
    """Return the C text of a module, which tells what its threads do where ``count`` asks for that.
    Raises ``TranslationError`` for PTX that is not understood, where a kernel can reach it."""
    return _understood(ptx, lambda layout: _module(layout, count))


def describe_counts(ptx: str) -> str:
    """Describe as JSON what the basic blocks of a module do, as ``translate`` numbers them."""
    return _understood(ptx, _describe)


def _understood(ptx: str, make: Callable[[Layout], str]) -> str:
    try:
        return make(Layout(parse(ptx)))
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # What no compiler writes is met at any place of the translation, which knows no line there.
        reason = f"the module is not understood: {type(error).__name__}: {error}"
        raise TranslationError(1, ptx[:200], reason) from error


def _blocks_of(layout: Layout) -> dict[str, Blocks]:
    """Return the basic blocks of each function, numbered through the module."""
    blocks: dict[str, Blocks] = {}
    first = 0
    for name in layout.reached:
        blocks[name] = Blocks(layout.functions[name], first)
        first += len(blocks[name].blocks)
    return blocks


def _describe(layout: Layout) -> str:
    of_functions = _blocks_of(layout)
    kernels = {one.name: of_functions[one.name].begin for one in layout.entries}
    return describe(_in_one(of_functions), layout.module.files, kernels)


def _in_one(of_functions: Mapping[str, Blocks]) -> list[BasicBlock]:
    return [block for one in of_functions.values() for block in one.blocks]


def _module(layout: Layout, count: bool) -> str:
    site, functions = 1, []
    blocks = _blocks_of(layout) if count else {}
    for name in layout.reached:
        writer = _FunctionWriter(layout, layout.functions[name], site, blocks.get(name))
        functions.append(writer.text())
        site += writer.instructions
    accesses = sum(text.count("_at(t, ") for text in functions)
    # Functions may be called before they stand in the text, and by their addresses.
    declared = [
        f"static sc_code function{number};"
        for name, number in layout.numbers.items()
        if not layout.functions[name].entry
    ]
    addressed = [f"function{layout.numbers[name]}" for name in layout.addressed]
    paths = layout.module.files
    numbers = range(max(paths, default=0) + 1)  # there is none of the number 0
    files = [json.dumps(paths.get(number, ""), ensure_ascii=False) for number in numbers]
    module = {
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
        "file_count": len(files),
    }
    counted = _in_one(blocks)
    if counted:
        module["blocks"] = "blocks"
        module["block_count"] = len(counted)
        module["access_count"] = sum(len(one.accesses) for one in counted)
        module["accesses"] = "accesses" if module["access_count"] else "NULL"
        module["widest"] = max(len(one.accesses) for one in counted)
    parts = [
        *(["#define SC_MANY_ACCESSES"] if accesses > _MANY_ACCESSES else []),
        '#include "runtime.h"\n',
        *declared,
        *_array("sc_code *const addressed", addressed),
        "",
        *functions,
        *_variables("globals", layout, [(one, 0) for one in layout.globals]),
        *_variables("shared", layout, layout.shared),
        *_kernels(layout),
        *_array("const char *const files", files),
        *(write_tables(counted) if counted else []),
        f"SC_EXPORT const sc_module softcuda_module = {_fields(module)};\n",
    ]
    return "\n".join(parts)


def _array(declaration: str, values: Sequence[object]) -> list[str]:
    """Return a static array; nothing where it would have no elements."""
    return [f"static {declaration}[] = {{{', '.join(map(str, values))}}};"] if values else []


def _fields(values: Mapping[str, object]) -> str:
    return f"{{{', '.join(f'.{name} = {value}' for name, value in values.items())}}}"


# ---- variables ---------------------------------------------------------------------------------


def _variables(table: str, layout: Layout, variables: Sequence[tuple[Variable, int]]) -> list[str]:
    initials, rows = [], []
    for number, (one, at) in enumerate(variables):
        initial = "NULL"
        elements = _ELEMENT.findall(one.initial)
        has_addresses = any(text[0] not in "+-0123456789" for text in elements)
        if has_addresses and (table != "globals" or number in layout.used_globals):
            reason = "addresses in initial values are not supported"
            raise TranslationError(one.ptx_line, f"{one.name} = {one.initial}", reason)
        if one.initial and not has_addresses:
            initial = f"&{table}_initial{number}"
            initials.append(f"static const {_initialised(one, initial[1:])};")
        constant = int(one.space == "const")
        name = json.dumps(one.name)
        rows.append(f"{{{name}, {one.bytes}, {one.align}, {at}, {initial}, {constant}}}")
    return [*initials, *_array(f"const sc_variable {table}", rows)]


def _initialised(one: Variable, name: str) -> str:
    """Return the declaration in C of the bits that a variable begins with (PTX ISA, 5.4.4
    "Initializers"): C too fills up a list with zeros."""
    kind = f"b{8 * KINDS[one.kind]}"
    extents = "".join(f"[{extent or ''}]" for extent in one.shape)
    values = _ELEMENT.sub(lambda text: literal(str(bits_of(text[0], one.kind)), kind), one.initial)
    return f"{C_TYPES[kind]} {name}{extents} = {values}"


# ---- kernels and functions ---------------------------------------------------------------------


def _kernels(layout: Layout) -> Iterable[str]:
    rows = []
    for one in layout.entries:
        number = layout.numbers[one.name]
        offsets, size = packed(one.parameters)
        yield from _array(f"const uint32_t offsets{number}", offsets)
        yield from _array(f"const uint32_t sizes{number}", [one.bytes for one in one.parameters])
        fields = {
            "name": json.dumps(one.name),
            "run": f"entry{number}",
            "parameters": len(offsets),
            "offsets": f"offsets{number}" if offsets else "NULL",
            "sizes": f"sizes{number}" if offsets else "NULL",
            "parameter_bytes": size,
            "local_bytes": layout.local_bytes(one.name),
            "max_threads": one.max_threads,
            "waits": int(layout.waits(one.name)),
            "cooperative": int(layout.cooperates(one.name)),
            "empty": int({each.opcode for each in one.instructions()} <= {"ret", "exit"}),
        }
        rows.append(f"\n  {_fields(fields)}")
    yield from _array("const sc_kernel kernels", rows)


class _FunctionWriter:
    """Writes the C text of one function."""

    def __init__(
        self, layout: Layout, function: Function, first_site: int, blocks: Blocks | None
    ) -> None:
        self._blocks = blocks  # None: nothing is counted
        self._told = 0  # accesses of the basic block so far
        self._function = function
        self._number = layout.numbers[function.name]
        self._code = Code(layout, function, first_site)
        self._line = self._file = -1  # what the thread holds here, -1: not known

    @property
    def instructions(self) -> int:
        return self._code.ordinal + 1

    def text(self) -> str:
        function, frame = self._function, self._code.frame
        head = f"bool function{self._number}(sc_thread *t, char *returned, char *parameters)"
        if function.entry:
            head = f"void entry{self._number}(sc_thread *t, char *parameters)"
        lines = [f"/* {function.name} */", f"static {head} {{"]
        if frame:
            lines.append(f"  char *frame = t->services->enter(t, {frame});")
        if keeps_parameters(function):
            size = packed(function.parameters)[1]
            lines.append(
                f"  parameters = sc_keep_parameters(t, frame + {frame - size}, parameters, {size});"
            )
        lines += ["  sc_span shared_recent = {0, 0};", "  uint32_t carry = 0;"]
        comes = goes = ""
        if self._blocks:
            lines.append("  uint64_t *places;")
            if not function.entry:
                comes = f"SC_BLOCK({self._blocks.begin}, 0);"
                goes = f"SC_BLOCK({self._blocks.end}, 0); "
        lines += [f"  {comes}"] if comes else []
        assert function.body
        lines += self._block(function.body, "  ")
        leave = "t->services->leave(t, frame);" if frame else ";"
        if function.entry:
            lines.append(f"thread_end: end: {leave}")
        else:
            lines += [f"end: {goes}{leave} return false;", f"thread_end: {leave} return true;"]
        return "\n".join([*lines, "}", ""])

    def _block(self, block: Block, indent: str) -> list[str]:
        code = self._code
        scope = code.enter(block)
        lines: list[str] = []
        for one in block.statements:
            if isinstance(one, Instruction):
                lines += (indent + line for line in self._instruction(one))
            elif isinstance(one, Label):
                lines.append(f"{scope.labels[one.name]}:;")
                self._line = self._file = -1  # it may be reached from elsewhere
            elif isinstance(one, Block):
                lines += [f"{indent}{{", *self._block(one, indent + "  "), f"{indent}}}"]
        code.leave()
        return [*(indent + line for line in _declarations(scope)), *lines]

    def _instruction(self, one: Instruction) -> list[str]:
        code = self._code
        code.ordinal += 1
        code.instruction = one
        statement = translate_instruction(code, one)
        lines = [*self._place(one), *self._tell(one)]
        if one.opcode == "call":
            self._line = self._file = -1  # the function has lines of its own
        if not statement:
            return lines
        if one.guard:
            condition = f"{'!' * one.negated}{code.read(one.guard, 'pred')}"
            statement = f"if ({condition}) {{ {statement} }}"
        elif statement.count(";") > 1 or statement.startswith("if "):
            statement = f"{{ {statement} }}"
        return [*lines, statement]

    def _tell(self, one: Instruction) -> list[str]:
        """Tells the basic block that begins here, and what the instruction touches."""
        blocks, code = self._blocks, self._code
        if not blocks:
            return []
        lines = []
        if code.ordinal in blocks.starts:
            self._told = 0
            number = blocks.starts[code.ordinal]
            lines.append(f"SC_BLOCK({number}, {blocks.accesses_at(code.ordinal)});")
        told = [*tell_guard(code, one, self._told)]
        told += tell_accesses(code, one, self._told + len(told))
        self._told += len(told)
        return [*lines, *told]

    def _place(self, one: Instruction) -> list[str]:
        """Tells the thread the line of the source, where it is another than before and the
        instruction may find a fault."""
        lines: list[str] = []
        if not HANDLERS[one.opcode].faults:
            return lines
        if one.line and one.line != self._line:
            lines.append(f"t->line = {one.line};")
            self._line = one.line
        if one.file and one.file != self._file:
            lines.append(f"t->file = {one.file};")
            self._file = one.file
        return lines


def _declarations(scope: Scope) -> list[str]:
    """Return registers that are used, by their types, and the arrays of calls. They start as zeros,
    so that a program that forgets to set one does the same each time."""
    lines = [f"{C_TYPES[kind]} {name} = 0;" for name, kind in scope.used.items()]
    lines += [f"_Alignas(16) char p_{name}[{size}];" for name, size in scope.parameters.items()]
    return lines
