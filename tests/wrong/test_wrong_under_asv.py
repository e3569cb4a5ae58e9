"""One ``asv run`` over the folder of wrong kernels: each ends as it has to, and none has a time."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from typing import Any

import pytest
from asv_project import CHECKOUT, CUDA_SAMPLE, HERE, Project, isolated_environment
from expectations import FOLDER, OUTCOMES, otherwise, outcome

# test_wrong_under_time.py measures the same folder without asv.
pytestmark = [pytest.mark.end_to_end, pytest.mark.ci]

Rows = Mapping[str, Mapping[str, Any]]

COLUMNS = "suite, kernel, implementation, status, reason, seconds, speedup, warnings"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Make one commit of the folder, measured by the Python that runs the tests."""
    path = tmp_path_factory.mktemp("wrong") / "project"
    caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(FOLDER, path, ignore=caches)
    shutil.copytree(CHECKOUT / "benchmarks", path / "benchmarks", ignore=caches)
    shutil.copy(CUDA_SAMPLE / "asv.conf.json", path)
    (path / ".gitignore").write_text("/.asv/\n__pycache__/\n")
    home = tmp_path_factory.mktemp("home")
    made = Project(path, {**isolated_environment(home), "ASV_PYTHONPATH": str(path)})
    made.git("init", "--quiet", "--initial-branch=main")
    made.commit("only", 1)
    made.asv("machine", "--yes")
    made.asv("run", *HERE, code=2)
    return made


@pytest.fixture(scope="module")
def rows(project: Project) -> Rows:
    """Return what the table has of each case, by suite, kernel and implementation."""
    printed = project.run("gpubench", "query", f"select {COLUMNS} from results", "--json").stdout
    listed = json.loads(printed)
    return {" ".join((r["suite"], r["kernel"], r["implementation"])): r for r in listed}


def test_each_ends_as_it_has_to(rows: Rows) -> None:
    for name in OUTCOMES:
        assert name in rows or name.removesuffix("*") + "numpy" in rows, name
    unlike = otherwise(rows, {name: outcome(name).under_asv() for name in rows})
    assert not unlike, unlike


def test_nothing_but_what_is_right_has_a_time(rows: Rows) -> None:
    for name, row in rows.items():
        if outcome(name).status != "ok":
            assert (row["seconds"], row["speedup"]) == (None, None), name


def test_asv_has_no_time_of_them_either(project: Project) -> None:
    for (benchmark, _), seconds in project.times("only").items():
        if outcome(benchmark.split(".")[1].replace("__", " ")).status != "ok":
            assert seconds is None or seconds != seconds, benchmark
