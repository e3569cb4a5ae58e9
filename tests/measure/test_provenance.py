"""What is compared with a commit, as far as that needs no asv (`tests/histories` runs it)."""

import subprocess

import pytest

from gpubench.errors import KernelError
from gpubench.measure.provenance import CommitFiles, Provenance, differs_in_version_alone
from gpubench.measure.targets import path_at_commit


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "repo/suites").mkdir(parents=True)
    (tmp_path / "repo/suites/add.cl").write_text("old\n")
    git(tmp_path / "repo", "init", "--quiet")
    git(tmp_path / "repo", "add", ".")
    git(tmp_path / "repo", "commit", "--quiet", "-m", "one")
    return tmp_path / "repo"


def git(folder, *arguments):
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("content", [b"old\n", b"old\r\n"])
def test_a_file_is_the_commit_s_whatever_ends_its_lines(repository, content):
    files = CommitFiles(repository, "HEAD")
    assert files.has("suites/add.cl", content)
    assert not files.has("suites/other.cl", content)
    assert not files.has("suites/add.cl", b"new\n")


def test_files_are_found_by_the_end_of_their_path(repository):
    files = CommitFiles(repository, "HEAD")
    assert files.ending_with("add.cl") == ["suites/add.cl"]
    assert files.ending_with("suites/add.cl") == ["suites/add.cl"]
    assert files.ending_with("es/add.cl") == []


def test_a_commit_that_git_does_not_know_has_no_files(repository):
    assert CommitFiles(repository, "0" * 40).blobs == {}
    assert CommitFiles(repository.parent, "HEAD").blobs == {}


def test_a_program_is_read_from_the_checkout_of_asv(repository, tmp_path, monkeypatch):
    program = repository / "suites/add.cl"
    assert path_at_commit(program) == program
    monkeypatch.setenv("ASV_ENV_DIR", str(tmp_path / "env"))
    monkeypatch.setenv("ASV_COMMIT", git(repository, "rev-parse", "HEAD").strip())
    assert path_at_commit(program) == tmp_path / "env/project/suites/add.cl"


def test_a_suite_of_another_repository_has_its_programs_with_it(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("ASV_ENV_DIR", str(tmp_path / "env"))
    monkeypatch.setenv("ASV_COMMIT", "0" * 40)
    program = repository / "suites/add.cl"
    assert path_at_commit(program) == program


@pytest.mark.parametrize(
    ("path", "before", "after", "alone"),
    [
        ("p/_version.py", b"import git\n", b"x = 1\n", True),
        ("p/__init__.py", b"__version__ = '0'\ny = 1\n", b"__version__ = '2'\ny = 1\n", True),
        ("p/__init__.py", b"__version__ = '0'\ny = 1\n", b"__version__ = '2'\ny = 2\n", False),
        ("p/kernel.py", b"y = 1\n", b"y = 2\n", False),
    ],
)
def test_a_build_may_write_a_version_and_nothing_else(path, before, after, alone):
    assert differs_in_version_alone(path, before, after) is alone


def misfit(cause):
    error = KernelError("it failed")
    error.__cause__ = cause
    return error


NEWER = Provenance("1a2b3c4d" * 5, newer_suites=frozenset({"s"}))


@pytest.mark.parametrize(
    ("cause", "name"),
    [
        (KeyError("window"), "window"),
        (TypeError("make() got an unexpected keyword argument 'window'"), "window"),
        (NameError(name="window"), "window"),
        (ModuleNotFoundError(name="mini.window"), "mini.window"),
    ],
)
def test_what_a_commit_does_not_know_is_named(cause, name):
    expected = f"`{name}` is not known at 1a2b3c4d: the suite is newer"
    assert NEWER.explain_misfit("s", misfit(cause), None) == expected
    assert NEWER.explain_misfit("s", ValueError(), misfit(cause)) == expected
    assert NEWER.explain_misfit("another", misfit(cause), None) is None


def test_what_fails_of_itself_is_no_misfit():
    for error in (misfit(ValueError("bad")), KernelError("a formula"), misfit(SyntaxError())):
        assert NEWER.explain_misfit("s", error, None) is None


def test_at_the_newest_commit_it_is_not_committed_yet():
    newest = Provenance("1a2b3c4d" * 5, newer_suites=frozenset({"s"}), is_newest=True)
    said = newest.explain_misfit("s", misfit(NameError(name="new")), None)
    assert str(said).startswith("`new` is not known at 1a2b3c4d: it is not committed yet; commit")


def test_the_facts_say_what_is_not_committed_and_whether_somebody_looked():
    assert Provenance("a" * 40, ("s.yaml", "k.py")).facts() == {"uncommitted": "s.yaml, k.py"}
    assert Provenance("a" * 40, ()).facts() == {"uncommitted": None}
    assert Provenance("a" * 40).facts() == {}
