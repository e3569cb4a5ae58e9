"""Pairs of processes in turn, by a bench whose processes take what a script says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from gpubench.analysis.sequential import Evidence
from gpubench.cli.comparing import PairJudge
from gpubench.measure.direct import Job, Measured
from gpubench.measure.in_turn import Bench, Turns, jobs_in_turn, measure_in_turn
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
class ScriptedBench(Bench):
    """Takes processes that last as long as a script says, by a clock of its own."""

    seconds: Callable[[int, Job], float]
    now: float = 0.0
    taken: list[tuple[int, int]] = field(default_factory=list)
    """Side and size of each process."""
    rounds: int = 0
    fails: dict[tuple[int, int], str] = field(default_factory=dict)
    """Status of what fails, by side and size."""
    interrupted_after: int | None = None
    lasts: dict[int, float] = field(default_factory=dict)
    """Seconds that a process takes, by size; 1 without."""

    def begin_round(self) -> None:
        self.rounds += 1

    def take(self, side: int, job: Job, seconds_left: float) -> Measured | None:
        if len(self.taken) == self.interrupted_after:
            raise KeyboardInterrupt
        size = int(job.case.values["n"])
        self.taken.append((side, size))
        lasts = self.lasts.get(size, 1.0)
        self.now += min(lasts, seconds_left)
        if lasts > seconds_left:
            return None
        record = case_record(job.case, job.time, "ok")
        if status := self.fails.get((side, size)):
            return Measured(replace(record, status=status, reason="it says so"))  # type: ignore[arg-type]
        return Measured(record, (((self.seconds(side, job),),),), (None,))

    def clock(self) -> float:
        return self.now


def measure(
    bench: ScriptedBench, work: Sequence[Job], seconds: float = 1000.0
) -> tuple[dict[int, Turns], Evidence]:
    evidence = Evidence(len(work))
    turns = dict(measure_in_turn(work, bench, PairJudge(evidence), seconds, bench.clock))
    return turns, evidence


def pairs_of(turns: dict[int, Turns]) -> list[int]:
    return [len(turns[place].logs) for place in sorted(turns)]


def noisy(slower: float, size: int, noise: float = 0.01) -> Callable[[int, Job], float]:
    """Processes that scatter, and a case that is slower on the new side."""
    random = np.random.default_rng(1)

    def seconds(side: int, job: Job) -> float:
        factor = slower if side and job.case.values["n"] == size else 1.0
        return float(factor * math.exp(random.normal(0, noise)))

    return seconds


def test_processes_that_are_samples_are_left_out(work: list[Job]) -> None:
    assert [job.time for job in work] == ["kernel"] * 3


def test_every_second_pair_has_the_other_order(work: list[Job]) -> None:
    bench = ScriptedBench(noisy(1.0, 8, noise=0.5))
    measure(bench, work[:1], 8.5)
    assert [side for side, _ in bench.taken] == [0, 1, 1, 0, 0, 1, 1, 0]
    assert bench.rounds == 4


def test_what_is_twice_as_slow_is_found_and_the_rest_is_the_same(work: list[Job]) -> None:
    turns, evidence = measure(ScriptedBench(noisy(2.0, 16)), work)
    assert [case.verdict for case in evidence.cases] == ["same", "slower", "same"]
    assert evidence.sure == {1}
    assert max(pairs_of(turns)) <= 6


def test_a_decided_case_gets_no_more_pairs(work: list[Job]) -> None:
    bench = ScriptedBench(noisy(2.0, 16))
    turns, _ = measure(bench, work)
    assert len(bench.taken) == 2 * sum(pairs_of(turns))


def test_a_case_alone_needs_no_other(work: list[Job]) -> None:
    turns, evidence = measure(ScriptedBench(noisy(2.0, 8)), work[:1])
    assert evidence.cases[0].verdict == "slower"
    assert pairs_of(turns) <= [6]


def test_each_case_has_its_first_pairs_before_the_likeliest_gets_more(work: list[Job]) -> None:
    bench = ScriptedBench(noisy(1.3, 32, noise=0.1))
    measure(bench, work, 40)
    assert [bench.taken[place][1] for place in range(0, 18, 2)].count(32) == 3
    assert bench.taken[18][1] == bench.taken[20][1] == 32


def test_a_pair_that_would_not_fit_is_not_begun(work: list[Job]) -> None:
    bench = ScriptedBench(noisy(1.0, 8, noise=0.3))
    measure(bench, work, 15.5)
    assert bench.now == 14
    assert len(bench.taken) == 14


def test_the_mean_of_all_pairs_stands_for_a_case_that_had_none(work: list[Job]) -> None:
    bench = ScriptedBench(noisy(1.0, 8, noise=0.3), lasts={8: 5.0})
    turns, _ = measure(bench, work, 15)
    assert [*turns] == [0]  # another pair of 10 s would end after 20


def test_a_process_that_outlasts_the_time_is_ended_and_does_not_count(work: list[Job]) -> None:
    bench = ScriptedBench(noisy(1.0, 8, noise=0.3), lasts={32: 600.0})
    turns, evidence = measure(bench, work, 60)
    assert bench.now == 60
    assert pairs_of(turns) == [1, 1]
    assert evidence.cases[2].logs == []


def test_every_case_gets_a_pair_while_there_is_time(work: list[Job]) -> None:
    bench = ScriptedBench(lambda side, job: 1.0)
    assert sorted(measure(bench, work, 6.5)[0]) == [0, 1, 2]


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("status", ["wrong", "failed", "skipped"])
def test_a_side_without_a_time_ends_its_case_and_no_other(
    work: list[Job], side: int, status: str
) -> None:
    bench = ScriptedBench(noisy(1.0, 8), fails={(side, 8): status})
    turns, evidence = measure(bench, work)
    old, new = turns[0].sides
    assert old is not None
    assert new is not None
    assert (old.record.status, new.record.status)[side] == status
    assert (old.record.status, new.record.status)[1 - side] == "ok"
    assert turns[0].logs == []
    assert bench.taken.count((0, 8)) == bench.taken.count((1, 8)) == 1
    assert [case.verdict for case in evidence.cases[1:]] == ["same", "same"]


def test_ctrl_c_leaves_what_is_known_so_far(work: list[Job]) -> None:
    bench = ScriptedBench(noisy(2.0, 8), interrupted_after=7)
    judge = PairJudge(Evidence(3))
    seen: dict[int, Turns] = {}
    with pytest.raises(KeyboardInterrupt):
        for place, turns in measure_in_turn(work, bench, judge, 1000, bench.clock):
            seen[place] = turns  # noqa: PERF403 (it is interrupted)
    assert pairs_of(seen) == [1, 1, 1]
