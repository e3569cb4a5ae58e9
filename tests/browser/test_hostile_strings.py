"""A text that tries to be markup is only a text wherever a page shows it.

`scripts/robustness.py strings` tries forty.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from every_state import HOSTILE
from hostile_strings import (
    MANY,
    STRINGS,
    faults_of,
    faults_of_text,
    write_everywhere,
    write_pages,
)
from opened_pages import Open
from playwright.sync_api import BrowserContext

from gpubench.report.pages import all_pages

pytestmark = pytest.mark.browser

SOME = [
    STRINGS[36],
    pytest.param("__proto__", marks=pytest.mark.ci),
    *(pytest.param(STRINGS[place], marks=pytest.mark.thorough) for place in (2, 20, 39)),
]


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of results that say ``HOSTILE`` wherever they can."""
    project = tmp_path_factory.mktemp("strings") / "project"
    return write_pages(project, write_everywhere(project, HOSTILE))[0].parent


def test_a_script_and_a_request_would_be_noticed(scripted: BrowserContext) -> None:
    page = "data:text/html,<script>alert(1)</script><img src=http://example.org>"
    assert {fault.partition(":")[0] for fault in faults_of(scripted, page)} >= {"dialog", "request"}


@pytest.mark.parametrize("text", SOME)
def test_a_text_is_only_a_text(scripted: BrowserContext, tmp_path: Path, text: str) -> None:
    faults, opened = faults_of_text(scripted, tmp_path, text)

    assert faults == []
    pages = {page.name for page in all_pages()}
    assert {name.partition("-")[0] for name in opened} == {"index", "kernel", *pages}


def test_machines_shows_it_in_a_fleet_s_facts_and_in_patterns_of_pairs(
    html: Path, open_page: Open
) -> None:
    watched = open_page(html / "machines.html")
    problems = watched.page.locator("#list-problems li").all_inner_texts()

    facts = watched.page.locator(".facts div").all_inner_texts()
    assert [fact for fact in facts if fact.lower().startswith("fleet") and HOSTILE in fact]
    assert [said for said in problems if said.startswith(f"pair {HOSTILE}={HOSTILE}: ")]
    (asks,) = (said for said in problems if said.startswith("pair (.*)_a=\\1_"))
    assert f"time_{HOSTILE[:25]}" in asks
    assert watched.faults == []


def test_a_long_list_has_it_in_tags_and_in_a_search_of_the_address(
    html: Path, open_page: Open
) -> None:
    watched = open_page(html / "index.html", f"kernels.search={quote(HOSTILE)}")
    kernels = watched.page.locator("#list-kernels")

    assert kernels.locator("[name='kernels-search']").input_value() == HOSTILE
    assert kernels.locator(".count").inner_text().startswith(f"{MANY + 2} of ")
    tags = kernels.locator("[name='kernels-tag'] option").all_inner_texts()
    assert tags == ["all", f"{HOSTILE} (1)"]
    assert watched.faults == []


def test_advise_shows_it_in_what_verification_found(html: Path, open_page: Open) -> None:
    watched = open_page(html / "advise.html")
    advice = watched.page.locator("#advice")

    watched.page.select_option("select[name=kernel]", label="norm")
    watched.page.select_option("select[name=from]", "device")
    advice.get_by_text(f"numba on {HOSTILE}").first.wait_for()
    assert f"on {HOSTILE[:10]}; 100% of 10 times" in advice.inner_text()
    watched.page.select_option("select[name=kernel]", label=HOSTILE)
    advice.get_by_text("no ranking: wrong by ").wait_for()
    assert f"at most, on {HOSTILE[:10]}; " in advice.inner_text()
    assert watched.faults == []
