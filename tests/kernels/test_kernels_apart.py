"""The kernel library and the engine know nothing of each other: suites name kernels, no import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "gpubench"
LIBRARY = "gpubench.kernels"


def imports_in(source: str, package: str) -> Iterator[str]:
    """Full names of the modules that a source imports, inside functions too; ``package`` is its
    own, for relative imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def files(of_the_library: bool) -> list[Path]:
    library, edge = PACKAGE / "kernels", PACKAGE / "edge"
    return sorted(
        path
        for path in PACKAGE.rglob("*.py")
        if path.is_relative_to(library) == of_the_library and not path.is_relative_to(edge)
    )


def imports_of(path: Path) -> set[str]:
    package = ".".join(path.relative_to(PACKAGE.parent).parent.parts)
    return set(imports_in(path.read_text(encoding="utf-8"), package))


def is_inside(name: str, package: str) -> bool:
    return f"{name}.".startswith(f"{package}.")


def test_the_library_imports_nothing_of_the_engine() -> None:
    engine = {
        (path.name, name)
        for path in files(of_the_library=True)
        for name in imports_of(path)
        if is_inside(name, "gpubench") and not is_inside(name, LIBRARY)
    }
    assert engine == set()


def test_the_engine_imports_nothing_of_the_library() -> None:
    library = {
        (path.name, name)
        for path in files(of_the_library=False)
        for name in imports_of(path)
        if is_inside(name, LIBRARY)
    }
    assert library == set()


def test_both_sides_are_looked_at() -> None:
    assert len(files(of_the_library=True)) > 20
    assert {"registry.py", "naming.py"} <= {path.name for path in files(False)}
    assert any(is_inside(name, "numpy") for path in files(True) for name in imports_of(path))


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("import gpubench.kernels.scans", "gpubench.kernels.scans"),
        ("from gpubench import kernels", "gpubench.kernels"),
        ("def f():\n    from gpubench.kernels.scans import scan", "gpubench.kernels.scans.scan"),
        ("from ..kernels import scans", "gpubench.kernels.scans"),
        ("from .. import kernels", "gpubench.kernels"),
    ],
)
def test_every_way_to_import_is_seen(line: str, name: str) -> None:
    assert list(imports_in(line, "gpubench.measure")) == [name]
