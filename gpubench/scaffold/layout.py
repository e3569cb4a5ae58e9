"""Where things go in a project: its name, its package, and a free name for the kernel's module."""

from __future__ import annotations

import configparser
import itertools
import keyword
import os
import re
import sys
import tomllib
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from gpubench.errors import GpubenchError

BUILD_FILES = ("pyproject.toml", "setup.py")
"""Either of these says that the directory is a Python project already."""

NOT_THE_PACKAGE = frozenset({"benchmarks", "build", "dist", "docs", "examples", "suites", "tests"})
"""Directories that hold Python files beside the package that a project installs."""

TAKEN_NAMES = sys.stdlib_module_names | NOT_THE_PACKAGE | {"asv", "gpubench", "numba", "numpy"}
"""A new package of one of these names would hide what the kernels or asv import."""


class ProjectError(GpubenchError):
    """A directory that cannot be made ready for gpubench."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the templates need to know about a project."""

    distribution: str
    """Name that pip knows the project by; asv uninstalls it by this name between commits."""
    package: str
    """Import name of the package that gets the kernel's module."""
    package_path: Path
    """The package's directory, relative to the project's."""
    is_new: bool
    """True where there is no project yet: it gets a ``pyproject.toml`` and a package."""
    repository: str
    """Path from the project to the root of its git repository: ``.``, or upwards."""
    subdirectory: str
    """Path of the project inside that repository; empty when it is the root."""


def find_layout(directory: Path) -> Layout:
    """Look at a project, or decide on the names of a new one.

    Raises ``ProjectError`` for a project without a package.
    """
    directory = directory.resolve()
    root = repository_root(directory) or directory
    subdirectory = "" if root == directory else directory.relative_to(root).as_posix()
    repository = Path(os.path.relpath(root, directory)).as_posix()
    if not any((directory / name).exists() for name in BUILD_FILES):
        name = package_name(directory.name)
        distribution = name.strip("_").replace("_", "-")
        return Layout(distribution, name, Path(name), True, repository, subdirectory)
    declared = _declared_name(directory)
    package = _installed_package(directory, declared or directory.name)
    distribution = declared or package.name
    return Layout(distribution, package.name, package, False, repository, subdirectory)


def repository_root(directory: Path) -> Path | None:
    """Root of the git repository that a directory is in, by its ``.git``; ``None`` outside one."""
    places = (directory, *directory.parents)
    return next((place for place in places if (place / ".git").exists()), None)


def package_name(directory_name: str) -> str:
    """Import name for a directory's name: ``my-proj 2`` is ``my_proj_2``."""
    plain = unicodedata.normalize("NFKD", directory_name.casefold()).encode("ascii", "ignore")
    name = re.sub(r"[^a-z0-9]+", "_", plain.decode()).strip("_")
    if not name or name in TAKEN_NAMES or keyword.iskeyword(name):
        return f"{name}_kernels".lstrip("_")
    return f"project_{name}" if name[0].isdigit() else name


def free_module_name(package: Path, stem: str, text: str) -> str:
    """First of ``saxpy``, ``saxpy_kernels``, ``saxpy_kernels_2`` ... that nothing else has taken.

    A module that holds just ``text`` is this one, written before.
    """
    name = stem
    for number in itertools.count(1):
        module = package / f"{name}.py"
        is_free = not module.exists() and not (package / name).exists()
        if is_free or (module.is_file() and module.read_bytes() == text.encode()):
            break
        name = f"{stem}_kernels" if number == 1 else f"{stem}_kernels_{number}"
    return name


def _installed_package(directory: Path, name: str) -> Path:
    """The package that bears the project's name, else the first; relative to ``directory``."""
    packages = [
        init.parent.relative_to(directory)
        for folder in (directory, directory / "src")
        for init in sorted(folder.glob("*/__init__.py"))
        if init.parent.name not in NOT_THE_PACKAGE and init.parent.name.isidentifier()
    ]
    if not packages:
        raise ProjectError(
            f"no package found in {str(directory)!r} (a folder with __init__.py, there or in src/) "
            "to put a kernel into; make one, or start in an empty folder"
        )
    expected = re.sub(r"[-.]+", "_", name).lower()
    return next((path for path in packages if path.name.lower() == expected), packages[0])


def _declared_name(directory: Path) -> str | None:
    """The project's name as its build files declare it; ``None`` where they leave it open."""
    names: list[str | None] = []
    for file in ("pyproject.toml", "setup.cfg", "setup.py"):
        path = directory / file
        if not path.is_file():
            continue
        try:
            if file == "pyproject.toml":
                content = tomllib.loads(path.read_text(encoding="utf-8"))
                tables = (content.get("project", {}), content.get("tool", {}).get("poetry", {}))
                names += [table.get("name") for table in tables]
            elif file == "setup.cfg":
                parser = configparser.ConfigParser(interpolation=None)
                parser.read(path, encoding="utf-8")
                names.append(parser.get("metadata", "name", fallback=None))
            else:
                # As text: running somebody's setup.py to learn it would be too much.
                text = path.read_text(encoding="utf-8", errors="replace")
                names += re.findall(r"\bname\s*=\s*[\"']([^\"']+)[\"']", text)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, configparser.Error) as error:
            raise ProjectError(f"cannot read {str(path)!r}: {error}; mend it first") from error
    return next((str(name) for name in names if name), None)
