"""Samples of several processes under asv: appended runs, interleaved processes and commits."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from asv_project import HERE, Project, forget_other_work, isolated_environment
from stepping_project import make_stepping_project

from gpubench.names import BenchmarkName

pytestmark = pytest.mark.ci

ADD = "suites.steps__add__numpy.time_kernel"
TWICE = "suites.steps__twice__numpy.time_kernel"
INCREMENT = "suites.increment__numpy.time_kernel"


def rows(project: Project, tag: str) -> dict[str, dict[str, Any]]:
    """What the table has of each NumPy benchmark's smallest case at a commit, by asv's name."""
    forget_other_work(project.results)
    columns = "suite, kernel, implementation, time, seconds, low, high, samples, rounds, warnings"
    commit = project.git("rev-parse", tag)
    asked = f"select {columns} from results where implementation = 'numpy' and commit = '{commit}'"
    stored = json.loads(
        project.run("gpubench", "query", "--json", f'{asked} order by "case"').stdout
    )
    found: dict[str, dict[str, Any]] = {}
    for row in stored:
        name = BenchmarkName(row["suite"], row["kernel"], row["implementation"], row["time"])
        found.setdefault(name.asv_name, row)
    return found


def recorded(project: Project, tag: str, benchmark: str, case: str) -> list[tuple[float, ...]]:
    """Rounds of each process of a case, in their order."""
    return project.rounds(tag)[benchmark, case]


@pytest.fixture
def steps(tmp_path: Path, home: Path) -> Project:
    return make_stepping_project(tmp_path / "steps", isolated_environment(home))


def test_rounds_of_appended_runs_are_those_of_all_samples_that_asv_has(steps: Project) -> None:
    run = ("run", *HERE, "--bench", "numpy.time_kernel")
    steps.asv(*run, "--record-samples")
    steps.asv(*run, "--append-samples")

    row, twice = (rows(steps, "only")[name] for name in (ADD, TWICE))
    processes = recorded(steps, "only", ADD, "n=16")

    assert row["warnings"] == twice["warnings"] == []
    assert [len(each) for each in processes] == [20, 20]
    assert row["rounds"] == [*chain.from_iterable(processes)]
    assert (row["samples"], twice["samples"]) == (60, 20)
    assert len(twice["rounds"]) == 2 * 2 * 5
    assert row["low"] <= row["seconds"] <= row["high"]

    steps.asv(*run, "--append-samples", "--quick")

    assert len(rows(steps, "only")[ADD]["rounds"]) == 41
    assert len(rows(steps, "only")[TWICE]["rounds"]) == 5  # processes

    steps.asv(*run)  # begins again

    assert rows(steps, "only")[ADD]["rounds"] == list(recorded(steps, "only", ADD, "n=16")[-1])


@pytest.mark.thorough  # tests/results/test_appended_samples.py has its rule
def test_a_number_of_calls_that_asv_keeps_to_is_known(steps: Project) -> None:
    run = ("run", *HERE, "--bench", "add__numpy.time_kernel")
    steps.asv(*run, "--record-samples", "-a", "number=3")
    steps.asv(*run, "--append-samples")  # asv takes three calls a sample again
    steps.asv(*run, "--append-samples", "--quick")

    row = rows(steps, "only")[ADD]

    assert [len(each) for each in recorded(steps, "only", ADD, "n=16")] == [20, 20, 1]
    assert (row["samples"], len(row["rounds"]), row["warnings"]) == (61, 41, [])


@pytest.mark.thorough  # tests/results/test_appended_samples.py has its rule
def test_a_suite_that_measures_something_else_begins_again(steps: Project) -> None:
    run = ("run", *HERE, "--bench", "add__numpy.time_kernel")
    steps.asv(*run, "--record-samples")
    steps.edit(
        "suites/steps.yaml",
        "fill: normal, intent: inout}}\n    call",
        "fill: ones, intent: inout}}\n    call",
    )
    steps.asv(*run, "--append-samples")

    row = rows(steps, "only")[ADD]

    assert (row["samples"], len(row["rounds"]), row["warnings"]) == (30, 20, [])


INTERLEAVED = (
    *("--interleave-rounds", "--bench", "increment__numpy"),
    *("-a", "rounds=2", "-a", "repeat=6"),
)


def test_interleaved_processes_count_together(project: Project, tmp_path: Path) -> None:
    copy = project.copy(tmp_path / "toolkit")
    copy.asv("run", *INTERLEAVED, "main^!", "--record-samples")
    copy.asv("run", *INTERLEAVED, "main^!", "--append-samples")

    assert_four_processes_count(copy)


@pytest.mark.thorough  # each round installs each commit: the test above has one commit
def test_interleaved_processes_and_commits_count_together(project: Project, tmp_path: Path) -> None:
    copy = project.copy(tmp_path / "toolkit")
    copy.asv("continuous", "good", "mended", *INTERLEAVED, code=None)
    for tag in ("good", "mended"):
        row = rows(copy, tag)[INCREMENT]
        assert (row["samples"], len(row["rounds"]), row["warnings"]) == (12, 12, [])

    copy.asv("run", *INTERLEAVED, "good..mended", "--record-samples")
    copy.asv("run", *INTERLEAVED, "good..mended", "--append-samples")

    assert_four_processes_count(copy)


def assert_four_processes_count(copy: Project) -> None:
    """Of the newest commit: the last four, of two runs."""
    row = rows(copy, "mended")[INCREMENT]
    (case,) = {case for name, case in copy.rounds("mended") if name == INCREMENT}
    processes = recorded(copy, "mended", INCREMENT, case)
    assert len(processes) >= 4
    assert row["rounds"] == [*chain.from_iterable(processes[-4:])]
    assert (row["samples"], row["warnings"]) == (24, [])
    assert row["seconds"] == pytest.approx(median(row["rounds"]))
