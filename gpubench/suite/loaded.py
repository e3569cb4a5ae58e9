"""What loading a suite gives: its model, and the places its values come from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.errors import Fault

if TYPE_CHECKING:  # a stored plan is read without the model and the files' values
    from gpubench.suite import tree
    from gpubench.suite.model import Suite
    from gpubench.suite.tree import Node, Origin


@dataclass(frozen=True)
class LoadedSuite:
    """A suite with ``extends`` and its preset applied, and where its values come from."""

    suite: Suite
    path: Path
    """The file, as the user named it."""
    preset: str | None
    """The preset that was applied."""
    warnings: tuple[Fault, ...]
    root: Node
    """Every value of the suite with its place."""

    def origin(self, path: tree.Path) -> Origin:
        """Place of the value at a path, ``('kernels', 'matmul', 'sizes', 'n')`` for example.

        What no file sets (a default) has the place of the nearest value around it.
        """
        node = self.root
        for step in path:
            child = node.child(step)
            if child is None:
                break
            node = child
        return node.origin
