"""The comparison that the page makes in a browser is the one that Python makes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from opened_pages import Open, until
from playwright.sync_api import Page
from report_sample import write_sample
from result_files import CommitFiles

from gpubench.analysis.comparison import compare_snapshots
from gpubench.analysis.sides import setup_of
from gpubench.report.compare_data import pair_address
from gpubench.report.comparison_view import comparison_view
from gpubench.report.markdown import markdown
from gpubench.report.render import write_report
from gpubench.results import Results, Snapshot, load_results

pytestmark = pytest.mark.browser


def told(page: Page) -> str:
    """The Markdown of the comparison that the page shows."""
    until(page, "!/^$|Reading/.test(document.querySelector('#told').textContent)")
    return page.input_value("#markdown")


def without_reasons(text: str) -> str:
    """The page names the status of a case without a time; its reason is on the kernel's page."""
    return re.sub(r"^(\| [!✓].*\|).*\|$", r"\1", text, flags=re.MULTILINE)


def in_python(results: Results, old: Snapshot, new: Snapshot) -> str:
    commits = {commit.hash: commit for commit in results.commits}
    return markdown(comparison_view(compare_snapshots(old, new), commits))


def address(old: Snapshot, new: Snapshot) -> str:
    return pair_address((setup_of(old), old.commit), (setup_of(new), new.commit))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Six kernels, four implementations, twelve commits."""
    directory = tmp_path_factory.mktemp("sample") / "results"
    write_sample(directory)
    return load_results(directory)


def test_any_two_snapshots_are_compared_as_in_python(
    sample: Results, tmp_path: Path, open_page: Open
) -> None:
    site = write_report(sample, tmp_path / "site").parent
    runner = [one for one in sample.snapshots if one.machine == "runner"]
    gpu_box = [one for one in sample.snapshots if one.machine == "gpu-box"]

    for old, new in ((runner[3], runner[11]), (runner[11], runner[3]), (runner[9], gpu_box[1])):
        shown = open_page(site / "compare.html", address(old, new))

        assert without_reasons(told(shown.page)) == without_reasons(in_python(sample, old, new))


def test_versions_missing_baselines_and_few_samples_are_told_as_in_python(
    tmp_path: Path, open_page: Open
) -> None:
    names = [f"suites.add__{name}.time_kernel" for name in ("numpy", "numba", "numba_parallel")]
    for index in range(3):
        files = CommitFiles(tmp_path / "results", f"{index:x}" * 40, 86_400 * (index + 1), "a,b&c")
        files.facts(numba=f"0.{65 + index}", run=index)
        for name in names[(index == 1) :]:
            files.time(name, "n=4", 1.0 + index * (name == names[2]), count=1 + 9 * (index < 2))
        files.time(names[0], f"n={8 + index}", 2.0, spread=0.2)
        files.versions[names[1]] = "v0" if index == 0 else "v1"
        files.write()
    results = load_results(tmp_path / "results")
    site = write_report(results, tmp_path / "site").parent

    for old, new in ((0, 1), (0, 2), (1, 0)):
        pair = results.snapshots[old], results.snapshots[new]
        shown = open_page(site / "compare.html", address(*pair))

        assert told(shown.page) == in_python(results, *pair)


def test_an_address_that_names_nothing_says_so(
    sample: Results, tmp_path: Path, open_page: Open
) -> None:
    site = write_report(sample, tmp_path / "site").parent

    shown = open_page(site / "compare.html", "a=99999999,nowhere,none&b=,,")

    words = "The address names a commit or a machine that is not in this report."
    until(shown.page, "(words) => document.querySelector('#told').textContent === words", words)
