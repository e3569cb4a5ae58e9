"""Elements of each page that are drawn at first, milliseconds that it takes to open, its width.

Results are generated at three sizes: 10, 100 and 1,000 kernels, each with two implementations, over
so many commits (``--commits``); the first kernel has 100 sizes. Chromium opens the pages from disk.
For each page are printed the elements that are drawn at first sight, those that stand in the page
at all, the milliseconds from opening to the load event (the median of ``--times``), those until the
first chart is drawn, and the width that the page asks for in windows of a laptop and of a phone.
Targets: 2,000 elements at first sight, a second, no wider than the window.

``--report FOLDER`` looks at the pages of a report that is there, those of its first setup and the
largest page of a kernel, in windows of a laptop and of a phone. Target: 0.3 s until the load event.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from figures import add_option, record, recording
from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "analysis"))

from generated_history import IMPLEMENTATIONS, commit, write_snapshot

from gpubench.report.render import write_report
from gpubench.results import CaseName, Row, Setup, Snapshot, open_table

LAPTOP, PHONE = 1280, 390
"""Widths of windows, CSS pixels."""

CASES_OF_FIRST = 100
"""Sizes of the first kernel: a page of many cases."""

KERNELS_OF_A_SUITE = 25

SETUP = Setup("machine", "virtualenv-py3.11")

DRAWN = """() => [...document.querySelectorAll("body *")]
  .filter((e) => e.checkVisibility({ contentVisibilityAuto: true })).length"""
STANDING = "() => document.querySelectorAll('*').length"
OPENED = "() => performance.getEntriesByType('navigation')[0].loadEventEnd"
CHARTED = "() => !document.querySelector('.chart') || document.querySelector('.chart .main-svg')"
WIDTH = "() => document.documentElement.scrollWidth"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernels", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--times", type=int, default=5, help="how often each page is opened")
    parser.add_argument("--keep", type=Path, help="make reports below this folder, or take those")
    parser.add_argument("--report", type=Path, help="pages of this report, and nothing generated")
    add_option(parser)
    given = parser.parse_args()
    with recording(given, "jinja2", "playwright"), browser() as page:
        if given.report:
            print_opening(page, given.report, given.times)
            return
        for kernels in given.kernels:
            with report(kernels, given.commits, given.keep) as site:
                print(f"{kernels:,} kernels, {given.commits:,} commits")
                titles = "drawn  standing  opens ms  chart ms"
                print(f"  {'page':24} {titles}  wide {LAPTOP}  {PHONE}")
                for name in PAGES:
                    counts = measured(page, site / name, given.times)
                    print(f"  {name:24} {counts}", flush=True)
                    figures = dict(zip(COLUMNS, counts.split()[: len(COLUMNS)], strict=True))
                    record("pages", f"{name}, {kernels:,} kernels", figures)


def print_opening(page: Page, site: Path, times: int) -> None:
    """Print how long the kinds of pages of a report take to open: the median, and the longest."""
    kernel = max(site.glob("kernel-*.html"), key=lambda path: path.stat().st_size)
    for width in (LAPTOP, PHONE):
        page.set_viewport_size({"width": width, "height": 900})
        for name in (*OF_EVERY_REPORT, kernel.name):
            opened = []
            for _ in range(times):
                page.goto("about:blank")
                page.goto((site / name).resolve().as_uri())
                opened.append(page.evaluate(OPENED))
            shown = f"{statistics.median(opened):.0f} ms, at most {max(opened):.0f}"
            print(f"  {width:5} px  {name[:60]:60} {shown}", flush=True)


OF_EVERY_REPORT = ("index.html", "changes.html", "compare.html", "machines.html")
COLUMNS = ("drawn at first", "in the page", "opens, ms", "its chart after, ms")
PAGES = (
    "index.html", "choose.html", "advise.html", "changes.html", "compare.html", "machines.html",
    "kernel-suite_0.kernel_0.html", "kernel-suite_0.kernel_1.html",
)  # fmt: skip


@contextmanager
def browser() -> Iterator[Page]:
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        args = ["--no-sandbox", "--disable-gpu"]
        opened = playwright.chromium.launch(executable_path=path, args=args)
        yield opened.new_page(viewport={"width": LAPTOP, "height": 900})
        opened.close()


@contextmanager
def report(kernels: int, commits: int, keep: Path | None) -> Iterator[Path]:
    """Folder of the report of generated results."""
    with TemporaryDirectory(prefix="gpubench-pages-") as made:
        folder = (keep or Path(made)) / f"{kernels}-{commits}"
        if not (folder / "html" / "index.html").exists():
            write_results(folder / "results", kernels, commits)
            write_report(open_table(folder / "results"), folder / "html")
        yield folder / "html"


def write_results(folder: Path, kernels: int, commits: int) -> None:
    """Result files of so many commits, the newest ten with records, written one by one: all rows
    are too many. Every kernel's candidate changes twice, by up to a factor of two."""
    names = list(case_names(kernels))
    chance = np.random.default_rng(1)
    base = 10 ** chance.uniform(-6, -2, len(names))
    steps = chance.uniform(0.5, 2.0, (2, len(names)))
    at = np.sort(chance.integers(1, max(commits, 2), (2, len(names))), axis=0)
    for index in range(commits):
        seconds = base * chance.normal(1, 0.01, len(names))
        seconds[1::2] *= np.where(index >= at, steps, 1).prod(axis=0)[1::2]
        rows = {name: row(name, time) for name, time in zip(names, seconds.tolist(), strict=True)}
        snapshot = Snapshot(index, SETUP, commit(index), {"python": "3.11.9", "numba": "0.68.1"})
        write_snapshot(snapshot, rows, folder, records=index >= commits - 10)


def case_names(kernels: int) -> Iterator[CaseName]:
    for kernel in range(kernels):
        suite = f"suite_{kernel // KERNELS_OF_A_SUITE}"
        for size in range(1 if kernel else CASES_OF_FIRST):
            for implementation in IMPLEMENTATIONS:
                case = f"n={1024 + 1024 * size}"
                yield CaseName(suite, f"kernel_{kernel}", implementation, "kernel", case)


def row(name: CaseName, seconds: float) -> Row:
    first = name.implementation == IMPLEMENTATIONS[0]
    ends = {"low": seconds / 1.02, "high": seconds * 1.02}
    backend = {"backend": name.implementation, "device": "cpu"}
    return Row(name, "ok", seconds=seconds, is_baseline=first, **ends, **backend)


def measured(page: Page, path: Path, times: int) -> str:
    """Return one line of the table."""
    opened, charted = [], []
    for _ in range(times):
        page.goto("about:blank")
        page.goto(path.as_uri())
        opened.append(page.evaluate(OPENED))
        while not page.evaluate(CHARTED):
            page.wait_for_timeout(10)
        charted.append(page.evaluate("performance.now()"))
    counts = page.evaluate(DRAWN), page.evaluate(STANDING)
    widths = []
    for width in (LAPTOP, PHONE):
        page.set_viewport_size({"width": width, "height": 900})
        widths.append(page.evaluate(WIDTH))
    page.set_viewport_size({"width": LAPTOP, "height": 900})
    has_chart = page.locator(".chart").count() > 0
    chart = f"{statistics.median(charted):8.0f}" if has_chart else f"{'none':>8}"
    median = math.ceil(statistics.median(opened))
    return f"{counts[0]:5,} {counts[1]:9,} {median:9} {chart:>9} {widths[0]:10} {widths[1]:4}"


if __name__ == "__main__":
    main()
