"""Which commits lie between two ends, and when a search begins no more."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpubench.errors import GpubenchError
from gpubench.measure.bisecting import read_line


class Repository:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        person = ("-c", "user.name=a", "-c", "user.email=a@b")
        done = subprocess.run(
            ["git", *person, *arguments], cwd=self.path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, subject: str) -> str:
        self.git("commit", "--quiet", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")


@pytest.mark.slow
def test_the_line_follows_first_parents_and_says_why_there_is_none(tmp_path: Path) -> None:
    its = Repository(tmp_path)
    good = its.commit("start")
    its.git("checkout", "--quiet", "-b", "branch")
    on_branch = its.commit("on the branch")
    its.git("checkout", "--quiet", "main")
    its.commit("on main")
    its.git("merge", "--quiet", "--no-ff", "-m", "merge it", "branch")
    bad = its.commit("last")

    line = read_line(str(tmp_path), good, bad)
    assert [commit.subject for commit in line] == ["on main", "merge it", "last"]
    assert [commit.parents for commit in line] == [1, 2, 1]
    assert line[-1].hash == bad
    assert line[0].author_date > 1e9

    for ends, words in (
        ((bad, bad), "are the same commit"),
        ((bad, good), "is behind --bad"),
        ((on_branch, its.git("rev-parse", "main~2")), f"--good {good[:8]}"),
    ):
        with pytest.raises(GpubenchError, match=words):
            read_line(str(tmp_path), *ends)
    with pytest.raises(GpubenchError, match="none of git's"):
        read_line(None, good, bad)
