"""LLVM's optimized code as text: its functions, blocks, instructions and lines of Python.

https://llvm.org/docs/LangRef.html. The text is LLVM's own and has one instruction a line, so that
no parser of the language is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

NO_FILE = "<string>"
"""File of code that Numba generates, the body of ``prange`` for example. Its lines are right."""

_GLOBAL_NAME = r'"[^"]+"|[-\w.$]+'
_DEFINE = re.compile(rf"^define .*?@({_GLOBAL_NAME})\(")
_BLOCK_LABEL = re.compile(rf"^({_GLOBAL_NAME}):")
_METADATA = re.compile(r"^!(\d+) = (.*)$")
_LOCATION = re.compile(r"!dbg !(\d+)")
_METADATA_FIELD = {
    name: re.compile(rf"\b{name}: (?:!(\d+)|(\d+)|\"([^\"]*)\")")
    for name in (
        "line",
        "scope",
        "file",
        "inlinedAt",
        "filename",
        "directory",
        "name",
        "linkageName",
    )
}
_OPENING, _CLOSING = "([{<", ")]}>"


@dataclass(frozen=True, slots=True)
class Place:
    """A line of Python."""

    file: str
    """As Numba has it: an absolute path, or ``NO_FILE``."""
    line: int


@dataclass(slots=True)
class Block:
    """A basic block: instructions that all run as often as the first."""

    function: str
    label: str | None
    """As it stands in the text; ``None`` of a first block without one."""
    instructions: list[str] = field(default_factory=list)
    """Each as it stands in the text, some of several lines; records of debuggers left out."""


@dataclass(slots=True)
class Function:
    """A function that a module defines."""

    name: str
    head: str
    """Its line, up to the brace."""
    blocks: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class Module:
    """A module of LLVM, in the order of its text."""

    parts: list[str | Function]
    metadata: Mapping[str, str]
    """By number, what follows ``!N =``."""

    @property
    def functions(self) -> Iterator[Function]:
        """Yield the functions that it defines."""
        return (part for part in self.parts if isinstance(part, Function))

    def source_functions(self) -> frozenset[str]:
        """Return the names of the functions that its code comes from, also where it was inlined."""
        names = (_value(text, "linkageName") for text in self.metadata.values())
        return frozenset(name for name in names if name)


def parse(text: str) -> Module:
    """Read the text of a module."""
    parts: list[str | Function] = []
    metadata: dict[str, str] = {}
    function: Function | None = None
    for line in text.split("\n"):
        if function is not None:
            if line == "}":
                function = None
            else:
                _add_line(function, line)
        elif match := _DEFINE.match(line):
            function = Function(match[1].strip('"'), line)
            parts.append(function)
        else:
            if match := _METADATA.match(line):
                metadata[match[1]] = match[2]
            parts.append(line)
    return Module(parts, metadata)


def _add_line(function: Function, line: str) -> None:
    body = line.lstrip()
    if not body or body.startswith((";", "#dbg_")):
        return
    if not line.startswith(" ") and _BLOCK_LABEL.match(line):
        function.blocks.append(Block(function.name, line))
        return
    if not function.blocks:
        function.blocks.append(Block(function.name, None))
    block = function.blocks[-1]
    # What goes on in another line is a list: the targets of a switch, the clauses of a landing pad.
    is_continued = block.instructions and (line.startswith("   ") or body.startswith("]"))
    if is_continued:
        block.instructions[-1] += f"\n{line}"
    elif not _is_for_debuggers(body):
        block.instructions.append(line)


def _is_for_debuggers(instruction: str) -> bool:
    return "call void @llvm.dbg." in instruction


class Lines:
    """Finds the lines of Python that instructions of a module come from."""

    def __init__(self, module: Module) -> None:
        self._metadata = module.metadata
        self._places: dict[str, Place | None] = {}

    def place_of(self, instruction: str) -> Place | None:
        """Return the line of an instruction, inside the function that was inlined; ``None`` where
        the compiler gives none."""
        match = _LOCATION.search(instruction)
        if match is None:
            return None
        if match[1] not in self._places:
            self._places[match[1]] = self._find(match[1])
        return self._places[match[1]]

    def places_in(self, block: Block) -> Sequence[Place | None]:
        """Return a line for each instruction of a block.

        One that has none belongs to the line before it, and the first ones to the first line that
        there is: the vectorizer leaves loads and shuffles without.
        """
        places = [self.place_of(instruction) for instruction in block.instructions]
        last = next((place for place in places if place), None)
        for index, place in enumerate(places):
            last = places[index] = place or last
        return places

    def _find(self, number: str) -> Place | None:
        """Return the place of a location; line 0 is that of the call into which it was inlined."""
        current: str | None = number
        while current is not None:
            text = self._metadata.get(current, "")
            line, file = int(_value(text, "line") or 0), self._file_of(_value(text, "scope"))
            if line and file:
                return Place(file, line)
            current = _value(text, "inlinedAt")
        return None

    def _file_of(self, scope: str | None) -> str | None:
        while scope is not None:
            text = self._metadata.get(scope, "")
            if file := _value(text, "file"):
                text = self._metadata.get(file, "")
                name, folder = _value(text, "filename") or "", _value(text, "directory") or ""
                return name if name == NO_FILE else str(PurePath(folder, name))
            scope = _value(text, "scope")
        return None


def _value(text: str, name: str) -> str | None:
    """Return the value of a field of metadata: a number of other metadata, a number, a text."""
    match = _METADATA_FIELD[name].search(text)
    return None if match is None else next(group for group in match.groups() if group is not None)


def split_arguments(text: str) -> list[str]:
    """Split at the commas that stand in no brackets."""
    parts, depth, begin = [], 0, 0
    for index, character in enumerate(text):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:index].strip())
            begin = index + 1
    return [part for part in (*parts, text[begin:].strip()) if part]


def leading_type(text: str) -> str:
    """Return the type that a text begins with: ``double``, ``<4 x float>``, ``{ i8*, i32 }``."""
    text, depth = text.lstrip(), 0
    for index, character in enumerate(text):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif depth == 0 and character in " ,":
            return text[:index]
    return text


@dataclass(frozen=True, slots=True)
class Type:
    """What the type of a value holds."""

    element: str
    """Of a vector its element, else the type itself: ``double``, ``i64``, ``ptr``."""
    lanes: int
    bytes: int


_TYPE_BYTES = {
    "half": 2,
    "bfloat": 2,
    "float": 4,
    "double": 8,
    "x86_fp80": 16,
    "fp128": 16,
    "ptr": 8,
    "void": 0,
}


def parse_type(text: str) -> Type:
    """Read a type; a pointer takes eight bytes."""
    text = text.strip()
    if text in _TYPE_BYTES:
        return Type(text, 1, _TYPE_BYTES[text])
    if text.endswith("*"):
        return Type("ptr", 1, _TYPE_BYTES["ptr"])
    if match := re.fullmatch(r"i(\d+)", text):
        return Type(text, 1, max(1, int(match[1]) // 8))
    if match := re.fullmatch(r"<(\d+) x (.+)>", text):
        element, lanes = parse_type(match[2]), int(match[1])
        bits = re.fullmatch(r"i(\d+)", element.element)
        width = int(bits[1]) if bits else 8 * element.bytes
        return Type(element.element, lanes, max(1, lanes * width // 8))
    if match := re.fullmatch(r"\[(\d+) x (.+)\]", text):
        return Type(text, 1, int(match[1]) * parse_type(match[2]).bytes)
    if text.startswith("{"):
        fields = split_arguments(text[1:-1])
        return Type(text, 1, sum(parse_type(one).bytes for one in fields))
    return Type(text, 1, 0)
