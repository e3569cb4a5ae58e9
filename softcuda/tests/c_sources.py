"""What the C files of the driver share: includes, functions and variables, and who uses them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_ATTRIBUTE = re.compile(r"__attribute__ ?\(\((?:[^()]|\([^()]*\))*\)\)")
_STRING = re.compile(r'(?<!include )"(?:\\.|[^"\\\n])*"')
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
_MACRO = re.compile(r"^#define (\w+)(?:\([^)]*\))?((?:.*\\\n)*.*)$", re.M)
_SHARED = re.compile(r"^(?!static|typedef|extern|return)[A-Za-z_][\w *]*\b(\w+) ?(?=[(;=\[])", re.M)
"""A name that a line without indentation defines or declares with external linkage."""


@dataclass(frozen=True)
class Sources:
    """C files and headers, by their names."""

    texts: Mapping[str, str]

    @cached_property
    def plain(self) -> dict[str, str]:
        """Each file without comments and attributes, and with empty texts."""
        plain: dict[str, str] = {}
        for name, text in self.texts.items():
            plain[name] = _ATTRIBUTE.sub("", _STRING.sub('""', _COMMENT.sub(" ", text)))
        return plain

    @cached_property
    def includes(self) -> dict[str, set[str]]:
        """The files of these that each file includes."""
        return {
            name: set(_INCLUDE.findall(text)) & {*self.texts} for name, text in self.plain.items()
        }

    @cached_property
    def owners(self) -> dict[str, str]:
        """The C file that defines each shared function and variable."""
        owners: dict[str, str] = {}
        for name, text in self.plain.items():
            if name.endswith(".c"):
                owners |= dict.fromkeys(_defined(text), name)
        return owners

    @cached_property
    def declared(self) -> dict[str, set[str]]:
        """The headers that declare each of those."""
        declared: dict[str, set[str]] = {}
        for name, text in self.plain.items():
            if name.endswith(".h"):
                for word in _SHARED.findall(text.replace("extern ", "")):
                    if word in self.owners:
                        declared.setdefault(word, set()).add(name)
        return declared

    @cached_property
    def uses(self) -> dict[str, set[str]]:
        """The C files whose functions and variables each C file uses, by macros too."""
        macros: dict[str, set[str]] = {}
        for text in self.plain.values():
            for macro, body in _MACRO.findall(text):
                macros.setdefault(macro, set()).update(_words(body))
        uses: dict[str, set[str]] = {}
        for name, text in self.plain.items():
            if name.endswith(".c"):
                words = _words(text)
                words = words.union(*(macros[word] for word in words & {*macros}))
                uses[name] = {self.owners[word] for word in words & {*self.owners}} - {name}
        return uses

    def visible(self, name: str) -> set[str]:
        """Return the headers that a file includes, and those that they include."""
        return _reach(self.includes, self.includes[name])

    def upward_includes(self) -> list[str]:
        """Return the includes of headers whose functions need the file that includes them.

        A header that declares functions of the file itself is its own.
        """
        defining: dict[str, set[str]] = {}
        for word, headers in self.declared.items():
            for header in headers:
                defining.setdefault(header, set()).add(self.owners[word])
        needs = {owner: _reach(self.uses, [owner]) for owner in self.uses}
        return [
            f"{name} includes {header}, and {owner} uses {name}"
            for name in sorted(self.uses)
            for header in sorted(self.visible(name))
            if name not in defining.get(header, ())
            for owner in sorted(defining.get(header, ()))
            if name in needs[owner]
        ]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\b[A-Za-z_]\w*\b", text))


def _defined(text: str) -> list[str]:
    """Return what a C file defines: functions with a body, and variables."""
    found = []
    for match in _SHARED.finditer(text):
        rest = text[match.end() :]
        if rest[0] == "(":
            rest = re.sub(r"^\((?:[^()]|\([^()]*\))*\)\s*", "", rest)
            if not rest.startswith("{"):
                continue
        found.append(match[1])
    return found


def _reach(graph: Mapping[str, Set[str]], starts: Iterable[str]) -> set[str]:
    reached: set[str] = set()
    left = [*starts]
    while left:
        if (one := left.pop()) not in reached:
            reached.add(one)
            left += graph.get(one, ())
    return reached
