"""Counts through asv: into the record, into ``track_*`` results, and what asv's commands show of
them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asv.config import Config
from asv.plugins.regressions import _GraphDataFilter
from asv_project import BORROW, CHECKOUT, Project, isolated_environment, make_cuda_project

from gpubench.record import CountsRecord, parse_line
from gpubench.scaffold.project import find_project, write_project
from gpubench.work.costs import TRACKED_COSTS
from gpubench.work.derived import sectors_per_request

pytestmark = pytest.mark.ci

CASE = "n=1000 block=128 device=cuda:0"
TRACKED = "suites.pair__negate__right.track_"
KERNEL = "suites.pair__negate__right.time_kernel"

STRAIGHT = "def scale_right(a):\n    i = cuda.grid(1)\n    if i < a.size:\n        a[i] *= -1\n"
SCATTERED = STRAIGHT.replace("a[i]", "a[i * 33 % a.size]")
"""33 and 1000 have no common divisor, so that each number is still turned once."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Project:
    """Two commits: the kernel of the second is as right and touches more sectors.

    The first is run by asv's fork server, where all cases are verified ahead; the second by a new
    process for each case.
    """
    path = tmp_path_factory.mktemp("counted") / "scaling"
    project = make_cuda_project(path, isolated_environment(home))
    project.environment["GPUBENCH_SOFTCUDA"] = "1"
    project.edit("suites/pair.yaml", "timeout: 30", "timeout: 1200")  # on a busy machine
    project.commit("straight", 2)
    run(project, "straight", "forkserver")
    project.edit("scaling/kernels.py", STRAIGHT, SCATTERED)
    project.commit("scattered", 3)
    run(project, "scattered", "spawn")
    return project


def run(project: Project, tag: str, method: str, **variables: str) -> str:
    here = ("--environment", f"existing:{sys.executable}", "--launch-method", method)
    commit = ("--set-commit-hash", project.git("rev-parse", tag))
    asked = {"GPUBENCH_TRACK": "1", **variables}
    return project.asv("run", *here, *commit, "--bench", "negate__right", **asked)


def counts(project: Project, tag: str) -> list[CountsRecord]:
    """Counts on record of a commit."""
    (path,) = project.results.glob(f"*/{project.git('rev-parse', tag)[:8]}-*.gpubench.jsonl")
    lines = map(parse_line, path.read_text().splitlines())
    return [line for line in lines if isinstance(line, CountsRecord)]


def tracked(project: Project, tag: str) -> dict[str, Any]:
    """asv's result of each cost of the case, by the cost's name."""
    results = project.result(tag)["results"]
    return {
        name.removeprefix(TRACKED): row["result"][0]
        for name, row in results.items()
        if name.startswith(TRACKED)
    }


@pytest.mark.parametrize("tag", ["straight", "scattered"])
def test_a_case_is_counted_once_whoever_starts_its_processes(measured: Project, tag: str) -> None:
    (counted,) = counts(measured, tag)
    assert (counted.benchmark, counted.case, counted.missing) == (KERNEL, CASE, None)
    assert counted.totals["warps"] == 32
    begun = [name for name, case in measured.measured(tag) if case == CASE]
    assert begun == [KERNEL]


def test_the_cost_of_each_commit_is_what_was_counted_there(measured: Project) -> None:
    for tag in ("straight", "scattered"):
        (counted,) = counts(measured, tag)
        found = tracked(measured, tag)
        assert set(found) == set(TRACKED_COSTS)
        assert found["sectors_per_request"] == sectors_per_request(counted.totals)
    # 1000 numbers of 8 bytes, 32 of each warp side by side.
    assert tracked(measured, "straight")["sectors_per_request"] == pytest.approx(2 * 250 / 64)
    assert tracked(measured, "scattered")["sectors_per_request"] > 25


def test_show_tells_the_costs(measured: Project) -> None:
    shown = measured.asv("show", measured.git("rev-parse", "scattered"))
    cost = tracked(measured, "scattered")["sectors_per_request"]
    assert f"{TRACKED}sectors_per_request" in shown
    assert json.dumps(cost)[:5] in shown


def test_compare_marks_the_cost_that_grew(measured: Project) -> None:
    shown = measured.asv("compare", "straight", "scattered")
    lines = [line for line in shown.splitlines() if "track_sectors_per_request" in line]
    assert [line.split()[1] for line in lines] == ["+"]
    same = [line for line in shown.splitlines() if "track_excess_wavefronts" in line]
    assert same and all("+" not in line.split()[:2] for line in same)


def test_publish_draws_a_graph_of_each_cost(measured: Project) -> None:
    measured.asv("publish")
    drawn = {path.stem for path in (measured.path / ".asv/html/graphs").rglob("*track_*.json")}
    assert {f"{TRACKED}{name}" for name in TRACKED_COSTS} <= drawn
    index = json.loads((measured.path / ".asv/html/index.json").read_text())
    benchmark = index["benchmarks"][f"{TRACKED}sectors_per_request"]
    assert (benchmark["unit"], benchmark["type"]) == ("sectors", "track")


def test_costs_are_no_times_in_the_table(measured: Project) -> None:
    query = "select distinct time from results"
    shown = measured.run("gpubench", "query", query, "--json").stdout
    assert "track" not in shown
    assert "kernel" in shown


def test_counting_can_be_turned_off(measured: Project, tmp_path: Path) -> None:
    other = measured.copy(tmp_path / "scaling")
    other.environment["ASV_PYTHONPATH"] = str(other.path)
    run(other, "scattered", "forkserver", GPUBENCH_COUNT="0")
    assert counts(other, "scattered") == []
    assert tracked(other, "scattered") == {}
    assert other.outcome("scattered", KERNEL, CASE).status == "verified"


@pytest.mark.parametrize("template", [False, True])
def test_a_growth_by_a_thousandth_is_a_regression_of_counts_alone(
    template: bool, tmp_path: Path
) -> None:
    path = CHECKOUT / "asv.conf.json"
    if template:
        write_project(tmp_path, project=find_project(tmp_path, "mine"))
        path = tmp_path / "asv.conf.json"

    graph = SimpleNamespace(params={})
    finder = _GraphDataFilter.__new__(_GraphDataFilter)
    finder.conf = Config.load(path)
    limits = {
        name: finder._get_threshold(graph, {}, name)
        for name in (
            f"{TRACKED}registers",
            f"{TRACKED}registers('{CASE}')",
            "suites.track_objects__numba_cuda.time_kernel",
            "suites.a__track_b__numba.time_kernel",
            KERNEL,
        )
    }
    assert list(limits.values()) == [0.001, 0.001, 0.05, 0.05, 0.05]


INSTALL = """\
import shutil
import sys
import sysconfig
from pathlib import Path

packages = Path(sysconfig.get_path("purelib"))
shutil.copytree(Path(sys.argv[1], "scaling"), packages / "scaling", dirs_exist_ok=True)
"""
"""Installs a commit's code into an environment of asv."""


@pytest.mark.thorough
def test_continuous_fails_of_a_count_that_grew(home: Path, tmp_path: Path) -> None:
    project = make_cuda_project(tmp_path / "scaling", isolated_environment(home))
    project.environment |= {"GPUBENCH_SOFTCUDA": "1", "GPUBENCH_TRACK": "1"}
    del project.environment["ASV_PYTHONPATH"]  # each commit has its own code
    (tmp_path / "install.py").write_text(INSTALL)
    install = [BORROW, f"in-dir={{env_dir}} python {tmp_path / 'install.py'} {{build_dir}}"]
    commands = {"build_command": [], "uninstall_command": [], "install_command": install}
    config = json.loads((project.path / "asv.conf.json").read_text())
    (project.path / "asv.conf.json").write_text(json.dumps({**config, **commands}))
    project.edit("suites/pair.yaml", "timeout: 30", "timeout: 1200")  # on a busy machine
    project.commit("straight", 2)
    project.edit("scaling/kernels.py", STRAIGHT, SCATTERED)
    project.commit("scattered", 3)

    said = project.asv("continuous", "--bench", "negate__right", "straight", "scattered", code=1)

    rows = [line for line in said.splitlines() if line.startswith("|")]
    (row,) = (line for line in rows if "track_sectors_per_request" in line)
    assert row.startswith("| + ")
    assert "PERFORMANCE DECREASED" in said
