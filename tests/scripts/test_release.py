"""What a release is made of: one version, one list of requirements, notes, a workflow."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

import softcuda
from gpubench import __version__

CHECKOUT = Path(__file__).parents[2]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
RECIPE: dict[str, Any] = yaml.safe_load(
    (CHECKOUT / "packaging/conda-forge/recipe.yaml").read_text()
)
CHANGELOG = """\
# Changelog

## 0.2.0 - 1 May 2027

- New.

## 0.1.0 - unreleased

First.

### Suites

- Suites.
"""
OF_CONDA = {"duckdb": "python-duckdb", "build": "python-build"}
"""Names of conda-forge where they are others."""


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", CHECKOUT / "scripts/release.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_the_same_wherever_it_stands() -> None:
    citation = yaml.safe_load((CHECKOUT / "CITATION.cff").read_text())
    assert (citation["version"], RECIPE["context"]["version"]) == (__version__, __version__)


def test_the_recipe_requires_what_the_wheel_requires() -> None:
    stated = [Requirement(text) for text in PROJECT["dependencies"]]
    wanted = [f"{OF_CONDA.get(each.name, each.name)} {each.specifier}" for each in stated]
    assert RECIPE["requirements"]["run"] == ["python >=${{ python_min }}", *wanted]
    assert PROJECT["requires-python"] == f">={RECIPE['context']['python_min']}"


def test_extras_are_written_as_every_pip_reads_them() -> None:
    names = [*PROJECT["optional-dependencies"]]
    assert [name for name in names if not re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", name)] == []


def test_what_is_required_is_imported() -> None:
    """asv is run; all else that is required stands in an import."""
    modules = {"pyyaml": "yaml", "nvidia-ml-py": "pynvml"}
    code = "".join(path.read_text() for path in (CHECKOUT / "gpubench").rglob("*.py"))
    names = {Requirement(text).name for text in PROJECT["dependencies"]}
    imported = {
        name
        for name in names
        if re.search(rf"^\s*(import|from) {modules.get(name, name)}\b", code, re.MULTILINE)
    }
    assert names - imported == set()


@pytest.fixture
def changelog(tmp_path: Path) -> Path:
    path = tmp_path / "CHANGELOG.md"
    path.write_text(CHANGELOG)
    return path


def test_notes_are_what_the_changelog_says_of_the_version(
    release: ModuleType, changelog: Path
) -> None:
    assert release.section_of(changelog, "0.2.0") == ("0.2.0 - 1 May 2027", "- New.\n")
    heading, notes = release.section_of(changelog, "0.1.0")
    assert heading == "0.1.0 - unreleased"
    assert notes == "First.\n\n### Suites\n\n- Suites.\n"


def test_a_version_that_the_changelog_has_not_is_refused(
    release: ModuleType, changelog: Path
) -> None:
    with pytest.raises(SystemExit, match=r"CHANGELOG\.md has no heading '## 0\.3\.0'"):
        release.section_of(changelog, "0.3.0")


@pytest.mark.parametrize(
    ("folder", "file"), [(".", "CHANGELOG.md"), ("softcuda", "softcuda/CHANGELOG.md")]
)
def test_an_unreleased_version_waits(release: ModuleType, folder: str, file: str) -> None:
    (date, *_) = release.reasons_to_wait(CHECKOUT / folder, "0.1.0 - unreleased")
    assert date == f"{file} says '0.1.0 - unreleased': write the date in place of 'unreleased'"
    dated = release.reasons_to_wait(CHECKOUT / folder, "0.1.0 - 1 May 2027")
    assert not any("date" in reason for reason in dated)


def test_the_readme_says_the_installed_size_that_a_release_is_held_to(release: ModuleType) -> None:
    (said,) = re.findall(r"fresh environment takes (\d+) MiB", (CHECKOUT / "README.md").read_text())
    most = release.MAX_INSTALLED_BYTES / 2**20
    assert 0.9 * most < int(said) <= most


def test_softcuda_s_changelog_has_its_version(release: ModuleType) -> None:
    assert release.softcuda_version() == softcuda.__version__
    release.section_of(CHECKOUT / "softcuda/CHANGELOG.md", softcuda.__version__)


def test_gpubench_asks_for_the_softcuda_that_it_is_tested_with() -> None:
    """Or a newer one, until its next version that may change what gpubench calls."""
    stated = map(Requirement, chain.from_iterable(PROJECT["optional-dependencies"].values()))
    asked = {str(one.specifier) for one in stated if one.name == "softcuda"}
    major, minor, _ = softcuda.__version__.split(".")
    assert asked == {f"<{major}.{int(minor) + 1},>={softcuda.__version__}"}


def test_softcuda_needs_numba_cuda_alone() -> None:
    project = tomllib.loads((CHECKOUT / "softcuda/pyproject.toml").read_text())["project"]
    numba_cuda, bound = map(Requirement, project["dependencies"])
    assert (numba_cuda.name, numba_cuda.extras) == ("numba-cuda", {"cu13"})
    assert (bound.name, bound.specifier.contains("2.5")) == ("numpy", False)  # it needs NumPy
    assert (CHECKOUT / "softcuda/LICENSE").read_text() == (CHECKOUT / "LICENSE").read_text()


def test_the_workflow_publishes_without_a_token() -> None:
    workflow = yaml.safe_load((CHECKOUT / ".github/workflows/release.yml").read_text())
    jobs = workflow["jobs"]
    assert workflow["permissions"] == {}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"] == "release"
    assert (jobs["publish"]["needs"], jobs["notes"]["needs"]) == ("build", "publish")
    steps = [step.get("run", "") for step in jobs["build"]["steps"]]
    assert 'python scripts/release.py --tag "$GITHUB_REF_NAME"' in steps
