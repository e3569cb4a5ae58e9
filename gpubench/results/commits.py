"""The order of commits, and which of them are a branch's: the repository's, otherwise by date."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpubench.errors import ResultsError, did_you_mean
from gpubench.git import Repository, ask_git
from gpubench.results.model import Commit

_HASH_LENGTH = 64
"""Characters of the longest hash that git makes (SHA-256)."""

_MAX_CANDIDATES = 4
"""Commits that a message names."""

_MAX_NAMES = 5000
"""Branches and tags among which a near name is searched."""

_MAX_SUBJECT = 60
"""Characters of a subject in a message."""

_MAX_KEPT_SUBJECT = 1000
"""Characters of a subject that are kept: pages repeat it some twenty times. git takes all lines up
to an empty one for the subject."""

_COMMIT_RANGE = re.compile(r"(?!\.+$)(?P<old>|[^.].*?[^/.]|[^/.])\.{2,3}(?P<new>|[^/.].*)")
"""``A..B``, with one end at least that is no part of a path."""

_ONE_COMMIT = re.compile(r"(?P<commit>.+)\^[!@]")
"""``A^!``, as asv and git take it for the commit alone."""

_TOGETHER = 500
"""Commits that one call of git names: a command line has some 2 MB on Linux, 32 KB on Windows."""

CHECKED_OUT = "HEAD"
"""What is checked out: the history's branch where none is named."""


@dataclass(frozen=True, slots=True)
class CommitOrder:
    """Commits with results, and the histories that they make."""

    commits: tuple[Commit, ...]
    """All of them, oldest first."""
    histories: Mapping[str, tuple[str, ...]]
    """By branch the hashes of its commits, oldest first: what its tip contains. One entry with an
    empty name and all commits where no branch is known."""
    notes: tuple[str, ...] = ()
    """Branches that were asked for and have no history, one sentence each."""

    @property
    def outside(self) -> tuple[Commit, ...]:
        """Commits that no history has, oldest first."""
        inside = {hash_ for of_branch in self.histories.values() for hash_ in of_branch}
        return tuple(commit for commit in self.commits if commit.hash not in inside)


def histories_of(
    dates: Mapping[str, float], repository: Repository | None, branches: Sequence[str] = ()
) -> CommitOrder:
    """Divide commits with results (``dates``: hash to seconds since 1970) by branches.

    ``branches`` are names of branches, tags or commits; without any, or where none of them has
    results, the history is that of ``HEAD``. All commits are one history where git knows none of
    them, so that the repository is another project's, and where ``HEAD`` has none.
    """
    commits = order_commits(dates, repository)
    everything = tuple(commit.hash for commit in commits)
    if repository is None or not any(map(is_known, commits)):
        return CommitOrder(commits, {"": everything})
    is_shallow = _git(repository, "rev-parse", "--is-shallow-repository").strip() == "true"
    histories: dict[str, tuple[str, ...]] = {}
    notes = []
    for name in branches or (CHECKED_OUT,):
        tip = _tip(repository, name)
        history = _history(repository, tip, commits, is_shallow) if tip else ()
        if history:
            histories[_label(repository, name)] = history
        else:
            missing = "no commit of it has results" if tip else "git knows no such branch or tag"
            notes.append(f"the branch {name!r} has no history: {missing}")
    if not histories and branches and CHECKED_OUT not in branches:
        of_head = histories_of(dates, repository)
        histories, notes = {**of_head.histories}, [*notes, *of_head.notes]
        notes += [
            f"the history is that of {name!r}, which is checked out" for name in histories if name
        ]
    if not histories:
        histories = {"": everything}
        notes.append("the history has the commits of all branches")
    return CommitOrder(commits, histories, tuple(notes))


def is_known(commit: Commit) -> bool:
    """Return whether git knows the commit."""
    return commit.subject is not None


def branches_with(commits: Iterable[Commit], repository: Repository | None) -> dict[str, str]:
    """Return for each hash a branch that contains the commit; those on no branch are left out."""
    hashes = [commit.hash for commit in commits if is_known(commit)]
    if repository is None:
        return {}
    branches = {}
    for start in range(0, len(hashes), _TOGETHER):
        refs = "--refs=refs/heads/*", "--refs=refs/remotes/*"
        printed = _git(repository, "name-rev", *refs, *hashes[start : start + _TOGETHER])
        for hash_, name in (line.split(" ", 1) for line in _lines(printed)):
            if name != "undefined":
                branches[hash_] = re.split("[~^]", name)[0].removeprefix("remotes/")
    return branches


def tags_of(repository: Repository | None) -> dict[str, list[str]]:
    """Return the tags of each commit that has some, by its hash."""
    if repository is None:
        return {}
    # Of a tag with a message the commit that it is of, else the tag is the commit's.
    hashes = "%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)"
    form = f"--format={hashes} %(refname:short)"
    tags: dict[str, list[str]] = {}
    for line in _lines(_git(repository, "for-each-ref", "refs/tags", form)):
        hash_, _, name = line.partition(" ")
        tags.setdefault(hash_, []).append(name)
    return tags


def _tip(repository: Repository, name: str) -> str:
    """Return the hash of a branch, else of a tag or commit, else of the remote's branch."""
    for revision in (f"refs/heads/{name}", name, f"origin/{name}"):
        arguments = "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        if tip := _git(repository, *arguments).strip():
            return tip
    return ""


def _label(repository: Repository, name: str) -> str:
    """Return the name to show: that of the branch where ``HEAD`` stands for one."""
    if name != CHECKED_OUT:
        return name
    return (
        _git(repository, "symbolic-ref", "--quiet", "--short", CHECKED_OUT).rstrip("\n")
        or CHECKED_OUT
    )


def _history(
    repository: Repository, tip: str, commits: Sequence[Commit], is_shallow: bool
) -> tuple[str, ...]:
    """Return the hashes of the commits that a tip contains, oldest first.

    A shallow repository lacks the commits before some depth. Commits that the repository does not
    know, and commits older than that depth, are ordered by date.
    """
    wanted = {commit.hash[:8]: commit for commit in commits}
    printed = _git(repository, "rev-list", "--topo-order", "--reverse", tip).split()
    inside = [
        commit
        for hash_ in printed
        if (commit := wanted.get(hash_[:8])) and hash_.startswith(commit.hash)
    ]
    if is_shallow:
        roots = _git(repository, "rev-list", "--max-parents=0", "--format=%ct", tip)
        end = max((int(line) for line in _lines(roots) if line.isdecimal()), default=0)
        there = {commit.hash for commit in inside}
        outside = (commit for commit in commits if commit.hash not in there)
        inside = _with_others(inside, (c for c in outside if not is_known(c) or c.date <= end))
    return tuple(commit.hash for commit in inside)


def order_commits(dates: Mapping[str, float], repository: Repository | None) -> tuple[Commit, ...]:
    """Return commits oldest first; ``dates`` gives those with results (hash to seconds since 1970).

    Commits that the repository knows keep its topological order. Others, from a rewritten or
    missing history, are put among them by their date.
    """
    commits = _from_git(dates, repository) if repository else []
    missing = dates.keys() - {commit.hash for commit in commits}
    return tuple(_with_others(commits, (Commit(hash_, dates[hash_]) for hash_ in missing)))


def _with_others(ordered: Sequence[Commit], others: Iterable[Commit]) -> list[Commit]:
    """Return ordered commits with others among them, by their date."""
    commits = [*ordered]
    for other in sorted(others, key=lambda commit: (commit.date, commit.hash)):
        place = next((i for i, c in enumerate(commits) if c.date > other.date), len(commits))
        commits.insert(place, other)
    return commits


def _from_git(hashes: Iterable[str], repository: Repository) -> list[Commit]:
    """Ancestors of the commits, filtered to them; empty where git or the repository is missing."""
    wanted = {hash_[:8]: hash_ for hash_ in hashes}
    if not wanted:
        return []
    log = "log", "--topo-order", "--reverse", "--ignore-missing", "--format=%H%x00%ct%x00%s"
    given = "".join(f"{hash_}\n" for hash_ in sorted(wanted.values()))
    printed = _git(repository, *log, "--stdin", given=given)
    fields = (line.split("\0", 2) for line in _lines(printed))
    return [
        Commit(wanted[hash_[:8]], float(date), _shortened(subject))
        for hash_, date, subject in fields
        if hash_.startswith(wanted.get(hash_[:8], "-"))
    ]


def resolve_commit(text: str, commits: Iterable[Commit], repository: Path | None) -> str | None:
    """Return the hash of the one commit with results that ``text`` names; ``None`` without one.

    What git takes for a name goes first: a branch, a tag, ``HEAD~1``. Then come hashes and their
    beginnings, also of commits that git does not know. Raises ``ResultsError`` for a beginning that
    several commits with results share.
    """
    hashes = [commit.hash for commit in commits]
    full = find_commit(text, repository)
    named = next((hash_ for hash_ in hashes if full and full.startswith(hash_)), None)
    if not is_hash(text) or _is_reference(text, repository):
        return named
    text = text.lower()
    fitting = [hash_ for hash_ in hashes if hash_.startswith(text) or text.startswith(hash_)]
    if len(fitting) > 1:
        raise ResultsError(_ambiguous(text, fitting))
    return fitting[0] if fitting else named


def names_commit(text: str, repository: Path | None) -> bool:
    """Return whether git takes it for the name of a commit, and not for the beginning of a hash."""
    is_name = not is_hash(text) or _is_reference(text, repository)
    return is_name and find_commit(text, repository) is not None


def why_unresolved(text: str, repository: Path | None) -> str:
    """Say what git knows of a text that names no commit with results, with the next step."""
    quoted = repr(text)
    if commit := find_commit(text, repository):
        subject = _git_in(repository, "log", "--no-walk", "--format=%s", commit).strip()
        words = f"{commit[:8]} {subject[:_MAX_SUBJECT]}".strip()
        return (
            f"there are no results of {text}, which git knows ({words}); measure it with "
            f"`asv run {commit[:8]}^!`"
        )
    if not _git_in(repository, "rev-parse", "--git-dir"):
        return (
            f"there are no results of {text}; git finds no repository here, so that only hashes "
            "and their beginnings, of four characters or more, name commits"
        )
    found = _object(text, repository)
    if found and (kind := _git_in(repository, "cat-file", "-t", found).strip()):
        leads_to = "leads to no commit" if kind == "tag" else f"is a {kind}, not a commit"
        return f"{quoted} {leads_to}; give a branch, a tag or a hash of a commit"
    if is_hash(text):
        listed = _git_in(repository, "rev-parse", f"--disambiguate={text.lower()}")
        types = _git_in(repository, "cat-file", "--batch-check", given=listed)
        several = [line.split()[0] for line in _lines(types) if line.split()[1:2] == ["commit"]]
        if len(several) > 1:
            return _ambiguous(text, several)
    hint = _near_name(text, repository)
    if not hint and _git_in(repository, "rev-parse", "--is-shallow-repository").strip() == "true":
        hint = "; this clone is shallow: `git fetch --unshallow` gets the commits that it lacks"
    return f"git knows no commit {quoted}{hint}"


def range_fault(text: str) -> str:
    """Say that a text is a range of commits, and what to give; empty where it is none."""
    if ends := _COMMIT_RANGE.fullmatch(text):
        return (
            f"{text!r} is a range of commits; compare its two ends: gpubench compare "
            f"{ends['old'] or CHECKED_OUT} {ends['new'] or CHECKED_OUT}"
        )
    if alone := _ONE_COMMIT.fullmatch(text):
        return f"{text!r} is a range of commits; name one commit: {alone['commit']}"
    return ""


def is_hash(text: str) -> bool:
    """Return whether it looks like a hash, or like a beginning of one that git would take."""
    return bool(re.fullmatch("[0-9a-fA-F]{4,64}", text))


def find_commit(text: str, repository: Path | None) -> str | None:
    """Return the full hash of the commit that git takes it for; ``None`` where it is none."""
    found = _object(text, repository)
    if found is None:
        return None
    # Asked apart: "^{commit}" would become a part of ":/words of a subject".
    peeled = _git_in(repository, "rev-parse", "--verify", "--quiet", f"{found}^{{commit}}")
    return peeled.strip() or None


def _object(text: str, repository: Path | None) -> str | None:
    """Return the full hash of what git takes it for, a commit or not."""
    arguments = "rev-parse", "--verify", "--quiet", "--end-of-options", text
    found = _git_in(repository, *arguments).strip()
    return found if re.fullmatch("[0-9a-f]{40,64}", found) else None


def _is_reference(text: str, repository: Path | None) -> bool:
    """Return whether a branch or a tag has this name, which looks like a hash."""
    kinds = "heads", "tags", "remotes"
    return bool(_git_in(repository, "for-each-ref", *(f"refs/{kind}/{text}" for kind in kinds)))


def _ambiguous(text: str, hashes: Sequence[str]) -> str:
    lengths = range(len(text) + 4, _HASH_LENGTH)
    tell_apart = (n for n in lengths if len({hash_[:n] for hash_ in hashes}) == len(hashes))
    shown = next(tell_apart, _HASH_LENGTH)
    candidates = ", ".join(hash_[:shown] for hash_ in sorted(hashes)[:_MAX_CANDIDATES])
    more = ", ..." if len(hashes) > _MAX_CANDIDATES else ""
    return f"{text!r} names {len(hashes)} commits: {candidates}{more}; give more of the hash"


def _near_name(text: str, repository: Path | None) -> str:
    """Suggest a branch or a tag, for the end of a message; empty where none is near."""
    listed = "for-each-ref", f"--count={_MAX_NAMES}", "--format=%(refname:short)"
    names = _lines(_git_in(repository, *listed, "refs/heads", "refs/tags", "refs/remotes"))
    remote = next((name for name in names if name.endswith(f"/{text}")), None)
    return f"; did you mean {remote!r}?" if remote else did_you_mean(text, names)


def _shortened(subject: str) -> str:
    """Return a subject, or its beginning with an ellipsis."""
    if len(subject) <= _MAX_KEPT_SUBJECT:
        return subject
    return f"{subject[: _MAX_KEPT_SUBJECT - 1]}…"


def _lines(printed: str) -> list[str]:
    """Return the lines that git printed: ``splitlines`` would cut them at U+0085 and others too,
    which subjects and names of branches can hold."""
    return printed.removesuffix("\n").split("\n") if printed else []


def _git_in(repository: Path | None, *arguments: str, given: str = "") -> str:
    """Return what git prints in a repository; nothing without one."""
    return _git(repository, *arguments, given=given) if repository else ""


def _git(repository: Repository, *arguments: str, given: str = "") -> str:
    """Return what git prints, as text; nothing where it fails."""
    printed = ask_git(repository, *arguments, given=given.encode(errors="surrogateescape"))
    return printed.decode(errors="replace")
