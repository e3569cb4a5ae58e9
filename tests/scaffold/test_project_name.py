"""``gpubench init`` calls a project what pip calls it: asv uninstalls it by that name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from asv.config import Config
from click.testing import CliRunner, Result

from gpubench.cli import main
from gpubench.scaffold import project as scaffold
from gpubench.scaffold.project_name import (
    ProjectError,
    ProjectName,
    ask_build_backend,
    check_name,
    read_stated_name,
)

SETUPTOOLS = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
BY_VARIABLE = 'from setuptools import setup\nNAME = "zeta-lib"\nsetup(name=NAME, version="1")\n'

BACKEND = """\
from pathlib import Path

def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    Path("ran").touch()
    Path("zeta.egg-info").mkdir()
    folder = Path(metadata_directory, "zeta-1.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\\nName: {name}\\nVersion: 1\\n")
    return folder.name

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    raise NotImplementedError
"""
"""A build backend that needs nothing to be installed, so that no test needs a package index."""


def make_project(directory: Path, **files: str) -> Path:
    """A project with a package ``zeta`` and these files: ``setup_py`` is ``setup.py``."""
    (directory / "zeta").mkdir()
    (directory / "zeta" / "__init__.py").touch()
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        (directory / f"{stem}.{suffix}").write_text(text)
    return directory


def make_project_with_backend(directory: Path, name: str, backend: str = BACKEND) -> Path:
    """A project whose name only its own build backend knows."""
    make_project(
        directory,
        pyproject_toml='[build-system]\nrequires = []\nbuild-backend = "own"\n'
        'backend-path = ["."]\n',
    )
    (directory / "own.py").write_text(backend.replace("{name}", name))
    return directory


def init(directory: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["init", str(directory), *arguments])


@pytest.mark.parametrize(
    ("files", "name", "source"),
    [
        (
            {"pyproject_toml": '[project]\nname = "Zeta.Lib"\n', "setup_py": BY_VARIABLE},
            "Zeta.Lib",
            "[project] of pyproject.toml",
        ),
        (
            {
                "pyproject_toml": '[tool.poetry]\nname = "zeta_lib"\n'
                '[build-system]\nbuild-backend = "poetry.core.masonry.api"\n'
            },
            "zeta_lib",
            "[tool.poetry] of pyproject.toml",
        ),
        (
            {
                "pyproject_toml": '[tool.flit.metadata]\nmodule = "zeta"\ndist-name = "zeta-lib"\n'
                '[build-system]\nbuild-backend = "flit_core.buildapi"\n'
            },
            "zeta-lib",
            "[tool.flit.metadata] of pyproject.toml",
        ),
        (
            {
                "pyproject_toml": '[tool.flit.metadata]\nmodule = "zeta"\n'
                '[build-system]\nbuild-backend = "flit.buildapi"\n'
            },
            "zeta",
            "[tool.flit.metadata] of pyproject.toml",
        ),
        (
            {"pyproject_toml": SETUPTOOLS, "setup_cfg": "[metadata]\nname = zeta-lib\n"},
            "zeta-lib",
            "setup.cfg",
        ),
        (
            {
                "setup_py": "import setuptools\nsetuptools.setup()\n",
                "setup_cfg": "[metadata]\nname = zeta-lib\n",
            },
            "zeta-lib",
            "setup.cfg",
        ),
        (
            {
                "setup_py": 'from setuptools import setup as do\ndo(name="of-setup-py")\n',
                "setup_cfg": "[metadata]\nname = of-setup-cfg\n",
            },
            "of-setup-py",
            "setup.py",
        ),
        (
            {
                "setup_py": "from setuptools import Extension, setup\n"
                'extensions = [Extension(name="zeta._fast", sources=["fast.c"])]\n'
                'setup(name="zeta-lib", ext_modules=extensions)\n'
            },
            "zeta-lib",
            "setup.py",
        ),
        (
            {
                "setup_py": "try:\n    from setuptools import setup\nexcept ImportError:\n"
                '    from distutils.core import setup\nsetup(name="zeta-lib")\n'
            },
            "zeta-lib",
            "setup.py",
        ),
    ],
)
def test_a_name_that_files_state_is_read_where_the_backend_reads_it(
    tmp_path: Path, files: dict[str, str], name: str, source: str
) -> None:
    assert read_stated_name(make_project(tmp_path, **files)) == ProjectName(name, source)


@pytest.mark.parametrize(
    "files",
    [
        {"setup_py": BY_VARIABLE},
        {"setup_py": BY_VARIABLE, "setup_cfg": "[metadata]\nname = another\n"},
        {"setup_py": 'from setuptools import setup\nsetup(**{"name": "zeta-lib"})\n'},
        {"setup_py": 'from setuptools import setup\nsetup(name="zeta" + "-lib")\n'},
        {"setup_py": 'from setuptools import setup\nsetup(name=f"zeta-{1}")\n'},
        {"setup_py": 'from mine import setup\nsetup(name="zeta-lib")\n'},
        {
            "setup_py": "import sys\nfrom setuptools import setup\n"
            'if sys.argv:\n    setup(name="one")\nelse:\n    setup(name="two")\n'
        },
        {"setup_py": 'from setuptools import setup\nsetup(name="Zeta Lib")\n'},
        {"setup_py": "from setuptools import setup\nprint 'Python 2'\n"},
        {"setup_py": "from setuptools import setup\nsetup()\n"},
        {"setup_py": 'from setuptools import Extension\nExtension(name="zeta._fast")\n'},
        {"pyproject_toml": '[project]\nname = 3\n[tool.poetry]\nname = "zeta-lib"\n'},
        # pip builds it with setuptools, which reads nothing of poetry's.
        {"pyproject_toml": '[tool.poetry]\nname = "zeta-lib"\n'},
        {"pyproject_toml": 'project = "zeta"\n'},
        {
            "pyproject_toml": '[build-system]\nbuild-backend = "maturin"\n',
            "setup_py": 'from setuptools import setup\nsetup(name="zeta-lib")\n',
        },
    ],
)
def test_a_name_that_no_file_states_is_not_guessed(tmp_path: Path, files: dict[str, str]) -> None:
    assert read_stated_name(make_project(tmp_path, **files)) is None


def test_the_backend_is_asked_for_a_name_that_no_file_states(tmp_path: Path) -> None:
    project = make_project_with_backend(tmp_path, "Zeta.Lib")
    done = init(project)
    assert done.exit_code == 0, done.output
    assert Config.load(str(project / "asv.conf.json")).project == "Zeta.Lib"
    assert "The project is called Zeta.Lib, as its build backend says." in done.stdout
    assert "its build backend is asked, which runs code" in done.stderr
    assert (project / "ran").exists()


def test_metadata_that_the_backend_left_is_removed_and_that_of_the_user_kept(
    tmp_path: Path,
) -> None:
    project = make_project_with_backend(tmp_path, "zeta-lib")
    (project / "old.egg-info").mkdir()
    ask_build_backend(project)
    assert [path.name for path in project.glob("*.egg-info")] == ["old.egg-info"]


def test_a_setup_py_with_a_variable_is_named_by_setuptools(tmp_path: Path) -> None:
    assert ask_build_backend(make_project(tmp_path, setup_py=BY_VARIABLE)).name == "zeta-lib"


@pytest.mark.parametrize("name", ["UNKNOWN", ""])
def test_a_project_without_a_name_is_refused(tmp_path: Path, name: str) -> None:
    done = init(make_project_with_backend(tmp_path, name))
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == (
        f"gpubench: the project in {str(tmp_path)!r} has no name; "
        "name the project: gpubench init --project NAME"
    )
    assert not (tmp_path / "asv.conf.json").exists()


def test_a_backend_that_fails_is_told_in_one_line_with_the_way_out(tmp_path: Path) -> None:
    failing = "raise RuntimeError('needs a compiler')\n"
    done = init(make_project_with_backend(tmp_path, "zeta", failing))
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == (
        f"gpubench: no file of {str(tmp_path)!r} states the project's name, and its build backend "
        "failed: RuntimeError: needs a compiler; name the project: gpubench init --project NAME"
    )
    assert not (tmp_path / "asv.conf.json").exists()


@pytest.mark.parametrize(
    "pyproject", ["build-system = 3\n", '[build-system]\nrequires = ["no such thing"]\n']
)
def test_a_build_system_that_cannot_be_used_is_told_too(tmp_path: Path, pyproject: str) -> None:
    done = init(make_project(tmp_path, pyproject_toml=pyproject))
    assert done.exit_code == 2
    assert "and its build backend failed: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_that_the_user_gives_asks_nobody(tmp_path: Path) -> None:
    project = make_project_with_backend(tmp_path, "zeta-lib")
    done = init(project, "--project", "mine")
    assert done.exit_code == 0, done.output
    assert Config.load(str(project / "asv.conf.json")).project == "mine"
    assert "The project is called mine, as --project says." in done.stdout
    assert not (project / "ran").exists()


def test_a_new_project_gets_the_name_that_the_user_gives(tmp_path: Path) -> None:
    done = init(tmp_path / "folder", "--project", "My-Tool")
    assert done.exit_code == 0, done.output
    assert 'name = "My-Tool"' in (tmp_path / "folder" / "pyproject.toml").read_text()
    assert (tmp_path / "folder" / "my_tool" / "saxpy.py").is_file()


@pytest.mark.parametrize("name", ["", "two words", "-zeta", "zeta; rm -rf /", "zéta", "zeta==1"])
def test_a_name_that_pip_does_not_take_is_refused(name: str) -> None:
    with pytest.raises(ProjectError, match="is no name of a project; allowed: letters, digits"):
        check_name(name)


def test_a_configuration_that_is_kept_needs_no_name(tmp_path: Path) -> None:
    project = make_project_with_backend(tmp_path, "zeta-lib")
    (project / "asv.conf.json").write_text('{"project": "theirs"}')
    done = init(project)
    assert done.exit_code == 0, done.output
    assert "is called" not in done.stdout
    # What is added installs each commit anew, whatever the project is called.
    assert "added to asv.conf.json: plugins, install_command, build_command" in done.stdout
    assert not (project / "ran").exists()


def test_a_setup_cfg_alone_is_refused_as_pip_refuses_it(tmp_path: Path) -> None:
    project = make_project(tmp_path, setup_cfg="[metadata]\nname = zeta-lib\n")
    done = init(project)
    assert done.exit_code == 2
    assert "pip builds no project of a setup.cfg alone" in done.stderr
    assert not (project / "pyproject.toml").exists()


def test_a_setup_cfg_of_tools_makes_no_project(tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text("[flake8]\nmax-line-length = 100\n")
    assert scaffold.find_project(tmp_path).is_new


def test_a_damaged_setup_cfg_is_named(tmp_path: Path) -> None:
    project = make_project(tmp_path, pyproject_toml=SETUPTOOLS, setup_cfg="name = zeta\n")
    with pytest.raises(ProjectError, match=r"^cannot read '.*setup.cfg': .*; mend it first$"):
        read_stated_name(project)


def test_pip_finds_a_project_by_the_name_however_it_is_written(tmp_path: Path) -> None:
    """asv runs ``pip uninstall -y {project}``: pip compares names as PEP 503 says."""
    metadata = tmp_path / "zeta_lib-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: zeta_lib\nVersion: 1\n")
    (metadata / "RECORD").write_text(
        "zeta_lib-1.dist-info/METADATA,,\nzeta_lib-1.dist-info/RECORD,,\n"
    )
    (metadata / "INSTALLER").write_text("pip\n")
    shown = subprocess.run(
        [sys.executable, "-m", "pip", "show", "Zeta.Lib"],
        env={"PYTHONPATH": str(tmp_path)},
        text=True,
        capture_output=True,
    )
    assert "Name: zeta_lib" in shown.stdout, shown.stderr
