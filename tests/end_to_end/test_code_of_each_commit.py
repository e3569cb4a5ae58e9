"""Each commit is measured with its own code, where all of them bear one version.

pip does nothing for a wheel whose version is installed already.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from asv_project import Project, isolated_environment

pytestmark = pytest.mark.ci

SETUP = """\
from setuptools import Extension, setup

NAME = "zeta-lib"
setup(name=NAME, version="0.1", packages=["zeta"], install_requires=["numpy"])
"""
SUITE = """\
version: 1
suite: adding
backend: numpy
kernels:
  add:
    sizes: {n: [1000]}
    arrays: {x: {shape: [n], dtype: float64}, y: {shape: [n], dtype: float64, intent: out}}
    call: [x, y]
    implementations:
      numpy: {function: "zeta.adding:add_numpy"}
      other: {function: "zeta.adding:add_other"}
"""
KERNELS = """\
def add_numpy(x, y):
    y[:] = x + 1

def add_other(x, y):
    y[:] = x + 1
"""
WRONG = KERNELS[::-1].replace("1 + x", "2 + x", 1)[::-1]


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Project:
    """Two commits: in the second, ``tag wrong``, an implementation computes something else."""
    folder = tmp_path / "folder"
    (folder / "zeta").mkdir(parents=True)
    (folder / "zeta" / "__init__.py").touch()
    (folder / "setup.py").write_text(SETUP)
    (folder / "zeta" / "adding.py").write_text(KERNELS)
    project = Project(folder, isolated_environment(home))
    project.git("init", "--quiet", "--initial-branch=main")
    project.run("gpubench", "init")
    (folder / "suites").mkdir()
    (folder / "suites" / "adding.yaml").write_text(SUITE)
    return project


def outcomes(project: Project, tag: str) -> dict[str, str]:
    """What became of each implementation at a commit."""
    return {
        name: project.outcome(tag, f"suites.adding__add__{name}.time_kernel", "n=1000").status
        for name in ("numpy", "other")
    }


def test_what_init_writes_replaces_the_code_whatever_asv_uninstalls(project: Project) -> None:
    assert '"project": "zeta-lib"' in (project.path / "asv.conf.json").read_text()
    assert not [*project.path.glob("*.egg-info")]
    # asv's uninstall finds nothing now: what is installed is replaced all the same.
    project.edit("asv.conf.json", '"zeta-lib"', '"of-another-name"')
    project.commit("good", 1)
    (project.path / "zeta" / "adding.py").write_text(WRONG)
    project.commit("wrong", 2)
    project.asv("machine", "--yes")

    project.asv("run", "--quick", "good^!")
    project.asv("run", "--quick", "wrong^!", code=2)
    project.asv("run", "--quick", "good^!")

    assert outcomes(project, "good") == {"numpy": "ok", "other": "ok"}
    assert outcomes(project, "wrong") == {"numpy": "ok", "other": "wrong"}
