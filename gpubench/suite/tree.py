"""A suite file as a tree of values, each with the place that set it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from gpubench.errors import Fault
from gpubench.names import Value

Path = tuple[str | int, ...]
"""Keys and indices from the root of a suite to one of its values."""


class Origin(NamedTuple):  # made in half the time of a frozen dataclass, for each value and key
    """The place in a file that set a value."""

    path: str
    """The file as the user named it."""
    line: int
    """First line is 1."""
    column: int
    """First column is 1."""
    preset: str | None = None
    """The preset that set it; ``None`` for the suite as it stands."""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}"
        return f"{place} (preset {self.preset})" if self.preset else place

    def fault(self, message: str) -> Fault:
        """Return a fault at this place."""
        return Fault(self.path, self.line, self.column, message)


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a file."""

    content: Value | tuple[Node, ...] | dict[str, Node] | None
    origin: Origin
    key: Origin | None = None
    """Place of the key that names it; ``None`` in a list and at the root."""
    text_column: int = 0
    """Column at which a scalar's text stands as it is written; 0 when it was folded or escaped."""

    @property
    def entries(self) -> dict[str, Node]:
        """Fields of a mapping; empty for anything else."""
        return self.content if isinstance(self.content, dict) else {}

    @property
    def items(self) -> tuple[Node, ...]:
        """Items of a list; empty for anything else."""
        return self.content if isinstance(self.content, tuple) else ()

    def find(self, *path: str | int) -> Node | None:
        """Return the value under these keys and indices."""
        node: Node | None = self
        for step in path:
            if node is None:
                break
            content = node.content
            if isinstance(step, str):
                node = content.get(step) if type(content) is dict else None
            else:
                node = node.items[step] if 0 <= step < len(node.items) else None
        return node

    def fields(self, *path: str | int) -> dict[str, Node]:
        """Fields of the mapping under these keys; empty where there is none."""
        node = self.find(*path)
        return node.entries if node else {}

    def count(self) -> int:
        """Return number of values, this one included."""
        nodes = [self]
        for node in nodes:  # which grows on the way
            if type(node.content) is dict:
                nodes += node.content.values()
            elif type(node.content) is tuple:
                nodes += node.content
        return len(nodes)

    def plain(self) -> Any:
        """Return the value without places: numbers, text, tuples and dictionaries."""
        if isinstance(self.content, dict):
            return {key: node.plain() for key, node in self.content.items()}
        if isinstance(self.content, tuple):
            return tuple(node.plain() for node in self.content)
        return self.content

    def key_fault(self, message: str) -> Fault:
        """Return a fault at the key that names it."""
        return (self.key or self.origin).fault(message)

    def formula_fault(self, problem: str, offset: int) -> Fault:
        """Return a fault so many characters into this formula, at their column where it can be
        told."""
        column = self.text_column + offset if self.text_column else self.origin.column
        shown = shortened(str(self.content), 80)
        return Fault(self.origin.path, self.origin.line, column, f"{problem} (in '{shown}')")


def shortened(text: str, most: int) -> str:
    """Text of at most so many characters for a message."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
