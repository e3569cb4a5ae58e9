"""Places in suite files, for what is found out about a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpubench.errors import Fault

if TYPE_CHECKING:
    from gpubench.suite.loaded import LoadedSuite
    from gpubench.suite.tree import Path


def fault_at(loaded: LoadedSuite, path: Path, message: str) -> Fault:
    """A fault at a value of a suite, or at the name of one that has fields of its own.

    What no file sets is placed at the nearest value around it.
    """
    *around, last = path
    node, parent = loaded.root.find(path), loaded.root.find(tuple(around))
    origin = loaded.origin(path)
    if node is not None and node.entries and parent is not None and isinstance(last, str):
        origin = parent.key_origin(last)
    return Fault(origin.path, origin.line, origin.column, message)
