"""One report for all tests that open pages; the browser is that of the root's conftest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from every_state import Report, write_every_state
from opened_pages import Open, Watched
from playwright.sync_api import Browser, BrowserContext, Page


@pytest.fixture(scope="package")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return write_every_state(tmp_path_factory.mktemp("every-state"))


@pytest.fixture(scope="package")
def scripted(browser: Browser) -> Iterator[BrowserContext]:
    yield from _offline(browser, javascript=True)


@pytest.fixture(scope="package")
def scriptless(browser: Browser) -> Iterator[BrowserContext]:
    yield from _offline(browser, javascript=False)


def _offline(browser: Browser, *, javascript: bool) -> Iterator[BrowserContext]:
    context = browser.new_context(
        offline=True, java_script_enabled=javascript, viewport={"width": 1280, "height": 900}
    )
    context.set_default_timeout(20_000)
    yield context
    context.close()


@pytest.fixture
def open_page(scripted: BrowserContext) -> Iterator[Open]:
    """Open a file at an address after ``#``; every page is closed at the end."""
    opened: list[Page] = []

    def show(path: Path, address: str = "") -> Watched:
        watched = Watched(scripted.new_page())
        opened.append(watched.page)
        watched.page.goto(f"{path.as_uri()}{'#' if address else ''}{address}")
        return watched

    yield show
    for page in opened:
        page.close()
