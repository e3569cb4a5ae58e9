"""The C files of the driver stand in layers: what one includes and calls lies below it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter

import pytest
from c_sources import Sources

from softcuda.build import NATIVE

DEVICE_CODE = ("device.h", "runtime.h", "arithmetic.h")
"""What a translated kernel includes."""
OTHER_LIBRARIES = ("nvml.c", "jitlink.c")
"""Files of libraries of their own."""

DRIVER = Sources(
    {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(NATIVE.glob("*.[ch]"))
        if path.name not in OTHER_LIBRARIES
    }
)


def circle_in(graph: Mapping[str, Set[str]]) -> list[str]:
    """Return the files of a circle, the first one last too; none where there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def test_includes_have_no_circle() -> None:
    assert "base.h" in DRIVER.includes["options.h"]
    assert circle_in(DRIVER.includes) == []


def test_calls_between_files_have_no_circle() -> None:
    assert "streams.c" in DRIVER.uses["launching.c"]
    assert "contexts.c" in DRIVER.uses["devices.c"]  # by the macro ENTER
    assert "options.c" in DRIVER.uses["devices.c"]  # a variable
    assert circle_in(DRIVER.uses) == []


def test_no_file_includes_a_header_of_a_layer_above() -> None:
    assert DRIVER.upward_includes() == []


def rows_of_the_readme() -> list[set[str]]:
    """Return the files of each layer, lowest first."""
    text = (NATIVE.parents[1] / "README.md").read_text(encoding="utf-8")
    table = text.partition("## The layers of the driver")[2].partition("\n## ")[0]
    rows = [{*re.findall(r"`(\w+\.[ch])`", line)} for line in table.splitlines()]
    return [row for row, line in zip(rows, table.splitlines(), strict=True) if line[:1] == "|"][2:]


def test_the_readme_has_every_file_in_its_layer() -> None:
    layers = {name: number for number, row in enumerate(rows_of_the_readme()) for name in row}
    assert sorted(layers) == sorted({*DRIVER.texts} - {*DEVICE_CODE, "parse.h"})
    upward = [
        f"{name} needs {other}"
        for graph in (DRIVER.includes, DRIVER.uses)
        for name, others in graph.items()
        for other in others
        if layers.get(name, 0) < layers.get(other, 0)
    ]
    assert upward == []


def test_what_files_share_is_declared_once_in_a_header_of_the_file_that_has_it() -> None:
    shared = {
        word: headers
        for word, headers in DRIVER.declared.items()
        if word.startswith(("sc_", "softcuda_"))
    }
    assert len(shared) > 200
    assert {word: headers for word, headers in shared.items() if len(headers) > 1} == {}
    elsewhere = [
        f"{word} of {DRIVER.owners[word]} is declared in {header}"
        for word, headers in shared.items()
        for header in headers
        if header not in DRIVER.visible(DRIVER.owners[word])
    ]
    assert elsewhere == []


def test_no_file_declares_by_itself_what_another_one_has() -> None:
    used = {word for word, owner in DRIVER.owners.items() if word.startswith("sc_")}
    undeclared = {
        word
        for word in used - {*DRIVER.declared}
        for name, text in DRIVER.plain.items()
        if name.endswith(".c") and name != DRIVER.owners[word] and f"{word}(" in text
    }
    assert undeclared == set()


TWO_LAYERS = {
    "low.h": "#pragma once\nint sc_low(void);\n",
    "low.c": '#include "low.h"\nint sc_low(void) {\n  return 1;\n}\n',
    "high.h": '#pragma once\n#include "low.h"\nint sc_high(int (*call)(int), int n);\n',
    "high.c": '#include "high.h"\nint sc_high(int (*call)(int), int n) {\n  return sc_low();\n}\n',
}


@pytest.mark.parametrize(
    ("changed", "circle_of_includes", "circle_of_uses", "upward"),
    [
        ({}, set(), set(), []),
        # A comment and a text are no calls.
        (
            {"low.c": TWO_LAYERS["low.c"] + '/* sc_high */ static char *t = "sc_high";\n'},
            set(),
            set(),
            [],
        ),
        (
            {"low.h": '#pragma once\n#include "high.h"\nint sc_low(void);\n'},
            {"high.h", "low.h"},
            set(),
            ["low.c includes high.h, and high.c uses low.c"],
        ),
        (
            {"low.c": '#include "low.h"\n#define CALL sc_high(0, 1)\nint sc_low(void) { CALL; }\n'},
            set(),
            {"high.c", "low.c"},
            ["high.c includes low.h, and low.c uses high.c"],
        ),
        (
            {"low.c": '#include "high.h"\n' + TWO_LAYERS["low.c"]},
            set(),
            set(),
            ["low.c includes high.h, and high.c uses low.c"],
        ),
    ],
)
def test_circles_and_includes_upward_are_found(
    changed: Mapping[str, str],
    circle_of_includes: set[str],
    circle_of_uses: set[str],
    upward: list[str],
) -> None:
    sources = Sources({**TWO_LAYERS, **changed})
    assert {*circle_in(sources.includes)} == circle_of_includes
    assert {*circle_in(sources.uses)} == circle_of_uses
    assert sources.upward_includes() == upward
