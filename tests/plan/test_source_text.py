"""What asv keeps as a benchmark's source, and what the report takes from it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpubench.names import join_source, split_source
from gpubench.plan.plan import Plan

KERNEL = """\
sizes: {n: [64]}
arrays:
  a: {shape: [n], dtype: float32}
  b: {shape: [n], dtype: float32, intent: out}
call: [a, b]
implementations:
  numpy: {function: "textwrap:dedent"}
"""


def test_a_group_s_source_is_its_code_and_its_kernel_in_the_suite(
    plan_of: Callable[[str], Plan],
) -> None:
    (group,) = plan_of(KERNEL).groups()

    code, place, declaration = split_source(group.source_text())

    assert code.startswith("def dedent(text):")
    assert place.endswith("/small.yaml:4")
    assert declaration.splitlines()[:2] == ["small:", "  sizes: {n: [64]}"]


@pytest.mark.parametrize(
    "code", ["def f():\n    pass", "", "# declared in a comment\ndef f(): ...", "f\n\n\n"]
)
def test_what_is_joined_comes_apart(code: str) -> None:
    text = join_source(code, "suites/a.yaml:3", "a:\n  n: 1\n")

    assert split_source(text) == (code.rstrip(), "suites/a.yaml:3", "a:\n  n: 1")


def test_any_other_text_is_code_alone() -> None:
    assert split_source("def f(): ...\n") == ("def f(): ...", "", "")
