"""Changes of all cases of a setup."""

from __future__ import annotations

import numpy as np
import pytest
from histories import history_of, snapshot, timed

from gpubench.analysis.changes import changes_of
from gpubench.results import CaseHistories, CaseName

CASES = {
    CaseName("add", "add", "numba", "kernel", f"n={n}"): step for n, step in ((4, 40), (8, 97))
}


def history(commits: int, *, gaps: bool = False) -> CaseHistories:
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


def test_each_case_has_its_own_changes() -> None:
    by_case = changes_of(history(150))

    assert {name: [c.after for c in found] for name, found in by_case.items()} == {
        name: [step] for name, step in CASES.items()
    }


def test_indices_are_of_snapshots_also_where_a_case_is_not_in_all() -> None:
    by_case = changes_of(history(150, gaps=True))

    first = next(iter(CASES))
    assert [(c.before, c.after) for c in by_case[first]] == [(39, 40)]


def test_cases_that_are_looked_through_together_have_the_changes_of_each_alone() -> None:
    whole = history(150, gaps=True)

    alone = [changes_of(whole.part([case])) for case in range(len(CASES))]

    assert changes_of(whole) == alone[0] | alone[1]


def test_a_case_that_was_hardly_measured_is_beside_one_with_a_step() -> None:
    long, short = CASES
    measured = [
        (snapshot(place), {long: timed(long, 2.0 if place > 9 else 1.0)}) for place in range(20)
    ]
    measured += [
        (snapshot(20 + place), {short: timed(short, seconds)})
        for place, seconds in enumerate((1.0, 1.01, 1.0, 3.0))
    ]

    by_case = changes_of(history_of(measured))

    assert {name: [(c.kind, c.after) for c in found] for name, found in by_case.items()} == {
        long: [("step", 10)],
        short: [("check", 23)],
    }


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
    by_case = changes_of(history_of(measured))
    assert bool(by_case[name]) is bool(found)
