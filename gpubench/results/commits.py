"""The order of commits: the repository's where it is at hand, otherwise by date."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from gpubench.errors import ResultsError
from gpubench.results.model import Commit

_SECONDS = 60.0

_OPTIONS = (
    "--no-pager",
    "--no-replace-objects",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "log.showSignature=false"),
    *("-c", "log.mailmap=false"),
    *("-c", "safe.bareRepository=explicit"),
)
"""Settings of a repository name programs (git-config(1)), and anybody may have written them: those
that git would run for what is asked here are overruled. A folder that merely looks like a
repository is none, as a clone can hold one with settings of its author."""

_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "",  # none, whatever the settings say: an object that is missing is
    "GIT_NO_LAZY_FETCH": "1",  # fetched else, by a program that the settings name
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}


def order_commits(dates: Mapping[str, float], repository: Path | None) -> tuple[Commit, ...]:
    """Commits oldest first; ``dates`` gives those with results (hash to seconds since 1970).

    Commits that the repository knows keep its topological order. Others, from a rewritten or
    missing history, are put among them by their date.
    """
    commits = _from_git(dates, repository) if repository else []
    missing = sorted(set(dates) - {commit.hash for commit in commits}, key=lambda h: (dates[h], h))
    for hash_ in missing:
        place = next((i for i, c in enumerate(commits) if c.date > dates[hash_]), len(commits))
        commits.insert(place, Commit(hash_, dates[hash_]))
    return tuple(commits)


def _from_git(hashes: Iterable[str], repository: Path) -> list[Commit]:
    """Ancestors of the commits, filtered to them; empty where git or the repository is missing."""
    wanted = {hash_[:8]: hash_ for hash_ in hashes}
    if not wanted:
        return []
    log = "log", "--topo-order", "--reverse", "--ignore-missing", "--format=%H%x00%ct%x00%s"
    given = "".join(f"{hash_}\n" for hash_ in sorted(wanted.values()))
    printed = _git(repository, *log, "--stdin", given=given)
    fields = (line.split("\0", 2) for line in printed.splitlines() if "\0" in line)
    return [
        Commit(wanted[hash_[:8]], float(date), subject)
        for hash_, date, subject in fields
        if hash_.startswith(wanted.get(hash_[:8], "-"))
    ]


def resolve_commit(text: str, commits: Iterable[Commit], repository: Path | None) -> str | None:
    """Hash of the one commit with results that a prefix, branch or tag names.

    ``None`` where it is none of them. Raises ``ResultsError`` for a prefix that several share.
    """
    hashes = [commit.hash for commit in commits]
    fitting = [h for h in hashes if len(text) >= 4 and (h.startswith(text) or text.startswith(h))]
    if len(fitting) > 1:
        short = ", ".join(hash_[: len(text) + 4] for hash_ in fitting[:4])
        raise ResultsError(f"{text!r} names {len(fitting)} commits: {short}; give more of the hash")
    if fitting or repository is None:
        return fitting[0] if fitting else None
    arguments = "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}"
    full = _git(repository, *arguments).strip()
    return next((hash_ for hash_ in hashes if full and full.startswith(hash_)), None)


def _git(repository: Path, *arguments: str, given: str = "") -> str:
    """What git prints; nothing where it fails, or git or the repository is missing."""
    try:
        process = subprocess.run(
            ["git", *_OPTIONS, "-C", str(repository), *arguments],
            env={**os.environ, **_ENVIRONMENT},
            input=given,
            capture_output=True,
            check=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
        )
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return ""
    return process.stdout
