"""An address shows the view that it was copied from."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from every_state import Report
from opened_pages import Open, draw_charts, until
from playwright.sync_api import Page

pytestmark = pytest.mark.browser

COMPARED = """() => ({
  sides: [...document.querySelectorAll("select")].map((field) => field.selectedOptions[0].text),
  all: document.querySelector("input[name='all']").checked,
  table: document.querySelector("#comparison").innerText,
  markdown: document.querySelector("#markdown").value,
})"""
ZOOMS = """() => [...document.querySelectorAll(".chart")].map((chart) =>
  ["xaxis", "yaxis", "yaxis2"].map((name) =>
    chart.layout[name]?.range?.map((end) => end.toFixed(3)).join()))"""


def settled(page: Page) -> dict[str, Any]:
    until(page, "!/Reading/.test(document.querySelector('#told').textContent)")
    found: dict[str, Any] = page.evaluate(COMPARED)
    return found


def test_a_comparison_is_in_its_address_whatever_was_chosen(
    report: Report, open_page: Open
) -> None:
    path = report.page("compare")
    page = open_page(path).page
    views = [settled(page)]

    for field in ("a-setup", "a-commit", "b-setup", "b-commit"):
        options = page.locator(f"select[name='{field}'] option:not(:checked)")
        page.select_option(f"select[name='{field}']", options.first.get_attribute("value"))
        views.append(settled(page))
        assert settled(open_page(path, page.url.partition("#")[2]).page) == views[-1]
    page.locator("input[name='all']").check()
    views.append(settled(page))
    page.locator("#swap").click()
    views.append(settled(page))

    assert settled(open_page(path, page.url.partition("#")[2]).page) == views[-1]
    assert all(before != after for before, after in pairwise(views))


def test_going_back_in_history_shows_the_view_again(report: Report, open_page: Open) -> None:
    page = open_page(report.page("compare")).page
    page.locator("select[name='a-commit']").select_option(index=5)
    before = settled(page)

    page.evaluate("location.hash = ''")
    until(
        page, "(text) => document.querySelector('#comparison').innerText !== text", before["table"]
    )
    page.go_back()
    until(
        page, "(text) => document.querySelector('#comparison').innerText === text", before["table"]
    )

    assert settled(page) == before


def test_the_part_of_a_chart_is_in_the_address(report: Report, open_page: Open) -> None:
    path = report.page("kernel with every time")
    page = open_page(path).page
    draw_charts(page)
    whole = page.evaluate(ZOOMS)
    page.locator("#chart-size-1 .modebar-btn[data-val='in']").focus()
    page.keyboard.press("Enter")
    until(page, "location.hash.includes('size-1=xaxis:')")
    zoomed = page.evaluate(ZOOMS)

    again = open_page(path, page.url.partition("#")[2]).page
    draw_charts(again)

    assert zoomed != whole
    assert again.evaluate(ZOOMS) == zoomed


def test_the_whole_of_a_chart_needs_no_address(report: Report, open_page: Open) -> None:
    page = open_page(report.page("kernel with every time"), "size-1=xaxis:4,5").page
    draw_charts(page)
    assert page.evaluate("document.getElementById('chart-size-1').layout.xaxis.range") == [4, 5]

    page.locator("#chart-size-1 .modebar-btn[data-val='reset']").focus()
    page.keyboard.press("Enter")
    until(page, "!location.hash")


def test_an_address_that_means_nothing_shows_the_whole(report: Report, open_page: Open) -> None:
    watched = open_page(report.page("kernel with every time"))
    draw_charts(watched.page)
    whole = watched.page.evaluate(ZOOMS)

    for address in (
        "size-1=xaxis:1,x",
        "size-1=no:1,2",
        "size-1",
        "a=%",
        "history=xaxis:1;y",
        "=&",
    ):
        watched.page.evaluate("(address) => { location.hash = address; }", address)
        watched.page.wait_for_timeout(20)
        assert watched.page.evaluate(ZOOMS) == whole
    assert watched.faults == []
