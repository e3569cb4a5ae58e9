"""Commits stand in the repository's order, and by date where it does not know them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpubench.results.commits import order_commits


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    return tmp_path


def git(repository: Path, *arguments: str, date: int = 0) -> str:
    settings = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    stamp = f"@{date} +0000"
    environment = {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp, "PATH": "/usr/bin:/bin"}
    command = ["git", "-C", str(repository), *settings, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()


def commit(repository: Path, subject: str, date: int) -> str:
    git(repository, "commit", "--quiet", "--allow-empty", "-m", subject, date=date)
    return git(repository, "rev-parse", "HEAD")


def test_the_repository_s_order_beats_the_dates(repository: Path) -> None:
    first = commit(repository, "first <b>", date=2_000)
    second = commit(repository, "second", date=1_000)

    commits = order_commits({second: 1_000.0, first: 2_000.0}, repository)

    assert [(c.hash, c.subject) for c in commits] == [(first, "first <b>"), (second, "second")]


def test_a_commit_that_the_repository_lost_is_placed_by_its_date(repository: Path) -> None:
    first = commit(repository, "first", date=1_000)
    second = commit(repository, "second", date=3_000)
    lost = "c" * 40

    commits = order_commits({first: 1_000.0, second: 3_000.0, lost: 2_000.0}, repository)

    assert [c.hash for c in commits] == [first, lost, second]
    assert commits[1].subject is None


def test_without_a_repository_dates_decide(tmp_path: Path) -> None:
    dates = {"a" * 40: 2_000.0, "b" * 40: 1_000.0}

    assert [c.hash[0] for c in order_commits(dates, None)] == ["b", "a"]
    assert [c.hash[0] for c in order_commits(dates, tmp_path)] == ["b", "a"]


def test_a_commit_known_by_eight_characters_is_found(repository: Path) -> None:
    full = commit(repository, "first", date=1_000)

    (found,) = order_commits({full[:8]: 0.0}, repository)

    assert (found.hash, found.subject, found.date) == (full[:8], "first", 1_000.0)


def test_the_commits_of_a_branch_stay_together(repository: Path) -> None:
    base = commit(repository, "base", date=1_000)
    main = git(repository, "rev-parse", "--abbrev-ref", "HEAD")
    git(repository, "checkout", "--quiet", "-b", "side")
    one = commit(repository, "side one", date=2_000)
    git(repository, "checkout", "--quiet", main)
    other = commit(repository, "main", date=3_000)
    git(repository, "checkout", "--quiet", "side")
    two = commit(repository, "side two", date=4_000)

    dates = dict.fromkeys((base, one, other, two), 0.0)
    hashes = [c.hash for c in order_commits(dates, repository)]

    assert hashes[0] == base
    assert abs(hashes.index(one) - hashes.index(two)) == 1
