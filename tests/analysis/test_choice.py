"""Which implementation is the fastest where, and what it costs to use it."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from histories import beside_numpy, timed

from gpubench.analysis.choice import Choice, Repayment, choices, repayment
from gpubench.results import CaseName, Row


def case(
    implementation: str,
    n: int,
    seconds: float,
    time: str = "kernel",
    device: str = "cpu",
    spread: float = 0.01,
) -> Row:
    name = CaseName("add", "add", implementation, time, f"n={n}")
    return timed(name, seconds, spread, device=device, sizes={"n": n}, size=float(n))


def choice(*rows: Row) -> Choice:
    (found,) = choices(beside_numpy(rows).values())
    return found


def spans(found: Choice) -> list[tuple[tuple[str, ...], float, float]]:
    return [(s.labels, s.first.size, s.last.size) for s in found.resident]


def test_sizes_with_the_same_winner_are_one_stretch() -> None:
    found = choice(
        *(case("numpy", n, 1.0) for n in (1, 2, 4, 8)),
        *(case("fast", n, t) for n, t in ((1, 2.0), (2, 1.5), (4, 0.5), (8, 0.1))),
    )

    assert spans(found) == [(("numpy",), 1, 2), (("fast",), 4, 8)]
    assert found.resident[1].after is found.resident[0].last


def test_what_is_not_clearly_slower_is_named_as_an_equal() -> None:
    found = choice(case("numpy", 1, 1.0), case("fast", 1, 0.99), case("slow", 1, 2.0))

    assert spans(found) == [(("fast", "numpy"), 1, 1)]


def test_implementations_are_compared_whatever_the_versions_of_their_benchmarks() -> None:
    rows = case("numpy", 1, 1.0), case("fast", 1, 0.5)

    found = choice(*(replace(row, version=f"v{number}") for number, row in enumerate(rows)))

    assert spans(found) == [(("fast",), 1, 1)]


def test_arrays_in_host_memory_are_judged_with_their_copies() -> None:
    found = choice(
        case("numpy", 1, 1.0),
        case("cuda", 1, 0.01, device="cuda:0"),
        case("cuda", 1, 3.0, "end_to_end", device="cuda:0"),
    )

    assert [s.labels for s in found.resident] == [("cuda",)]
    assert [s.labels for s in found.host] == [("numpy",)]


def test_a_system_on_the_cpu_with_data_of_its_own_is_judged_with_its_copies_too() -> None:
    found = choice(
        case("numpy", 1, 2.0),
        case("frames", 1, 1.0),
        case("frames", 1, 3.0, "end_to_end"),
    )

    assert [s.labels for s in found.resident] == [("frames",)]
    assert [s.labels for s in found.host] == [("numpy",)]


def test_without_end_to_end_times_nothing_is_said_of_host_memory() -> None:
    found = choice(case("numpy", 1, 1.0), case("cuda", 1, 0.01, device="cuda:0"))

    assert found.host == ()


def test_each_combination_of_parameters_is_a_choice_of_its_own() -> None:
    rows = []
    for dtype in ("float32", "float64"):
        name = CaseName("add", "add", "numpy", "kernel", f"n=1 dtype={dtype}")
        rows.append(timed(name, 1.0, parameters=f"dtype={dtype}"))

    found = choices(rows)

    assert [c.parameters for c in found] == ["dtype=float32", "dtype=float64"]


def test_a_wrong_case_is_never_chosen() -> None:
    name = CaseName("add", "add", "broken", "kernel", "n=1")
    found = choice(case("numpy", 1, 1.0), Row(name, "wrong", "differs"))

    assert spans(found) == [(("numpy",), 1, 1)]
    assert found.alternatives == ()


def repaid(seconds: float, baseline: float, own: float) -> Repayment | None:
    rows = beside_numpy([case("numpy", 1, baseline), case("jit", 1, own)])
    (compared,) = (row for row in rows.values() if not row.is_baseline)
    return repayment(case("jit", 1, seconds, "compile", spread=0.1), compared)


def test_compilation_is_repaid_by_the_time_that_each_call_saves() -> None:
    found = repaid(10.0, baseline=3.0, own=1.0)

    assert found is not None
    assert found.calls == 5
    assert (found.low, found.high) == (math.ceil(9 / (3.03 - 0.99)), math.ceil(11 / (2.97 - 1.01)))


def test_without_the_time_of_its_baseline_nothing_is_said_of_repaying() -> None:
    rows = beside_numpy([case("numpy", 1, 3.0), case("jit", 1, 1.0)])
    (compared,) = (row for row in rows.values() if not row.is_baseline)
    compiling = case("jit", 1, 10.0, "compile")

    assert repayment(compiling, compared) is not None
    assert repayment(compiling, replace(compared, baseline_seconds=None)) is None
    assert repayment(compiling, replace(compared, speedup=None)) is None


def test_what_is_not_clearly_faster_never_repays() -> None:
    found = repaid(10.0, baseline=1.0, own=0.995)

    assert found is not None
    assert (found.calls, found.low, found.high) == (None, None, None)


@pytest.mark.parametrize("seed", range(30))
def test_the_true_crossover_lies_within_its_interval(seed: int) -> None:
    """Times of a linear model with noise, whose crossover is known."""
    chance = random.Random(seed)
    overhead, gain = 10 ** chance.uniform(-6, -4), chance.uniform(1.5, 20)
    true = overhead / (1e-9 * (1 - 1 / gain))
    rows = []
    for n in (4**k for k in range(3, 14)):
        for name, seconds in (("numpy", n * 1e-9), ("fast", overhead + n * 1e-9 / gain)):
            noisy = seconds * chance.gauss(1, 0.004)
            rows.append(case(name, n, noisy, spread=0.015))
    (found,) = choice(*rows).alternatives

    assert found.crossover.size is not None
    assert (found.crossover.slower or 0) < true < found.crossover.size
