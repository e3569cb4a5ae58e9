"""Machines with a new name each time are one in a small file of the project."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from result_files import CommitFiles

from gpubench.cli import main
from gpubench.project.opening import project_table
from gpubench.report import changes, kernel, machines, overview
from gpubench.report.render import write_report
from gpubench.report.site import Site
from gpubench.report.text import TIMES_SIGN
from gpubench.results import Table

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"
DAY = 86_400
FAST, SLOW = "Example 9000", "Example 100"
ONE = "version: 1\nmachines:\n  github: [fv-az*, runner-?]\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def measure(
    day: int, machine: str, speedup: float = 4.0, processor: str = FAST, scale: float = 1.0
) -> CommitFiles:
    files = CommitFiles(Path(".asv/results"), f"{day:08x}" * 5, day * DAY, machine)
    files.facts(cpu=processor, run=f"1-{day}")
    files.time(NUMPY, "n=4", 4.0 * scale).time(NUMBA, "n=4", 4.0 * scale / speedup)
    for benchmark in (NUMPY, NUMBA):
        files.record(benchmark, "n=4", values={"n": 4}, sizes=("n",))
    return files.write()


def tell(text: str) -> list[str]:
    """Faults of a file of the project."""
    Path("gpubench.yaml").write_text(text)
    table, faults = project_table(Path(".asv/results"), None, Path("suites"))
    table.close()
    return [*map(str, faults)]


def read() -> Table:
    Path("gpubench.yaml").write_text(ONE)
    table, faults = project_table(Path(".asv/results"), None, Path("suites"))
    assert faults == ()
    return table


def alternating(speedups: list[float]) -> None:
    """Commits that two processors measured in turn, one half as fast as the other."""
    for day, speedup in enumerate(speedups, 1):
        is_slow = day % 2
        measure(day, f"fv-az{day}", speedup, (FAST, SLOW)[is_slow], (1.0, 2.0)[is_slow])


def test_their_results_are_one_history(project: Path) -> None:
    for day, machine in enumerate(("fv-az7", "fv-az12", "runner-x", "laptop"), 1):
        measure(day, machine)

    with closing(read()) as table:
        found = {setup.machine: len(table.snapshots(setup)) for setup in table.setups}
        page = machines.build(Site(table))
        assert write_report(table, Path("html")).exists()

    assert found == {"laptop": 1, "github": 3}
    (github,) = (setup for setup in page.setups if setup.setup.label == "github")
    assert github.machines == (
        "fv-az12, Example 9000, 1 commit",
        "fv-az7, Example 9000, 1 commit",
        "runner-x, Example 9000, 1 commit",
    )
    assert not any(state.title == "Several processors" for state in page.states)


def test_processors_that_differ_make_no_change(project: Path) -> None:
    alternating([4.0] * 24)
    with closing(read()) as table:
        site = Site(table)
        (history,) = site.histories
        page = overview.build(history, site)
        shown = kernel.build(history, ("add", "add"), site)

    assert page.regressions == page.improvements == ()
    assert page.states[0].title == "Several processors"
    assert page.states[0].why.startswith(
        "github stands for 24 machines with Example 100 and Example 9000."
    )
    assert shown.history
    assert not any(value > 0 for series in shown.history.series for value in series.times.values)
    assert all(value > 0 for value in shown.history.series[-1].speedups.values)


def test_a_speedup_that_fell_is_found_on_processors_that_differ(project: Path) -> None:
    alternating([4.0] * 12 + [2.0] * 12)
    with closing(read()) as table:
        site = Site(table)
        (history,) = site.histories
        (change,) = overview.build(history, site).regressions
        (at_commit,) = changes.build(history, site).commits
        html = write_report(table, Path("html")).read_text()

    assert change.slower and change.by_speedup
    assert change.factor == pytest.approx(2.0, rel=0.05)
    assert f'<td class="number">4.00{TIMES_SIGN}</td>' in html
    assert [row.change.name.implementation for row in at_commit.rows] == ["numba"]


def test_the_newest_result_of_a_commit_counts_and_the_other_is_named(project: Path) -> None:
    measure(1, "fv-az7", speedup=4.0)
    later = measure(1, "fv-az12", speedup=2.0)
    later.started_at = 2 * DAY
    later.write()

    with closing(read()) as table:
        (snapshot,) = table.snapshots(table.setups[0])
        problems = table.problems

    assert snapshot.measured_on == "fv-az12"
    assert [str(problem.path) for problem in problems] == ["fv-az7/00000001-virtualenv-py3.11.json"]
    assert problems[0].message == (
        "another result counts: as fv-az12, github measured the commit later"
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "gpubench.yaml: the file is empty; it starts with version: 1"),
        ("- a\n", "gpubench.yaml:1:1: it is a mapping; it starts with version: 1"),
        (
            "machines: {github: a}\n",
            "gpubench.yaml:1:1: version: 1 is missing; this release reads no other",
        ),
        (
            "version: 2\n",
            "gpubench.yaml:1:10: version: 1 is missing; this release reads no other",
        ),
        (
            "version: 1\nmachine: {a: b}\n",
            "gpubench.yaml:2:1: 'machine' is no field; there are version and machines; did you "
            "mean 'machines'?",
        ),
        (
            "version: 1\nmachines: [a]\n",
            "gpubench.yaml:2:11: machines is a mapping of names; write github: fv-az*, or github: "
            "[fv-az*, runner-*]",
        ),
        (
            "version: 1\nmachines: {github: [a, 5]}\n",
            "gpubench.yaml:2:24: a pattern is the text of a machine's name; write github: fv-az*, "
            "or github: [fv-az*, runner-*]",
        ),
        (
            "version: 1\nmachines: {../up: a}\n",
            "gpubench.yaml:2:12: '../up': a name has letters, digits, blanks and . _ - alone",
        ),
        (
            "version: 1\nversion: 1\n",
            "gpubench.yaml:2:1: 'version' is there twice; the first is in line 1",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_file_is_said_with_its_place(
    project: Path, text: str, fault: str
) -> None:
    measure(1, "fv-az7")

    assert tell(text) == [fault]


def test_a_command_warns_of_the_file_and_goes_on(project: Path) -> None:
    measure(1, "fv-az7")
    Path("gpubench.yaml").write_text("version: 1\nmachines: []\n")

    done = CliRunner().invoke(main, ["report"], env={"COLUMNS": "200"})

    assert done.exit_code == 0
    assert "gpubench.yaml:2:11: warning: machines is a mapping of names" in done.stderr


def test_a_link_out_of_the_project_is_not_read(project: Path, tmp_path_factory: Any) -> None:
    measure(1, "fv-az7")
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "secret.yaml"
    elsewhere.write_text("version: 1\nsecret: 5\n")
    Path("gpubench.yaml").symlink_to(elsewhere)

    (fault,) = project_table(Path(".asv/results"), None, Path("suites"))[1]

    assert str(fault) == (
        "gpubench.yaml: it is a symbolic link that leads out of this folder; copy the file here"
    )
