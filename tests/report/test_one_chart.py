"""``gpubench.chart``: a chart of a kernel's page that needs no other file."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest
from full_kernel import write_full_kernel
from report_sample import write_sample
from result_files import CommitFiles

import gpubench
from gpubench.errors import GpubenchError

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("charts") / ".asv" / "results"
    write_sample(folder)
    return folder


def test_a_chart_of_several_commits_is_over_commits(sample: Path) -> None:
    chart = gpubench.chart("matmul", folder=sample)

    assert chart.title == "matmul over commits"
    assert any("numba_parallel" in sentence for sentence in chart.sentences)
    assert str(chart).splitlines() == [chart.title, *chart.sentences]


def test_one_commit_has_a_chart_over_sizes_and_the_others_by_name(tmp_path: Path) -> None:
    write_full_kernel(tmp_path / "results")

    first = gpubench.chart("scale", folder=tmp_path / "results")
    roofline = gpubench.chart("scale.scale", "roofline", folder=tmp_path / "results")

    assert (first.title, roofline.title) == ("scale over sizes", "scale: roofline")
    assert any("GB/s" in sentence for sentence in roofline.sentences)


def test_the_page_needs_no_other_file(sample: Path) -> None:
    page = gpubench.chart("matmul", folder=sample).page

    assert "plotly.js (basic - minified)" in page
    assert re.findall(r"(?:src|href)=[\"']", page.partition("<script>")[0]) == []
    assert page.count("<script") == page.count("</script>") == 5


def test_the_element_holds_the_page_as_one_attribute(sample: Path) -> None:
    chart = gpubench.chart("matmul", folder=sample)

    element = chart._repr_html_()

    (srcdoc,) = re.findall(r' srcdoc="([^"]*)"', element)
    assert html.unescape(srcdoc) == chart.page
    assert element.count("<") == 2  # of the element alone
    assert 'sandbox="allow-scripts allow-downloads"' in element


def test_names_of_others_are_escaped(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path / "results", "a" * 40, 86_400)
    case = f"n=4 mode={HOSTILE}"
    files.time("suites.add__numpy.time_kernel", case, 4.0)
    files.record("suites.add__numpy.time_kernel", case, backend="numpy", device="cpu")
    files.write()

    chart = gpubench.chart("add", folder=tmp_path / "results")

    assert "onerror" in chart.page and "<img" not in chart.page.partition("<script>const")[0]
    assert "<img" not in chart._repr_html_()


def test_a_damaged_result_is_warned_of(tmp_path: Path) -> None:
    write_full_kernel(tmp_path / "results")
    (tmp_path / "results" / "gpu-box" / "dddddddd-virtualenv-py3.11.json").write_text("{")

    with pytest.warns(UserWarning, match="dddddddd-virtualenv"):
        gpubench.chart("scale", folder=tmp_path / "results")


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        ("matmull", {}, "no results of the kernel 'matmull': there are increment_by_one, "),
        ("matmul", {"over": "time"}, "there is no chart over 'time'; give 'commits', 'sizes', "),
        ("matmul", {"over": "roofline"}, "matmul has no chart 'roofline'; give 'commits' or "),
        ("matmul", {"machine": "none"}, "no results of that machine and environment: there are "),
        ("matmul", {"folder": "nowhere"}, "there is no folder 'nowhere' in "),
    ],
)
def test_what_is_not_there_is_told(
    sample: Path, kernel: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(GpubenchError) as raised:
        gpubench.chart(kernel, **{"folder": sample, **options})  # type: ignore[arg-type]
    assert str(raised.value).startswith(message)


def test_importing_gpubench_imports_no_results() -> None:
    program = "import sys, gpubench; print({'duckdb', 'jinja2', 'numpy'} & {*sys.modules})"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert shown.stdout == "set()\n", shown.stderr
