"""The name that pip knows a project by: as its files state it, else as its build backend says."""

from __future__ import annotations

import ast
import configparser
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from packaging.utils import InvalidName, canonicalize_name

from gpubench.errors import GpubenchError

SETUPTOOLS = ("setuptools.build_meta", "setuptools.build_meta:__legacy__")
"""Backends that read ``setup.py`` and ``setup.cfg``; the second is pip's where none is named."""

UNNAMED = "unknown"
"""What setuptools calls a project that has no name."""


class ProjectError(GpubenchError):
    """A directory that cannot be made ready for gpubench."""


@dataclass(frozen=True, slots=True)
class ProjectName:
    """A project's name, and where it was found."""

    name: str
    source: str
    """Where it was found, for a person: ``[project] of pyproject.toml``, ``its build backend``."""


def check_name(name: str) -> str:
    """Return a name that pip takes; raises ``ProjectError`` for what pip takes for none."""
    if not is_valid(name):
        raise ProjectError(
            f"{name!r} is no name of a project; allowed: letters, digits, and between them . _ -"
        )
    return name


def is_valid(name: object) -> TypeGuard[str]:
    """Return whether pip takes the name as it is: asv gives it to ``pip uninstall``."""
    try:
        return isinstance(name, str) and bool(canonicalize_name(name, validate=True))
    except InvalidName:
        return False


def read_stated_name(directory: Path) -> ProjectName | None:
    """Return the name that a project's files state where its build backend reads it; runs nothing.

    ``None`` where only the backend can tell, as of a ``setup.py`` that puts the name together.
    Raises ``ProjectError`` for a damaged file.
    """
    content = _read_toml(directory / "pyproject.toml")
    backend = _table(content, "build-system").get("build-backend", SETUPTOOLS[1])
    name, source = _table(content, "project").get("name"), "[project] of pyproject.toml"
    if "project" not in content:
        if str(backend).startswith("poetry"):
            name = _table(content, "tool", "poetry").get("name")
            source = "[tool.poetry] of pyproject.toml"
        elif str(backend).startswith("flit"):
            flit = _table(content, "tool", "flit", "metadata")
            name = flit.get("dist-name", flit.get("module"))
            source = "[tool.flit.metadata] of pyproject.toml"
        elif backend in SETUPTOOLS:
            return _read_for_setuptools(directory)
    return ProjectName(name, source) if is_valid(name) else None


def ask_build_backend(directory: Path) -> ProjectName:
    """Return the name by which a project's build backend would build it: runs code of the project.

    What the backend needs is installed in a temporary environment, as when pip builds the project.
    Raises ``ProjectError`` where that fails or the project has no name.
    """
    import build.util

    failures = (build.BuildException, build.BuildBackendException, subprocess.CalledProcessError)
    remedy = "name the project: gpubench init --project NAME"
    present = {*_egg_infos(directory)}
    try:
        metadata = build.util.project_wheel_metadata(directory)
    # build 1.2.1 takes a table that is none as it is.
    except (*failures, OSError, TypeError, ValueError) as error:
        raise ProjectError(
            f"no file of {str(directory)!r} states the project's name, and its build backend "
            f"failed: {_last_line(error)}; {remedy}"
        ) from error
    finally:
        for left in {*_egg_infos(directory)} - present:
            shutil.rmtree(left, ignore_errors=True)
    name = metadata.json.get("name")
    if not is_valid(name) or canonicalize_name(name) == UNNAMED:
        raise ProjectError(f"the project in {str(directory)!r} has no name; {remedy}")
    return ProjectName(name, "its build backend")


def refuse_setup_cfg_alone(directory: Path) -> None:
    """Raise ``ProjectError`` for a project that is nothing but a ``setup.cfg``."""
    if _read_setup_cfg(path := directory / "setup.cfg"):
        raise ProjectError(
            f"pip builds no project of a setup.cfg alone, as {str(path)!r}: write a pyproject.toml "
            'beside it, with [build-system], requires = ["setuptools"] and '
            'build-backend = "setuptools.build_meta"'
        )


def _read_for_setuptools(directory: Path) -> ProjectName | None:
    """Return what setuptools takes: the name in ``setup.py``, else that in ``setup.cfg``."""
    if (script := directory / "setup.py").is_file():
        arguments = _read_setup_arguments(script)
        if arguments is None:
            return None
        if "name" in arguments:
            stated = arguments["name"]
            name = stated.value if isinstance(stated, ast.Constant) else None
            return ProjectName(name, "setup.py") if is_valid(name) else None
    name = _read_setup_cfg(directory / "setup.cfg")
    return ProjectName(name, "setup.cfg") if is_valid(name) else None


def _read_setup_cfg(path: Path) -> str | None:
    """Return the name of the project in a ``setup.cfg``, which may be for tools alone."""
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (UnicodeDecodeError, configparser.Error) as error:
        reason = " ".join(str(error).split())
        raise ProjectError(f"cannot read {str(path)!r}: {reason}; mend it first") from error
    return parser.get("metadata", "name", fallback=None)


def _read_setup_arguments(script: Path) -> dict[str, ast.expr] | None:
    """Return the keyword arguments of the one call of ``setup`` in a ``setup.py``.

    ``None`` where the source does not tell them: no call or several, ``**arguments``, a ``setup``
    that is not setuptools' own.
    """
    try:
        tree = ast.parse(script.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return None
    modules = ("setuptools", "distutils.core")
    calls = []
    functions, prefixes = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            functions |= {one.asname or one.name for one in node.names if one.name == "setup"}
        elif isinstance(node, ast.Import):
            prefixes |= {one.asname or one.name for one in node.names if one.name in modules}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = ast.unparse(node.func)
        if function in functions or function in {f"{prefix}.setup" for prefix in prefixes}:
            calls.append(node)
    if len(calls) != 1 or calls[0].args or None in {one.arg for one in calls[0].keywords}:
        return None
    return {str(one.arg): one.value for one in calls[0].keywords}


def _read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a file; nothing where there is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProjectError(f"cannot read {str(path)!r}: {error}; mend it first") from error


def _table(content: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a table inside tables; an empty one where it is missing or no table."""
    for name in names:
        inner = content.get(name)
        content = inner if isinstance(inner, dict) else {}
    return content


def _egg_infos(directory: Path) -> Iterator[Path]:
    """Yield the folders in which setuptools keeps metadata, whoever asked for it."""
    for pattern in ("*.egg-info", "*/*.egg-info"):
        yield from directory.glob(pattern)


def _last_line(error: Exception) -> str:
    """Return the last line that a failed program printed, else what the error says."""
    cause = getattr(error, "exception", error)
    for output in (getattr(cause, "stderr", None), getattr(cause, "output", None)):
        text = output.decode(errors="replace") if isinstance(output, bytes) else output
        if text and text.strip():
            return str(text).strip().splitlines()[-1].strip()
    return str(error)
