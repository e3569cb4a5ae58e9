"""Every kind of control is worked with the keyboard alone."""

from __future__ import annotations

import pytest
from every_state import Report
from opened_pages import Open, draw_charts, until
from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def focus(page: Page, selector: str) -> None:
    """Press Tab until the control has the focus."""
    page.evaluate("document.activeElement.blur()")
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("(s) => document.activeElement.matches(s)", selector):
            return
    raise AssertionError(f"Tab does not reach {selector}")


def test_the_first_tab_offers_to_skip_to_the_content(report: Report, open_page: Open) -> None:
    page = open_page(report.page("overview")).page

    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")

    assert page.url.endswith("#main")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_the_menu_of_kernels_opens_and_leads_to_a_kernel(report: Report, open_page: Open) -> None:
    page = open_page(report.page("overview")).page

    focus(page, ".menu summary")
    page.keyboard.press("Enter")
    assert page.locator(".menu nav a").first.is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/kernel-*")

    assert page.locator(".menu summary").first.inner_text() == "Kernel increment_by_one"


def test_every_fold_turns_with_space_and_back_with_enter(report: Report, open_page: Open) -> None:
    page = open_page(report.page("choose")).page
    folds = page.locator("main summary")
    is_open = "(e) => e.parentElement.open"

    for fold in folds.all():
        before = fold.evaluate(is_open)
        fold.focus()
        page.keyboard.press("Space")
        assert fold.evaluate(is_open) != before
        page.keyboard.press("Enter")
        assert fold.evaluate(is_open) == before
    assert folds.count() > 3


def test_a_table_wider_than_a_phone_scrolls_with_the_arrows(
    report: Report, open_page: Open
) -> None:
    page = open_page(report.page("kernel over launches")).page
    page.set_viewport_size({"width": 390, "height": 900})
    region = page.locator(".scroll:has(.launches)").first

    region.focus()
    page.keyboard.press("ArrowRight")
    until(page, "document.querySelector('.scroll:has(.launches)').scrollLeft > 0")


def test_a_chart_zooms_and_goes_back(report: Report, open_page: Open) -> None:
    page = open_page(report.page("kernel with steps")).page
    draw_charts(page)
    ends = "document.getElementById('chart-history').layout.xaxis.range.join()"
    before = page.evaluate(ends)

    focus(page, "#chart-history .modebar-btn[data-attr='zoom'][data-val='in']")
    page.keyboard.press("Enter")
    until(page, f"{ends} !== '{before}'")
    focus(page, "#chart-history .modebar-btn[data-val='reset']")
    page.keyboard.press("Space")
    until(page, f"{ends} === '{before}'")


def test_two_sides_are_chosen_swapped_and_copied(report: Report, open_page: Open) -> None:
    page = open_page(report.page("compare")).page
    title = page.locator("#comparison h3")
    first = title.inner_text()

    focus(page, "select[name='a-commit']")
    page.keyboard.press("ArrowDown")
    until(page, "(old) => document.querySelector('#comparison h3').textContent !== old", first)
    older = title.inner_text()
    focus(page, "#swap")
    page.keyboard.press("Enter")
    until(page, "(old) => document.querySelector('#comparison h3').textContent !== old", older)
    focus(page, "input[name='all']")
    page.keyboard.press("Space")
    until(page, "document.querySelector('caption').textContent.startsWith('Every')")
    focus(page, "#export summary")
    page.keyboard.press("Enter")
    focus(page, "#copy")
    page.keyboard.press("Enter")
    until(page, "/Markdown is/.test(document.querySelector('#told').textContent)")
