"""Reads a YAML file to a tree with places, and refuses what YAML's versions read differently.

YAML 1.1 (PyYAML) and YAML 1.2 (editors) agree on everything that is accepted here. Values are built
from the parser's events, one by one, within bounds on depth, size and number, so that a hostile
file costs no more than its length: PyYAML's own loader dies of deep nesting and expands aliases
without end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import yaml

from gpubench.errors import Fault
from gpubench.files import TooLarge, read_regular
from gpubench.names import MAX_NUMBER, Value
from gpubench.suite.folder import MAX_SUITE_BYTES
from gpubench.suite.tree import Node, Origin, shortened

# Bounds far beyond what a person writes: the largest suite of this project has some 1,000 values
# and 6 levels.
MAX_YAML_DEPTH = 32
TOO_DEEP = f"nested deeper than {MAX_YAML_DEPTH} levels; write it flatter"
MAX_FILE_VALUES = 20_000
MAX_FAULTS = 100
"""Faults of a file after which reading stops."""

Event = Any
"""An event of PyYAML's parsers, the one in C or the one in Python, and its marks."""
Mark = Any
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Unreadable(Exception):
    """Reading cannot go on; what is wrong is among the faults."""


def read_suite_file(path: Path | str) -> tuple[Node | None, tuple[Fault, ...]]:
    """Tree of a file, and everything that is wrong with it as YAML.

    The tree holds what was most likely meant where the spelling is at fault; it is ``None`` when
    there is no mapping to go on with.
    """
    name = str(path)
    try:
        data = read_regular(Path(path), MAX_SUITE_BYTES)
    except TooLarge as error:
        return None, (Fault(name, 0, 0, f"{error} of a suite; split it into several files"),)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return None, (Fault(name, 0, 0, f"cannot be read: {reason}"),)
    try:
        return read_suite_text(data.decode("utf-8"), name)
    except UnicodeDecodeError as error:
        *before, last = data[: error.start].decode("utf-8").split("\n")
        message = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        return None, (Fault(name, len(before) + 1, len(last) + 1, message),)


def read_suite_text(text: str, path: str) -> tuple[Node | None, tuple[Fault, ...]]:
    """Return the same for a text; ``path`` is the name that faults and places carry."""
    builder = _Builder(text, path)
    try:
        return builder.document(), tuple(builder.faults)
    except Unreadable:
        return None, tuple(builder.faults)


# Control characters (PyYAML refuses some of them, without a place), and those of Unicode that look
# like a blank or like nothing: blanks other than U+0020, joiners, marks of direction.
_INVISIBLE = re.compile(
    "[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\xa0\xad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2064"
    "\u3000\ufeff\ufffe\uffff]"
)
_NAMED_CHARACTERS = {
    "\t": "a tab; indent and separate with blanks",
    "\xa0": "a non-breaking space (U+00A0); write an ordinary blank",
    "\ufeff": "a byte-order mark (U+FEFF); save the file as UTF-8 without one",
}


_ALIAS = (
    "anchors (&), aliases (*) and merge keys (<<) are not part of the format;"
    " write the value out, or use extends or presets"
)
_SYNTAX_HINTS = {
    "mapping values are not allowed": "text with ': ' in it is written in quotes",
    "cannot start any token": "text that starts with this character is written in quotes",
    "expected ',' or ']'": "a list ends with ], and text with : or # in it is written in quotes",
    "expected ',' or '}'": "a mapping ends with }, and text with : or # in it is written in quotes",
    "could not find expected ':'": "a field is written as name: value",
    "expected <block end>": "fields of one mapping start in the same column",
    "did not find expected key": "fields of one mapping start in the same column",
    "unexpected end of stream": "a quotation mark is missing",
}


# Between brackets YAML reads cdiv(n, 16) as the texts "cdiv(n" and "16)", and between braces as two
# keys. What was meant is plain: the comma is hidden from YAML, and told as a fault. What hides it
# and the parentheses are characters that no text may have, see _INVISIBLE.
_COMMA = "\u2063"
_HIDDEN_SIGNS = str.maketrans("(),", f"\u2061\u2062{_COMMA}")
_SHOWN = str.maketrans(f"\u2061\u2062{_COMMA}", "(),")
_INNERMOST = re.compile(r"""\((?:[^()\[\]{}:#'"]|'[^',()\n]*'|"[^",()\n]*")*+\)""")
_NESTED = 10
"""Parentheses in one another that are looked at."""
_CUT = "inside brackets and braces YAML cuts a formula at its commas; write it in quotes"


class _Builder:
    """Turns the parser's events into nodes, and what is wrong on the way into faults."""

    def __init__(self, text: str, path: str) -> None:
        self.lines = text.split("\n")
        self.path = path
        self.faults: list[Fault] = []
        self.values = 0
        written = text
        for _ in range(_NESTED):
            text, count = _INNERMOST.subn(lambda match: match[0].translate(_HIDDEN_SIGNS), text)
            if not count:
                break
        # Where no comma is hidden, YAML reads what is written.
        is_hidden = _COMMA in text
        self.events = self.formulas_shown(self.parsed(text)) if is_hidden else self.parsed(written)

    def document(self) -> Node | None:
        for number, line in enumerate(self.lines, start=1):
            if match := _INVISIBLE.search(line):  # the first one of each line
                other = f"the character U+{ord(match[0]):04X}, which is not visible; remove it"
                message = _NAMED_CHARACTERS.get(match[0], other)
                self.tell(Fault(self.path, number, match.start() + 1, message))
        if self.faults:
            raise Unreadable
        next(self.events)  # the stream's start
        start = next(self.events)
        if not isinstance(start, yaml.DocumentStartEvent):
            self.fault(None, "the file is empty; a suite starts with version: 1")
            return None
        if start.version or start.tags:
            self.fault(start.start_mark, "directives (%) are not part of the format; remove it")
        root = self.node(next(self.events), 1)
        next(self.events)  # the document's end
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            self.fault(after.start_mark, "a second document; a file holds one suite")
        if not root.entries:
            self.tell(root.origin.fault("a suite is a mapping; it starts with version: 1"))
            return None
        return root

    def parsed(self, text: str) -> Iterator[Event]:
        try:
            yield from yaml.parse(text, Loader=_Loader)
            return
        except yaml.MarkedYAMLError as error:
            problem = error.problem or "not YAML"
            if "nesting depth" in problem:  # PyYAML from 6.0.4 on reads so far ahead
                self.stop(error.problem_mark, TOO_DEEP)
            hints = (hint for part, hint in _SYNTAX_HINTS.items() if part in problem)
            message = "; ".join([f"not YAML: {problem}", *list(hints)[:1]])
            self.fault(error.problem_mark or error.context_mark, message)
        except yaml.YAMLError as error:
            self.fault(None, f"not YAML: {error}")
        raise Unreadable

    def formulas_shown(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield the events, with what is hidden in formulas; told is where YAML would have cut
        one."""
        flows = 0  # brackets and braces around an event
        for event in events:
            if type(event) is yaml.ScalarEvent:  # most of them
                if not event.value.isascii():
                    is_cut = flows and _is_plain(event) and _COMMA in event.value
                    event.value = event.value.translate(_SHOWN)
                    if is_cut:
                        self.fault(event.start_mark, f'{_CUT}: "{shortened(event.value, 80)}"')
            elif isinstance(event, yaml.CollectionStartEvent):
                flows += bool(event.flow_style)
            elif isinstance(event, yaml.CollectionEndEvent):
                flows -= flows > 0
            yield event

    def tell(self, fault: Fault) -> None:
        self.faults.append(fault)
        if len(self.faults) >= MAX_FAULTS:
            raise Unreadable

    def fault(self, mark: Mark, message: str) -> None:
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        self.tell(Fault(self.path, line, column, message))

    def stop(self, mark: Mark, message: str) -> NoReturn:
        self.fault(mark, message)
        raise Unreadable

    def origin(self, event: Event) -> Origin:
        return Origin(self.path, event.start_mark.line + 1, event.start_mark.column + 1)

    def node(self, event: Event, depth: int, key: Origin | None = None) -> Node:
        self.values += 1
        if self.values > MAX_FILE_VALUES:
            self.stop(event.start_mark, f"more than {MAX_FILE_VALUES} values in one file; split it")
        if depth > MAX_YAML_DEPTH:
            self.stop(event.start_mark, TOO_DEEP)
        origin = self.origin(event)
        if isinstance(event, yaml.AliasEvent):
            self.fault(event.start_mark, _ALIAS)
            return Node("alias", origin, key)
        self.check_properties(event)
        if isinstance(event, yaml.ScalarEvent):
            value: Value | None = event.value
            if _is_plain(event):
                value, problem = read_plain(event.value)
                if problem:
                    self.fault(event.start_mark, problem)
            return Node(value, origin, key, self.text_column(event))
        if isinstance(event, yaml.MappingStartEvent):
            return Node(self.mapping(depth), origin, key)
        items = []
        while not isinstance(item := next(self.events), yaml.SequenceEndEvent):
            items.append(self.node(item, depth + 1))
        return Node(tuple(items), origin, key)

    def mapping(self, depth: int) -> dict[str, Node]:
        """Fields by name; the first of two equal keys stays."""
        entries: dict[str, Node] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            name, key = self.key(event), self.origin(event)
            node = self.node(next(self.events), depth + 1, key)
            if name in entries:
                first = entries[name].key
                line = first.line if first else 0
                message = f"{name!r} is there twice; the first is in line {line}"
                self.fault(event.start_mark, message)
            elif name:
                entries[name] = node
        return entries

    def key(self, event: Event) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            self.stop(event.start_mark, "a key is text; found an alias, a list or a mapping")
        self.check_properties(event)
        if not _is_plain(event):
            return str(event.value)
        if event.value == "<<":
            self.fault(event.start_mark, _ALIAS)
            return ""
        value, problem = read_plain(event.value)
        if value is None:
            shown = event.value
            problem = "there is no name before this colon; write one"
            if shown:
                problem = f'{shown} is no name but nothing in YAML; write "{shown}" in quotes'
        if problem or not isinstance(value, str):
            message = problem or f'a key is text; write "{event.value[:40]}" in quotes'
            self.fault(event.start_mark, message)
        return str(event.value)

    def check_properties(self, event: Event) -> None:
        if event.anchor is not None:
            self.fault(event.start_mark, _ALIAS)
        if event.tag is not None:
            message = f"the tag {event.tag[:40]!r} is not part of the format; remove it"
            self.fault(event.start_mark, message)

    def text_column(self, event: Event) -> int:
        start = event.start_mark.column + (0 if _is_plain(event) else 1)
        line = self.lines[event.start_mark.line] if event.start_mark.line < len(self.lines) else ""
        return start + 1 if line.startswith(event.value, start) else 0


def _is_plain(event: Event) -> bool:
    return type(event) is yaml.ScalarEvent and not event.style


_MAX_DIGITS = 50
"""Digits that are looked at: 2**128 has 39, and Python refuses to read more than 4,300."""


@lru_cache(maxsize=4096)  # the same words stand in every suite
def read_plain(text: str) -> tuple[Value | None, str | None]:
    """Value of an unquoted scalar, and what is wrong with its spelling (``None``: nothing).

    The value of a wrong spelling is the one that was most likely meant.
    """
    if text and text[0] not in _FIRST_CHARACTERS:
        return text, None
    for pattern, why, read in _SPELLINGS:
        if not pattern.fullmatch(text):
            continue
        value, shown = read(text), repr(shortened(text, 40))
        if isinstance(value, int) and abs(value) > MAX_NUMBER:
            return 1, f"{shown} is too large; numbers go up to 2**128"
        if isinstance(value, float) and not math.isfinite(value):
            return 1.0, f"{shown} is too large for a number"
        if why is None:
            return value, None
        safe = value
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
            safe = int(value)  # a float of this size has all its digits
        if not isinstance(value, str):
            safe = yaml.safe_dump(safe).splitlines()[0]  # read as the same by every YAML
        return value, why.format(text=shown, quoted=f'"{text[:30]}"', value=safe)
    return text, None


def _whole(text: str) -> int:
    return int(text.replace("_", "")[:_MAX_DIGITS])


_OR_TEXT = "write {value}, or {quoted} for the text"
# What an unquoted text stands for. YAML 1.1: https://yaml.org/type/, as PyYAML reads it; YAML 1.2:
# the core schema, https://yaml.org/spec/1.2.2/#103-core-schema.
_SPELLINGS: tuple[tuple[re.Pattern[str], str | None, Callable[[str], Any]], ...] = (
    (re.compile(r"true|True|TRUE|false|False|FALSE"), None, lambda text: text[0] in "tT"),
    (
        re.compile(r""),
        "there is no value here; write one, or leave the field out",
        lambda text: None,
    ),
    (
        re.compile(r"~|null|Null|NULL"),
        "{text} is no value; write one, or leave the field out; {quoted} is the text",
        lambda text: None,
    ),
    (re.compile(r"[-+]?(0|[1-9][0-9]*)"), None, _whole),
    (re.compile(r"[-+]?[0-9]+\.[0-9]*([eE][-+][0-9]+)?|\.[0-9]+"), None, float),
    (
        re.compile(r"(on|off|yes|no)", re.IGNORECASE),
        "{text} is a boolean in YAML 1.1 and text in YAML 1.2; " + _OR_TEXT,
        lambda text: text.lower() in ("on", "yes"),
    ),
    (
        # "++" and "*+" give nothing back, so that a long row of digits is read once.
        re.compile(r"[-+]?([0-9]++\.?[0-9]*+|\.[0-9]++)[eE][-+]?[0-9]+"),
        "{text} is text in YAML 1.1 and a number in YAML 1.2; write {value}",
        float,
    ),
    (re.compile(r"[-+]\.[0-9]+"), "{text} is text in YAML 1.1; write {value}", float),
    (
        re.compile(r"[-+]?0([xX]_*[0-9a-fA-F][0-9a-fA-F_]*|[oO]_*[0-7][0-7_]*|[bB]_*[01][01_]*)"),
        "{text} is not the same in YAML 1.1 and YAML 1.2; " + _OR_TEXT,
        lambda text: int(text.replace("_", ""), 0),
    ),
    (
        re.compile(r"[-+]?0[0-9_]+"),
        "{text} is octal in YAML 1.1 and decimal in YAML 1.2; " + _OR_TEXT,
        _whole,
    ),
    (
        re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?"),
        "{text} is a number in YAML 1.1 and text in YAML 1.2; " + _OR_TEXT,
        lambda text: float(text.replace("_", "")) if "." in text else _whole(text),
    ),
    (
        re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"),
        "{text} is a number to the base 60 in YAML 1.1 and text in YAML 1.2;"
        " write {quoted} for the text",
        str,
    ),
    (
        re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE),
        "{text} is not a finite number; a finite one is needed",
        lambda text: 1.0,
    ),
    (
        re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?"),
        "{text} is a date in YAML 1.1; write {quoted} for the text",
        str,
    ),
)
"""Spellings of numbers, and those that YAML's versions read differently: how to tell them, what to
say (``None``: nothing is wrong), what was meant."""
_FIRST_CHARACTERS = frozenset("+-.~0123456789tTfFnNoOyY")
"""Characters that any of these spellings begins with. Most texts begin with another one."""
