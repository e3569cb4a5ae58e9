"""A suite file as a tree of values, each with the place that set it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Scalar = int | float | bool | str | None
Path = tuple[str | int, ...]
"""Keys and indices from the root of a suite to one of its values."""


@dataclass(frozen=True, slots=True)
class Origin:
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


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a file."""

    content: Scalar | tuple[Node, ...] | dict[str, Entry]
    origin: Origin
    text_column: int = 0
    """Column at which a scalar's text stands as it is written; 0 when it was folded or escaped."""

    @property
    def entries(self) -> dict[str, Entry]:
        """Fields of a mapping; empty for anything else."""
        return self.content if isinstance(self.content, dict) else {}

    @property
    def items(self) -> tuple[Node, ...]:
        """Items of a list; empty for anything else."""
        return self.content if isinstance(self.content, tuple) else ()

    def child(self, step: str | int) -> Node | None:
        """The value under a key or index."""
        if isinstance(step, str):
            entry = self.entries.get(step)
            return entry.value if entry else None
        return self.items[step] if 0 <= step < len(self.items) else None

    def find(self, path: Path) -> Node | None:
        """The value at the end of a path."""
        node: Node | None = self
        for step in path:
            node = node.child(step) if node else None
        return node

    def key_origin(self, key: str) -> Origin:
        """Place of a key of this mapping; the mapping's own where it has no such key."""
        entry = self.entries.get(key)
        return entry.key if entry else self.origin

    def count(self) -> int:
        """Number of values, this one included."""
        inner = [entry.value for entry in self.entries.values()] or self.items
        return 1 + sum(node.count() for node in inner)

    def plain(self) -> Any:
        """The value without places: numbers, text, tuples and dictionaries."""
        if isinstance(self.content, dict):
            return {key: entry.value.plain() for key, entry in self.content.items()}
        if isinstance(self.content, tuple):
            return tuple(item.plain() for item in self.content)
        return self.content


@dataclass(frozen=True, slots=True)
class Entry:
    """One field of a mapping: where its key stands, and its value."""

    key: Origin
    value: Node
