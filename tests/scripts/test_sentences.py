"""Sentences of documents and messages are short: at most 25 words, one idea each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
MAX_WORDS = 25
PAGES = [
    path.relative_to(CHECKOUT).as_posix()
    for path in (
        *(CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        CHECKOUT / "softcuda/README.md",
        *sorted((CHECKOUT / "docs").glob("*.md")),
        *sorted((CHECKOUT / "gpubench/edge").rglob("*.md")),
        *sorted((CHECKOUT / "examples").rglob("*.md")),
    )
]
NO_PROSE = re.compile(
    r"<!-- figures: .*?<!-- end of figures -->|<!--.*?-->|^```.*?^```", re.S | re.M
)
CODE = re.compile(r"`[^`]*`|(?<=\])\([^)]*\)", re.DOTALL)
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
END = re.compile(r"(?<=[.!?:])[*_)\"']*\s+")
"""Of a sentence. What follows a colon is a list, or a sentence of its own."""


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of prose and lists; tables, headings and code are none."""
    for paragraph in re.split(r"\n\s*\n", NO_PROSE.sub("\n\n", text)):
        items: list[str] = []
        for line in paragraph.splitlines():
            if line.lstrip().startswith(("|", "#", "<", "!")):
                continue
            if ITEM.match(line) or not items:
                items.append(ITEM.sub("", line, count=1))
            else:
                items[-1] += "\n" + line.strip()
        for item in items:
            codes = [code[0] for code in CODE.finditer(item)]
            masked = CODE.sub("\0", item)
            for sentence in END.split(masked):
                count = sentence.count("\0")
                mine, codes = iter(codes[:count]), codes[count:]
                yield re.sub("\0", lambda _, mine=mine: next(mine), sentence)


def words(sentence: str) -> int:
    """Return how many words a sentence has; code is one."""
    return sum(any(map(str.isalnum, word)) for word in CODE.sub("code", sentence).split())


def messages(node: ast.AST) -> Iterator[str]:
    """Yield the lines of all texts of a module but its docstrings; a value in one is a word.

    Texts of several lines are SQL and templates.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "X" for part in child.values)
            yield from "".join(map(str, parts)).splitlines()
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield from child.value.splitlines()
        else:
            yield from messages(child)


@pytest.mark.parametrize("package", ["gpubench", "softcuda"])
def test_no_sentence_of_a_message_is_long(package: str) -> None:
    root = CHECKOUT / package
    modules = (p for p in root.rglob("*.py") if "tests" not in p.relative_to(root).parts)
    lines = (line for path in modules for line in messages(ast.parse(path.read_text("utf-8"))))
    # What is wrong stands before a semicolon, and what to do behind it.
    parts = (part for line in lines for part in line.replace("\0", "").split("; "))
    found = (one for part in parts for one in sentences(part))
    assert [one for one in found if words(one) > MAX_WORDS] == [], "make two sentences of each"


@pytest.mark.parametrize("page", PAGES)
def test_no_sentence_is_long(page: str) -> None:
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    long = [one for one in sentences(text) if words(one) > MAX_WORDS]
    assert long == [], "make two sentences of each"


def test_a_long_sentence_is_seen() -> None:
    long = " ".join(["word"] * 26)
    text = (
        f"A short one. {long}.\n\n- item\n- It is {long}: `a b c`\n| {long} |\n```\n{long}\n```\n"
    )
    assert [words(one) for one in sentences(text) if words(one) > MAX_WORDS] == [26, 28]
    (code,) = sentences("[a b](c d) `e f` g")
    assert words(code) == 4
