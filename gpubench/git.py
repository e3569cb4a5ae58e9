"""Asks git, and lets no repository run a program of its author's."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

TIMEOUT_SECONDS = 60.0

MAX_FILE_BYTES = 2**20
"""Of a file that is read from a commit: no module of kernels is larger."""

OPTIONS = (
    "--no-pager",
    "--no-replace-objects",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "log.showSignature=false"),
    *("-c", "log.mailmap=false"),
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "i18n.logOutputEncoding=UTF-8"),
)
"""Settings of a repository name programs (git-config(1)), and anybody may have written them: those
that git would run for what is asked here are overruled. A folder that merely looks like a
repository is none, as a clone can hold one with settings of its author. The last one is for who
reads what git prints."""

VARIABLES = {
    "GIT_ALLOW_PROTOCOL": "",  # none, whatever the settings say: an object that is missing is
    "GIT_NO_LAZY_FETCH": "1",  # fetched else, by a program that the settings name
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}


@dataclass(frozen=True, slots=True)
class BareRepository:
    """A repository without files, in which git is asked only where somebody names it: a folder of a
    project can look like one."""

    path: Path


Repository = Path | BareRepository
"""The folder of a repository, or one inside it; or a bare one."""

_silent: set[Repository] = set()
"""Those in which git did not answer in time, such as one whose settings include a pipe. There git
is not asked again, as each question would take as long."""


def named_repository(folder: Path) -> Repository:
    """Return the repository of a folder that asv's configuration or asv itself names."""
    is_bare = (folder / "HEAD").is_file() and (folder / "objects").is_dir()
    return BareRepository(folder) if is_bare else folder


def ask_git(repository: Repository, *arguments: str, given: bytes = b"") -> bytes:
    """Return what git prints; nothing where it fails, or git or the repository is missing."""
    if repository in _silent:
        return b""
    where = ["-C", str(repository)]
    if isinstance(repository, BareRepository):
        where = [f"--git-dir={repository.path}"]
    try:
        process = subprocess.run(
            ["git", *OPTIONS, *where, *arguments],
            env={**os.environ, **VARIABLES},
            input=given,
            capture_output=True,
            check=True,
            timeout=TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        _silent.add(repository)
        return b""
    except (OSError, subprocess.SubprocessError, ValueError):
        return b""
    return process.stdout


@cache
def top_level(folder: Path) -> Path | None:
    """Return the working tree that a folder is in, its links followed; ``None`` outside of one."""
    printed = os.fsdecode(ask_git(folder, "rev-parse", "--show-toplevel")).rstrip("\n")
    return Path(os.path.realpath(printed)) if printed else None


def outermost_top_level(folder: Path) -> Path | None:
    """Return the working tree that a folder is in; in a submodule, that of the project which pins
    the submodule to a commit."""
    top = top_level(folder)
    while top is not None and (top / ".git").is_file():
        printed = os.fsdecode(ask_git(top, "rev-parse", "--show-superproject-working-tree"))
        if not printed.strip():  # a worktree
            break
        top = Path(os.path.realpath(printed.rstrip("\n")))
    return top


def list_files(folder: Path) -> Iterator[str]:
    """Yield the files of a working tree by their paths below the folder: those that git tracks or
    would track, also in submodules and in other repositories inside. Nothing without git."""
    listed = ask_git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, os.fsdecode(listed).split("\0")):
        inner = folder / name
        if inner.is_symlink() or not (inner / ".git").exists():
            yield name
        elif not is_environment(inner.parent):  # asv's checkout
            yield from (f"{name.rstrip('/')}/{file}" for file in list_files(inner))


def is_environment(folder: Path) -> bool:
    """Return whether a folder is an environment of Python, of venv or of conda."""
    return (folder / "pyvenv.cfg").exists() or (folder / "conda-meta").exists()


def read_committed(repository: Repository, commit: str, file: str) -> bytes:
    """Return a file of a commit, by its path from the top or by the end of its path.

    A module is recorded as Python imports it, so that ``src/`` may stand before it in the
    repository: of several such files the one nearest to the top counts. Empty where there is none,
    and for one of more than ``MAX_FILE_BYTES``.
    """
    if not re.fullmatch(r"[0-9a-f]{4,64}", commit) or not file or "\0" in file:
        return b""
    for path in _paths_ending(repository, commit, file):
        name = f"{commit}:{path}"
        size = ask_git(repository, "cat-file", "-s", name).strip()
        if size.isdigit() and int(size) <= MAX_FILE_BYTES:
            return ask_git(repository, "cat-file", "blob", name)
    return b""


def _paths_ending(repository: Repository, commit: str, file: str) -> list[str]:
    paths = _files_of(repository, commit)
    return sorted(
        (path for path in paths if path == file or path.endswith(f"/{file}")),
        key=lambda path: (path.count("/"), path),
    )


@lru_cache(maxsize=4)
def _files_of(repository: Repository, commit: str) -> tuple[str, ...]:
    """Return the paths of all files of a commit, from the top of the repository."""
    printed = ask_git(repository, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
    return tuple(os.fsdecode(path) for path in printed.split(b"\0") if path)
