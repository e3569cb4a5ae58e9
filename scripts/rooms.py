"""Draws docs/rooms.svg: the rooms of gpubench and who imports whom, from the imports in the code.

``FLOORS`` is the one place that says which room may import which: a room imports what stands on
lower floors. ``tests/structure/test_imports_one_way.py`` holds the code to it, and the drawing to
the code. ``python scripts/rooms.py`` draws it again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "gpubench"
DRAWING = ROOT / "docs/rooms.svg"

SHARED = "shared"
"""Room of modules beside the packages that know no suite and no result: names, files, errors."""

ENTRIES = "entries"
"""Room of the modules that Python, asv, the shell and notebooks start."""

ENTRY_MODULES = frozenset({"", "__main__", "asv_benchmarks", "asv_plugin", "notebook"})
"""The empty name is the package itself, which hands on what a notebook asks for."""

FLOORS: tuple[tuple[str, ...], ...] = (
    (SHARED,),
    ("suite",),
    ("kernels", "backends", "work"),
    ("plan", "results"),
    ("measure", "analysis"),
    ("report",),
    ("tables", "scaffold", "project"),
    ("cli",),
    ("entries", "edge.advise", "edge.fleet", "edge.systems"),
)
"""Rooms, the ground first. A room imports rooms of lower floors and none beside it."""

SAYS: Mapping[str, str] = {
    SHARED: "names, record, statuses, errors, files",
    "suite": "YAML to a checked suite",
    "kernels": "the library",
    "backends": "NumPy, Numba, CUDA, OpenCL",
    "work": "what a kernel needs at best",
    "plan": "a suite to cases",
    "results": "files to a table",
    "measure": "a case to a time",
    "analysis": "rows to verdicts",
    "report": "verdicts to pages",
    "tables": "rows to text and JSON",
    "scaffold": "a new project's files",
    "cli": "commands",
    "project": "suites and results together",
    ENTRIES: "what Python and asv start",
    "edge.advise": "sizes that nobody measured",
    "edge.fleet": "many machines",
    "edge.systems": "other systems",
}


@dataclass(frozen=True, slots=True)
class Import:
    """A module that imports another one of gpubench."""

    importer: str
    imported: str
    for_types_only: bool
    """Whether only annotations need it (``if TYPE_CHECKING``)."""


@cache
def modules() -> Mapping[str, Path]:
    """Return the files of all modules by their names, ``report.site``; those of tests apart."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if "tests" not in parts:
            found[".".join(part for part in parts if part != "__init__")] = path
    return found


def room_of(module: str) -> str:
    """Return the room of a module."""
    first, *rest = module.split(".")
    if module in ENTRY_MODULES:
        return ENTRIES
    if first == "edge":
        return ".".join([first, *rest[:1]])
    return first if (PACKAGE / first).is_dir() else SHARED


@cache
def imports() -> tuple[Import, ...]:
    """Return all imports between modules of gpubench, those inside functions too."""
    return tuple(
        dict.fromkeys(
            Import(module, imported, for_types_only)
            for module, path in modules().items()
            for imported, for_types_only in _imports_of(ast.parse(path.read_bytes()))
            if imported != module
        )
    )


def _imports_of(tree: ast.AST, for_types_only: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the modules of gpubench that a piece of code imports."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            names = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(str(node.module), alias.name) for alias in node.names]
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from _imports_of(node, for_types_only=True)
            continue
        else:
            yield from _imports_of(node, for_types_only)
            continue
        for module, name in names:
            if module == "gpubench" or module.startswith("gpubench."):
                below = f"{module}.{name}".removeprefix("gpubench.").rstrip(".")
                outer = module.removeprefix("gpubench").removeprefix(".")
                yield (below if below in modules() else outer), for_types_only


def arrows() -> Mapping[tuple[str, str], tuple[Import, ...]]:
    """Return the imports between each two rooms."""
    found: dict[tuple[str, str], tuple[Import, ...]] = {}
    for one in imports():
        between = room_of(one.importer), room_of(one.imported)
        if between[0] != between[1]:
            found[between] = (*found.get(between, ()), one)
    return found
