"""Wheels and sdists hold what they should, and a new project works with nothing but the wheel."""

from __future__ import annotations

import os
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from asv_project import CHECKOUT, Project, isolated_environment
from packaging.requirements import Requirement

import softcuda
from gpubench.suite.schema import FILE

pytestmark = pytest.mark.ci


def shipped(folder: Path, package: str) -> list[str]:
    """Return the files of a package that its wheel has to hold."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in (folder / package).rglob("*")
        if path.suffix in {".py", ".jinja", ".c", ".h"}
        and "tests" not in path.relative_to(folder).parts
    )


SHIPPED = shipped(CHECKOUT, "gpubench")
SHIPPED_BY_SOFTCUDA = shipped(CHECKOUT / "softcuda", "softcuda")
PAGES = sorted(path.name for path in (CHECKOUT / "reports").iterdir() if path.is_file())
LIBRARY = sorted(
    path.relative_to(CHECKOUT / "suites").as_posix()
    for path in (CHECKOUT / "suites").rglob("*")
    if path.suffix in {".yaml", ".cu"}
)
MADE = {"__pycache__", ".hypothesis", "build", "softcuda.egg-info"}
"""Folders that a build or a run leaves."""
TESTED_FROM = sorted(
    path.relative_to(CHECKOUT).as_posix()
    for folder in (
        "benchmarks",
        "docs",
        "examples",
        "gpubench/edge",
        "packaging",
        "scripts",
        "softcuda",
        "suites",
        "tests",
    )
    for path in (CHECKOUT / folder).rglob("*")
    if path.is_file() and not MADE & set(path.relative_to(CHECKOUT).parts)
)
"""What packagers run the tests from, beside the package."""


def is_foreign(name: str) -> bool:
    """Whether a file has no place in a distribution."""
    return name.startswith(("reports/html/", ".asv/")) or "__pycache__" in name


def test_the_wheel_holds_the_package_and_its_templates(distributions: dict[str, Path]) -> None:
    with zipfile.ZipFile(distributions["wheel"]) as wheel:
        names = wheel.namelist()
    assert not any(map(is_foreign, names))
    assert set(SHIPPED) <= set(names)
    assert {f"gpubench/report/templates/{page}" for page in PAGES} <= set(names)
    assert {f"gpubench/library/{file}" for file in LIBRARY} <= set(names)
    assert [n for n in names if n.startswith("gpubench/data/")] == [f"gpubench/data/{FILE}"]
    assert "gpubench/py.typed" in names
    roots = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert roots == {"gpubench"}


def test_softcuda_s_wheel_holds_its_package_alone(distributions: dict[str, Path]) -> None:
    with zipfile.ZipFile(distributions["softcuda wheel"]) as wheel:
        names = wheel.namelist()
        entries = wheel.read(f"softcuda-{softcuda.__version__}.dist-info/entry_points.txt").decode()
    inside = {name for name in names if ".dist-info" not in name}
    assert inside == {*SHIPPED_BY_SOFTCUDA, "softcuda/py.typed"}
    assert f"softcuda-{softcuda.__version__}.dist-info/licenses/LICENSE" in names
    assert "softcuda = softcuda.__main__:main" in entries
    assert "softcuda = softcuda.pytest_plugin" in entries


def test_softcuda_s_sdist_holds_what_its_tests_need(distributions: dict[str, Path]) -> None:
    with tarfile.open(distributions["softcuda sdist"]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    tests = {path.name for path in (CHECKOUT / "softcuda/tests").iterdir() if path.is_file()}
    assert {*SHIPPED_BY_SOFTCUDA, "README.md", "CHANGELOG.md", "LICENSE"} <= names
    assert {f"tests/{name}" for name in tests} <= names
    assert not any(map(is_foreign, names))


def test_the_sdist_holds_what_the_wheel_is_built_from(distributions: dict[str, Path]) -> None:
    with tarfile.open(distributions["sdist"]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert not any(map(is_foreign, names))
    assert {*SHIPPED, "pyproject.toml", "README.md", "LICENSE"} <= names
    assert {*TESTED_FROM, "CHANGELOG.md", "Makefile", "mkdocs.yml"} <= names
    assert {f"reports/{page}" for page in PAGES} <= names


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory, home: Path, wheel: Path) -> Project:
    """An empty folder, and commands from an environment into which only the wheel was installed."""
    folder = tmp_path_factory.mktemp("newcomer")
    environment = isolated_environment(home)
    shell = Project(folder, environment)
    shell.run(sys.executable, "-m", "venv", folder / "venv")
    shell.run(folder / "venv/bin/python", "-m", "pip", "install", "--quiet", wheel)
    path = os.pathsep.join([str(folder / "venv/bin"), environment["PATH"]])
    (folder / "first steps").mkdir()
    return Project(folder / "first steps", {**environment, "PATH": path})


def test_a_newcomer_gets_from_an_empty_folder_to_a_report(newcomer: Project) -> None:
    newcomer.run("gpubench", "init")
    newcomer.git("init", "--quiet", "--initial-branch=main")
    newcomer.git("add", ".")
    newcomer.git("commit", "-m", "Benchmarks")
    assert newcomer.git("status", "--short") == ""
    newcomer.run("gpubench", "check")
    newcomer.asv("machine", "--yes")
    newcomer.asv("run", "--quick", "main^!", GPUBENCH_PRESET="smoke")

    page = Path(newcomer.run("gpubench", "report").stdout.splitlines()[-1])

    assert page.is_relative_to(newcomer.path / "reports/html")
    text = page.read_text().replace("<wbr>", "")  # where a long name may break
    assert "saxpy" in text and "numba_parallel" in text
    assert newcomer.git("status", "--short") == ""
    times = newcomer.times("main")
    assert times["suites.saxpy__numpy.time_kernel", "n=65536"]
    assert times["suites.saxpy__numba_parallel.time_kernel", "n=65536"]


@pytest.mark.thorough  # tests/cli/test_library.py verifies it in a checkout
def test_the_library_is_verified_in_an_empty_folder(newcomer: Project, tmp_path: Path) -> None:
    elsewhere = Project(tmp_path, newcomer.environment)

    shown = elsewhere.run(
        "gpubench",
        "verify",
        "--library",
        "vector_add",
        "--where",
        "implementation == 'numba_parallel'",
    )

    assert "vector_add" in shown.stdout and "right" in shown.stdout


def test_gpubench_comes_from_the_wheel_and_not_from_the_checkout(newcomer: Project) -> None:
    code = "import gpubench; print(gpubench.__file__)"
    found = Path(newcomer.run("python", "-c", code).stdout.strip())
    assert found.is_relative_to(newcomer.path.parent / "venv")


def test_an_asv_that_recurses_without_end_is_not_installed() -> None:
    stated = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["dependencies"]
    (asv,) = (each for each in map(Requirement, stated) if each.name == "asv")
    assert [*asv.specifier.filter(["0.6.4", "0.6.5", "0.6.6"])] == ["0.6.5", "0.6.6"]
