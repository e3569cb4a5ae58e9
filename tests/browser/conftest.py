"""One headless browser and one report for all tests that open pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from every_state import Report, write_every_state
from opened_pages import Open, Watched
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
)  # fmt: skip


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        reason = "there is no chromium on this machine; install it: apt-get install chromium"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


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
    """Opens a file at an address after ``#``; every page is closed at the end."""
    opened: list[Page] = []

    def show(path: Path, address: str = "") -> Watched:
        watched = Watched(scripted.new_page())
        opened.append(watched.page)
        watched.page.goto(f"{path.as_uri()}{'#' if address else ''}{address}")
        return watched

    yield show
    for page in opened:
        page.close()
