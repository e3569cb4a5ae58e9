"""Times of code that was not committed are marked wherever they stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from result_files import CommitFiles

from gpubench.record import UNCOMMITTED
from gpubench.report import exports, kernel, machines, overview
from gpubench.report.figures import history_figure
from gpubench.report.render import write_report
from gpubench.report.site import Site
from gpubench.results import Snapshot, Table, open_table

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"
DAY = 86_400


def commit(directory: Path, day: int, *runs: str | None) -> None:
    """A commit that each of these runs measured, with its uncommitted files; the first run the
    baseline, the others what is compared with it."""
    files = CommitFiles(directory, f"{day:08x}" * 5, day * DAY)
    for number, paths in enumerate(runs):
        files.facts(run=f"{number}-{day * DAY}", cpu="Example", **{UNCOMMITTED: paths})
        files.record(NUMBA if number else NUMPY, "n=4", values={"n": 4}, sizes=("n",))
    files.time(NUMPY, "n=4", 4.0).time(NUMBA, "n=4", 1.0).write()


def only(table: Table) -> Snapshot:
    (snapshot,) = table.snapshots(table.setups[0])
    return snapshot


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ((None, None), ()),
        (("src/k.py", None), ("src/k.py",)),
        ((None, "src/k.py"), ("src/k.py",)),
        (("src/a.py, src/k.py", "src/k.py"), ("src/a.py", "src/k.py")),
    ],
)
def test_a_snapshot_is_marked_by_any_run_of_its_cases(
    tmp_path: Path, runs: tuple[str | None, ...], expected: tuple[str, ...]
) -> None:
    commit(tmp_path, 1, *runs)

    assert only(open_table(tmp_path)).uncommitted == expected


def test_what_was_measured_again_since_no_longer_counts(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, DAY).time(NUMPY, "n=4", 4.0)
    for run, paths in (("1-5", "src/k.py"), ("2-9", None)):
        files.facts(run=run, **{UNCOMMITTED: paths}).record(NUMPY, "n=4")
    files.write()

    assert only(open_table(tmp_path)).uncommitted == ()


def test_every_page_that_names_the_commit_says_it(tmp_path: Path) -> None:
    commit(tmp_path / "results", 1, None, None)
    commit(tmp_path / "results", 2, "src/k.py", None)
    table = open_table(tmp_path / "results")
    site = Site(table)
    (history,) = site.histories

    assert overview.build(history, site).commit == site.labels(history)[1]
    page = kernel.build(history, ("add", "add"), site)
    assert page.commit.uncommitted == "src/k.py"
    assert page.history
    figure = history_figure(page.history)
    marked = [words.endswith("uncommitted changes)") for words in figure["commits"]]
    assert marked == [False, True]
    (setup,) = machines.build(site).setups
    assert [label.uncommitted for label in setup.uncommitted] == ["src/k.py"]
    html = write_report(table, tmp_path / "html").parent
    for name in ("index", "kernel-add"):
        text = (html / f"{name}.html").read_text()
        assert "Measured with uncommitted changes in src/k.py" in text
    assert "1 commit was measured with uncommitted changes" in (html / "machines.html").read_text()


def test_data_has_it_too(tmp_path: Path) -> None:
    commit(tmp_path / "results", 1, "src/k.py")
    table = open_table(tmp_path / "results")
    exports.write(Site(table), tmp_path)

    records = json.loads((tmp_path / "cases.json").read_text())
    _, rows = table.query("select distinct uncommitted from results")

    assert {record["uncommitted"] for record in records} == {"src/k.py"}
    assert rows == [("src/k.py",)]
