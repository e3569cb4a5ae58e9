"""What may change in a suite without losing its history, and what begins a new one."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from asv_project import Project
from test_asv_commands import ALL, NEWEST, NUMBA, NUMPY, has_time, row_of

from gpubench.results import CaseName, open_table

pytestmark = pytest.mark.ci

SUITE = "suites/vector_add.yaml"


def reorder(project: Project) -> None:
    """The same suite with every mapping the other way round."""
    path = project.path / SUITE
    path.write_text(yaml.safe_dump(backwards(yaml.safe_load(path.read_text())), sort_keys=False))


def backwards(content: object) -> object:
    if isinstance(content, dict):
        return {key: backwards(value) for key, value in reversed(content.items())}
    return content


def commits_with_times(project: Project, case: str) -> list[str]:
    """Commits at which the report has a time of a case of ``vector_add_numba``."""
    table = open_table(project.results, project.path)
    name = CaseName("vector_add", "vector_add", "numba", "kernel", case)
    return [
        snapshot.commit.subject or ""
        for setup in table.setups
        for snapshot in table.snapshots(setup)
        if (row := table.rows(snapshot).get(name)) and row.seconds is not None
    ]


def test_a_new_size_and_another_order_keep_the_history(history: Project, tmp_path: Path) -> None:
    copy = history.copy(tmp_path / "toolkit", results=True)
    before = copy.benchmarks()
    copy.edit(SUITE, "n: [16384]", "n: [512, 16384]")
    reorder(copy)

    copy.asv("run", "--bench", "vector_add__(numpy|numba)\\.", NEWEST)

    after = copy.benchmarks()
    assert set(after) == set(before) == ALL
    assert {name: entry["version"] for name, entry in after.items()} == {
        name: entry["version"] for name, entry in before.items()
    }
    assert after[NUMBA]["param_names"] == before[NUMBA]["param_names"]
    assert has_time(copy.times("mended")[NUMBA, "n=512"])
    compared = copy.asv("compare", "good", "mended").splitlines()
    (old,) = (line for line in compared if f"{NUMBA}('n=16384')" in line)
    assert "n/a" not in old
    (new,) = (line for line in compared if f"{NUMBA}('n=512')" in line)
    assert "n/a" in new
    assert commits_with_times(copy, "n=16384") == ["good", "slower", "mended"]
    assert commits_with_times(copy, "n=512") == ["mended"]


def test_measuring_something_else_does_not_mix_with_the_history(
    history: Project, tmp_path: Path
) -> None:
    copy = history.copy(tmp_path / "toolkit", results=True)
    before = copy.benchmarks()
    copy.edit(SUITE, "b: {shape: [n], dtype: float32", "b: {shape: [n], dtype: float64")

    copy.asv("run", "--bench", "vector_add__(numpy|numba)\\.", NEWEST)

    after = copy.benchmarks()
    for name in (NUMPY, NUMBA):
        assert after[name]["version"] != before[name]["version"]
        assert copy.result("mended")["results"][name]["version"] == after[name]["version"]
        assert copy.result("good")["results"][name]["version"] == before[name]["version"]
    compared = row_of(copy.asv("compare", "good", "mended"), NUMBA)
    assert compared.startswith("| x ")  # asv's mark for what cannot be compared
    assert commits_with_times(copy, "n=16384") == ["mended"]
