"""Pairs of processes in turn, by a bench whose processes take what a script says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from gpubench.analysis.sequential import doubt_of, verdict_in_turn
from gpubench.measure.direct import Job, Measured
from gpubench.measure.in_turn import Turns, jobs_in_turn, measure_in_turn
from gpubench.measure.outcomes import case_record
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

SUITE = """\
version: 1
suite: s
backend: scripted
kernels:
  k:
    sizes: {n: [8, 16, 32]}
    arrays: {x: {shape: [n], dtype: float64}, y: {shape: [n], dtype: float64, intent: out}}
    call: [x, y]
    baseline: plain
    measure: [kernel, compile]
    implementations: {plain: {function: "kernels:plain"}}
"""


@pytest.fixture
def work(tmp_path: Path) -> list[Job]:
    """Three cases."""
    (tmp_path / "s.yaml").write_text(SUITE)
    return jobs_in_turn(build_plan(load_suites([tmp_path / "s.yaml"], None), 0).cases())


@dataclass
class ScriptedBench:
    """Takes processes that last as long as a script says, by a clock of its own."""

    seconds: Callable[[int, Job], float]
    now: float = 0.0
    taken: list[tuple[int, int]] = field(default_factory=list)
    """Side and size of each process."""
    rounds: int = 0
    fails: dict[tuple[int, int], str] = field(default_factory=dict)
    """Status of what fails, by side and size."""
    interrupted_after: int | None = None

    def begin_round(self) -> None:
        self.rounds += 1

    def take(self, side: int, job: Job) -> Measured:
        if len(self.taken) == self.interrupted_after:
            raise KeyboardInterrupt
        size = int(job.case.values["n"])
        self.taken.append((side, size))
        self.now += 1
        record = case_record(job.case, job.time, "ok")
        if status := self.fails.get((side, size)):
            return Measured(replace(record, status=status, reason="it says so"))  # type: ignore[arg-type]
        return Measured(record, (((self.seconds(side, job),),),), (None,))

    def clock(self) -> float:
        return self.now


def measure(bench: ScriptedBench, work: Sequence[Job], seconds: float = 1000.0) -> dict[int, Turns]:
    doubt = partial(doubt_of, cases=len(work))
    return dict(measure_in_turn(work, bench, doubt, seconds, bench.clock))


def noisy(slower: float, size: int, noise: float = 0.01) -> Callable[[int, Job], float]:
    """Processes that scatter, and a case that is slower on the new side."""
    random = np.random.default_rng(1)

    def seconds(side: int, job: Job) -> float:
        factor = slower if side and job.case.values["n"] == size else 1.0
        return float(factor * math.exp(random.normal(0, noise)))

    return seconds


def test_processes_that_are_samples_are_left_out(work: list[Job]) -> None:
    assert [job.time for job in work] == ["kernel"] * 3


def test_every_second_round_has_the_other_order(work: list[Job]) -> None:
    bench = ScriptedBench(lambda side, job: 1.0)
    measure(bench, work[:1], 8.5)
    assert [side for side, _ in bench.taken] == [0, 1, 1, 0, 0, 1, 1, 0]
    assert bench.rounds == 4


def test_what_is_twice_as_slow_is_found_and_the_rest_is_the_same(work: list[Job]) -> None:
    turns = measure(ScriptedBench(noisy(2.0, 16)), work)
    verdicts = [verdict_in_turn(turns[place].logs, 3)[0] for place in range(3)]
    assert verdicts == ["same", "slower", "same"]
    assert all(one.is_sure for one in turns.values())


def test_a_case_whose_verdict_is_sure_gets_no_more_pairs(work: list[Job]) -> None:
    bench = ScriptedBench(noisy(2.0, 16))
    turns = measure(bench, work)
    pairs = [len(turns[place].logs) for place in range(3)]
    assert pairs == [9, 11, 9]  # the first looks at an error for one case, and for three
    assert len(bench.taken) == 2 * sum(pairs)


def test_the_most_unsure_case_comes_first(work: list[Job]) -> None:
    def seconds(side: int, job: Job) -> float:
        return 1.0 if job.case.values["n"] != 32 else 1.0 + (len(bench.taken) % 3)

    bench = ScriptedBench(seconds)
    measure(bench, work, 24)
    firsts = [bench.taken[place][1] for place in range(0, len(bench.taken), 6)]
    assert firsts[0] == 8  # nothing is known yet
    assert firsts[2:] == [32] * len(firsts[2:])


def test_the_time_that_is_given_is_kept(work: list[Job]) -> None:
    bench = ScriptedBench(noisy(1.0, 8, noise=0.3))
    turns = measure(bench, work, 15.5)
    assert bench.now <= 15.5
    assert [len(turns[place].logs) for place in range(3)] == [3, 2, 2] or len(bench.taken) == 14
    assert not any(one.is_sure for one in turns.values())


def test_every_case_gets_a_pair_while_there_is_time(work: list[Job]) -> None:
    assert sorted(measure(ScriptedBench(lambda side, job: 1.0), work, 5)) == [0, 1, 2]


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("status", ["wrong", "failed", "skipped"])
def test_a_side_without_a_time_ends_its_case_and_no_other(
    work: list[Job], side: int, status: str
) -> None:
    bench = ScriptedBench(noisy(1.0, 8), fails={(side, 8): status})
    turns = measure(bench, work)
    old, new = turns[0].sides
    assert old is not None
    assert new is not None
    assert (old.record.status, new.record.status)[side] == status
    assert (old.record.status, new.record.status)[1 - side] == "ok"
    assert turns[0].logs == []
    assert bench.taken.count((0, 8)) == bench.taken.count((1, 8)) == 1
    assert len(turns[1].logs) == 9


def test_ctrl_c_leaves_what_is_known_so_far(work: list[Job]) -> None:
    bench = ScriptedBench(noisy(2.0, 8), interrupted_after=7)
    seen: dict[int, Turns] = {}
    with pytest.raises(KeyboardInterrupt):
        for place, turns in measure_in_turn(work, bench, lambda logs: 1.0, 1000, bench.clock):
            seen[place] = turns  # noqa: PERF403 (it is interrupted)
    assert [len(seen[place].logs) for place in range(3)] == [1, 1, 1]
