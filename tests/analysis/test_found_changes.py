"""Changes that are kept are those that would be found, and only while nothing is different."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpubench.analysis import found_changes
from gpubench.analysis.changes import Values
from gpubench.analysis.found_changes import SetupTimes, find_changes_of, kept_path


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
    first = find_changes_of(
        [setup(old, b"1", times(20, 9), times(21, 5)), setup(new, b"2", times(30, 12))]
    )
    looked.clear()

    second = find_changes_of(
        [setup(old, b"1", times(20, 9), times(21, 5)), setup(new, b"3", times(31, 12))]
    )

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
    first = find_changes_of([setup(path, b"1", times(20, 9))])
    if callable(damage):
        path.write_bytes(damage(path.read_bytes()))
    else:
        monkeypatch.setattr(found_changes, "code_stamp", lambda: "of tomorrow")

    assert find_changes_of([setup(path, b"1", times(20, 9))]) == first
    assert looked == [20, 20]


def test_without_a_place_to_keep_them_they_are_looked_for_each_time(looked: list[int]) -> None:
    for _ in range(2):
        find_changes_of([setup(None, b"1", times(20, 9))])

    assert looked == [20, 20]
