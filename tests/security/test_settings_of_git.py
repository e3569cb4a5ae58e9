"""Commits are put in order without running what a repository's settings name."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from untrusted import Untrusted, plant_git

from gpubench import git
from gpubench.git import BareRepository
from gpubench.results.commits import (
    order_commits,
    resolve_commit,
    why_unresolved,
)

ABSENT = "c" * 40


@pytest.mark.parametrize("partial", [False, True], ids=["whole", "partial"])
def test_no_program_of_the_settings_runs(tmp_path: Path, partial: bool) -> None:
    repository = Untrusted(tmp_path / "repository", tmp_path / "ran")
    signed = plant_git(repository, partial=partial)

    commits = order_commits({signed: 0.0, ABSENT: 1.0}, repository.folder)
    resolve_commit("master", commits, repository.folder)
    resolve_commit(ABSENT[:9], commits, repository.folder)
    resolve_commit(f"{signed}^", commits, repository.folder)
    for text in ("master", "mastr", signed[:5], ABSENT, f"{signed}^", f"{signed}^{{tree}}"):
        why_unresolved(text, repository.folder)

    assert repository.what_ran() == []
    assert [commit.hash for commit in commits] == [signed, ABSENT]


def test_they_would_run_if_git_were_asked_plainly(tmp_path: Path) -> None:
    for partial, program in ((False, "gpg"), (True, "remote")):
        repository = Untrusted(tmp_path / f"repository-{program}", tmp_path / program)
        plant_git(repository, partial=partial)

        subprocess.run(
            ["git", "-C", str(repository.folder), "log", "--format=%H"],
            capture_output=True,
            check=False,
        )

        assert f"program {program}" in repository.what_ran()


def test_settings_that_never_end_are_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    os.mkfifo(tmp_path / ".git" / "pipe")
    with (tmp_path / ".git" / "config").open("a") as settings:
        settings.write("[include]\npath = pipe\n")
    monkeypatch.setattr(git, "TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(git, "_silent", set())
    asked, run = [], subprocess.run

    def counted(*arguments: Any, **options: Any) -> Any:
        asked.append(arguments)
        return run(*arguments, **options)

    monkeypatch.setattr(subprocess, "run", counted)

    (commit,) = order_commits({ABSENT: 1.0}, tmp_path)

    assert commit.subject is None
    assert resolve_commit("master", [commit], tmp_path) is None
    assert len(asked) == 1


def test_commits_of_a_plain_repository_have_their_subjects(tmp_path: Path) -> None:
    repository = Untrusted(tmp_path / "repository", tmp_path / "ran")
    signed = plant_git(repository, partial=False)

    (commit,) = order_commits({signed: 0.0}, repository.folder)

    assert commit.subject == "signed"
    assert resolve_commit("master", [commit], repository.folder) == signed


def test_a_folder_that_looks_like_a_repository_is_none(tmp_path: Path) -> None:
    inner = Untrusted(tmp_path / "inner", tmp_path / "ran")
    signed = plant_git(inner, partial=False)
    look_alike = tmp_path / "clone"
    (inner.folder / ".git").rename(look_alike)
    config = look_alike / "config"
    config.write_text(config.read_text().replace("[core]", "[core]\n\tbare = true", 1))

    (commit,) = order_commits({signed: 0.0}, look_alike)

    assert commit.subject is None
    order_commits({signed: 0.0, ABSENT: 1.0}, BareRepository(look_alike))
    assert inner.what_ran() == []
