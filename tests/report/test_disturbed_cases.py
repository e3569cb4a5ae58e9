"""A case that waited for other work is shown with its time, marked, and without a verdict."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from result_files import CommitFiles
from unpacked import unpacked

from gpubench.analysis.changes import changes_of
from gpubench.analysis.comparison import DISTURBED
from gpubench.record import Disturbance
from gpubench.report import text
from gpubench.report.render import write_report
from gpubench.results import CaseName, Ratio, open_table

NUMPY, NUMBA = "suites.add__numpy.time_kernel", "suites.add__numba.time_kernel"


def write_commit(directory: Path, day: int, numba: float, share: float) -> None:
    """Write a commit: NumPy takes a second; so many of Numba's samples were disturbed."""
    files = CommitFiles(directory, f"{day:x}" * 40, 86_400 * day)
    for benchmark, seconds, disturbed in ((NUMPY, 1.0, 0.0), (NUMBA, numba, share)):
        against = {"baseline_benchmark": NUMPY, "baseline_case": "n=4"}
        fields = against if benchmark == NUMBA else {}
        files.time(benchmark, "n=4", seconds).record(benchmark, "n=4", **fields)
        medians = [seconds * (1 + place / 1000) for place in range(6)]
        seen = Disturbance(disturbed, waiting=(0.0,) * 6)
        files.rounds(benchmark, "n=4", *medians, disturbance=seen)
    files.write()


def test_the_report_marks_it_and_calls_nothing_faster_or_slower(tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_commit(results, 1, 0.5, share=0.0)
    write_commit(results, 2, 5.0, share=0.8)

    site = write_report(open_table(results), tmp_path / "site").parent

    assert "disturbed: most of its samples waited for" in (site / "kernel-add.html").read_text()
    assert "unclear" in (site / "index.html").read_text()
    for page in ("index", "kernel-add", "changes", "compare", "choose", "machines"):
        html = (site / f"{page}.html").read_text()
        assert html.count("Other work on the machine disturbed 1 of 2 times here") == 1, page
    assert "1 unclear and 1 same" in (site / "compare.md").read_text()
    (script,) = site.glob("compare-data/*-0.js")
    commits = unpacked(script.read_text())["commits"].values()
    assert any(DISTURBED in of.values() for of in (commit["reasons"] for commit in commits))


def test_a_disturbed_kernel_does_not_take_the_interval_from_the_mean_of_the_others(
    tmp_path: Path,
) -> None:
    results = tmp_path / "results"
    files = CommitFiles(results, "a" * 40, 86_400)
    for kernel, share in (("add", 0.0), ("norm", 0.8)):
        for implementation, seconds in (("numpy", 1.0), ("numba", 0.5)):
            name = f"suites.{kernel}__{implementation}.time_kernel"
            files.time(name, "n=4", seconds).record(name, "n=4")
            medians = [seconds * (1 + place / 1000) for place in range(6)]
            seen = Disturbance(share, waiting=(0.0,) * 6)
            files.rounds(name, "n=4", *medians, disturbance=seen)
    files.write()

    page = write_report(open_table(results), tmp_path / "site").read_text()

    assert "Over 1 kernel of 1 suite" in page
    assert "reach 2.00" in page
    assert "no interval) the speed" not in page
    assert "without norm, whose speedup has no interval" in page


@pytest.mark.parametrize(
    ("speedup", "pairs", "so"),
    [
        (None, 0, "so that it is no good time"),
        (Ratio(0.0135, 0.0, math.inf), 0, "so that its ratio has no interval and no verdict"),
        (Ratio(1.05, 0.99, 1.07), 40, "and its pairs differ by less than the 10 % of a verdict"),
        (Ratio(3.0, 2.9, 3.1), 40, "and its pairs differ by more than 10 %, which decides"),
    ],
)
def test_the_note_of_a_disturbed_time_says_what_its_row_shows(
    tmp_path: Path, speedup: Ratio | None, pairs: int, so: str
) -> None:
    write_commit(tmp_path, 1, 0.5, share=0.8)
    table = open_table(tmp_path)
    row = table.newest_rows(table.setups[0])[CaseName("add", "add", "numba", "kernel", "n=4")]

    note = text.disturbed(replace(row, speedup=speedup, pairs=pairs))

    assert f"ran beside other work, {so}; measure" in note


def test_a_page_names_the_command_that_measures_disturbed_times_again(tmp_path: Path) -> None:
    write_commit(tmp_path / "results", 2, 5.0, share=0.8)

    site = write_report(open_table(tmp_path / "results"), tmp_path / "site").parent

    page = (site / "kernel-add.html").read_text()
    assert "asv run 22222222^!" in page
    assert "--skip-existing-successful" not in page
    assert "No speedup can be stated at this commit: other work disturbed the times." in page


def test_times_that_were_all_disturbed_are_not_judged(tmp_path: Path) -> None:
    for day in range(1, 6):
        write_commit(tmp_path / "results", day, 0.5 if day < 3 else 5.0, share=0.8)

    site = write_report(open_table(tmp_path / "results"), tmp_path / "site").parent

    words = " ".join((site / "index.html").read_text().split())
    assert "1 of 2 cases are not judged yet" in words
    page = (site / "kernel-add.html").read_text()
    assert "its time is not judged: other work disturbed 5 of 5 values" in page


def test_disturbed_times_are_no_step(tmp_path: Path) -> None:
    results = tmp_path / "results"
    for day in range(1, 15):
        is_busy = 6 <= day <= 9
        write_commit(results, day, 5.0 if is_busy else 0.5, share=0.8 if is_busy else 0.0)
    table = open_table(results)
    (setup,) = table.setups

    by_case = changes_of(table.history(setup))

    assert not any(by_case.values())
