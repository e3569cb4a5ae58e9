"""Pages of ``gpubench serve`` load anew by themselves, under their own security policy."""

from __future__ import annotations

import shutil
from pathlib import Path

from every_state import Report
from playwright.sync_api import Browser, expect

from gpubench.report.serving import ReportServer


def test_an_open_page_shows_what_was_written_and_keeps_its_address(
    browser: Browser, report: Report, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(report.folder, tmp_path / "html"))
    context = browser.new_context()
    page, asked, errors = context.new_page(), set[str](), list[str]()
    page.on("request", lambda request: asked.add(request.url))
    page.on("console", lambda message: errors.append(message.text))
    with ReportServer(folder, 0) as server, server.serving():
        page.goto(f"{server.url}index.html#here")
        index = folder / "index.html"
        index.write_text(index.read_text().replace("<h1>", "<h1>Newly written: "))
        server.outdate()

        expect(page.locator("h1")).to_contain_text("Newly written: ", timeout=20_000)
        assert page.url == f"{server.url}index.html#here"
        context.close()

    assert all(url.startswith(server.url) for url in asked)
    assert errors == []
