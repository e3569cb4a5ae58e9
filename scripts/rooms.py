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
    ("kernels", "backends", "suite", "counts"),
    ("plan", "work"),
    ("measure", "results"),
    ("analysis",),
    ("report",),
    ("project", "tables", "scaffold"),
    ("cli",),
    ("entries", "edge.advise", "edge.fleet", "edge.systems"),
)
"""Rooms, the ground first. A room imports rooms of lower floors and none beside it."""

SAYS: Mapping[str, str] = {
    SHARED: "names, record, errors, files",
    "suite": "YAML to a checked suite",
    "kernels": "the library",
    "backends": "NumPy, Numba, CUDA",
    "work": "what a kernel needs at best",
    "counts": "what Numba's LLVM code does",
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


def reduced() -> list[tuple[str, str]]:
    """Return the arrows that no longer way through other rooms says too."""
    drawn = set(arrows())
    below: dict[str, set[str]] = {}
    for room in [room for floor in FLOORS for room in floor]:
        direct = {imported for importer, imported in drawn if importer == room}
        below[room] = direct.union(*(below[one] for one in direct))
    return sorted(
        (importer, imported)
        for importer, imported in drawn
        if not any(
            imported in below[other]
            for start, other in drawn
            if start == importer and other != imported
        )
    )


WIDTH, ROOM_WIDTH, ROOM_HEIGHT, FLOOR_HEIGHT = 880, 196, 46, 96


def draw() -> str:
    """Return the drawing as SVG: rooms on their floors, the ground below."""
    places: dict[str, tuple[float, float]] = {}
    for floor, rooms in enumerate(reversed(FLOORS)):
        for number, room in enumerate(rooms):
            x = WIDTH * (number + 0.5) / len(rooms)
            places[room] = x, 12 + floor * FLOOR_HEIGHT
    height = 24 + FLOOR_HEIGHT * (len(FLOORS) - 1) + ROOM_HEIGHT
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            'font-family="sans-serif" font-size="12" role="img">',
            "<title>The rooms of gpubench: an arrow leads to a room that is imported</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
            '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#667"/></marker>',
            *(_arrow(places[start], places[end]) for start, end in reduced()),
            *(_box(room, *places[room]) for room in places),
            "</svg>\n",
        ]
    )


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    x, y = start[0], start[1] + ROOM_HEIGHT
    to_x, to_y = end
    bend = (to_y - y) / 2
    curve = f"M{x:.0f} {y:.0f}C{x:.0f} {y + bend:.0f} {to_x:.0f} {to_y - bend:.0f}"
    line = f"{curve} {to_x:.0f} {to_y:.0f}"
    return f'<path d="{line}" fill="none" stroke="#667" marker-end="url(#tip)"/>'


def _box(room: str, x: float, y: float) -> str:
    left, edge = x - ROOM_WIDTH / 2, room.startswith("edge")
    return (
        f'<rect x="{left:.0f}" y="{y:.0f}" width="{ROOM_WIDTH}" height="{ROOM_HEIGHT}" rx="6" '
        f'fill="{"#fff7e6" if edge else "#eef3fb"}" stroke="#445"/>'
        f'<text x="{x:.0f}" y="{y + 19:.0f}" text-anchor="middle" font-weight="bold">{room}</text>'
        f'<text x="{x:.0f}" y="{y + 36:.0f}" text-anchor="middle">{SAYS[room]}</text>'
    )


if __name__ == "__main__":
    DRAWING.write_text(draw(), encoding="utf-8")
