"""Commits stand in the repository's order, and by date where it does not know them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpubench.errors import ResultsError
from gpubench.results import Commit
from gpubench.results.commits import (
    CommitOrder,
    branches_with,
    histories_of,
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


SUBJECTS = [
    "grüße an 日本 😀",
    "cut\x85at\u2028many\u2029places\x1c\x1d\x1e\x0b\x0c of it",
    "returns\rto the start",
]


@pytest.mark.parametrize("encoding", [None, "UTF-16", "UTF-7", "ISO-8859-1", "nonsense"])
def test_subjects_are_whole_whatever_the_settings_say(
    repository: Path, encoding: str | None
) -> None:
    hashes = {commit(repository, subject, date): date for date, subject in enumerate(SUBJECTS)}
    if encoding:
        git(repository, "config", "i18n.logOutputEncoding", encoding)

    commits = order_commits(hashes, repository)

    assert [commit.subject for commit in commits] == SUBJECTS


def test_a_subject_in_another_encoding_is_read_as_its_commit_says(repository: Path) -> None:
    git(repository, "config", "i18n.commitEncoding", "ISO-8859-1")
    message = repository / "message"
    message.write_bytes("für alle".encode("latin-1"))
    git(repository, "commit", "--quiet", "--allow-empty", "--file", str(message))

    (only,) = order_commits({git(repository, "rev-parse", "HEAD"): 0.0}, repository)

    assert only.subject == "für alle"


def test_a_huge_subject_is_cut(repository: Path) -> None:
    message = repository / "message"
    message.write_text("word " * 1_000_000)
    git(repository, "commit", "--quiet", "--allow-empty", "--file", str(message))

    (only,) = order_commits({git(repository, "rev-parse", "HEAD"): 0.0}, repository)

    assert only.subject == ("word " * 200)[:999] + "…"


def test_a_branch_may_have_a_character_that_ends_lines_elsewhere(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "-b", "one\x85two")
    first = commit(repository, "first", date=1_000)

    order = histories_of({first: 1_000.0}, repository)

    assert dict(order.histories) == {"one\x85two": (first,)}
    assert branches_with(order.commits, repository) == {first: "one\x85two"}


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


class Branching:
    """Three commits of ``main`` around two of ``exp``, which was never merged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        git(folder, "checkout", "--quiet", "-b", "main")
        self.one = commit(folder, "main 1", date=1_000)
        git(folder, "checkout", "--quiet", "-b", "exp")
        self.exp = [commit(folder, f"exp {n}", date=2_000 + n) for n in range(2)]
        git(folder, "checkout", "--quiet", "main")
        self.main = [self.one, *(commit(folder, f"main {n}", date=3_000 + n) for n in (2, 3))]

    def order(self, *branches: str, **unknown: float) -> CommitOrder:
        """Of all commits and some that git does not know."""
        dates = dict.fromkeys((*self.main, *self.exp), 0.0) | unknown
        return histories_of(dates, self.folder, branches)


@pytest.fixture
def branching(repository: Path) -> Branching:
    return Branching(repository)


def subjects(order: CommitOrder, branch: str) -> list[str | None]:
    subject_of = {each.hash: each.subject for each in order.commits}
    return [subject_of[hash_] for hash_ in order.histories[branch]]


def test_a_history_has_the_commits_of_one_branch(branching: Branching) -> None:
    order = branching.order("main")

    assert [*order.histories] == ["main"]
    assert subjects(order, "main") == ["main 1", "main 2", "main 3"]
    assert [c.subject for c in order.outside] == ["exp 0", "exp 1"]
    assert {c.subject for c in order.commits} >= {"main 3", "exp 1"}  # compare reaches all
    assert branches_with(order.outside, branching.folder) == dict.fromkeys(branching.exp, "exp")
    assert order.notes == ()


def test_each_branch_that_is_named_has_a_history(branching: Branching) -> None:
    order = branching.order("main", "exp")

    assert subjects(order, "exp") == ["main 1", "exp 0", "exp 1"]
    assert [*order.histories] == ["main", "exp"]
    assert order.outside == ()


def test_without_a_name_the_branch_is_the_one_that_is_checked_out(branching: Branching) -> None:
    assert [*branching.order().histories] == ["main"]
    assert [*branching.order("HEAD").histories] == ["main"]
    git(branching.folder, "checkout", "--quiet", "exp")
    assert [*branching.order().histories] == ["exp"]
    git(branching.folder, "checkout", "--quiet", "--detach", "main~1")
    assert branching.order().histories == {"HEAD": tuple(branching.main[:2])}


def test_a_tag_and_a_branch_of_a_remote_can_be_named(branching: Branching, tmp_path: Path) -> None:
    git(branching.folder, "tag", "-a", "-m", "first", "v1", "main~1")
    clone = tmp_path / "clone"
    git(branching.folder, "clone", "--quiet", str(branching.folder), str(clone))
    branching.folder = clone

    order = branching.order("v1", "origin/exp")

    assert subjects(order, "v1") == ["main 1", "main 2"]
    assert subjects(order, "origin/exp") == ["main 1", "exp 0", "exp 1"]
    assert subjects(branching.order("exp"), "exp") == ["main 1", "exp 0", "exp 1"]  # not fetched


def test_a_branch_beats_a_tag_of_its_name(branching: Branching) -> None:
    git(branching.folder, "tag", "exp", "main")

    assert subjects(branching.order("exp"), "exp") == ["main 1", "exp 0", "exp 1"]


def test_a_branch_that_is_not_there_is_said_and_head_counts(branching: Branching) -> None:
    order = branching.order("dev")

    assert subjects(order, "main") == ["main 1", "main 2", "main 3"]
    assert order.notes == (
        "the branch 'dev' has no history: git knows no such branch or tag",
        "the history is that of 'main', which is checked out",
    )
    assert [*branching.order("dev", "exp").histories] == ["exp"]


def test_a_branch_without_results_gives_way_to_what_is_checked_out(branching: Branching) -> None:
    git(branching.folder, "checkout", "--quiet", "exp")

    order = histories_of(dict.fromkeys(branching.exp, 0.0), branching.folder, ["main"])

    assert order.histories == {"exp": tuple(branching.exp)}
    assert order.notes[0] == "the branch 'main' has no history: no commit of it has results"


def test_where_no_branch_has_results_all_commits_are_one_history(branching: Branching) -> None:
    order = histories_of(dict.fromkeys(branching.exp, 0.0), branching.folder, ["main"])

    assert order.histories == {"": tuple(branching.exp)}
    assert order.notes[-1] == "the history has the commits of all branches"


def test_what_was_merged_is_in_the_history(branching: Branching) -> None:
    git(branching.folder, "merge", "--quiet", "--no-ff", "-m", "merge", "exp", date=4_000)

    order = branching.order("main")

    assert set(order.histories["main"]) == {*branching.main, *branching.exp}
    assert order.outside == ()


def test_a_commit_that_was_rewritten_is_outside(branching: Branching) -> None:
    gone = branching.main.pop()
    git(branching.folder, "commit", "-q", "--amend", "--allow-empty", "-m", "again", date=9_000)
    branching.main += [gone, git(branching.folder, "rev-parse", "HEAD")]
    unknown = "c" * 40

    order = branching.order("main", **{unknown: 3_500.0})

    assert subjects(order, "main") == ["main 1", "main 2", "again"]
    assert {unknown, gone} < {c.hash for c in order.outside}
    assert branches_with(order.outside, branching.folder) == dict.fromkeys(branching.exp, "exp")


def test_a_shallow_clone_puts_what_it_does_not_know_by_date(
    branching: Branching, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    url = f"file://{branching.folder}"
    git(branching.folder, "clone", "--quiet", "--depth=2", "--no-single-branch", url, str(clone))
    branching.folder = clone

    order = branching.order("main", **{branching.one: 1_000.0, "c" * 40: 1_500.0})

    assert [hash_[:2] for hash_ in order.histories["main"]] == [
        hash_[:2] for hash_ in (branching.one, "c" * 40, *branching.exp, *branching.main[1:])
    ]


def test_a_shallow_clone_leaves_out_what_is_newer_than_its_end(
    branching: Branching, tmp_path: Path
) -> None:
    git(branching.folder, "checkout", "--quiet", "exp")
    late = commit(branching.folder, "exp late", date=9_000)
    git(branching.folder, "checkout", "--quiet", "main")
    clone = tmp_path / "clone"
    url = f"file://{branching.folder}"
    git(branching.folder, "clone", "--quiet", "--depth=1", "--no-single-branch", url, str(clone))

    order = histories_of(dict.fromkeys((late, *branching.main), 1.0), clone, ["main"])

    assert set(order.histories["main"]) == {*branching.main}
    assert [c.hash for c in order.outside] == [late]


def test_in_a_repository_of_another_project_all_go_by_date(branching: Branching) -> None:
    order = histories_of({"d" * 40: 2.0, "e" * 40: 1.0}, branching.folder, ["dev"])

    assert order.histories == {"": ("e" * 40, "d" * 40)}
    assert order.notes == ()


def test_clocks_that_went_backwards_do_not_change_a_history(repository: Path) -> None:
    dates = (9_000, 1_000, 5_000)
    hashes = [commit(repository, str(date), date) for date in dates]

    order = histories_of(dict(zip(hashes, map(float, dates), strict=True)), repository)

    (history,) = order.histories.values()
    assert history == tuple(hashes)
