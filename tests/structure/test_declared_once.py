"""Labelled times, statuses, fills and columns of a comparison are declared once, for all."""

import ast
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import get_args

from gpubench.measure.times import LABELLED_TIMES
from gpubench.names import DECLARED_TIMES, TIMES, Time
from gpubench.report.comparison_columns import COMPARISON_COLUMNS
from gpubench.statuses import (
    DECLARED_STATUSES,
    FAILURES,
    RIGHT_STATUSES,
    STATUSES,
    UNMEASURED_STATUSES,
    Failure,
    Status,
)

ENGINE = Path(__file__).parents[2] / "gpubench"
SCRIPT = (ENGINE.parent / "reports" / "compare.js").read_text(encoding="utf-8")


def engine() -> Iterator[Path]:
    for path in sorted(ENGINE.rglob("*.py")):
        if not {"kernels", "tests"} & {*path.relative_to(ENGINE).parts}:
            yield path


@cache
def listings() -> tuple[tuple[str, frozenset[object]], ...]:
    """Return the constants of each tuple, list, set and mapping of the engine, with its module."""
    found = []
    for path in engine():
        place = path.relative_to(ENGINE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
            listed = frozenset(part.value for part in parts if isinstance(part, ast.Constant))
            if listed:
                found.append((place, listed))
    return tuple(found)


def places_of(words: Collection[str], least: int) -> set[str]:
    """Return the modules in which one tuple, list, set or mapping has so many of these words."""
    return {place for place, listed in listings() if len(listed & set(words)) >= least}


def test_every_labelled_time_is_declared_and_can_be_taken() -> None:
    assert [time.name for time in DECLARED_TIMES] == [*get_args(Time)]
    assert set(LABELLED_TIMES) == set(TIMES)


def test_no_other_module_lists_labelled_times() -> None:
    """What a backend has of them is its own; the bars of a call have an order of their own."""
    listing = {
        place for place in places_of(TIMES, 3) if not place.startswith(("backends/", "edge/"))
    }

    assert listing == {"names.py", "measure/times.py", "report/kernel.py"}


def test_every_status_is_declared_once_with_a_letter_and_an_urgency_of_its_own() -> None:
    assert set(STATUSES) == set(get_args(Status))
    assert set(FAILURES) == set(get_args(Failure))
    assert len({status.letter for status in DECLARED_STATUSES}) == len(STATUSES)
    assert {status.urgency for status in DECLARED_STATUSES} == {*range(len(STATUSES))}


def test_a_status_is_a_failure_or_right_or_not_measured() -> None:
    assert {*FAILURES, *RIGHT_STATUSES, *UNMEASURED_STATUSES} == set(STATUSES)
    assert not set(FAILURES) & {*RIGHT_STATUSES, *UNMEASURED_STATUSES}


def test_no_other_module_lists_statuses() -> None:
    assert places_of(STATUSES, 4) == {"statuses.py"}


def test_each_column_of_a_comparison_is_shown_and_its_script_has_its_words() -> None:
    names = [column.name for column in COMPARISON_COLUMNS]
    assert len(set(names)) == len(names)
    for column in COMPARISON_COLUMNS:
        shown = (column.terminal, column.markdown, column.page)
        assert any(heading is not None for heading in shown) or column.values, column.name
        if column.page is not None:
            assert f"\n    {column.name}: " in SCRIPT, column.name


def test_no_two_columns_of_a_comparison_have_one_key_in_json() -> None:
    keys = [key for column in COMPARISON_COLUMNS for key in column.values]

    assert len(set(keys)) == len(keys)
