"""Every page from disk, offline: nothing leaves it, nothing overflows, axe finds no violation."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from every_state import EMPTY, FIRST_OF_TEMPLATES, HOSTILE, PAGES, Report
from opened_pages import Open, Watched, draw_charts
from playwright.sync_api import BrowserContext, Page

pytestmark = pytest.mark.browser

EACH = [
    name if name in FIRST_OF_TEMPLATES else pytest.param(name, marks=pytest.mark.ci)
    for name in PAGES
]
"""Pages as parameters: one of each template in ``make test``, all states in ``.ci/run``."""
THEMES = ("light", "dark")
PHONE, LAPTOP, WALL = 390, 1280, 2560
WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
CONTRAST = ["color-contrast"]

TOO_WIDE = """() => [...document.querySelectorAll(
    "body *:not(.scroll *, pre *, .chart *, .explored-chart *)")]
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
  .map((e) => e.outerHTML.slice(0, 160))"""
SPILLING = """() => [...document.querySelectorAll("main :is(td, th):not(.unseen *)")]
  .filter((e) => e.checkVisibility() && !e.closest("thead") && e.clientWidth)
  .filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflow === "visible")
  .map((e) => e.outerHTML.slice(0, 160))"""
OPEN_ALL = "() => document.querySelectorAll('details').forEach((part) => (part.open = true))"
CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex='0']"
LISTEN = """(controls) => {
  window.unseen = [];
  const waiting = new Set([...document.querySelectorAll(controls)]
    .filter((e) => e.checkVisibility() && !e.disabled));
  window.waiting = waiting;
  document.addEventListener("focusin", ({ target }) => {
    waiting.delete(target);
    const style = getComputedStyle(target);
    const box = target.getBoundingClientRect();
    const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
    if (!seen || !box.width || box.right < 0) window.unseen.push(target.outerHTML.slice(0, 120));
  });
  return waiting.size;
}"""
LEFT = "() => [...window.waiting].map((e) => e.outerHTML.slice(0, 120))"


def wide(page: Page, width: int) -> list[str]:
    """Return what is wider than the page, at one width."""
    page.set_viewport_size({"width": width, "height": 900})
    overflows = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return [f"{width}: {found}" for found in page.evaluate(TOO_WIDE)] if overflows else []


def violations(page: Page, theme: str) -> list[str]:
    """Return what axe finds on the page as it stands, one line for each rule."""
    # Without `preload`: axe would fetch the style sheet, which the page's policy refuses.
    options: dict[str, Any] = {"preload": False, "resultTypes": ["violations"]}
    # The dark theme differs by its colours alone.
    options["runOnly"] = list(WCAG) if theme == "light" else {"type": "rule", "values": CONTRAST}
    found = Axe().run(page, options=options).response["violations"]
    return [f"{rule['id']}: {rule['nodes'][0]['html'][:200]}" for rule in found]


@pytest.fixture(scope="module", params=EACH)
def shown(request: pytest.FixtureRequest, report: Report, scripted: BrowserContext) -> Any:
    """Show each page in turn, loaded once for several tests."""
    watched = Watched(scripted.new_page())
    watched.page.goto(report.page(request.param).as_uri())
    draw_charts(watched.page)
    yield watched
    watched.page.close()


def test_tab_reaches_every_control_and_shows_where_it_is(shown: Watched) -> None:
    controls = shown.page.evaluate(LISTEN, CONTROLS)

    for _ in range(controls):
        shown.page.keyboard.press("Tab")

    assert shown.page.evaluate(LEFT) == []
    assert shown.page.evaluate("window.unseen") == []


def test_a_page_is_quiet_and_fits_in_both_themes(shown: Watched) -> None:
    shown.page.evaluate(OPEN_ALL)

    for theme in THEMES:
        shown.page.emulate_media(color_scheme=theme)
        for width in (PHONE, WALL, LAPTOP):
            assert wide(shown.page, width) == []
    assert shown.faults == []


def test_what_a_cell_says_lies_inside_the_cell(shown: Watched) -> None:
    shown.page.evaluate(OPEN_ALL)

    for width in (PHONE, LAPTOP):
        shown.page.set_viewport_size({"width": width, "height": 900})
        assert shown.page.evaluate(SPILLING) == []


LINES = """() => [...document.querySelectorAll("table.kernels tbody tr")].map((row) => ({
  kernel: row.querySelector("th").innerText,
  width: row.getBoundingClientRect().width,
  lines: [...row.querySelectorAll("td:not(.size)")].filter((e) => e.checkVisibility()).map((e) =>
    [e.dataset.head, e.innerText.replace(/\\s+/g, " ").trim(), e.getBoundingClientRect().top]),
}))"""


def test_on_a_phone_the_overview_has_a_line_for_each_implementation_of_a_kernel(
    report: Report, open_page: Open
) -> None:
    page = open_page(report.page("overview")).page
    page.set_viewport_size({"width": PHONE, "height": 900})

    rows = page.evaluate(LINES)

    assert [row["kernel"] for row in rows][:2] == ["increment_by_one", "mandelbrot"]
    assert all(row["width"] <= PHONE for row in rows)
    for row in rows:
        tops = [top for _, _, top in row["lines"]]
        assert tops == sorted(set(tops))
    said = {head: words for head, words, _ in rows[0]["lines"]}
    assert list(said) == ["numpy", "numba", "numba_cuda", "numba_parallel"]
    assert (
        said["numba"] == "0.860\N{MULTIPLICATION SIGN} 0.827\N{EN DASH}0.895\N{MULTIPLICATION SIGN}"
    )


@pytest.mark.parametrize("name", EACH)
def test_a_page_is_accessible_in_both_themes(name: str, report: Report, open_page: Open) -> None:
    page = open_page(report.page(name)).page
    draw_charts(page)
    page.evaluate(OPEN_ALL)

    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        assert violations(page, theme) == []


def test_hostile_names_are_text(report: Report, open_page: Open) -> None:
    for name in ("overview with hostile names", "kernel with hostile names"):
        watched = open_page(report.page(name))
        watched.page.evaluate(OPEN_ALL)

        assert HOSTILE in watched.page.inner_text("main")
        assert watched.page.locator("main :is(img, i), h1 *").count() == 0
        assert watched.faults == []


def test_the_theme_changes_the_colours_of_charts_too(report: Report, open_page: Open) -> None:
    page = open_page(report.page("kernel with steps")).page
    draw_charts(page)
    colours = []

    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(
            """() => getComputedStyle(document.body).color ===
              document.querySelector('.chart .xtick text').style.fill"""
        )
        colours.append(page.evaluate("getComputedStyle(document.body).color"))

    assert colours[0] != colours[1]


UNDER_THE_POINTER = """() => document.querySelector("#chart-history").data
  .filter((trace) => trace.text)
  .map((trace) => [trace.legendgroup, ...trace.text.at(-1).split("<br>").slice(2)])"""
NEWEST_ROW = """() => Object.fromEntries([...document.querySelectorAll("#history ~ details td")]
  .slice(0, document.querySelectorAll("#history ~ details thead th").length - 1)
  .map((cell, index) => [
    document.querySelectorAll("#history ~ details thead th")[index + 1].firstChild.textContent,
    cell.innerText]))"""
BAND = """() => {
  const { data } = document.querySelector("#chart-history");
  const band = data.find((trace) => trace.fill === "toself");
  const line = data.find((trace) => trace.legendgroup === band.legendgroup && trace.text);
  const top = band.x.map((x, index) => [x, band.y[index]]).slice(band.x.length / 2).reverse();
  const bottom = band.y.slice(0, band.x.length / 2);
  return top.every(([x, high], index) => bottom[index] <= line.y[x] && line.y[x] <= high);
}"""


def test_the_words_under_the_pointer_are_those_of_the_table(
    report: Report, open_page: Open
) -> None:
    page = open_page(report.page("kernel with steps")).page
    page.evaluate(OPEN_ALL)
    draw_charts(page)

    cells = page.evaluate(NEWEST_ROW)
    said = page.evaluate(UNDER_THE_POINTER)

    assert {name for name, *_ in said} == set(cells)
    for name, *lines in said:
        assert lines
        for line in lines:
            value, interval = line.rstrip(")").split(" (")
            assert value in cells[name]
            assert interval in cells[name] or not value.endswith("\N{MULTIPLICATION SIGN}")


def test_the_band_of_a_chart_lies_around_its_line(report: Report, open_page: Open) -> None:
    page = open_page(report.page("kernel with steps")).page
    draw_charts(page)

    assert page.evaluate(BAND)


DEAD = """() => [...document.querySelectorAll(
    "button, select, input, textarea:not([readonly]), a[href^='#']")]
  .filter((e) => e.checkVisibility())
  .filter((e) => !e.hash || !document.getElementById(e.hash.slice(1)))
  .map((e) => e.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("name", EACH)
def test_without_javascript_a_page_has_its_words_and_no_dead_control(
    report: Report, scriptless: BrowserContext, name: str
) -> None:
    page = scriptless.new_page()
    page.goto(report.page(name).as_uri())
    page.evaluate(OPEN_ALL)

    assert page.inner_text("h1").endswith(".")
    assert page.evaluate(DEAD) == []
    assert page.locator(".chart:visible").count() == 0
    if name != EMPTY and "machines" not in name:
        calculates = name.startswith(("compare", "advise"))  # its tables are made in the browser
        assert page.locator("main table").count() or calculates
    page.close()


def test_without_javascript_a_kernel_page_has_the_tables_of_its_charts(
    report: Report, scriptless: BrowserContext
) -> None:
    page = scriptless.new_page()
    page.goto(report.page("kernel with every time").as_uri())

    charts = page.locator("figure:has(.chart)").count()
    tables = page.locator("summary:has-text('Table of the chart')")
    tables.first.click()

    assert charts == tables.count() == 3
    assert page.locator("details[open] table:visible").count() == 1
    page.close()
