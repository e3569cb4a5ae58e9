"""What stands for a kernel: its newest cases, and each implementation's fastest launch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from histories import beside_numpy, history_of, snapshot, timed

from gpubench.analysis.headline import Headline, current, headline
from gpubench.results import CaseName, Row


def case(implementation: str, identity: str, seconds: float | None, kernel: str = "add") -> Row:
    """A case whose problem is that of the same identity without a launch."""
    name = CaseName("add", kernel, implementation, "kernel", identity)
    problem = identity.partition(" block")[0]
    size = float(problem.split()[0].removeprefix("n="))
    return timed(name, seconds, problem=problem, size=size)


def of_cuda(*rows: Row) -> Headline:
    """Headline of ``cuda``, each case against NumPy's at its problem."""
    numpy = {row.problem: row for row in rows if row.is_baseline}
    joined = []
    for row in rows:
        twin = timed(row.name, row.seconds)
        if not row.is_baseline and row.seconds:
            pair = beside_numpy([numpy[row.problem], case("cuda", row.problem, row.seconds)])
            twin = next(one for one in pair.values() if not one.is_baseline)
        joined.append(replace(row, speedup=twin.speedup))
    return headline(joined, "cuda")


def test_the_headline_is_the_fastest_launch_at_the_largest_size() -> None:
    chosen = of_cuda(
        case("numpy", "n=4", 6.0),
        case("numpy", "n=8", 60.0),
        case("cuda", "n=4 block=64", 0.1),
        case("cuda", "n=8 block=64", 6.0),
        case("cuda", "n=8 block=256", 3.0),
        case("cuda", "n=16 block=256", None),
    )

    assert [row.name.case for row in chosen.cases] == ["n=8 block=256"]
    assert chosen.speedup is not None
    assert chosen.speedup.value == pytest.approx(20.0)


def test_data_types_at_the_largest_size_share_a_geometric_mean() -> None:
    chosen = of_cuda(
        case("numpy", "n=8 dtype=float32", 8.0),
        case("numpy", "n=8 dtype=float64", 8.0),
        case("cuda", "n=8 dtype=float32", 1.0),
        case("cuda", "n=8 dtype=float64", 4.0),
    )

    assert len(chosen.cases) == 2
    assert chosen.speedup is not None
    assert chosen.speedup.value == pytest.approx(4.0)


def test_a_kernel_is_as_it_was_last_measured() -> None:
    old, new = case("numpy", "n=4", 1.0), case("numpy", "n=8", 2.0)
    other = case("numpy", "n=4", 3.0, kernel="scale")
    measured = [
        (snapshot(0), {old.name: old, other.name: other}),
        (snapshot(1), {new.name: new}),
    ]
    rows = {one.id: rows for one, rows in measured}

    now = current(history_of(measured), lambda one, names: rows[one.id])

    assert {key: (kernel.commit.date, list(kernel.cases)) for key, kernel in now.items()} == {
        ("add", "add"): (1.0, [new.name]),
        ("add", "scale"): (0.0, [other.name]),
    }
