"""Changes that are kept are those that would be found, and only while nothing is different."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpubench.analysis import found_changes
from gpubench.analysis.changes import Values
from gpubench.analysis.found_changes import Search, SetupTimes, kept_path
from gpubench.analysis.setup_table import AllChanges


def times(commits: int, step: int) -> Values:
    medians = np.where(np.arange(commits) < step, 1.0, 1.5)
    return np.stack([medians, 0.99 * medians, 1.01 * medians])


def setup(path: Path | None, digest: bytes, *series: Values) -> SetupTimes:
    return SetupTimes(digest, lambda: series, path)


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lengths of the series that were looked at."""
    found: list[int] = []
    own = found_changes.changes_in

    def noted(series: Values, fits: found_changes.SettledFits) -> object:
        found.append(series.shape[1])
        return own(series, fits)

    monkeypatch.setattr(found_changes, "changes_in", noted)
    return found


def test_a_setup_of_which_nothing_changed_is_not_looked_at_again(
    tmp_path: Path, looked: list[int]
) -> None:
    old, new = (kept_path(tmp_path / "kept.results", name, "env") for name in ("old", "new"))
    first = Search(
        [setup(old, b"1", times(20, 9), times(21, 5)), setup(new, b"2", times(30, 12))]
    ).found()
    looked.clear()

    second = Search(
        [setup(old, b"1", times(20, 9), times(21, 5)), setup(new, b"3", times(31, 12))]
    ).found()

    assert looked == [31]
    assert second == first
    assert [[change.after for change in own] for own in second[0]] == [[9], [5]]


@pytest.mark.parametrize("damage", [lambda content: content[:-3], lambda _: b"", None])
def test_kept_changes_that_are_damaged_or_of_other_code_are_not_taken(
    tmp_path: Path,
    looked: list[int],
    monkeypatch: pytest.MonkeyPatch,
    damage: object,
) -> None:
    path = kept_path(tmp_path / "kept.results", "runner", "env")
    first = Search([setup(path, b"1", times(20, 9))]).found()
    if callable(damage):
        path.write_bytes(damage(path.read_bytes()))
    else:
        monkeypatch.setattr(found_changes, "code_stamp", lambda: "of tomorrow")

    assert Search([setup(path, b"1", times(20, 9))]).found() == first
    assert looked == [20, 20]


def test_without_a_place_to_keep_them_they_are_looked_for_each_time(looked: list[int]) -> None:
    for _ in range(2):
        Search([setup(None, b"1", times(20, 9))]).found()

    assert looked == [20, 20]


def test_only_what_is_new_and_short_is_worth_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kept_path(tmp_path / "kept.results", "runner", "env")
    asked = [setup(path, b"1", times(200, 90))]
    assert Search(asked).is_short
    monkeypatch.setattr(found_changes, "MUCH", 200)
    assert not Search(asked).is_short

    Search(asked).found()

    assert not Search(asked).is_short
    assert Search([setup(path, b"2", times(201, 90))]).is_short  # its settled part is known


class Table:
    """As much of a setup's table as a search asks for."""

    digest = b"1"

    def __init__(self, *series: Values) -> None:
        self._series = series

    def series(self) -> tuple[Values, ...]:
        return self._series


@pytest.mark.parametrize("asked_within", [True, False])
def test_another_process_looks_while_this_one_goes_on(
    tmp_path: Path, looked: list[int], asked_within: bool
) -> None:
    table: Any = Table(times(20, 9), times(21, 5))
    changes = AllChanges(tmp_path / "kept.results")
    changes.add(table, "runner", "env")

    with changes.looked_for():
        within = (
            [change.after for own in changes.of(table) for change in own] if asked_within else []
        )

    assert within == ([9, 5] if asked_within else [])
    assert looked == []  # not in this process
    assert [change.after for own in changes.of(table) for change in own] == [9, 5]
    assert looked == ([] if asked_within else [20, 21])


def test_what_another_process_found_is_kept(tmp_path: Path, looked: list[int]) -> None:
    table: Any = Table(times(20, 9))
    for _ in range(2):
        changes = AllChanges(tmp_path / "kept.results")
        changes.add(table, "runner", "env")
        with changes.looked_for():
            assert [change.after for own in changes.of(table) for change in own] == [9]

    assert looked == []
