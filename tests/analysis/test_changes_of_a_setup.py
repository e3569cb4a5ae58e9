"""Changes of all cases of a setup: kept fits change nothing but the work, as do processes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from histories import history_of, snapshot, timed
from numpy.typing import NDArray

from gpubench.analysis import changes
from gpubench.analysis.changes import BLOCK, best_pieces, changes_of
from gpubench.results import CaseName, History

CASES = {
    CaseName("add", "add", "numba", "kernel", f"n={n}"): step for n, step in ((4, 40), (8, 97))
}


def history(commits: int, *, gaps: bool = False) -> History:
    """Cases that become slower, each at its commit; with ``gaps`` some commits lack the first."""
    noise = np.random.default_rng(1).normal(0.0, 0.01, (len(CASES), 500))
    measured = []
    for place in range(commits):
        rows = {}
        for index, (name, step) in enumerate(CASES.items()):
            if gaps and index == 0 and place % 7 == 0:
                continue
            seconds = float(np.exp(noise[index, place])) * (1.5 if place >= step else 1.0)
            rows[name] = timed(name, seconds)
        measured.append((snapshot(place), rows))
    return history_of(measured)


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lengths of the series that were fitted."""
    lengths: list[int] = []

    def noted(series: Sequence[changes.Logarithms], costs: NDArray[np.float64]) -> list[list[int]]:
        lengths.extend(map(len, series))
        return best_pieces(series, costs)

    monkeypatch.setattr(changes, "best_pieces", noted)
    return lengths


def test_each_case_has_its_own_changes() -> None:
    by_case, _ = changes_of(history(150), {})

    assert {name: [c.after for c in found] for name, found in by_case.items()} == {
        name: [step] for name, step in CASES.items()
    }


def test_indices_are_of_snapshots_also_where_a_case_is_not_in_all() -> None:
    by_case, _ = changes_of(history(150, gaps=True), {})

    first = next(iter(CASES))
    assert [(c.before, c.after) for c in by_case[first]] == [(39, 40)]


def test_with_kept_fits_only_the_newest_blocks_are_fitted_again(fitted: list[int]) -> None:
    _, kept = changes_of(history(150), {})
    anew, _ = changes_of(history(151), {})
    fitted.clear()

    again, _ = changes_of(history(151), kept)

    assert again == anew
    assert len(kept) == 2 * len(CASES)
    assert len(fitted) == len(CASES)
    assert max(fitted) < 4 * BLOCK


def test_a_history_without_new_commits_is_not_fitted_again(fitted: list[int]) -> None:
    first, kept = changes_of(history(150), {})
    fitted.clear()

    again, still = changes_of(history(150), kept)

    assert (again, still) == (first, kept)
    assert fitted == []


def test_fits_that_no_case_uses_any_more_are_not_kept() -> None:
    _, kept = changes_of(history(150), {b"another": (7, 96)})

    assert b"another" not in kept


def test_several_processes_find_what_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = changes_of(history(150), {})
    monkeypatch.setattr(changes, "MUCH", 1)

    assert changes_of(history(150), {}) == alone


@pytest.mark.parametrize(("disturbed", "found"), [(0.8, 0), (0.2, 1)])
def test_what_others_disturbed_makes_no_step(disturbed: float, found: int) -> None:
    name = next(iter(CASES))
    busy = dict.fromkeys(range(10, 14), disturbed)
    measured = [
        (snapshot(place), {name: timed(name, 3.0, disturbed=busy[place])})
        if place in busy
        else (snapshot(place), {name: timed(name, 1.0)})
        for place in range(20)
    ]
    by_case, _ = changes_of(history_of(measured), {})
    assert bool(by_case[name]) is bool(found)
