"""The comparison that the page makes in a browser is the one that Python makes."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
from counted_store import NAIVE, write_counted
from opened_pages import Open, until
from playwright.sync_api import Page
from report_sample import write_sample
from result_files import CommitFiles, launch, write_calibration

from gpubench.analysis.comparison import Difference, compare_rows, known_scatters
from gpubench.analysis.count_changes import CountedSnapshot, compare_counts
from gpubench.report import text
from gpubench.report.compare import pair_address
from gpubench.report.comparison_columns import PAGE_COLUMNS, SURE, look_of, side_words
from gpubench.report.comparison_view import ComparisonView, comparison_view, markdown
from gpubench.report.count_view import counts_markdown
from gpubench.report.findings import case_words
from gpubench.report.render import write_report
from gpubench.results import Row, Snapshot, Table, open_table
from gpubench.statuses import STATUSES
from gpubench.tables.comparisons import comparison_row

pytestmark = pytest.mark.browser

DAY = 86_400
NAMES = [
    f"suites.add__{name}.time_kernel" for name in ("numpy", "numba", "numba_parallel", "numba_cuda")
]


def snapshots(table: Table) -> list[Snapshot]:
    return [snapshot for setup in table.setups for snapshot in table.snapshots(setup)]


def in_python(table: Table, old: Snapshot, new: Snapshot, **how: Any) -> ComparisonView:
    scatters = known_scatters(table, table, (old, new))
    rows = table.rows(old), table.rows(new)
    return comparison_view(compare_rows(old, new, *rows, scatters=scatters), **how)


def markdown_on(page: Page) -> str:
    """The Markdown of the comparison that the page shows."""
    until(page, "!/^$|Reading/.test(document.querySelector('#told').textContent)")
    return page.input_value("#markdown")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Six kernels, four implementations, twelve commits."""
    directory = tmp_path_factory.mktemp("sample") / "results"
    write_sample(directory)
    return open_table(directory)


def test_snapshots_of_one_and_of_two_machines_are_compared_as_in_python(
    sample: Table, tmp_path: Path, open_page: Open
) -> None:
    site = write_report(sample, tmp_path / "site").parent
    of_machine = {setup.machine: sample.snapshots(setup) for setup in sample.setups}
    runner, gpu_box = of_machine["runner"], of_machine["gpu-box"]

    for pair in ((runner[3], runner[11]), (runner[11], runner[3]), (runner[9], gpu_box[1])):
        shown = open_page(site / "compare.html", pair_address(*pair))

        assert markdown_on(shown.page) == markdown(in_python(sample, *pair))


def write_every_status(directory: Path) -> None:
    """Seven commits and another machine; at each commit every status moves on by one case.

    Times of seven cases are the same, faster, slower or too uncertain; a baseline changes, an
    implementation is of another version at first, one is missing at times, one is timed in pairs.
    Later commits ran on another GPU, another processor and other threads, with uncommitted code.
    """
    for index in range(8):
        machine = "a,b&c" if index < 7 else "<i>other"
        write_calibration(directory, machine)
        files = CommitFiles(directory, f"{index:x}" * 40, DAY * (index + 1), machine)
        blas = {"numpy_blas": "other"} if index else {}
        where = {
            "gpu": "H100" if index < 3 else "H200",
            "cpu": "EPYC" if index < 5 else "Xeon & <b>",
        }
        where |= {"cpu_threads": 8 if index < 6 else 2}
        code = {"uncommitted": "src/k.py, <i>.py"} if index % 4 == 3 else {}
        files.facts(numba=f"0.{65 + index // 3}", run=index, **blas, **where, **code)
        files.time(NAMES[3], "n=0 device=cuda:0", 0.1 + 0.0213 * index)
        files.record(
            NAMES[3], "n=0 device=cuda:0", device="cuda:0",
            baseline_benchmark=NAMES[0], baseline_case="n=0",
        )  # fmt: skip
        for place in range(len(STATUSES)):
            _write_case(files, f"n={place}", STATUSES[(place + index) % len(STATUSES)])
            files.time(NAMES[0], f"n={place}", 4.0 + (index // 3) * place)
        for place in range(len(STATUSES)):
            seconds = 1.0 + 0.03 * ((index * place) % 5)
            spread, count = (0.01, 0.2)[place == 5], 10 if place != 6 else 1 + index % 2 * 9
            files.time(NAMES[1], f"m={place}", seconds, spread=spread, count=count)
        if index != 1:
            files.time(NAMES[2], "only=1", 1.0)
        files.time(NAMES[2], "paired=1", 2.0).time(NAMES[0], "paired=1", 6.0 if index == 5 else 3.0)
        ratios = (1.998, 1.999, *[2.0] * 8, 2.001, 2.002)
        files.time(NAMES[0], "s=1", 3.0).time(NAMES[1], "s=1", 1.4 if index == 5 else 1.0)
        files.record(
            NAMES[2], "paired=1", baseline_benchmark=NAMES[0], baseline_case="paired=1",
            pair_ratios=tuple(ratio * (1.3 if index > 3 else 1.0) for ratio in ratios),
        )  # fmt: skip
        files.time("suites.scale__numpy.time_kernel", "n=1", 1.0 + index)
        files.versions["suites.scale__numpy.time_kernel"] = "v0" if index < 2 else "v1"
        files.write()


def _write_case(files: CommitFiles, case: str, status: str) -> None:
    name = NAMES[1]
    if status == "ok":
        files.time(name, case, 1.0)
    elif status in ("skipped", "verified"):
        files.not_applicable(name, case)
    else:
        files.missing(name, case)
    files.record(
        name, case, "started" if status == "killed" else status,
        reason=None if status == "ok" else f"{status}: <b>{files.commit[:2]}</b> | {{new}} {case}",
        baseline_benchmark=NAMES[0], baseline_case=case,
    )  # fmt: skip


def cells(row: Difference) -> list[str]:
    """Texts of a row of the table that the page shows, from what ``compare --json`` is made of."""
    change = [row.verdict]
    if row.ratio:
        factor, interval = text.factor(row.ratio), text.factor_interval(row.ratio)
        if row.verdict in ("slower", "faster"):
            change = [factor, *([SURE.strip()] if row.is_sure else []), interval]
        else:
            change = [row.verdict, f"{factor}, {interval}"]
    own = {
        "case": case_words(row.name),
        "change": " ".join(filter(None, [look_of(row.verdict).sign, *change])),
        "before": _side(row.old),
        "after": _side(row.new),
    }
    return [own.get(column.name) or column.words(row) for column in PAGE_COLUMNS]


def _side(side: Row | None) -> str:
    if side is None or side.seconds is None:
        return side_words(side)
    return f"{side_words(side)} {text.seconds_interval(side.low, side.high)}"


ROWS = """() => [...document.querySelectorAll("#comparison tbody tr")].map((row) =>
  [...row.children].map((cell) => {
    const parts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (parts.nextNode()) texts.push(parts.currentNode.data.trim());
    return texts.filter(Boolean).join(" ");
  }))"""


def test_any_two_snapshots_with_any_statuses_are_compared_as_by_the_command(
    tmp_path: Path, open_page: Open
) -> None:
    write_every_status(tmp_path / "results")
    table = open_table(tmp_path / "results")
    site = write_report(table, tmp_path / "site").parent
    page = open_page(site / "compare.html").page
    statuses, compared = set(), set()

    for pair in permutations(snapshots(table), 2):
        page.evaluate("(address) => { location.hash = address }", f"{pair_address(*pair)}&all=1")
        view = in_python(table, *pair, everything=True)
        shown = "(title) => document.querySelector('#told').textContent.startsWith(title)"
        until(page, shown, f"{view.title}: ")

        expected = {case_words(row.name): cells(row) for row in view.rows}
        assert {row[0]: row for row in page.evaluate(ROWS)} == expected
        assert page.inner_text("#comparison strong") == view.counts_line
        assert page.input_value("#markdown") == markdown(in_python(table, *pair))
        listed = comparison_row(view)["cases"]
        statuses |= {(case["old"]["status"], case["new"]["status"]) for case in listed}

        compared |= {(case["verdict"], case["compared"]) for case in listed}

    assert statuses >= set(product(STATUSES, STATUSES))
    assert compared >= {("not judged", None), ("slower", "pairs"), ("slower", "times")}
    assert compared >= {("same", "speedups"), ("slower", "speedups"), ("faster", "speedups")}


def test_counted_work_of_any_two_commits_is_compared_as_in_python(
    tmp_path: Path, open_page: Open
) -> None:
    results = tmp_path / "results"
    write_counted(results, [letter * 40 for letter in "abc"])
    for letter, resources in (("d", {"registers": 18}), ("e", {"registers": 40})):
        files = CommitFiles(results, letter * 40, DAY * (30_000 + ord(letter)), "runner")
        files.facts(numba="0.69.0")
        case, name = "n=64 block=64", NAIVE
        files.not_applicable(name, case).record(name, case, "verified", reason="no times")
        files.counts(name, case, launch(resources=resources, barriers=ord(letter))).write()
    table = open_table(results)
    site = write_report(table, tmp_path / "site").parent
    page = open_page(site / "compare.html").page
    verdicts = set()

    for old, new in permutations(snapshots(table), 2):
        page.evaluate("(address) => { location.hash = address }", pair_address(old, new))
        view = in_python(table, old, new)
        shown = "(title) => document.querySelector('#told').textContent.startsWith(title)"
        if (old, new) != tuple(snapshots(table)[-2:]):  # that one stands on the page
            until(page, shown, f"{view.title}: ")
        counted = compare_counts(*(CountedSnapshot.of(table, one) for one in (old, new)), {})

        assert page.input_value("#markdown") == markdown(view) + counts_markdown(counted)
        verdicts |= {*counted.verdicts}

    assert verdicts == {"grew", "improved", "not judged"}


def test_versions_missing_baselines_and_few_samples_are_told_as_in_python(
    tmp_path: Path, open_page: Open
) -> None:
    for index in range(3):
        files = CommitFiles(tmp_path / "results", f"{index:x}" * 40, DAY * (index + 1), "a,b&c")
        files.facts(numba=f"0.{65 + index}", run=index)
        for name in NAMES[(index == 1) : 3]:
            files.time(name, "n=4", 1.0 + index * (name == NAMES[2]), count=1 + 9 * (index < 2))
        files.time(NAMES[0], f"n={8 + index}", 2.0, spread=0.2)
        files.versions[NAMES[1]] = "v0" if index == 0 else "v1"
        files.write()
    table = open_table(tmp_path / "results")
    site = write_report(table, tmp_path / "site").parent

    for old, new in ((0, 1), (0, 2), (1, 0)):
        pair = snapshots(table)[old], snapshots(table)[new]
        shown = open_page(site / "compare.html", pair_address(*pair))

        assert markdown_on(shown.page) == markdown(in_python(table, *pair))


def test_what_two_runs_share_is_taken_out_as_in_python(tmp_path: Path, open_page: Open) -> None:
    write_calibration(tmp_path / "results", "runner")
    for index, factor in enumerate((1.0, 1.1, 2.0)):
        files = CommitFiles(tmp_path / "results", f"{index:x}" * 40, DAY * (index + 1), "runner")
        for place in range(14):
            seconds = factor * (1 + 0.0007 * place * index) * (2.0 if index and place == 3 else 1.0)
            files.time(NAMES[1], f"n={place}", seconds)
        files.write()
    table = open_table(tmp_path / "results")
    site = write_report(table, tmp_path / "site").parent
    sentences = ("It is taken out of every time.", "nothing is taken out.")

    for new, sentence in zip((1, 2), sentences, strict=True):
        pair = snapshots(table)[0], snapshots(table)[new]
        shown = open_page(site / "compare.html", pair_address(*pair))
        view = in_python(table, *pair)

        assert view.shared.endswith(sentence)
        assert "slower" in view.counts
        assert markdown_on(shown.page) == markdown(view)


def test_an_address_that_names_nothing_says_so(
    sample: Table, tmp_path: Path, open_page: Open
) -> None:
    site = write_report(sample, tmp_path / "site").parent

    shown = open_page(site / "compare.html", "a=99999999,nowhere,none&b=,,")

    words = "The address names a commit or a machine that is not in this report."
    until(shown.page, "(words) => document.querySelector('#told').textContent === words", words)
