"""One function of PTX as one function of C.

Statements stay in their order, one line each; scopes become blocks, registers local variables.
"""

from __future__ import annotations

# The modules that fill the table of instructions.
import gpubench.softcuda.translation.arithmetic
import gpubench.softcuda.translation.control
import gpubench.softcuda.translation.conversion
import gpubench.softcuda.translation.memory
import gpubench.softcuda.translation.selection  # noqa: F401
from gpubench.softcuda.translation.instructions import HANDLERS, translate_instruction
from gpubench.softcuda.translation.layout import Layout, keeps_parameters, packed
from gpubench.softcuda.translation.operands import C_TYPES, Code, Scope
from gpubench.softcuda.translation.ptx import Block, Function, Instruction, Label


class FunctionWriter:
    """Writes the C text of one function."""

    def __init__(self, layout: Layout, function: Function, first_site: int) -> None:
        self._layout = layout
        self._function = function
        self._code = Code(layout, function, first_site)
        self._line = self._file = -1  # what the thread holds here, -1: not known

    @property
    def instructions(self) -> int:
        return self._code.ordinal + 1

    def text(self) -> str:
        function = self._function
        assert function.body
        body = self._block(function.body, "  ")
        number = self._layout.numbers[function.name]
        lines = [f"/* {function.name} */"]
        if function.entry:
            lines.append(f"static void entry{number}(sc_thread *t, char *parameters) {{")
        else:
            lines.append(
                f"static bool function{number}(sc_thread *t, char *returned, char *parameters) {{"
            )
        lines += self._prologue()
        lines += body
        lines += self._epilogue()
        return "\n".join(lines)

    def _prologue(self) -> list[str]:
        frame = self._code.frame
        lines = []
        if frame:
            lines.append(f"  char *frame = t->services->enter(t, {frame});")
        if keeps_parameters(self._function):
            size = packed(self._function.parameters)[1]
            lines.append(f"  parameters = memcpy(frame + {frame - size}, parameters, {size});")
        if self._code.shares:
            lines.append("  sc_span shared_recent = {0, 0};")
        if self._code.carries:
            lines.append("  uint32_t carry = 0;")
        return lines

    def _epilogue(self) -> list[str]:
        leave = "  t->services->leave(t, frame);" if self._code.frame else ""
        if self._function.entry:
            ends = ["thread_end:;"] if self._code.ends else []
            return [*ends, "end:;", *filter(None, [leave]), "}", ""]
        lines = ["end:;", *filter(None, [leave]), "  return false;"]
        if self._code.ends:
            lines += ["thread_end:;", *filter(None, [leave]), "  return true;"]
        return [*lines, "}", ""]

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
        lines = self._place(one) if _can_fault(one) else []
        if one.opcode == "call":
            self._line = self._file = -1  # the function has lines of its own
        if not statement:
            return lines
        several = statement.count(";") > 1 or statement.startswith("if ")
        if one.guard:
            condition = f"{'!' * one.negated}{code.read(one.guard, 'pred')}"
            statement = f"if ({condition}) {{ {statement} }}"
        elif several:
            statement = f"{{ {statement} }}"
        return [*lines, statement]

    def _place(self, one: Instruction) -> list[str]:
        """Tells the thread the line of the source, where it is another than before."""
        lines = []
        if one.line and one.line != self._line:
            lines.append(f"t->line = {one.line};")
            self._line = one.line
        if one.file and one.file != self._file:
            lines.append(f"t->file = {one.file};")
            self._file = one.file
        return lines


def _can_fault(one: Instruction) -> bool:
    if one.opcode in ("ld", "st") and any(word.startswith("param") for word in one.modifiers):
        return False
    return HANDLERS[one.opcode].faults


def _declarations(scope: Scope) -> list[str]:
    """Registers that are used, by their types, and the arrays of calls. They start as zeros, so
    that a program that forgets to set one does the same each time."""
    by_type: dict[str, list[str]] = {}
    for name, kind in scope.used.items():
        by_type.setdefault(C_TYPES[kind], []).append(name)
    lines = []
    for c_type, names in by_type.items():
        for start in range(0, len(names), 8):
            declared = ", ".join(f"{name} = 0" for name in names[start : start + 8])
            lines.append(f"{c_type} {declared};")
    lines += [f"_Alignas(16) char p_{name}[{size}];" for name, size in scope.parameters.items()]
    return lines
