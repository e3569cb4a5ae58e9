"""One tree from a suite file and those that it extends."""

from __future__ import annotations

from pathlib import Path

from gpubench.errors import Fault
from gpubench.suite.merging import extend
from gpubench.suite.reader import read_suite_file
from gpubench.suite.tree import Node
from gpubench.suite.validation import fault

MAX_FILES = 16
"""Most files that extend one another."""


def assemble(path: Path) -> tuple[Node | None, tuple[Fault, ...]]:
    """Tree of a file laid over the files that it extends, and the faults of all of them."""
    return _assemble(path, (path,))


def _assemble(path: Path, chain: tuple[Path, ...]) -> tuple[Node | None, tuple[Fault, ...]]:
    root, faults = read_suite_file(path)
    extends = root.child("extends") if root else None
    if root is None or extends is None or not isinstance(extends.content, str):
        return root, faults
    base_path = path.parent / extends.content
    if problem := _refusal(base_path, extends.content, chain):
        return root, (*faults, fault(extends.origin, problem))
    base, more = _assemble(base_path, (*chain, base_path))
    return (extend(base, root) if base else root), (*faults, *more)


def _refusal(base: Path, written: str, chain: tuple[Path, ...]) -> str | None:
    if not written.strip() or "\0" in written or Path(written).is_absolute():
        return f"extends {written!r}; allowed: a path relative to this file"
    resolved = base.resolve()
    if resolved in {path.resolve() for path in chain}:
        return f"extends {written!r}, which extends this file in turn; break the circle"
    if len(chain) == MAX_FILES:
        return f"more than {MAX_FILES} files extend one another"
    return None if base.is_file() else f"extends {written!r}, but there is no file {base}"
