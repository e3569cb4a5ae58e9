"""Reads a YAML file to a tree with places, and refuses what YAML's versions read differently.

Values are built from the parser's events, one by one, within bounds on depth, size and number, so
that a hostile file costs no more than its length.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import yaml

from gpubench.errors import Fault
from gpubench.suite.scalars import read_plain
from gpubench.suite.tree import Entry, Node, Origin, Scalar

MAX_BYTES = 2**20
MAX_DEPTH = 32
MAX_VALUES = 20_000
MAX_PARTS = 20
"""Most parts of a cut formula that are put together again."""
MAX_FAULTS = 100
"""Faults of a file after which reading stops."""

Event = Any
"""An event of PyYAML's parsers, the one in C or the one in Python, and its marks."""
Mark = Any
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_CHARACTERS = {
    "\t": "a tab; indent and separate with blanks",
    "\xa0": "a non-breaking space (U+00A0); write an ordinary blank",
    "\ufeff": "a byte-order mark (U+FEFF); save the file as UTF-8 without one",
}
_STRANGE = re.compile(
    "[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\xa0\xad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2064"
    "\u3000\ufeff\ufffe\uffff]"
)


class Unreadable(Exception):
    """Reading cannot go on; what is wrong is among the faults."""


def read_suite_file(path: Path | str) -> tuple[Node | None, tuple[Fault, ...]]:
    """Tree of a file, and everything that is wrong with it as YAML.

    The tree holds what was most likely meant where the spelling is at fault; it is ``None`` when
    there is no mapping to go on with.
    """
    text, faults = _read_text(path)
    if text is None:
        return None, faults
    return read_suite_text(text, str(path))


def read_suite_text(text: str, path: str) -> tuple[Node | None, tuple[Fault, ...]]:
    """The same for a text; ``path`` is the name that faults and places carry."""
    if faults := _strange_characters(text, path):
        return None, faults
    builder = _Builder(text, path)
    try:
        return builder.document(), tuple(builder.faults)
    except Unreadable:
        return None, tuple(builder.faults)


def _read_text(path: Path | str) -> tuple[str | None, tuple[Fault, ...]]:
    try:
        data = _read_bytes(Path(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return None, (Fault(str(path), 0, 0, f"cannot be read: {reason}"),)
    if len(data) > MAX_BYTES:
        return None, (Fault(str(path), 0, 0, "larger than 1 MiB; a suite file is at most that"),)
    try:
        return data.decode("utf-8"), ()
    except UnicodeDecodeError as error:
        return None, (_undecodable(data, error.start, str(path)),)


def _read_bytes(path: Path) -> bytes:
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("not a file")
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _undecodable(data: bytes, at: int, path: str) -> Fault:
    before = data[:at].decode("utf-8")
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    message = f"byte 0x{data[at]:02x} is not UTF-8; save the file as UTF-8"
    return Fault(path, line, column, message)


def _strange_characters(text: str, path: str) -> tuple[Fault, ...]:
    if not _STRANGE.search(text):
        return ()
    faults = []
    for number, line in enumerate(text.split("\n"), start=1):
        if match := _STRANGE.search(line):
            message = _CHARACTERS.get(match[0], _other_character(match[0]))
            faults.append(Fault(path, number, match.start() + 1, message))
        if len(faults) == MAX_FAULTS:
            break
    return tuple(faults)


def _other_character(character: str) -> str:
    return f"the character U+{ord(character):04X}, which is not visible; remove it"


class _Builder:
    """Turns the parser's events into nodes, and what is wrong on the way into faults."""

    def __init__(self, text: str, path: str) -> None:
        self.lines = text.split("\n")
        self.path = path
        self.faults: list[Fault] = []
        self.values = 0
        self.events: Iterator[Event] = yaml.parse(text, Loader=_Loader)

    def document(self) -> Node | None:
        self.next()  # the stream's start
        start = self.next()
        if not isinstance(start, yaml.DocumentStartEvent):
            self.fault(None, "the file is empty; a suite starts with version: 1")
            return None
        if start.version or start.tags:
            self.fault(start.start_mark, "directives (%) are not part of the format; remove it")
        root = self.node(self.next(), 1)
        self.next()  # the document's end
        after = self.next()
        if not isinstance(after, yaml.StreamEndEvent):
            self.fault(after.start_mark, "a second document; a file holds one suite")
        return self.mapping_only(root)

    def mapping_only(self, root: Node) -> Node | None:
        if not root.entries:
            found = root.origin
            message = "a suite is a mapping; it starts with version: 1"
            self.faults.append(Fault(found.path, found.line, found.column, message))
            return None
        return root

    def next(self) -> Event:
        try:
            return next(self.events)
        except yaml.MarkedYAMLError as error:
            self.fault(error.problem_mark or error.context_mark, _syntax(error))
        except yaml.YAMLError as error:
            self.fault(None, f"not YAML: {error}")
        raise Unreadable

    def fault(self, mark: Mark, message: str) -> None:
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        self.faults.append(Fault(self.path, line, column, message))
        if len(self.faults) >= MAX_FAULTS:
            raise Unreadable

    def stop(self, mark: Mark, message: str) -> NoReturn:
        self.fault(mark, message)
        raise Unreadable

    def origin(self, mark: Mark) -> Origin:
        return Origin(self.path, mark.line + 1, mark.column + 1)

    def node(self, event: Event, depth: int) -> Node:
        self.values += 1
        if self.values > MAX_VALUES:
            self.stop(event.start_mark, f"more than {MAX_VALUES} values in one file")
        if depth > MAX_DEPTH:
            self.stop(event.start_mark, f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, yaml.AliasEvent):
            self.fault(event.start_mark, _ALIAS)
            return Node("alias", self.origin(event.start_mark))
        self.check_properties(event)
        if isinstance(event, yaml.MappingStartEvent):
            return self.mapping(event, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(event, depth)
        return self.scalar(event)

    def check_properties(self, event: Event) -> None:
        if event.anchor is not None:
            self.fault(event.start_mark, _ALIAS)
        if event.tag is not None:
            self.fault(
                event.start_mark, f"the tag {event.tag[:40]!r} is not part of the format; remove it"
            )

    def scalar(self, event: yaml.ScalarEvent) -> Node:
        value: Scalar = event.value
        if _is_plain(event):
            value, problem = read_plain(event.value)
            if problem:
                self.fault(event.start_mark, problem)
        return Node(value, self.origin(event.start_mark), self.text_column(event))

    def text_column(self, event: Event) -> int:
        start = event.start_mark.column + (0 if _is_plain(event) else 1)
        line = self.lines[event.start_mark.line] if event.start_mark.line < len(self.lines) else ""
        return start + 1 if line.startswith(event.value, start) else 0

    def sequence(self, event: Event, depth: int) -> Node:
        items: list[Node] = []
        cut = _CutFormula()
        while not isinstance(part := self.next(), yaml.SequenceEndEvent):
            if event.flow_style and cut.takes(part):
                cut.add(part)
                if cut.balance <= 0:
                    items += self.finished(cut)
            else:
                items += self.finished(cut)
                items.append(self.node(part, depth + 1))
        items += self.finished(cut)
        return Node(tuple(items), self.origin(event.start_mark))

    def finished(self, cut: _CutFormula) -> list[Node]:
        """The formula that YAML cut at its commas as one scalar; single scalars if it is none."""
        parts = cut.take()
        if len(parts) < 2 or _balance(parts) > 0:
            return [self.node(part, 0) for part in parts]
        formula = ", ".join(part.value for part in parts)
        self.fault(parts[0].start_mark, _cut(formula))
        return [Node(formula, self.origin(parts[0].start_mark))]

    def mapping(self, event: Event, depth: int) -> Node:
        entries: dict[str, Entry] = {}
        cut = _CutFormula()
        last = ""
        while not isinstance(part := self.next(), yaml.MappingEndEvent):
            value = self.next()
            if cut.parts and cut.takes(part) and _is_empty(value):
                cut.add(part)
                if cut.balance <= 0:
                    entries[last] = Entry(entries[last].key, self.finished(cut)[0])
                continue
            cut.take()
            last = self.entry(entries, part, value, depth)
            if event.flow_style and last in entries and cut.takes(value):
                cut.add(value)
        return Node(entries, self.origin(event.start_mark))

    def entry(self, entries: dict[str, Entry], key: Event, value: Event, depth: int) -> str:
        """Add a field, and say what is wrong with its key; the first of two equal keys stays."""
        name = self.key(key, depth)
        node = self.node(value, depth + 1)
        if name in entries:
            first = entries[name].key.line
            self.fault(key.start_mark, f"{name!r} is there twice; the first is in line {first}")
        elif name:
            entries[name] = Entry(self.origin(key.start_mark), node)
        return name

    def key(self, event: Event, depth: int) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            self.stop(event.start_mark, "a key is text; found an alias, a list or a mapping")
        self.check_properties(event)
        if not _is_plain(event):
            return str(event.value)
        if event.value == "<<":
            self.fault(event.start_mark, _ALIAS)
            return ""
        value, problem = read_plain(event.value)
        if problem or not isinstance(value, str):
            found = event.value[:40]
            self.fault(event.start_mark, problem or f'a key is text; write "{found}" in quotes')
        return str(event.value)


_ALIAS = (
    "anchors (&), aliases (*) and merge keys (<<) are not part of the format;"
    " write the value out, or use extends or presets"
)


def _is_plain(event: Event) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.style in (None, "")


def _is_empty(event: Event) -> bool:
    return _is_plain(event) and event.value == ""


def _balance(parts: list[Event]) -> int:
    return sum(part.value.count("(") - part.value.count(")") for part in parts)


class _CutFormula:
    """Unquoted scalars that may be one formula: from an open parenthesis to where it is closed."""

    def __init__(self) -> None:
        self.parts: list[Event] = []
        self.balance = 0

    def takes(self, event: Event) -> bool:
        if not _is_plain(event) or len(self.parts) == MAX_PARTS:
            return False
        return bool(self.parts) or _balance([event]) > 0

    def add(self, part: Event) -> None:
        self.parts.append(part)
        self.balance += _balance([part])

    def take(self) -> list[Event]:
        """The parts so far; starts anew."""
        parts, self.parts, self.balance = self.parts, [], 0
        return parts


def _cut(formula: str) -> str:
    shown = formula if len(formula) <= 80 else f"{formula[:77]}..."
    return (
        f"inside brackets and braces YAML cuts a formula at its commas;"
        f' write it in quotes: "{shown}"'
    )


def _syntax(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "not YAML"
    for part, hint in _SYNTAX_HINTS.items():
        if part in problem:
            return f"not YAML: {problem}; {hint}"
    return f"not YAML: {problem}"


_SYNTAX_HINTS = {
    "mapping values are not allowed": "text with ': ' in it is written in quotes",
    "cannot start any token": "text that starts with this character is written in quotes",
    "expected ',' or ']'": "a list ends with ], and text with : or # in it is written in quotes",
    "expected ',' or '}'": "a mapping ends with }, and text with : or # in it is written in quotes",
    "could not find expected ':'": "a field is written as name: value",
    "expected <block end>": "fields of one mapping start in the same column",
    "unexpected end of stream": "a quotation mark is missing",
}
