"""A backend is one class in one file: the engine imports none of them, NumPy's apart."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
GROUP = "gpubench.backends"

IMPORTS = """
import importlib, importlib.abc, pkgutil, sys

refused = set(sys.argv[1].split(","))

class Refuses(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in refused:
            raise ModuleNotFoundError(f"the engine imports the backend {name}", name=name)

sys.meta_path.insert(0, Refuses())
import gpubench

for found in pkgutil.walk_packages(gpubench.__path__, "gpubench."):
    parts = found.name.split(".")
    if parts[1] not in ("kernels", "backends", "edge") and parts[-1] != "__main__":
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:  # of a fleet, for example, which needs Dask
            if str(error.name).startswith("gpubench"):
                raise
"""


def backend_modules() -> set[str]:
    """Return the modules of the classes that stand under the entry point of backends."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {value.partition(":")[0] for value in project["entry-points"][GROUP].values()}


def test_the_engine_can_be_imported_without_any_backend_but_numpys(tmp_path: Path) -> None:
    refused = backend_modules() - {"gpubench.backends.numpy"}
    assert len(refused) > 20

    command = [sys.executable, "-c", IMPORTS, ",".join(sorted(refused))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_the_engine_names_a_backend_only_where_a_user_does_too() -> None:
    """Each name that stands in the engine is of something that only one backend can be."""
    names = {module.rpartition(".")[2] for module in backend_modules()}
    names -= {"numpy", "numba", "threads", "together", "pandas", "polars", "torch", "scripted"}
    found = set()
    for path in sorted((ROOT / "gpubench").rglob("*.py")):
        within = path.relative_to(ROOT / "gpubench").as_posix()
        if within.startswith(("backends/", "kernels/", "edge/")):
            continue
        text = path.read_text(encoding="utf-8")
        if any(f'backend == "{name}"' in text or f'name == "{name}"' in text for name in names):
            found.add(within)

    # They write an example for each kind of function.
    assert found == {"scaffold/adding.py", "scaffold/joining.py"}
