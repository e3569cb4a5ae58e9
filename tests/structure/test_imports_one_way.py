"""Imports run one way: from a room to rooms on lower floors, and never back.

``scripts/rooms.py`` has the floors and reads the imports, those inside functions too.
"""

from __future__ import annotations

import importlib
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def rooms() -> Any:
    sys.path.insert(0, str(SCRIPTS))
    try:
        return importlib.import_module("rooms")
    finally:
        sys.path.remove(str(SCRIPTS))


def test_every_module_is_in_a_room_that_has_a_floor(rooms: Any) -> None:
    named = {room for floor in rooms.FLOORS for room in floor}

    assert {rooms.room_of(module) for module in rooms.modules()} - {"edge"} == named
    assert rooms.SAYS.keys() == named


def test_the_wheel_has_every_room(rooms: Any) -> None:
    project = tomllib.loads((SCRIPTS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    listed = {*project["tool"]["setuptools"]["packages"]}
    files = rooms.modules().values()

    folders = {path.parent.relative_to(SCRIPTS.parent) for path in files}
    assert {".".join(folder.parts) for folder in folders} <= listed


def test_a_room_imports_rooms_of_lower_floors_alone(rooms: Any) -> None:
    floor_of = {room: floor for floor, its in enumerate(rooms.FLOORS) for room in its}

    upward = [
        f"{one.importer} imports {one.imported}"
        for (importer, imported), between in rooms.arrows().items()
        if floor_of[importer] <= floor_of[imported]
        for one in between
    ]

    assert upward == []


def test_no_module_of_the_core_imports_the_edge(rooms: Any) -> None:
    inward = [
        f"{one.importer} imports {one.imported}"
        for one in rooms.imports()
        if one.imported.startswith("edge") and not one.importer.startswith("edge")
    ]

    assert inward == []


def test_no_modules_import_each_other(rooms: Any) -> None:
    """Names for annotations apart: an observer is given the run that calls it."""
    graph: dict[str, set[str]] = {module: set() for module in rooms.modules()}
    for one in rooms.imports():
        if not one.for_types_only:
            graph[one.importer].add(one.imported)

    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_an_import_in_a_function_and_one_for_types_are_seen(rooms: Any) -> None:
    seen = {(one.importer, one.imported, one.for_types_only) for one in rooms.imports()}

    assert ("cli.reporting", "report.render", False) in seen
    assert ("measure.observers.protocol", "measure.case_run", True) in seen


def test_the_drawing_is_of_the_imports_as_they_are(rooms: Any) -> None:
    drawn = rooms.DRAWING.read_text(encoding="utf-8")

    assert drawn == rooms.draw(), "draw it anew with `.venv/bin/python scripts/rooms.py`"
