"""``gpubench init`` in a project that is there: it adds what is missing and says so, once."""

from __future__ import annotations

import errno
import os
import tomllib
from pathlib import Path

import pytest
from asv.config import Config
from click.testing import CliRunner

from gpubench import files
from gpubench.cli import main
from gpubench.scaffold.existing import add_packages, add_to_configuration
from gpubench.scaffold.project import ProjectError, write_project

BUILD = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "mine"
version = "1"
"""
FORMS = """\
from numba import njit

def other(a, out):
    out[:] = a

def double_numpy(a, out):
    out[:] = 2 * a

@njit
def no_baseline(a, b, out):
    for i in range(len(a)):
        out[i] = a[i] + b[i]

@njit
def double_numba(a, out):
    for i in range(len(a)):
        out[i] = 2 * a[i]
"""
MODULE = """\
def without_a_word(x, y):
    return x

def double(a, out):
    for i in range(len(a)):
        out[i] = 2 * a[i]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("gpubench.backends.devices.known_gpus", list)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return tmp_path


def init() -> str:
    result = CliRunner().invoke(main, ["init"])
    assert result.exit_code == 0, result.output
    return result.stdout


def write(path: str, text: str = "") -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def test_a_module_is_the_project_and_no_folder_hides_it(project: Path) -> None:
    write("mine.py", MODULE)
    said = init()
    content = tomllib.loads(Path("pyproject.toml").read_text())
    assert content["tool"]["setuptools"] == {"py-modules": ["mine"]}
    assert not Path("mine").exists() and not list(Path().glob("*/saxpy.py"))
    # What it says to do next works as it is printed.
    assert "  gpubench add mine:double\n" in said
    added = CliRunner().invoke(main, ["add", "mine:double"])
    assert added.exit_code == 0, added.output
    assert "gpubench add" not in init()
    suite = Path("suites/double.yaml").read_text()
    assert suite.startswith("# yaml-language-server: $schema=../gpubench.schema.json\n")


@pytest.mark.parametrize(
    ("path", "module"),
    [("forms.py", "forms"), ("src/mine/deep/forms.py", "mine.deep.forms")],
)
def test_a_compiled_function_and_its_baseline_are_the_next_step(
    project: Path, path: str, module: str
) -> None:
    write(path, FORMS)
    if module != "forms":
        write("pyproject.toml", BUILD)
        write("src/mine/__init__.py")
        write("src/mine/broken.py", "def")
        write("src/mine/tests/test_forms.py", FORMS)
    said = init()
    step = f"gpubench add {module}:double_numba --baseline {module}:double_numpy"
    assert f"  {step}\n" in said
    assert not [*Path().rglob("saxpy*")]
    added = CliRunner().invoke(main, step.split()[1:])
    assert added.exit_code == 0, added.output
    again = init()
    assert "gpubench add" not in again and "--example" not in again


def test_a_package_is_offered_an_example(project: Path) -> None:
    write("pyproject.toml", BUILD)
    write("mine/__init__.py")
    said = init()
    assert "  gpubench add MODULE:FUNCTION --baseline MODULE:FUNCTION\n" in said
    offer = said.splitlines()[-1].split()
    assert offer == ["gpubench", "init", "--example"]
    result = CliRunner().invoke(main, offer[1:])
    assert result.exit_code == 0, result.output
    assert "wrote mine/saxpy.py\nwrote suites/saxpy.yaml\n" in result.stdout
    assert "gpubench add" not in result.stdout and "--example" not in result.stdout


def test_an_asv_project_keeps_all_and_gets_what_is_missing(project: Path) -> None:
    write("pyproject.toml", BUILD)
    write("mine/__init__.py")
    write(".gitignore", "*.log\n/.asv\n")
    write("marks/all/speed.py", "def time_it(): pass\n")
    theirs = '// ours\n{"version": 1, // of asv\n "repo": ".", "benchmark_dir": "marks/all"}\n'
    write("asv.conf.json", theirs)
    said = init()
    assert [line for line in said.splitlines() if line.startswith("added")] == [
        "added to .gitignore: .venv/ __pycache__/ reports/html/",
        "added to asv.conf.json: plugins, install_command, build_command",
        'added to pyproject.toml: [tool.setuptools.packages.find] include = ["mine", "mine.*"]',
    ]
    assert "asv.conf.json was there" not in said
    configuration = Config.load("asv.conf.json")
    assert (configuration.repo, configuration.benchmark_dir) == (".", "marks/all")
    assert configuration.plugins == [".gpubench.asv_plugin"]
    assert "gpubench" in configuration.install_command[0]
    assert configuration.install_command[1].endswith("--force-reinstall {wheel_file}")
    # asv's own collects wheels of dependencies too, and stops at two.
    assert configuration.build_command == [
        "python -m pip wheel --no-deps -w {build_cache_dir} {build_dir}"
    ]
    door = Path("marks/all/suites.py").read_text()
    assert 'resolve().parent.parent.parent / "suites"' in door
    assert "added" not in init()


@pytest.mark.parametrize("added", ['"plugins": ["other"]', '"plugins": "other"'])
def test_a_plugin_that_is_there_stays(project: Path, added: str) -> None:
    write("asv.conf.json", f'{{\n  "version": 1, "repo": ".",\n  {added}\n}}')
    assert add_to_configuration(Path("asv.conf.json"), ["pip install ours"]) == [
        "plugins", "install_command", "build_command",
    ]  # fmt: skip
    assert Config.load("asv.conf.json").plugins == [".gpubench.asv_plugin", "other"]


@pytest.mark.parametrize("key", ["build_command", "install_command"])
def test_commands_of_a_projects_own_stay(project: Path, key: str) -> None:
    write("asv.conf.json", f'{{"version": 1, "repo": ".",\n"{key}": ["theirs"]}}')
    changed = add_to_configuration(Path("asv.conf.json"), ["pip install ours"])
    assert changed == ["plugins", "install_command"]
    assert getattr(Config.load("asv.conf.json"), key)[-1] == "theirs"


def test_what_is_added_has_the_line_ends_of_the_file(project: Path) -> None:
    path = Path("asv.conf.json")
    path.write_bytes(b'{\r\n  "version": 1,\r\n  "repo": "."\r\n}\r\n')
    add_to_configuration(path, ["pip install ours"])
    assert path.read_bytes().count(b"\r\n") == path.read_bytes().count(b"\n") > 4


def test_what_cannot_be_added_to_is_left_and_told(project: Path) -> None:
    write("pyproject.toml", BUILD)
    write("mine/__init__.py")
    theirs = '{"version": 1, "plugins": [// none ]\n "x"]}'
    write("asv.conf.json", theirs)
    assert "asv.conf.json was there and is kept" in init()
    assert Path("asv.conf.json").read_text() == theirs


def test_packages_that_are_stated_stay(project: Path) -> None:
    for text in (
        BUILD.replace("setuptools.build_meta", "hatchling.build"),
        f"{BUILD}[tool.setuptools]\npackages = ['mine']\n",
    ):
        write("pyproject.toml", text)
        assert add_packages(Path("pyproject.toml"), ["mine"], []) is None
    write("pyproject.toml", BUILD)
    write("src/mine/__init__.py")
    assert add_packages(Path("pyproject.toml"), ["mine"], []) is None


def test_what_fails_leaves_nothing_of_itself(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def until_it_is_full(path: Path, content: bytes) -> None:
        if len(written) == 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        written.append(path)
        files.write_new(path, content)

    monkeypatch.setattr("gpubench.scaffold.project.write_new", until_it_is_full)
    with pytest.raises(ProjectError, match="No space left on device"):
        write_project(project / "new")
    assert [path.name for path in project.iterdir()] == [".git"]
