"""The documents: pages that code writes are as it writes them, and the site has every page."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml

from gpubench.counts.instructions import format_cpu_reference
from gpubench.results import open_table
from gpubench.suite.loading import load_suites
from softcuda.counts import format_reference

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"
RENEW = "; write the page again with `.venv/bin/python scripts/reference_pages.py`"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, CHECKOUT / f"scripts/{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_commands_is_what_help_says() -> None:
    # In a process of its own: other tests leave commands imported, with what they changed of them.
    code = "import reference_pages; print(reference_pages.commands_markdown(), end='')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "COLUMNS": "80", "PYTHONPATH": str(DOCS.parent / "scripts")},
        capture_output=True,
        text=True,
        check=True,
    )
    is_current = (DOCS / "commands.md").read_text() == done.stdout
    assert is_current, RENEW


def test_the_page_of_columns_is_what_query_lists() -> None:
    is_current = (DOCS / "columns.md").read_text() == load("reference_pages").columns_markdown()
    assert is_current, RENEW


def test_the_page_of_counts_defines_each_of_them() -> None:
    _, _, rest = (DOCS / "counts.md").read_text().partition("<!-- counts -->\n")
    written, end, _ = rest.partition("<!-- end of counts -->")
    assert end and written == format_reference(), "run scripts/format_reference.py"


def test_the_page_of_counts_defines_each_of_the_cpu() -> None:
    _, _, rest = (DOCS / "counts.md").read_text().partition("<!-- counts on the CPU -->\n")
    written, end, _ = rest.partition("<!-- end of counts on the CPU -->")
    assert end and written == format_cpu_reference(), "run scripts/format_reference.py"


def test_every_environment_variable_is_explained() -> None:
    read = re.compile(r"[\"'](_?GPUBENCH_[A-Z_]+|SOFTCUDA_[A-Z_]+)[\"']")
    folders = (CHECKOUT / "gpubench", CHECKOUT / "softcuda")
    sources = [
        file
        for folder in folders
        for file in folder.rglob("*.*")
        if file.suffix in (".py", ".c") and "tests" not in file.relative_to(folder).parts
    ]
    names = {name for file in sources for name in read.findall(file.read_text(encoding="utf-8"))}
    page = (DOCS / "environment.md").read_text()
    page += (CHECKOUT / "softcuda/README.md").read_text()

    assert {"GPUBENCH_PRESET", "SOFTCUDA_TIMEOUT"} <= names
    assert sorted(name for name in names if f"`{name}`" not in page) == []


def test_the_page_of_variables_names_none_that_nothing_reads() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (DOCS / "environment.md").read_text(), re.MULTILINE)
    code = "".join(path.read_text() for path in (CHECKOUT / "gpubench").rglob("*.py"))
    assert len(listed) > 5 and [name for name in listed if name not in code] == []


def pages_of(nav: object) -> list[str]:
    """Pages that a navigation of mkdocs names, in their order."""
    if isinstance(nav, str):
        return [nav]
    inside = nav.values() if isinstance(nav, dict) else nav
    assert not isinstance(inside, int | float | None)
    return [page for part in inside for page in pages_of(part)]  # type: ignore[attr-defined]


def test_the_site_has_every_page_once() -> None:
    nav = yaml.safe_load((CHECKOUT / "mkdocs.yml").read_text())["nav"]
    outside = load("site_hooks").OUTSIDE

    there = [*(page.name for page in DOCS.glob("*.md")), *outside.values()]
    assert sorted(pages_of(nav)) == sorted(there)
    parts = [title for part in nav for title in part]
    assert parts == ["gpubench", "Tutorial", "How-to", "Reference", "Explanation"]


def test_the_suite_of_the_readme_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", (CHECKOUT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "saxpy.yaml").write_text(text)

    (loaded,) = load_suites([tmp_path / "saxpy.yaml"])

    assert [*loaded.suite.kernels["saxpy"].implementations] == ["numpy", "numba"]


@pytest.mark.parametrize(
    ("path", "written", "shown"),
    [
        ("README.md", "[a](docs/checks.md#b)", "[a](checks.md#b)"),
        ("README.md", "![a](docs/overview.png)", "![a](overview.png)"),
        ("README.md", "[a](CHANGELOG.md)", "[a](changelog.md)"),
        ("docs/softcuda.md", "[a](checks.md)", "[a](checks.md)"),
        ("docs/a.md", "[a](../softcuda/README.md)", "[a](softcuda-device.md)"),
        ("docs/a.md", "[a](https://example.org/x)", "[a](https://example.org/x)"),
        ("docs/a.md", "[a](#b) and f[i](j)", "[a](#b) and f[i](j)"),
        ("docs/a.md", "[a](../no/page.md)", "[a](../no/page.md)"),
    ],
)
def test_links_lead_to_pages_of_the_site(path: str, written: str, shown: str) -> None:
    assert load("site_hooks").relink(written, path) == shown


def test_links_lead_to_files_of_the_repository_too() -> None:
    pages = [*map(CHECKOUT.joinpath, load("site_hooks").OUTSIDE), *DOCS.glob("*.md")]
    links = re.compile(r"\]\(([\w./-]+\.\w+)[)#]")
    lost = [
        f"{page.relative_to(CHECKOUT)}: {link}"
        for page in pages
        for link in links.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    assert lost == []


def test_the_sample_report_is_of_measured_results_of_a_history() -> None:
    sample = CHECKOUT / "examples/sample"
    files = [path for path in sample.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 200_000
    listed = (sample / "README.md").read_text()

    table = open_table(sample / "results")

    assert not table.problems
    (setup,) = table.setups
    assert len(table.commits) == listed.count("\n| ") - 2  # without the heading
    rows = table.newest_rows(setup).values()
    assert {row.name.implementation: row.status for row in rows} == {
        "numpy": "ok",
        "numba": "ok",
        "numba_cuda": "verified",  # on the device in software, which has no times
    }
    assert not any(row.seconds for row in rows if row.status == "verified")


def test_the_page_of_the_sample_leads_to_its_report() -> None:
    hooks = load("site_hooks")
    page = SimpleNamespace(file=SimpleNamespace(src_uri="sample.md"))
    assert hooks.REPORT not in (CHECKOUT / "examples/sample/README.md").read_text()
    assert f'href="{hooks.REPORT}"' in hooks.on_page_markdown("", page, None, None)
