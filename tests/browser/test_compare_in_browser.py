"""The page shows any two snapshots side by side: their times and ratios, and no verdict."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path

import pytest
from counted_store import NAIVE, write_counted
from opened_pages import Open, until
from playwright.sync_api import Page
from report_sample import write_sample
from result_files import CommitFiles, launch

from gpubench.analysis.comparison import REPLACED, UNTIMED, compare_rows, time_ratio
from gpubench.analysis.count_changes import CountedSnapshot, compare_counts
from gpubench.report import text
from gpubench.report.compare import pair_address
from gpubench.report.comparison_columns import side_words
from gpubench.report.comparison_view import comparison_view
from gpubench.report.count_view import counts_view
from gpubench.report.findings import case_words
from gpubench.report.render import write_report
from gpubench.results import CaseName, Row, Snapshot, Table, open_table
from gpubench.statuses import STATUSES

pytestmark = pytest.mark.browser

DAY = 86_400
NAMES = [
    f"suites.add__{name}.time_kernel" for name in ("numpy", "numba", "numba_parallel", "numba_cuda")
]


def snapshots(table: Table) -> list[Snapshot]:
    return [snapshot for setup in table.setups for snapshot in table.snapshots(setup)]


def title_of(table: Table, old: Snapshot, new: Snapshot) -> str:
    rows = table.rows(old), table.rows(new)
    return comparison_view(compare_rows(old, new, *rows)).title


def shown(page: Page, table: Table, old: Snapshot, new: Snapshot) -> None:
    """Choose two sides, and wait until they are shown with every case."""
    page.evaluate("(address) => { location.hash = address }", f"{pair_address(old, new)}&all=1")
    said = "(title) => document.querySelector('#told').textContent.startsWith(title)"
    until(page, said, f"{title_of(table, old, new)}: ")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Six kernels, four implementations, twelve commits."""
    directory = tmp_path_factory.mktemp("sample") / "results"
    write_sample(directory)
    return open_table(directory)


def write_every_status(directory: Path) -> None:
    """Seven commits and another machine; at each commit every status moves on by one case.

    Times of seven cases are the same, faster, slower or too uncertain; a baseline changes, an
    implementation is of another version at first, one is missing at times, one is timed in pairs.
    Later commits ran on another GPU, another processor and other threads, with uncommitted code.
    """
    for index in range(8):
        machine = "a,b&c" if index < 7 else "<i>other"
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


def cells(name: CaseName, old: Row | None, new: Row | None) -> list[str]:
    """Texts of a row of the table that the page shows."""
    sides = [_side(old), _side(new)]
    ratio = time_ratio(old, new)
    speedups = [side.speedup if side else None for side in (old, new)]
    speedup = " → ".join(map(text.speedup, speedups)) if all(speedups) else ""
    if old is None or new is None:
        return [case_words(name), "not comparable", *sides, speedup, REPLACED]
    if ratio is None:
        verdict, note = UNTIMED[old.status, new.status]
        note = note.format(old=old.reason or "", new=new.reason or "")
        return [case_words(name), verdict, *sides, speedup, note]
    change = f"{text.factor(ratio)} {text.factor_interval(ratio)}"
    return [case_words(name), change, *sides, speedup, ""]


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


def test_times_of_any_two_snapshots_with_any_statuses_stand_side_by_side(
    tmp_path: Path, open_page: Open
) -> None:
    write_every_status(tmp_path / "results")
    table = open_table(tmp_path / "results")
    site = write_report(table, tmp_path / "site").parent
    page = open_page(site / "compare.html").page
    statuses = set()

    for pair in permutations(snapshots(table), 2):
        shown(page, table, *pair)
        compared = compare_rows(*pair, *map(table.rows, pair)).differences

        expected = {case_words(row.name): cells(row.name, row.old, row.new) for row in compared}
        assert {row[0]: row for row in page.evaluate(ROWS)} == expected
        old, new = (side.commit.hash[:8] for side in pair)
        assert page.input_value("#markdown") == f"gpubench compare {old} {new} --markdown"
        assert "They are no verdict" in page.inner_text("#comparison")
        statuses |= {(row.old.status, row.new.status) for row in compared if row.old and row.new}

    assert statuses >= set(product(STATUSES, STATUSES))


COUNTED = """() => [...document.querySelectorAll("#comparison table.work tbody tr")].map(
  (row) => [...row.children].map((cell) => cell.textContent.trim()))"""


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
        if (old, new) == tuple(snapshots(table)[-2:]):  # that one stands on the page
            continue
        shown(page, table, old, new)
        counted = compare_counts(*(CountedSnapshot.of(table, one) for one in (old, new)), {})
        view = counts_view(counted, 200)
        expected = [
            [row.case, f"{row.look.sign} {row.count or row.verdict}".strip(), row.before,
             row.after, row.change, row.note]
            for row in (view.rows if view else ())
        ]  # fmt: skip

        assert page.evaluate(COUNTED) == expected
        verdicts |= {*counted.verdicts}

    assert verdicts == {"grew", "improved", "not judged"}


def test_an_address_that_names_nothing_says_so(
    sample: Table, tmp_path: Path, open_page: Open
) -> None:
    site = write_report(sample, tmp_path / "site").parent

    opened = open_page(site / "compare.html", "a=99999999,nowhere,none&b=,,")

    words = "The address names a commit or a machine that is not in this report."
    until(opened.page, "(words) => document.querySelector('#told').textContent === words", words)
