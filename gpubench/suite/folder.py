"""Which folder's suites are measured, and which files of a folder are suites."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from gpubench.errors import GpubenchError

MAX_SUITE_BYTES = 2**20
"""Of a suite file, far beyond what a person writes: the largest of this project has 15 KB."""

SUITES_VARIABLE = "GPUBENCH_SUITES"
"""Environment variable that names a folder of suites inside the project, such as
``suites/systems``: what is measured and reported by name instead of ``suites/``."""


def asked_folder(suites: Path) -> Path:
    """Return the folder that ``GPUBENCH_SUITES`` names beside a project's ``suites/``, else
    ``suites``; inside ``library_instead`` that of the library.

    Raises ``GpubenchError`` for one that is not there, or not inside the project.
    """
    if _is_library_asked.get():
        return library_folder()
    named = os.environ.get(SUITES_VARIABLE)
    if not named:
        return suites
    project = suites.parent
    folder = project / named
    if not folder.is_dir() or project.resolve() not in folder.resolve().parents:
        raise GpubenchError(
            f"{SUITES_VARIABLE} of {named!r}: no such folder in {project.resolve()}; "
            f"allowed: a folder of suites inside the project, {suites.name}/systems for example, "
            "or nothing"
        )
    return folder


_is_library_asked = ContextVar("_is_library_asked", default=False)


@contextmanager
def library_instead(is_asked: bool) -> Iterator[None]:
    """Read gpubench's library inside the block, where it is asked for, in place of a project's
    suites."""
    before = _is_library_asked.set(is_asked)
    try:
        yield
    finally:
        _is_library_asked.reset(before)


def library_folder() -> Path:
    """Return the folder of gpubench's library of suites: of the package, or of a checkout."""
    installed = Path(__file__).parents[1] / "library"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "suites"


def suite_files(folder: Path) -> list[Path]:
    """Return the ``*.yaml`` of a folder, sorted."""
    return [file for file in suite_paths(folder, nested=False) if file.suffix == ".yaml"]


def suite_paths(folder: Path, nested: bool) -> list[Path]:
    """Return the same and files that are probably misnamed suites, ``*.yml``, ``*.YAML``;
    ``nested``: then those of the folders in it, but for hidden ones."""
    inside = sorted(folder.glob("*"))  # nothing where there is no such folder
    files = [path for path in inside if path.suffix.lower() in (".yml", ".yaml")]
    for path in inside if nested else ():
        if path.is_dir() and not path.name.startswith("."):
            files += suite_paths(path, nested)
    return files
