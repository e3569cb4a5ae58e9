"""docs/kernels.md has every kernel of the suites, as they stand."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from library_cases import checked_cases, small_plan

from gpubench.suite.loading import load_suites

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs/kernels.md").read_text()
RENEW = "; write the page again with `make docs`"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "kernels_page", CHECKOUT / "scripts/kernels_page.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_says_of_every_suite_what_the_suite_says(generator: ModuleType) -> None:
    suites = [loaded.suite for loaded in load_suites([CHECKOUT / "suites"])]
    sections = {suite.suite: generator.section(suite) for suite in suites}
    stale = [name for name, text in sections.items() if text not in PAGE]
    assert stale == [], RENEW


def test_the_page_has_the_needs_of_every_cuda_form() -> None:
    forms = {
        f"{case.suite.suite}.{case.kernel_name}.{case.implementation_name}"
        for case in checked_cases(small_plan(), ("numba_cuda",))
    }
    assert [form for form in sorted(forms) if f"| `{form}` |" not in PAGE] == [], RENEW


def test_no_cuda_form_on_the_page_spills() -> None:
    _, _, table = PAGE.partition("| kernel | launched, with its types |")
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert len(rows) > 30
    assert [row[0] for row in rows if row[-1] != "0"] == []
