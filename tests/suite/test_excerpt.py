"""The lines of a suite that declare one kernel."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from gpubench.suite.loading import kernel_excerpt, load_suite

KERNEL = """\
sizes: {{n: [64]}}
arrays:
  a: {{shape: [n], dtype: float32}}
  b: {{shape: [n], dtype: float32, intent: out}}
call: [a, b]
implementations:
  numpy: {{function: "numpy:{function}"}}
"""


def kernel(function: str) -> str:
    return indent(KERNEL.format(function=function), "    ")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    text = (
        "version: 1\nsuite: two\nkernels:\n"
        f"  first:\n{kernel('negative')}\n"
        "    # a note inside\n# at the margin\n    title: the first\n\n"
        "  # about the second\n"
        f"  second:\n{kernel('positive')}"
        "presets:\n  smoke: {sizes: {n: [8]}}\n"
    )
    path = tmp_path / "suites" / "two.yaml"
    path.parent.mkdir()
    path.write_text(text)
    return path


def test_it_is_everything_indented_below_the_kernel_s_name(suite: Path) -> None:
    excerpt = kernel_excerpt(load_suite(suite), "first")

    inside = dedent(kernel("negative")) + "\n# a note inside\n# at the margin\ntitle: the first"
    expected = "first:\n" + indent(inside, "  ").replace("  # at the margin", "# at the margin")
    assert excerpt == ("suites/two.yaml:4", expected)


def test_the_last_kernel_ends_before_the_presets(suite: Path) -> None:
    _, text = kernel_excerpt(load_suite(suite), "second")

    assert text.splitlines()[0] == "second:"
    assert text.splitlines()[-1] == '    numpy: {function: "numpy:positive"}'


def test_a_preset_is_named(suite: Path) -> None:
    place, _ = kernel_excerpt(load_suite(suite, "smoke"), "second")

    assert place == "suites/two.yaml:18, preset smoke"


def test_a_file_that_is_gone_leaves_its_place(suite: Path) -> None:
    loaded = load_suite(suite)
    suite.rename(suite.with_name("moved.yaml"))

    assert kernel_excerpt(loaded, "first") == ("suites/two.yaml:4", "")
