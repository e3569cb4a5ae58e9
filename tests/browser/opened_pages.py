"""Pages in the browser: what they do that a report must not, and waiting for what they show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page

LOCAL = ("file:", "data:", "blob:", "about:")


class Watched:
    """A page in the browser, and what it did that a report must not do."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []
        page.on("request", self._request)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("dialog", self._dialog)

    def _request(self, request: Any) -> None:
        if not request.url.startswith(LOCAL):
            self.faults.append(f"request: {request.url}")

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"console {message.type}: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()


Open = Callable[..., Watched]


# Not `scrollIntoView`: in Chromium 150 Tab goes on from there instead of from the top of the page.
_UNDRAWN = """() => [...document.querySelectorAll(".chart")]
  .filter((chart) => !chart.querySelector(".main-svg"))
  .map((chart) => scrollBy(0, chart.getBoundingClientRect().top)).length"""


def draw_charts(page: Page) -> None:
    """Look at every chart, which is drawn when it comes near the view."""
    until(page, f"() => ({_UNDRAWN})() === 0")
    page.evaluate("scrollTo(0, 0)")


def until(page: Page, script: str, argument: Any = None) -> None:
    """Wait until a script gives true; Playwright's own way is eval, which a page's policy bars."""
    for _ in range(1_000):  # not for some seconds: a machine may be suspended meanwhile
        if page.evaluate(script, argument):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"never true: {script}")
