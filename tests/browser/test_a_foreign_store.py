"""Pages of a store of another project, on a laptop and a phone: rows are low, no text is cut off,
axe finds nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from foreign_store import names, write_foreign_store
from opened_pages import Open, draw_charts
from playwright.sync_api import Page
from test_pages_in_a_browser import LAPTOP, PHONE, violations, wide

pytestmark = pytest.mark.browser

MOST_PIXELS = 120
"""Of a row in a list."""

TALL = """(most) => [...document.querySelectorAll("tbody tr, .list li")]
  .filter((row) => row.checkVisibility())
  .map((row) => [row.getBoundingClientRect().height, row.innerText.slice(0, 90)])
  .filter(([height]) => height > most)
  .map(([height, text]) => `${Math.round(height)} px: ${text}`)"""
OPEN_LISTS = """() => document.querySelectorAll('details:not(tbody *)')
  .forEach((part) => (part.open = true))"""
ADD_STYLE = """(style) => document.head.append(
  Object.assign(document.createElement("style"), { textContent: style }))"""

# Text that something cuts off: a box that hides what is beyond it, or the cell that it stands in.
CUT = """() => {
  const cut = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { currentNode: text } = texts;
    const parent = text.parentElement;
    if (!text.data.trim() || !parent.checkVisibility({ visibilityProperty: true })) continue;
    if (parent.closest(".unseen, .skip, svg, script, style, option, textarea, .chart")) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const box = range.getBoundingClientRect();
    for (let around = parent; around && around !== document.body; around = around.parentElement) {
      const style = getComputedStyle(around);
      if (/auto|scroll/.test(style.overflowX)) break;
      // Shortened, and said so by an ellipsis: a touch of the row shows all of it.
      const isShort = style.textOverflow === "ellipsis" || style.webkitLineClamp !== "none";
      if (isShort && !around.closest("tr:hover")) break;
      const hides = /hidden|clip/.test(style.overflowX + style.overflowY);
      if (!hides && !around.matches("td, th")) continue;
      const frame = around.getBoundingClientRect();
      if (frame.width <= 1) break; // only for those who listen
      const isBeside = box.right > frame.right + 1 || box.left < frame.left - 1;
      const isCut = isBeside || box.bottom > frame.bottom + 1;
      if (isCut) cut.push(`${around.tagName} ${text.data.trim().slice(0, 80)}`);
      if (hides) break;
    }
  }
  return cut;
}"""

WITH_TEXTS = "query_filter.benchmark.QueryFilter.time_query_filter"
OVERVIEW = "index.html"
OTHERS = ("changes.html", "compare.html", "machines.html", "kernel", WITH_TEXTS)
PAGES = (OVERVIEW, *(pytest.param(name, marks=pytest.mark.ci) for name in OTHERS))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_foreign_store(tmp_path_factory.mktemp("foreign"))


def page_of(site: Path, name: str) -> Path:
    """Return a page by its name, or that of a kernel by a part of it."""
    if name.endswith(".html"):
        return site / name
    part = "time_short_1" if name == "kernel" else name.rpartition(".")[2]
    return next(site.glob(f"kernel-*{part}*.html"))


def faults(page: Page, width: int) -> list[Any]:
    """What is wrong with a page at one width."""
    too_wide = wide(page, width)
    return [*too_wide, *page.evaluate(TALL, MOST_PIXELS), *page.evaluate(CUT)]


def test_the_store_has_as_many_benchmarks_as_that_of_django(site: Path) -> None:
    assert len(names()) == 65
    assert len([*site.glob("kernel-*.html")]) == 65


@pytest.mark.parametrize("name", PAGES)
def test_on_a_laptop_and_a_phone_rows_are_low_and_whole_and_accessible(
    site: Path, open_page: Open, name: str
) -> None:
    watched = open_page(page_of(site, name))
    draw_charts(watched.page)

    for width in (LAPTOP, PHONE):
        watched.page.set_viewport_size({"width": width, "height": 900})
        # As it opens: axe takes long for a map of a thousand cells, which other tests look at.
        assert violations(watched.page, "light") == []
    watched.page.evaluate(OPEN_LISTS)
    for width in (LAPTOP, PHONE):
        assert faults(watched.page, width) == []
    assert watched.faults == []


def test_a_row_that_is_pointed_at_shows_all_of_its_text(site: Path, open_page: Open) -> None:
    page = open_page(site / "changes.html").page
    page.set_viewport_size({"width": PHONE, "height": 900})
    row = page.locator("tr:has-text('very_long')").first
    before = row.bounding_box()

    row.hover()

    after = row.bounding_box()
    assert before and after
    assert after["height"] > before["height"]
    assert page.evaluate(CUT) == []


PLANTED = {
    "tbody tr { height: 130px }": "130 px: ",
    "tbody th, tbody th * { white-space: nowrap !important }": "TH ",
    "tbody th a { display: block; overflow: hidden; height: 8px }": "A ",
}
"""Styles, and how what is found begins."""


def test_planted_faults_are_found(site: Path, open_page: Open) -> None:
    page = open_page(site / OVERVIEW).page
    assert faults(page, LAPTOP) == []
    for fault, says in PLANTED.items():
        page.evaluate(ADD_STYLE, fault)
        assert any(found.startswith(says) for found in faults(page, LAPTOP)), fault
        page.evaluate("document.head.querySelector('style').remove()")
