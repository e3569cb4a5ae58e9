"""What more workers bring."""

from __future__ import annotations

from typing import Any

import pytest
from histories import timed

from gpubench.analysis.scaling import scalings
from gpubench.results import CaseName, Row


def case(workers: int, seconds: float | None, implementation: str = "pool", **fields: Any) -> Row:
    """On so many processes, by the record's conditions."""
    name = CaseName("maps", "map", implementation, fields.pop("time", "kernel"), f"n=4 w={workers}")
    fields = {"device": f"processes:{workers}", "size": 4.0, "problem": "n=4", **fields}
    return timed(name, seconds, conditions={"workers": workers}, **fields)


def test_speedups_are_against_the_fewest_workers_and_efficiency_per_worker() -> None:
    (one,) = scalings([case(4, 1.0), case(1, 3.0), case(2, 2.0)])

    assert (one.implementation, one.kind, one.case) == ("pool", "processes", "n=4")
    assert [point.workers for point in one.points] == [1, 2, 4]
    first, *others = one.points
    assert (first.speedup, first.efficiency) == (None, None)
    assert [point.speedup and point.speedup.value for point in others] == [1.5, 3.0]
    assert [point.efficiency for point in others] == [0.75, 0.75]


def test_efficiency_counts_from_the_fewest_that_were_measured() -> None:
    (one,) = scalings([case(2, 2.0), case(8, 0.5)])

    assert one.points[-1].efficiency == pytest.approx(1.0)


def test_threads_that_the_suite_gives_are_workers_too() -> None:
    name = CaseName("maps", "map", "numba", "kernel", "n=4")
    rows = [timed(name, 4.0 / n, threads=n, device="cpu", problem="n=4") for n in (1, 2)]

    (one,) = scalings(rows)

    assert (one.kind, [point.workers for point in one.points]) == ("cpu", [1, 2])


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([case(2, None)], id="without a time"),
        pytest.param([case(2, 1.0, time="start")], id="another labelled time"),
        pytest.param([case(2, 1.0, problem="n=8")], id="another problem"),
        pytest.param([case(2, 1.0, implementation="ray")], id="another implementation"),
        pytest.param([case(2, 1.0, device="threads:2")], id="another kind of device"),
    ],
)
def test_one_number_of_workers_says_nothing(others: list[Row]) -> None:
    assert scalings([case(1, 3.0), *others]) == ()


def test_of_several_launches_the_fastest_counts() -> None:
    (one,) = scalings([case(1, 3.0), case(2, 2.0), case(2, 1.0, time="kernel", block=(2,))])

    assert one.points[1].row.seconds == 1.0


def test_the_largest_problem_comes_first() -> None:
    rows = [case(w, 1.0, problem=f"n={n}", size=float(n)) for w in (1, 2) for n in (4, 16, 8)]

    assert [one.case for one in scalings(rows)] == ["n=16", "n=8", "n=4"]
