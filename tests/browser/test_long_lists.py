"""Long lists: what is drawn at first; what a reader finds, filters, sorts, folds and links to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from opened_pages import Open, draw_charts, until
from playwright.sync_api import Browser, BrowserContext, Locator, Page

from gpubench.report.charts import MAX_TABLE_COMMITS
from gpubench.report.render import write_report
from gpubench.results import open_table

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from page_sizes import DRAWN, LAPTOP, PAGES, PHONE, WIDTH, write_results

pytestmark = pytest.mark.browser

KERNELS, COMMITS = 120, 40
MOST_ELEMENTS = 2000
KERNEL = "kernel-suite_0.kernel_0.html"

COUNT = "() => document.querySelector('.count').textContent"
OPEN_ALL = "() => document.querySelectorAll('details').forEach((part) => (part.open = true))"
LABELS = "() => [...document.querySelectorAll('#list-kernels tbody th')].map((e) => e.innerText)"
SPEEDUPS = """() => [...document.querySelectorAll("[data-row]")]
  .filter((row) => row.checkVisibility())
  .map((row) => JSON.parse(row.dataset.row).speedup)"""
SMALL = """(least) => [...document.querySelectorAll("a[href], button, input, select, summary")]
  .filter((e) => e.checkVisibility({ visibilityProperty: true }))
  .map((e) => [e, (e.closest("label:has(input[type='checkbox'])") ?? e).getBoundingClientRect()])
  .filter(([, box]) => box.width && box.right > 0)
  .filter(([, box]) => box.width < least - 0.1 || box.height < least - 0.1)
  .map(([e, box]) => `${e.outerHTML.slice(0, 100)} ${box.width} x ${box.height}`)"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of 120 kernels in five suites, the first with 200 cases."""
    folder = tmp_path_factory.mktemp("long")
    write_results(folder / "results", KERNELS, COMMITS)
    return write_report(open_table(folder / "results"), folder / "html").parent


def count(page: Page) -> str:
    found: str = page.evaluate(COUNT)
    return found


def tool(page: Page, key: str, of: str = "kernels") -> Locator:
    """One of the fields above a list."""
    return page.locator(f"[name='{of}-{key}']")


def again(open_page: Open, page: Page, script: str) -> Any:
    """What a script gives on a page opened anew at the same address."""
    path, _, address = page.url.removeprefix("file://").partition("#")
    return open_page(Path(path), address).page.evaluate(script)


@pytest.mark.parametrize("name", PAGES)
def test_at_first_sight_a_page_has_few_elements_and_fits(
    site: Path, open_page: Open, name: str
) -> None:
    watched = open_page(site / name)
    if watched.page.locator(".chart").count():
        until(watched.page, "() => document.querySelector('.chart .main-svg') !== null")

    assert watched.page.evaluate(DRAWN) < MOST_ELEMENTS
    for width in (LAPTOP, PHONE):
        watched.page.set_viewport_size({"width": width, "height": 900})
        assert watched.page.evaluate(WIDTH) <= width
    assert watched.faults == []


@pytest.mark.parametrize(
    "name", [PAGES[0], *(pytest.param(name, marks=pytest.mark.ci) for name in PAGES[1:])]
)
@pytest.mark.parametrize(("coarse", "least"), [(False, 24), (True, 44)])
def test_controls_are_large_enough_for_what_points_at_them(
    site: Path, browser: Browser, name: str, coarse: bool, least: int
) -> None:
    size = {"width": PHONE if coarse else LAPTOP, "height": 900}
    context = browser.new_context(viewport=size, is_mobile=coarse, has_touch=coarse)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto((site / name).as_uri())
    page.evaluate(OPEN_ALL)
    draw_charts(page)

    small = page.evaluate(SMALL, least)
    context.close()

    assert small == []


def test_without_javascript_every_row_is_there_and_most_are_folded(
    site: Path, scriptless: BrowserContext
) -> None:
    page = scriptless.new_page()
    for name, lists in (("index.html", 2), ("choose.html", 1)):  # the map of commits is the other
        page.goto((site / name).as_uri())

        assert page.locator("[data-row]:not([data-row] *)").count() == KERNELS * lists
        assert page.locator(".group[open]").count() == lists
        assert page.evaluate(DRAWN) < MOST_ELEMENTS
    page.close()


def test_the_search_finds_every_row_and_its_words_are_in_the_address(
    site: Path, open_page: Open
) -> None:
    page = open_page(site / "index.html").page
    assert count(page) == "120 kernels"

    tool(page, "search").fill("kernel_117")

    assert page.evaluate(LABELS) == ["suite_4.kernel_117"]
    assert count(page) == "1 of 120 kernels"
    assert again(open_page, page, LABELS) == ["suite_4.kernel_117"]

    tool(page, "search").fill("")
    assert "#" not in page.url


def test_filters_count_their_rows_and_work_together(site: Path, open_page: Open) -> None:
    page = open_page(site / "index.html").page

    tool(page, "suite").select_option("suite_2")
    assert tool(page, "suite").locator("option").nth(3).inner_text() == "suite_2 (25)"
    assert count(page) == "25 of 120 kernels"
    tool(page, "only").select_option("slower")

    rows = page.evaluate(SPEEDUPS)
    assert 0 < len(rows) < 25
    assert max(rows) < 1
    assert again(open_page, page, SPEEDUPS) == rows


@pytest.mark.parametrize("name", ["index.html", "choose.html", KERNEL])
def test_rows_of_all_groups_are_sorted_together(site: Path, open_page: Open, name: str) -> None:
    page = open_page(site / name).page

    tool(page, "sort", "cases" if name == KERNEL else "kernels").select_option("speedup-down")

    shown = [speedup for speedup in page.evaluate(SPEEDUPS) if speedup is not None]
    assert shown == sorted(shown, reverse=True)
    assert page.locator(".group > summary:visible").count() == 0
    tool(page, "sort", "cases" if name == KERNEL else "kernels").select_option("")
    assert page.locator(".group > summary:visible").count() > 1


def test_more_rows_are_drawn_when_they_are_asked_for(site: Path, open_page: Open) -> None:
    page = open_page(site / KERNEL).page
    tool(page, "sort", "cases").select_option("seconds-down")
    rows = page.locator(".cases tbody tr:visible")
    assert rows.count() == 40

    page.get_by_role("button", name="Show 160 more of 200 cases").click()

    assert rows.count() == 200
    assert page.locator("button.more:visible").count() == 0


def test_a_group_that_is_opened_has_its_rows(site: Path, open_page: Open) -> None:
    page = open_page(site / "index.html").page
    group = page.locator(".group").nth(3)
    assert group.locator("tbody tr").count() == 0

    group.locator("summary").focus()
    page.keyboard.press("Enter")
    until(page, "() => document.querySelectorAll('.group')[3].querySelectorAll('tr').length === 26")


def test_of_many_groups_the_first_are_shown_and_the_rest_when_asked_for(
    site: Path, open_page: Open
) -> None:
    page = open_page(site / "changes.html").page
    groups, commits = page.locator(".group:visible"), page.locator(".group").count()
    assert groups.count() == 30 < commits

    page.get_by_role("button", name=f"Show {commits - 30} more of {commits} commits").click()

    assert groups.count() == commits


def test_an_address_that_names_a_row_opens_it(site: Path, open_page: Open) -> None:
    page = open_page(site / "choose.html", "suite_3.kernel_99").page

    row = page.locator("[id='suite_3.kernel_99']")
    assert row.evaluate("(e) => e.open && e.getBoundingClientRect().top < innerHeight")
    tool(page, "search").fill("kernel_7")
    page.evaluate("location.hash = 'suite_4.kernel_118'")
    until(page, "() => document.getElementById('suite_4.kernel_118')?.open === true")


def test_a_filter_and_the_part_of_a_chart_stand_in_one_address(site: Path, open_page: Open) -> None:
    page = open_page(site / KERNEL).page
    draw_charts(page)
    page.locator("#chart-history .modebar-btn[data-val='in']").focus()
    page.keyboard.press("Enter")
    until(page, "location.hash.includes('history=')")

    tool(page, "implementation", "cases").select_option("numba")

    assert "history=xaxis:" in page.url
    assert page.url.endswith("cases.implementation=numba")


def test_a_comparison_finds_each_of_its_cases(site: Path, open_page: Open) -> None:
    page = open_page(site / "compare.html").page
    page.locator("input[name='all']").check()
    until(page, "document.querySelector('caption')?.textContent.startsWith('Every')")
    assert page.evaluate(DRAWN) < MOST_ELEMENTS

    tool(page, "search", "cases").fill("kernel_119 numba")

    rows = page.locator("#comparison tbody tr")
    assert rows.count() == 1
    assert rows.inner_text().startswith("suite_4.kernel_119 numba")
    assert "all=1" in page.url
    assert "cases.search=kernel_119%20numba" in page.url


def test_the_table_below_a_chart_has_every_commit_on_request(site: Path, open_page: Open) -> None:
    watched = open_page(site / KERNEL)
    watched.page.evaluate(OPEN_ALL)
    table = watched.page.get_by_role("region", name="Speedup and time over commits")
    rows = table.locator("tbody tr")
    before = [text.split() for text in rows.all_inner_texts()]

    watched.page.get_by_role("button", name=f"Show all {COMMITS} commits").click()

    rows.nth(COMMITS - 1).wait_for()
    after = [text.split() for text in rows.all_inner_texts()]
    assert (len(before), len(after)) == (MAX_TABLE_COMMITS, COMMITS)
    assert after[: len(before)] == before
    assert watched.faults == []
