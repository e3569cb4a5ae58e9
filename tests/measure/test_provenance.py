"""What is compared with a commit, as far as that needs no asv (`tests/histories` runs it)."""

import shutil
import subprocess

import pytest

from gpubench.errors import KernelError
from gpubench.git import list_files
from gpubench.measure.commit_files import CommitFiles
from gpubench.measure.provenance import Code, ImportableFile, Provenance, differs_in_version_alone
from gpubench.measure.targets import path_at_commit


@pytest.fixture
def repository(tmp_path):
    return make_repository(tmp_path)


def make_repository(tmp_path):
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
    expected = (
        f"`{name}` is not known at 1a2b3c4d: the suite is newer; if `{name}` had another name "
        "then, `was:` joins that one's results"
    )
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


@pytest.fixture(scope="module")
def whole_project(tmp_path_factory):
    """A project with a submodule, which has one itself, and another repository beside them."""
    tmp_path = tmp_path_factory.mktemp("whole")
    repository = make_repository(tmp_path)
    for name in ("inner", "outer", "beside"):
        made = tmp_path / name
        made.mkdir()
        git(made, "init", "--quiet")
        (made / f"{name}.py").write_text(f"x = '{name}'\n")
        git(made, "add", ".")
        git(made, "commit", "--quiet", "-m", "one")
    add = "-c", "protocol.file.allow=always", "submodule", "--quiet", "add"
    git(tmp_path / "outer", *add, str(tmp_path / "inner"), "deep")
    git(tmp_path / "outer", "commit", "--quiet", "-m", "two")
    git(repository, *add, str(tmp_path / "outer"), "lib")
    update = "submodule", "--quiet", "update", "--init", "--recursive"
    git(repository, "-c", "protocol.file.allow=always", *update)
    git(repository, "commit", "--quiet", "-m", "two")
    (tmp_path / "beside").rename(repository / "beside")
    return repository


@pytest.fixture
def project(whole_project, tmp_path):
    return shutil.copytree(whole_project, tmp_path / "repo", symlinks=True)


def test_submodules_are_part_of_a_commit_at_what_it_pins(project):
    files = CommitFiles(project, "HEAD")
    assert files.has("lib/outer.py", b"x = 'outer'\n")
    assert files.has("lib/deep/inner.py", b"x = 'inner'\n")
    assert files.content("lib/deep/inner.py") == b"x = 'inner'\n"
    assert not files.has("lib/outer.py", b"x = 2\n")
    (project / "lib/outer.py").write_text("x = 2\n")
    git(project / "lib", "commit", "--quiet", "-a", "-m", "newer than the pin")
    again = CommitFiles(project, "HEAD")
    assert not again.has("lib/outer.py", b"x = 2\n")
    (digest,) = again.digests_of(b"x = 2\n")
    assert again.known([digest]) == {digest}


def test_all_repositories_inside_belong_to_the_working_tree(project):
    (project / "lib/new.py").write_text("")
    (project / "lib/deep/new.py").write_text("")
    (project / "loop").symlink_to(project)
    assert {*list_files(project)} == {
        *(".gitmodules", "suites/add.cl", "loop", "beside/beside.py"),
        *("lib/.gitmodules", "lib/outer.py", "lib/new.py", "lib/deep/inner.py", "lib/deep/new.py"),
    }


def test_code_of_repositories_inside_is_no_commit_s_where_it_differs(project):
    code = Code(CommitFiles(project, "HEAD"), frozenset(), None, project)
    (project / "lib/deep/inner.py").write_text("x = 3\n")

    def fault(name):
        file = ImportableFile(project, project / name, code)
        return file.fault if file.places else "it is of others"

    assert fault("lib/outer.py") is None
    assert fault("lib/deep/inner.py") == "lib/deep/inner.py"
    assert fault("beside/beside.py") == "beside/beside.py"


def test_a_pin_that_git_does_not_have_proves_nothing(project):
    missing = f"160000,{'1' * 40},lib"
    git(project, "update-index", "--cacheinfo", missing)
    git(project, "commit", "--quiet", "-m", "a pin from elsewhere")
    for checkout, origin in ((None, project), (project, None)):
        code = Code(CommitFiles(project, "HEAD"), frozenset(), checkout, origin)
        assert ImportableFile(project, project / "lib/outer.py", code).fault == "lib/outer.py"


def test_a_program_of_a_submodule_is_read_from_the_checkout(project, tmp_path, monkeypatch):
    monkeypatch.setenv("ASV_ENV_DIR", str(tmp_path / "env"))
    monkeypatch.setenv("ASV_COMMIT", git(project, "rev-parse", "HEAD").strip())
    found = path_at_commit(project / "lib/deep/add.cl")
    assert found == tmp_path / "env/project/lib/deep/add.cl"
