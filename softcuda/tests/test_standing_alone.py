"""The package needs nothing of its neighbours: its folder can be moved elsewhere."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import softcuda

PACKAGE = Path(softcuda.__file__).parent
NEIGHBOUR = "gpubench"


def imported_modules(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_no_file_of_it_imports_a_neighbour() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    imported = {(file.name, name) for file in files for name in imported_modules(file)}
    assert ("build.py", "hashlib") in imported
    assert {one for one in imported if one[1].partition(".")[0] == NEIGHBOUR} == set()


EVERY_MODULE = f"""
import importlib, pkgutil, sys
sys.modules[{NEIGHBOUR!r}] = None
import softcuda
softcuda.start()
for module in pkgutil.walk_packages(softcuda.__path__, "softcuda."):
    importlib.import_module(module.name)
print(*sorted(name for name in sys.modules if name.startswith("softcuda.")))
"""


def test_every_module_is_imported_where_no_neighbour_can_be() -> None:
    done = subprocess.run(
        [sys.executable, "-c", EVERY_MODULE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert {"softcuda.__main__", "softcuda.translation.translate", "softcuda.on_host.blas"} <= {
        *done.stdout.split()
    }
