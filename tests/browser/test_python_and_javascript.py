"""Rules that stand in Python and in JavaScript, over thousands of random rows and numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened_pages import Open, until
from playwright.sync_api import BrowserContext, Page
from result_files import CommitFiles, write_calibration

from gpubench.analysis.comparison import Difference, compare_rows, known_scatters
from gpubench.record import Disturbance
from gpubench.report import render, text
from gpubench.report.compare import pair_address
from gpubench.report.comparison_columns import baseline_words
from gpubench.report.comparison_view import ComparisonView, comparison_view
from gpubench.report.findings import case_words
from gpubench.report.render import packaged_templates
from gpubench.results import Ratio, Snapshot, Table, open_table
from gpubench.results.ratio import independent_quotient
from gpubench.statuses import STATUSES

pytestmark = pytest.mark.browser

DAY = 86_400
CASES = 260
NUMPY, NUMBA, PARALLEL, CUDA = (
    f"suites.add__{name}.time_kernel" for name in ("numpy", "numba", "numba_parallel", "numba_cuda")
)
CLOSE = 1e-4
"""Relative: scripts of pages have times and limits as float32, and by steps from these the browser
finds what two runs share."""


def write_random(directory: Path) -> None:
    """Write two commits of one machine and one of another, with every kind of a random case."""
    chance = random.Random(35)
    for index, machine in enumerate(("runner", "runner", "other")):
        write_calibration(directory, machine)
        files = CommitFiles(directory, f"{index + 1:x}" * 40, DAY * (index + 1), machine)
        facts = {"cpu": "EPYC" if index < 2 else "Xeon", "cpu_threads": 8 if index < 2 else 2}
        files.facts(numba="0.66.0", gpu="H100" if index < 2 else "H200", run=index, **facts)
        for place in range(CASES):
            _write_random(files, f"n={place}", chance)
        files.write()


def _write_random(files: CommitFiles, case: str, chance: random.Random) -> None:
    """Write a case of the baseline and of three implementations, or leave one of them out."""
    scale = 10 ** random.Random(case).uniform(-6, 1)  # the same at each commit
    for name in (NUMPY, NUMBA, PARALLEL, CUDA):
        status = chance.choices(STATUSES, [20, 1, 1, 1, 1, 1, 1])[0]
        device = {"device": "cuda:0"} if name == CUDA else {"device": "cpu"}
        against = {"baseline_benchmark": NUMPY, "baseline_case": case} if name != NUMPY else {}
        if name == PARALLEL:
            device["threads"] = 4  # type: ignore[assignment]
        if chance.random() < 0.03:
            continue
        if status == "ok":
            factor = 1.0 if chance.random() < 0.6 else math.exp(chance.gauss(0, 0.4))
            seconds = scale * factor * math.exp(chance.gauss(0, 0.003))
            spread, count = chance.choice((0.002, 0.02, 0.3)), chance.choice((3, 10, 10))
            files.time(name, case, seconds, spread=spread, count=count)
            if name == NUMBA and chance.random() < 0.5:
                middle = math.exp(chance.gauss(0.5, 0.2))
                ratios = tuple(middle * (1 + 0.001 * step) for step in range(12))
                against |= {"pair_ratios": ratios}  # type: ignore[dict-item]
            if chance.random() < 0.05:
                waited = tuple(0.5 for _ in range(20))
                rounds = [seconds * (1 + 0.001 * step) for step in range(20)]
                files.rounds(name, case, *rounds, disturbance=Disturbance(20, 18, max(waited)))
        elif status in ("skipped", "verified"):
            files.not_applicable(name, case)
        else:
            files.missing(name, case)
        reason = None if status == "ok" else f"{status} at {files.commit[:2]}"
        written = "started" if status == "killed" else status
        files.record(name, case, written, reason=reason, **device, **against)


def in_python(table: Table, old: Snapshot, new: Snapshot) -> ComparisonView:
    scatters = known_scatters(table, table, (old, new))
    rows = table.rows(old), table.rows(new)
    return comparison_view(compare_rows(old, new, *rows, scatters=scatters), everything=True)


ROWS = """() => gpubench.result.rows.map((row) => ({
  case: row.label, verdict: row.verdict, sure: row.sure, note: row.note, baseline: row.baseline,
  ratio: row.ratio && [row.ratio.value, row.ratio.low, row.ratio.high],
  basis: row.ratio && row.kind,
}))"""


def python_row(row: Difference) -> dict[str, Any]:
    ratio = row.ratio
    return {
        "case": case_words(row.name),
        "verdict": row.verdict,
        "sure": row.is_sure,
        "note": row.note,
        "baseline": baseline_words(row),
        "ratio": ratio and [ratio.value, ratio.low, ratio.high],
        "basis": row.basis,
    }


def write_compare(table: Table, folder: Path) -> Path:
    """Write the page *Compare* alone, with its scripts: all others take five times as long."""
    every = render.files_of
    needed = ("compare.html", "compare-data/")

    def of_compare(*given: Any) -> Iterator[render.ReportFile]:
        return (file for file in every(*given) if file.address.startswith(needed))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render, "files_of", of_compare)
        return render.write_report(table, folder).parent


def test_thousands_of_random_cases_are_compared_in_the_browser_as_in_python(
    tmp_path: Path, open_page: Open
) -> None:
    write_random(tmp_path / "results")
    table = open_table(tmp_path / "results")
    site = write_compare(table, tmp_path / "site")
    page = open_page(site / "compare.html").page
    snapshots = [one for setup in table.setups for one in table.snapshots(setup)]
    first, second, other = snapshots
    seen: set[tuple[str, str | None]] = set()
    compared = 0

    for old, new in ((first, second), (second, other), (other, first)):
        view = in_python(table, old, new)
        rows = rows_on(page, f"{pair_address(old, new)}&all=1", f"{view.title}: ")
        assert len(rows) == len(view.rows) > 0.8 * 4 * CASES
        by_case = {row["case"]: row for row in rows}
        for expected in map(python_row, view.rows):
            found = by_case[expected["case"]]
            ratios = found.pop("ratio") or [], expected.pop("ratio") or []
            assert ratios[0] == pytest.approx(ratios[1], rel=CLOSE), expected
            assert found == expected, (expected["case"], view.title)
        seen |= {(row.verdict, row.basis) for row in view.rows}
        compared += len(rows)

    assert compared > 2500
    assert seen >= {
        ("slower", "times"), ("faster", "pairs"), ("slower", "speedups"), ("same", "times"),
        ("unclear", "times"), ("failed", None), ("mended", None), ("not judged", None),
    }  # fmt: skip


def rows_on(page: Page, address: str, title: str) -> list[dict[str, Any]]:
    page.evaluate("(address) => { location.hash = address }", address)
    shown = "(title) => document.querySelector('#told').textContent.startsWith(title)"
    until(page, shown, title)
    rows: list[dict[str, Any]] = page.evaluate(ROWS)
    return rows


WORDS_OF = """(rows) => rows.map(([value, low, high, other]) => {
  const { digits, quantity, ratioText, seconds, secondsInterval } = gpubenchText;
  const quotient = gpubenchText.independentQuotient(
    { value, low, high }, { value: other, low: 0.9 * other, high: 1.2 * other }, "value");
  return [
    digits(value), seconds(value), secondsInterval(low, high), ratioText(value),
    quantity(Math.round(1e12 * value), "bytes"), quotient.value, quotient.low, quotient.high,
  ];
})"""


def test_thousands_of_random_numbers_are_written_and_divided_as_in_python(
    scripted: BrowserContext,
) -> None:
    page = scripted.new_page()
    page.add_script_tag(path=packaged_templates() / "text.js")
    chance = random.Random(36)
    values = [10 ** chance.uniform(-11, 7) for _ in range(2000)]
    rows = [(value, value * 0.97, value * 1.04, value * chance.uniform(0.1, 9)) for value in values]

    found = page.evaluate(WORDS_OF, rows)

    for (value, low, high, other), words in zip(rows, found, strict=True):
        one, another = Ratio(value, low, high), Ratio(other, 0.9 * other, 1.2 * other)
        quotient = independent_quotient(one, another)
        assert words[:5] == [
            text.digits(value), text.seconds(value), text.seconds_interval(low, high),
            text.ratio(value), text.quantity(math.floor(1e12 * value + 0.5), "bytes"),
        ]  # fmt: skip
        assert words[5:] == pytest.approx([quotient.value, quotient.low, quotient.high])
    page.close()
