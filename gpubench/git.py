"""Asks git, and lets no repository run a program of its author's."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TIMEOUT_SECONDS = 60.0

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
