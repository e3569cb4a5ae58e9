"""CONTRIBUTING.md is true: files that its recipes name are there, with what they are to hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
RECIPES = (
    (CHECKOUT / "CONTRIBUTING.md").read_text().partition("## Recipes")[2].partition("\n## ")[0]
)
FOLDERS = (CHECKOUT, CHECKOUT / "gpubench", CHECKOUT / "gpubench/cli")
"""Where paths begin: a recipe that is in a room leaves it out."""


def file_of(path: str) -> Path | None:
    """The file or folder that a recipe calls so; a part in angle brackets is the reader's own."""
    there = (folder / re.sub("/?[^/]*<.*", "", path) for folder in FOLDERS)
    return next((one for one in there if one.exists()), None)


def test_the_files_that_recipes_name_are_there() -> None:
    paths = re.findall(r"`([\w./<>-]+(?:/|\.(?:py|md|html|toml)))`", RECIPES)
    assert len(set(paths)) > 30
    assert [path for path in paths if file_of(path) is None] == []


def test_the_files_hold_what_recipes_say_that_they_hold() -> None:
    text = " ".join(RECIPES.split())
    places = re.findall(
        r"((?:`\w+(?:\(\))?`[^`.;:]{0,40}?){1,2}) (?:of|in|to) `([\w/]+\.py)`", text
    )
    named = {(name, path) for names, path in places for name in re.findall(r"`(\w+)", names)}
    assert {("all_pages", "report/pages.py"), ("_VALUES", "results/rows.py")} <= named
    missing = [
        (name, path)
        for name, path in sorted(named)
        if (file := file_of(path)) is None or not re.search(rf"\b{name}\b", file.read_text())
    ]
    assert missing == []


@pytest.mark.parametrize(
    "recipe",
    [
        "A backend option",
        "A language of kernels",
        "How rounds work",
        "A column of the table",
        "A statistic",
        "A bound",
        "A check",
        "A word of `fill`",
        "A labelled time",
        "A status",
        "A column of a comparison",
        "An exit code",
    ],
)
def test_a_change_of_one_idea_touches_two_files_of_the_engine_at_most(recipe: str) -> None:
    _, found, rest = RECIPES.partition(f"**{recipe}.**")
    assert found
    text, _, _ = rest.partition("\n**")
    paths = re.findall(r"`(?:gpubench/)?([\w/]+\.py)`", text)
    engine = {path for path in paths if (CHECKOUT / "gpubench" / path).exists()}
    assert 1 <= len(engine) <= 2
