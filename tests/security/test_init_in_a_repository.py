"""``gpubench init`` runs nothing of a repository whose files state its name, or that is named."""

from __future__ import annotations

import pytest
from untrusted import Untrusted, plant

PYPROJECT = """\
[build-system]
requires = []
build-backend = "planted_kernels"
backend-path = ["."]
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Untrusted:
    return plant(tmp_path_factory.mktemp("untrusted"))


@pytest.fixture
def repository(planted: Untrusted) -> Untrusted:
    """A repository with code in every place, whose name stands nowhere yet; without asv."""
    root = planted.folder
    for name in ("asv.conf.json", "pyproject.toml"):
        (root / name).unlink(missing_ok=True)
    planted.ran.unlink(missing_ok=True)
    (root / "zeta").mkdir(exist_ok=True)
    (root / "zeta" / "__init__.py").write_text(planted.python("the package"))
    (root / "setup.py").write_text(planted.python("setup.py"))
    return planted


def test_init_runs_nothing_where_pyproject_states_the_name(repository: Untrusted) -> None:
    text = f'{PYPROJECT}[project]\nname = "zeta-lib"\nversion = "1"\n'
    (repository.folder / "pyproject.toml").write_text(text)

    done = repository.run("init")

    assert done.returncode == 0, done.stderr
    assert '"project": "zeta-lib"' in (repository.folder / "asv.conf.json").read_text()
    assert repository.what_ran() == []


def test_init_runs_nothing_where_setup_py_states_the_name(repository: Untrusted) -> None:
    with (repository.folder / "setup.py").open("a") as script:
        script.write('from setuptools import setup\nsetup(name="zeta-lib")\n')

    done = repository.run("init")

    assert done.returncode == 0, done.stderr
    assert repository.what_ran() == []


def test_init_runs_nothing_where_the_name_is_given(repository: Untrusted) -> None:
    (repository.folder / "pyproject.toml").write_text(PYPROJECT)

    done = repository.run("init", "--project", "zeta-lib")

    assert done.returncode == 0, done.stderr
    assert repository.what_ran() == []


def test_init_runs_nothing_where_a_configuration_is_kept(repository: Untrusted) -> None:
    (repository.folder / "pyproject.toml").write_text(PYPROJECT)
    (repository.folder / "asv.conf.json").write_text("{}")

    done = repository.run("init")

    assert done.returncode == 0, done.stderr
    assert repository.what_ran() == []


def test_init_says_before_it_runs_the_build_backend(repository: Untrusted) -> None:
    (repository.folder / "pyproject.toml").write_text(PYPROJECT)

    done = repository.run("init")

    assert repository.what_ran() != []
    assert done.stderr.startswith("gpubench: no file states the project's name, so that its build ")
    assert "--project NAME runs nothing of it" in done.stderr.splitlines()[0]
