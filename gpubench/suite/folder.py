"""Which folder's suites are measured, and which files of a folder are suites."""

from __future__ import annotations

import os
from pathlib import Path

from gpubench.errors import GpubenchError

MAX_BYTES = 2**20
"""Of a suite file, far beyond what a person writes: the largest of this project has 15 KB."""

VARIABLE = "GPUBENCH_SUITES"
"""Environment variable that names a folder of suites inside the project, such as
``suites/systems``: what is measured and reported by name instead of ``suites/``."""


def asked_folder(suites: Path) -> Path:
    """The folder that ``GPUBENCH_SUITES`` names beside a project's ``suites/``, else ``suites``.

    Raises ``GpubenchError`` for one that is not there, or not inside the project.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        return suites
    project = suites.parent
    folder = project / named
    if not folder.is_dir() or project.resolve() not in folder.resolve().parents:
        raise GpubenchError(
            f"{VARIABLE} of {named!r}: no such folder in {project.resolve()}; allowed: a folder of "
            f"suites inside the project, {suites.name}/systems for example, or nothing"
        )
    return folder


def suite_files(folder: Path, *, nested: bool = False) -> list[Path]:
    """The ``*.yaml`` of a folder, sorted; ``nested``: then those of the folders in it, but for
    hidden ones."""
    files = sorted(folder.glob("*.yaml"))
    if nested:
        for inside in sorted(folder.iterdir()):
            if inside.is_dir() and not inside.name.startswith("."):
                files += suite_files(inside, nested=True)
    return files


def misnamed_files(folder: Path, *, nested: bool = False) -> list[Path]:
    """Files beside these that are hardly anything but suites, and would be left out: ``*.yml``,
    ``*.YAML``."""
    inside = sorted(folder.iterdir())
    files = [f for f in inside if f.suffix.lower() in (".yml", ".yaml") and f.suffix != ".yaml"]
    if nested:
        for one in inside:
            if one.is_dir() and not one.name.startswith("."):
                files += misnamed_files(one, nested=True)
    return files
