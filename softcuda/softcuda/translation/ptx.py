"""Reads PTX text into plain records: what a module declares, and the statements of its functions.

Only the form is read here (PTX ISA, 4 "Syntax", 5 "State Spaces, Types, and Variables", 7
"Abstracting the ABI", 11 "Directives"); what the instructions mean is for ``translate``. Debug
information (``.section``) is left out.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

T = TypeVar("T")

KINDS: Mapping[str, int] = {
    **{f"{letter}{bits}": bits // 8 for letter in "bus" for bits in (8, 16, 32, 64)},
    "b128": 16,
    "f16": 2,
    "bf16": 2,
    "f16x2": 4,
    "bf16x2": 4,
    "f32": 4,
    "f64": 8,
    "pred": 1,
    "s16x2": 4,
    "u16x2": 4,
    "f32x2": 8,
}
"""Bytes of every type that a register or a variable can have (PTX ISA, 5.2 "Types")."""


class TranslationError(Exception):
    """PTX that cannot be translated; the message names the line and what stands there."""

    def __init__(self, line: int, text: str, reason: str) -> None:
        super().__init__(f"PTX line {line}: {' '.join(text.split())[:200]!r}: {reason}")


@dataclass(frozen=True, slots=True)
class Instruction:
    """``@!%p1 add.rn.f32 %f1, %f2, %f3;`` with the guard ``%p1``, negated."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str  # a predicate register; empty: always executed
    negated: bool
    file: int  # of the last .loc; 0: none
    line: int
    ptx_line: int

    def chosen(self, table: Mapping[str, T]) -> T | None:
        """Return what ``table`` has for the first modifier that is in it; ``None`` where none
        is."""
        return next((table[word] for word in self.modifiers if word in table), None)

    def __str__(self) -> str:
        guard = f"@{'!' * self.negated}{self.guard} " if self.guard else ""
        return f"{guard}{'.'.join((self.opcode, *self.modifiers))} {', '.join(self.operands)}"


@dataclass(frozen=True, slots=True)
class Label:
    """A place to branch to."""

    name: str


@dataclass(frozen=True, slots=True)
class Registers:
    """``.reg .b32 %r<24>``: registers ``%r0`` to ``%r23``; without a count, one of that name."""

    name: str
    kind: str
    count: int | None


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the state space ``global``, ``const``, ``shared``, ``local`` or ``param``."""

    name: str
    space: str
    kind: str
    shape: tuple[int, ...]  # () for a scalar, (0,) for an array without a size
    align: int
    initial: str  # text behind the "="; empty: zeros
    extern: bool
    ptx_line: int

    @property
    def bytes(self) -> int:
        return KINDS[self.kind] * math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Targets:
    """``name: .branchtargets L1, L2;``, the labels of a ``brx.idx``."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prototype:
    """``name: .callprototype (.param .b32 _) _ (.param .b64 _);`` of an indirect call."""

    name: str
    returned: Variable | None
    parameters: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """``{ ... }``: a scope with registers, variables and labels of its own."""

    statements: tuple[Statement, ...]

    def walk(self) -> Iterator[Statement]:
        """Yield all statements, those of inner scopes included."""
        for one in self.statements:
            yield one
            if isinstance(one, Block):
                yield from one.walk()


Statement = Instruction | Label | Registers | Variable | Targets | Prototype | Block


@dataclass(frozen=True, slots=True)
class Function:
    """An entry or a device function; without a body it is only declared."""

    name: str
    entry: bool
    returned: Variable | None
    parameters: tuple[Variable, ...]
    body: Block | None
    max_threads: int  # of .maxntid or .reqntid; 0: none
    weak: bool  # whether another definition may take its place
    ptx_line: int

    def walk(self) -> Iterator[Statement]:
        """Return all statements; of a function that is only declared, none."""
        return self.body.walk() if self.body else iter(())

    def instructions(self) -> Iterator[Instruction]:
        return (one for one in self.walk() if isinstance(one, Instruction))


@dataclass(frozen=True, slots=True)
class Module:
    """A PTX module."""

    files: Mapping[int, str]
    variables: tuple[Variable, ...]
    functions: tuple[Function, ...]


def parse(text: str) -> Module:
    """Read a module. Raises ``TranslationError`` where the text is none."""
    reader = _Reader(text)
    variables = (one for one in reader.statements(inside=False) if isinstance(one, Variable))
    return Module(reader.files, tuple(variables), tuple(reader.functions))


def split_operands(text: str) -> list[str]:
    """Return the parts between commas that stand outside of brackets."""
    parts, depth, start = [], 0, 0
    for match in _BRACKETS_AND_COMMAS.finditer(text):
        if match[0] != ",":
            depth += 1 if match[0] in "{[(" else -1
        elif not depth:
            parts.append(text[start : match.start()].strip())
            start = match.end()
    return [*parts, text[start:].strip()] if text else []


_BRACKETS_AND_COMMAS = re.compile(r"[{}()\[\],]")
_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/', re.S)
_STATEMENT = re.compile(
    r"""\s*(?:
      \.loc\s+(?P<file>\d+)\s+(?P<line>\d+)[^\n]*
    | \.file\s+(?P<number>\d+)\s+"(?P<path>[^"]*)"[^\n;]*;?
    | \.section\b[^{]*\{[^}]*\}
    | \.(?:version|target|address_size)\b[^\n]*
    | (?P<open>\{)
    | (?P<close>\})
    | (?P<label>[\w$]+)\s*:(?!:)
    | (?P<function>(?:\.(?:visible|extern|weak)\s+)*\.(?P<what>entry|func)\b)
    | (?P<text>[^;]+);
    | ;
    )""",
    re.X,
)
_HEAD = re.compile(
    r"""\s*(?:\.noreturn\s*)?(?:\((?P<returned>[^)]*)\)\s*)?(?P<name>[\w$%]+)\s*
    (?:\((?P<parameters>[^)]*)\))?(?P<directives>[^{;]*)(?P<end>[{;])""",
    re.X,
)
_THREADS = re.compile(r"\.(?:maxntid|reqntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")
_INSTRUCTION = re.compile(
    r"(?:@\s*(!?)\s*([%\w$]+)\s+)?([a-z]\w*)((?:\.[\w:]+)*)(?:\s+|(?=[\[{(])|$)(.*)", re.S
)
_POINTED = re.compile(r"\.ptr\b(?:\s*\.\w+(?:\s+\d+\b)?)*")
"""Of a parameter: what is about the memory that it points to."""
_WORD = re.compile(r"\s*\.(\w+)(?:\s+(\d+)\b)?(?:\s*\([^)]*\))?")
_DECLARED = re.compile(
    r"\s*([\w$%.]+)\s*((?:\[\s*\w*\s*\]\s*)*)(?:<(\d+)>)?\s*(?:=\s*(.*))?$", re.S
)
_SPACES = ("reg", "global", "const", "shared", "local", "param")
_IGNORED = (".pragma", ".alias", ".maxnreg", ".minnctapersm")


class _Reader:
    def __init__(self, source: str) -> None:
        self.text = _COMMENT.sub(_without_comment, source)
        self._newlines = [match.start() for match in re.finditer("\n", self.text)]
        self._at = self._start = 0  # behind what was read, and of the statement that is being read
        self._file = self._line = 0
        self.files: dict[int, str] = {}
        self.functions: list[Function] = []

    def statements(self, inside: bool) -> tuple[Statement, ...]:
        """Statements up to the end of the scope, or of the text."""
        statements: list[Statement] = []
        label = ""
        while match := _STATEMENT.match(self.text, self._at):
            self._at = match.end()
            kind = match.lastgroup
            self._start = match.start(kind or 0)
            if kind == "text":
                text = match["text"]
                if text[0] != ".":
                    statements.append(self._instruction(text))
                elif text.startswith((".branchtargets", ".callprototype", ".calltargets")):
                    statements.pop()  # the label is its name
                    statements.append(self._listing(label, text))
                elif not text.startswith(_IGNORED):
                    statements += self._variables(text)
            elif kind == "label":
                label = match["label"]
                statements.append(Label(label))
            elif kind == "line":
                self._file, self._line = int(match["file"]), int(match["line"])
            elif kind == "open":
                statements.append(Block(self.statements(inside=True)))
            elif kind == "close":
                if not inside:
                    raise self._error("}", "no scope is open here")
                return tuple(statements)
            elif kind == "path":
                self.files[int(match["number"])] = match["path"]
            elif kind == "function":
                self.functions.append(self._function(match["what"] == "entry", match["function"]))
        self._start = self._at
        rest = self.text[self._at :]
        if inside or rest.strip():
            raise self._error(rest[:200], "this is no statement, or a scope is not closed")
        return tuple(statements)

    def _function(self, entry: bool, linking: str) -> Function:
        head = _HEAD.match(self.text, self._at)
        if not head:
            raise self._error(self.text[self._at : self._at + 200], "this is no function")
        self._at = head.end()
        self._file = self._line = 0
        ptx_line = self._ptx_line()
        threads = [match.groups("1") for match in _THREADS.finditer(head["directives"])]
        return Function(
            name=head["name"],
            entry=entry,
            returned=next(iter(self._parameters(head["returned"])), None),
            parameters=self._parameters(head["parameters"]),
            body=Block(self.statements(inside=True)) if head["end"] == "{" else None,
            max_threads=math.prod(map(int, chain(*threads))) if threads else 0,
            weak=".weak" in linking,
            ptx_line=ptx_line,
        )

    def _parameters(self, text: str | None) -> tuple[Variable, ...]:
        parameters = []
        for one in split_operands((text or "").strip()):
            for variable in self._variables(one):
                if not isinstance(variable, Variable) or variable.space != "param":
                    raise self._error(one, "parameters have to be in the space .param")
                parameters.append(variable)
        return tuple(parameters)

    def _instruction(self, text: str) -> Instruction:
        match = _INSTRUCTION.match(text)
        if not match:
            raise self._error(text, "this is no instruction")
        negated, guard, opcode, modifiers, operands = match.groups()
        return Instruction(
            opcode,
            tuple(modifiers[1:].split(".")) if modifiers else (),
            tuple(split_operands(operands.strip())),
            guard or "",
            bool(negated),
            self._file,
            self._line,
            self._ptx_line(),
        )

    def _listing(self, label: str, text: str) -> Targets | Prototype:
        directive, _, rest = text.partition(" ")
        if directive != ".callprototype":
            return Targets(label, tuple(split_operands(rest.strip())))
        head = _HEAD.match(rest + ";")
        if not head:
            raise self._error(text, "this is no prototype")
        returned = next(iter(self._parameters(head["returned"])), None)
        return Prototype(label, returned, self._parameters(head["parameters"]))

    def _variables(self, text: str) -> list[Statement]:
        """Return every variable, or family of registers, of one declaration."""
        plain = _POINTED.sub("", text)
        space = kind = ""
        align = end = 0
        while word := _WORD.match(plain, end):
            end = word.end()
            name = word[1]
            if name == "align":
                align = int(word[2])
            elif name in _SPACES and not space:
                space = name
            elif name in KINDS and not kind:
                kind = name
            elif name not in ("extern", "visible", "weak", "common", "attribute"):
                raise self._error(text, f"declarations with .{name} are not supported")
        declared: list[Statement] = []
        for part in split_operands(plain[end:].strip()):
            match = _DECLARED.match(part)
            if not match or not space or not kind:
                raise self._error(text, "this is no declaration")
            name, extents, count, initial = match.groups()
            if space == "reg":
                declared.append(Registers(name, kind, int(count) if count else None))
                continue
            variable = Variable(
                name,
                space,
                kind,
                shape=tuple(int(one or "0", 0) for one in re.findall(r"\[\s*(\w*)\s*\]", extents)),
                align=align or KINDS[kind],
                initial=(initial or "").strip(),
                extern=".extern" in plain[:end],
                ptx_line=self._ptx_line(),
            )
            declared.append(variable)
        return declared

    def _ptx_line(self) -> int:
        return bisect_right(self._newlines, self._start) + 1

    def _error(self, text: str, reason: str) -> TranslationError:
        return TranslationError(self._ptx_line(), text, reason)


def _without_comment(match: re.Match[str]) -> str:
    """Strings stay; a comment leaves its ends of lines, so that lines keep their numbers."""
    text = match[0]
    return text if text[0] == '"' else "\n" * text.count("\n") or " "
