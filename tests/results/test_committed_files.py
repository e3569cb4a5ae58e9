"""Reading the code of a commit: by its path, or as Python imports it; nothing of it runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpubench import git
from gpubench.git import BareRepository, read_committed


def run_git(folder: Path, *arguments: str) -> str:
    identity = "-c", "user.name=t", "-c", "user.email=t@example.org"
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, files: dict[str, str]) -> str:
    folder.mkdir(exist_ok=True)
    run_git(folder, "init", "-q")
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    run_git(folder, "add", "-A")
    run_git(folder, "commit", "-qm", "Add files")
    return run_git(folder, "rev-parse", "HEAD")


def test_a_file_is_found_by_the_end_of_its_path(tmp_path: Path) -> None:
    files = {
        "src/deep/er/kernels/a.py": "deepest", "src/kernels/a.py": "of src",
        "src/other_kernels/a.py": "another",
    }  # fmt: skip
    hash_ = commit(tmp_path / "r", files)

    assert read_committed(tmp_path / "r", hash_, "kernels/a.py") == b"of src"
    assert read_committed(tmp_path / "r", hash_[:8], "other_kernels/a.py") == b"another"
    assert read_committed(tmp_path / "r", hash_, "kernels/b.py") == b""


def test_the_commit_counts_and_not_the_folder(tmp_path: Path) -> None:
    old = commit(tmp_path / "r", {"kernels.py": "old"})
    new = commit(tmp_path / "r", {"kernels.py": "new"})
    (tmp_path / "r/kernels.py").write_text("newer")

    assert [read_committed(tmp_path / "r", one, "kernels.py") for one in (old, new)] == [
        b"old", b"new",
    ]  # fmt: skip


def test_a_folder_inside_and_a_bare_repository_have_it_too(tmp_path: Path) -> None:
    hash_ = commit(tmp_path / "r", {"project/kernels.py": "code"})
    run_git(tmp_path, "clone", "-q", "--bare", str(tmp_path / "r"), str(tmp_path / "bare"))

    assert read_committed(tmp_path / "r/project", hash_, "kernels.py") == b"code"
    assert read_committed(BareRepository(tmp_path / "bare"), hash_, "kernels.py") == b"code"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "r").mkdir()
    (tmp_path / "r/kernels.py").symlink_to(tmp_path / "secret")
    hash_ = commit(tmp_path / "r", {"other.py": ""})

    assert b"secret" not in read_committed(tmp_path / "r", hash_, "kernels.py").splitlines()


def test_no_filter_of_the_repository_runs(tmp_path: Path) -> None:
    hash_ = commit(tmp_path / "r", {"kernels.py": "code", ".gitattributes": "*.py filter=f diff=f"})
    for name in ("filter.f.smudge", "diff.f.textconv"):
        run_git(tmp_path / "r", "config", name, f"touch {tmp_path / 'ran'}; cat")

    assert read_committed(tmp_path / "r", hash_, "kernels.py") == b"code"
    assert not (tmp_path / "ran").exists()


def test_a_large_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "MAX_FILE_BYTES", 3)
    hash_ = commit(tmp_path / "r", {"kernels.py": "code", "small.py": "abc"})

    assert read_committed(tmp_path / "r", hash_, "kernels.py") == b""
    assert read_committed(tmp_path / "r", hash_, "small.py") == b"abc"


@pytest.mark.parametrize("name", ["HEAD", "--all", "", "abc", "HEAD:kernels.py", "zzzzzzzz"])
def test_a_commit_is_a_hash(tmp_path: Path, name: str) -> None:
    commit(tmp_path / "r", {"kernels.py": "code"})

    assert read_committed(tmp_path / "r", name, "kernels.py") == b""
