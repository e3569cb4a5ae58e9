"""No question gets an absurd answer, whatever was measured: 200 random kernels and questions."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from gpubench.edge.advise.advice import Ask, Total, advise
from gpubench.edge.advise.estimates import Conditions, Way, build_ways
from gpubench.results import CaseName, Row

QUESTIONS = 200
ROUNDING = 1e-9
"""Relative: sums of logarithms round."""

DEVICES = ("cpu", "cuda:0", "processes:2")
BANDWIDTHS = {"cpu": 2e10, "cuda:0": 1e12}
MEMORY = {"cpu": 64e9, "cuda:0": 8e9, "processes:2": 64e9}
KNOWN = Conditions(bandwidth=BANDWIDTHS.get, memory=MEMORY.get)
ITEM = 8
"""Bytes that move, and are held, for each element."""


@dataclass
class Kernel:
    """Rows of one kernel whose times scatter, also so that they fall with the size."""

    chance: random.Random
    axes: tuple[str, ...]
    rows: list[Row]

    @classmethod
    def drawn(cls, chance: random.Random) -> Kernel:
        axes = chance.choice([("n",), ("n", "d")])
        grid = [cls._values(chance, 1 if len(axes) == 1 else 2) for _ in axes]
        rows = []
        for device in chance.sample(DEVICES, chance.randint(1, 3)):
            fixed, each = 10 ** chance.uniform(-7, -3), 10 ** chance.uniform(-12, -7)
            noise = chance.choice([0.02, 0.2, 0.6])
            times = ["kernel"] + ["end_to_end"] * chance.randint(0, 1)
            times += ["start"] * chance.randint(0, 1)
            for place in [(n,) for n in grid[0]] if len(axes) == 1 else _product(*grid):
                if chance.random() < 0.05:
                    continue  # a corner of the grid is missing
                size = math.prod(place)
                for time in times:
                    mean = fixed + each * size + (0.3 if time == "start" else 0.0)
                    rows.append(
                        Row(
                            CaseName("s", "k", device.partition(":")[0], time, repr(place)),
                            "ok",
                            seconds=mean * math.exp(chance.gauss(0, noise)),
                            sizes={axis: float(v) for axis, v in zip(axes, place, strict=True)},
                            size=float(size),
                            device=device,
                            bytes=ITEM * size,
                            conditions={"array_bytes": ITEM * size},
                            disturbed=chance.choice([None, 0.0, 0.1, 0.9]),
                        )
                    )
        return cls(chance, axes, rows)

    @staticmethod
    def _values(chance: random.Random, power: int) -> list[int]:
        first = int(10 ** chance.uniform(1, 6 / power))
        step = chance.choice([2, 3, 4, 10])
        return [first * step**k for k in range(chance.randint(1, 6))]

    def sizes(self) -> dict[str, float]:
        """Some sizes near to what was measured, mostly."""
        start = dict(self.chance.choice(self.rows).sizes) if self.rows else {}
        reach = self.chance.choice([1.0, 2.0, 3.9, 100.0])
        return {
            axis: float(max(round(start.get(axis, 8) * reach ** self.chance.uniform(-1, 1)), 1))
            for axis in self.axes
        }


def _product(one: list[int], other: list[int]) -> list[tuple[int, int]]:
    return [(a, b) for a in one for b in other]


def rank(ways: tuple[Way, ...], ask: Ask) -> dict[str, Total]:
    return {total.label: total for one in advise(ways, ask) for total in one.totals}


def check_alone(kernel: Kernel, way: Way, ask: Ask, total: Total) -> None:
    """What one answer has to hold."""
    assert 0 < total.low <= total.seconds <= total.high <= 4 * total.low * (1 + ROUNDING)
    assert total.high < math.inf
    place = ask.sizes
    nbytes = ITEM * math.prod(place.values())
    assert nbytes <= MEMORY[way.device] * (1 + 1e-6), "more than its memory"
    usable = [
        row
        for row in kernel.rows
        if row.device == way.device and row.name.time != "start" and not row.is_disturbed
    ]
    assert usable, "all of its times were disturbed"
    for axis, value in place.items():
        ratios = [max(value / r.sizes[axis], r.sizes[axis] / value) for r in usable]
        assert min(ratios) <= 4 * (1 + 1e-6), "too far away"
    its = [row for row in usable if row.name.time == "kernel"]
    copied = ask.from_host and "end_to_end" in way.curves
    calls = ask.calls - copied
    smaller = [r.seconds or 0 for r in its if all(r.sizes[a] <= place[a] for a in place)]
    least = calls * max(smaller, default=0.0)
    assert total.seconds >= least * (1 - ROUNDING), "less than a smaller size took"
    if rate := BANDWIDTHS.get(way.device):
        in_cache = any(
            (row.seconds or 0) < ITEM * row.size / rate
            and all(row.sizes[a] >= place[a] for a in place)
            for row in its
        )
        assert in_cache or total.seconds >= calls * nbytes / rate * (1 - 1e-6), "no time to move"


def test_no_question_gets_an_absurd_answer() -> None:
    answered = 0
    for seed in range(QUESTIONS):
        kernel = Kernel.drawn(random.Random(seed))
        ways = build_ways(kernel.rows, kernel.axes, KNOWN)
        by_label = {way.label: way for way in ways}
        chance, small = kernel.chance, kernel.sizes()
        grown = 2 ** chance.uniform(0, 2)
        how = {
            "calls": chance.choice([1, 2, 1000, 10**6]),
            "from_host": chance.random() < 0.5,
            "process": chance.choice(["fresh", "cached", "warm"]),
            "have": chance.choice([(), (), ("cpu",), ("cuda",), ("processes:8", "cpu")]),
        }
        ask = Ask(small, **how)
        larger = Ask({axis: float(round(v * grown)) for axis, v in small.items()}, **how)
        one, other = rank(ways, ask), rank(ways, larger)
        for asked, answers in ((ask, one), (larger, other)):
            for label, total in answers.items():
                check_alone(kernel, by_label[label], asked, total)
        for label in one.keys() & other.keys():
            assert one[label].seconds <= other[label].seconds * (1 + ROUNDING), "falls with size"
        more_calls = rank(ways, Ask(small, **{**how, "calls": how["calls"] * 2}))
        for label in one.keys() & more_calls.keys():
            assert one[label].seconds <= more_calls[label].seconds, "more calls took less"
        answered += bool(one) + bool(other)
    assert answered > QUESTIONS / 2
