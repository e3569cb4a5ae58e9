"""The lines of a suite file that declare one kernel, for showing beside its results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gpubench.suite.loaded import LoadedSuite


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some lines of a suite file."""

    place: str
    """Folder, file, first line and the preset that was applied: ``suites/norm.yaml:15``."""
    text: str
    """The lines as they are written, unindented; empty where the file cannot be read any more."""


def kernel_excerpt(loaded: LoadedSuite, kernel: str) -> Excerpt:
    """The key of a kernel and everything indented below it, comments included.

    Of a kernel that several files make up (``extends``) these are the lines of the file that
    names it last; a preset's changes are told by its name only.
    """
    kernels = loaded.root.find(("kernels",))
    origin = kernels.key_origin(kernel) if kernels else loaded.root.origin
    path = Path(origin.path)
    place = f"{'/'.join(path.parts[-2:])}:{origin.line}"
    if loaded.preset:
        place += f", preset {loaded.preset}"
    return Excerpt(place, _indented_block(_lines(path), origin.line - 1))


@lru_cache(maxsize=4)
def _lines(path: Path) -> tuple[str, ...]:
    try:
        return tuple(path.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeError):
        return ()


def _indented_block(lines: tuple[str, ...], first: int) -> str:
    """A line and those after it that are indented more; what only leads over to the next is left
    out."""
    head, *rest = lines[first:] or ("",)
    margin = _indent(head)
    outside = {i for i, line in enumerate(rest) if line.strip() and _indent(line) <= margin}
    ends = (i for i in sorted(outside) if not rest[i].lstrip().startswith("#"))
    end = next(ends, len(rest))
    while end and (end - 1 in outside or not rest[end - 1].strip()):
        end -= 1
    return "\n".join(line[min(margin, _indent(line)) :] for line in (head, *rest[:end]))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
