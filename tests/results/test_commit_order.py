"""Commits stand in the repository's order, and by date where it does not know them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpubench.errors import ResultsError
from gpubench.results import Commit
from gpubench.results.commits import (
    order_commits,
    range_fault,
    resolve_commit,
    why_unresolved,
)

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Hash of a tree without files, which git knows without having it."""


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


def measured(*hashes: str) -> list[Commit]:
    return [Commit(hash_, 0.0) for hash_ in hashes]


def test_a_branch_goes_before_the_beginning_of_a_hash(repository: Path) -> None:
    first, second = (commit(repository, subject, date=0) for subject in ("first", "second"))
    for kind in ("heads", "tags", "remotes"):
        git(repository, "update-ref", f"refs/{kind}/{second[:6]}", first)

        assert resolve_commit(second[:6], measured(first, second), repository) == first
        # Without results of the branch, the other commit is not meant either.
        assert resolve_commit(second[:6], measured(second), repository) is None
        git(repository, "update-ref", "-d", f"refs/{kind}/{second[:6]}")
    assert resolve_commit(second[:6], measured(first, second), repository) == second


def test_a_hash_beside_a_branch_of_another_name_is_found_in_any_length(repository: Path) -> None:
    known, lost = commit(repository, "first", date=0), "c0ffee" + "0" * 34

    for text, expected in (
        (known, known), (known[:4], known), (lost, lost), (lost.upper()[:8], lost), ("c0f", None)
    ):  # fmt: skip
        assert resolve_commit(text, measured(known, lost), repository) == expected
    assert resolve_commit(lost[:7], measured(known, lost), None) == lost
    assert resolve_commit(lost, measured(lost[:8]), None) == lost[:8]


def test_the_hash_of_a_tag_is_the_commit_that_it_tags(repository: Path) -> None:
    known = commit(repository, "first", date=0)
    git(repository, "tag", "--annotate", "--message", "v1", "v1")

    for text in ("v1", git(repository, "rev-parse", "v1")):
        assert resolve_commit(text, measured(known), repository) == known


def test_a_beginning_that_several_share_names_what_tells_them_apart() -> None:
    hashes = measured("a" * 10 + "b" * 30, "a" * 10 + "c" * 30)

    with pytest.raises(ResultsError) as caught:
        resolve_commit("aaaa", hashes, None)

    assert str(caught.value) == (
        "'aaaa' names 2 commits: aaaaaaaaaab, aaaaaaaaaac; give more of the hash"
    )


def test_a_beginning_that_git_alone_finds_several_times_is_told(repository: Path) -> None:
    # Found by trying: two of 600 commits share four digits.
    one, other = (git(repository, "commit-tree", "-m", text, EMPTY_TREE) for text in ("273", "595"))
    assert one[:4] == other[:4]

    assert f"'{one[:4]}' names 2 commits: {one[:4]}" in why_unresolved(one[:4], repository)


@pytest.mark.parametrize("text", ["..", "../results", "a/../b", "./x", "v1.0", "feature/x", "HEAD"])
def test_paths_and_names_are_no_ranges(text: str) -> None:
    assert range_fault(text) == ""


@pytest.mark.parametrize(
    ("text", "ends"),
    [("v1.0..v1.1", "v1.0 v1.1"), ("a...b", "a b"), ("main..", "main HEAD"), ("..b", "HEAD b")],
)
def test_a_range_names_its_two_ends(text: str, ends: str) -> None:
    assert range_fault(text).endswith(f": gpubench compare {ends}")
