"""What one process that asv starts leaves behind, as the outcome of its case."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpubench.measure.direct import Job, Measured
from gpubench.measure.in_turn import jobs_in_turn, process_seconds
from gpubench.measure.installing import CommitSide
from gpubench.measure.outcomes import case_record
from gpubench.measure.recorder import Recorder
from gpubench.measure.two_commits import TwoCommits
from gpubench.plan.plan import build_plan
from gpubench.record import Line, RoundsRecord, RunRecord
from gpubench.suite.loading import load_suites

SUITE = """\
version: 1
suite: s
backend: scripted
kernels:
  k:
    sizes: {n: [8, 16]}
    arrays: {x: {shape: [n], dtype: float64}, y: {shape: [n], dtype: float64, intent: out}}
    call: [x, y]
    baseline: plain
    implementations: {plain: {function: "kernels:plain"}}
"""

NAME = "suites.s__k__plain.time_kernel"
AT = "2026-03-01T10:00:00+00:00"


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "s.yaml").write_text(SUITE)
    return jobs_in_turn(build_plan(load_suites([tmp_path / "s.yaml"], None), 0).cases())[1]


@dataclass
class ScriptedSpawner:
    """In place of asv's: writes what a process would, and says how it ended."""

    records: Path
    lines: Sequence[Line] = ()
    samples: Sequence[float] = ()
    code: int = 0
    printed: str = ""
    raises: Exception | None = None
    asked: str = ""

    def run(self, *, name: str, result_file_name: str, **more: object) -> tuple[str, int]:
        self.asked = name
        assert "GPUBENCH_ASV" in os.environ
        if self.raises:
            raise self.raises
        for line in self.lines:
            Recorder(self.records / "vm" / "aaaa-env.gpubench.jsonl").write(line)
        if self.code == 0:
            Path(result_file_name).write_text(json.dumps({"samples": self.samples, "number": 1}))
        return self.printed, self.code


class ScriptedCommits(TwoCommits):
    """Two sides, whose processes one spawner scripts."""

    def __init__(self, spawner: ScriptedSpawner) -> None:
        benchmarks = {NAME: {"name": NAME, "params": [["'n=8'", "'n=16'"]], "timeout": 7.0}}
        side = CommitSide(
            "main", "a" * 40, 0.0, None, "vm", SimpleNamespace(name="env"),
            {"GPUBENCH_ASV": "{}"}, spawner.records, benchmarks,
        )  # fmt: skip
        super().__init__(
            [side, side], SimpleNamespace(config=SimpleNamespace(launch_method="spawn"))
        )  # type: ignore[arg-type]
        self.spawner, self.rounds = spawner, 0
        self.begin_round()

    def begin_round(self) -> None:
        self.rounds += 1
        self._spawners = [self.spawner, self.spawner]


Take = Callable[..., Measured]


@pytest.fixture
def take(tmp_path: Path, job: Job) -> Take:
    """Take one process of a script."""

    def of_script(*statuses: str, rounds: Sequence[float] = (), **script: object) -> Measured:
        lines: list[Line] = [
            replace(
                case_record(job.case, job.time, "started"), status=status, reason=f"is {status}"
            )  # type: ignore[arg-type]
            for status in statuses
        ]
        if rounds:
            lines.append(RoundsRecord(NAME, "n=16", AT, tuple(rounds)))
        spawner = ScriptedSpawner(tmp_path / "records", lines, **script)  # type: ignore[arg-type]
        measured = ScriptedCommits(spawner).take(0, job)
        assert spawner.asked == f"{NAME}-1"  # the second case
        return measured

    return of_script


def test_the_time_of_a_process_is_the_median_of_its_rounds(take: Take) -> None:
    measured = take("started", "ok", rounds=(3.0, 1.0, 2.0), samples=(9.0,))
    assert measured.record.status == "ok"
    assert process_seconds(measured) == 2.0


def test_a_release_that_keeps_no_record_has_asv_s_samples(take: Take) -> None:
    measured = take(samples=(3.0, 1.0, 2.0))
    assert measured.record.status == "ok"
    assert process_seconds(measured) == 2.0


@pytest.mark.parametrize(
    ("lines", "script", "status", "words"),
    [
        (("started", "skipped"), {}, "skipped", "is skipped"),
        (("started", "failed"), {"code": 1}, "failed", "is failed"),
        (("started", "ok", "wrong"), {"code": 1}, "wrong", "is wrong"),
        (("started",), {"code": -256}, "timed_out", "stopped by its timeout of 7 s"),
        (("started",), {"code": -11}, "killed", "signal SIGSEGV"),
        (("started", "ok"), {"code": 1, "printed": "a\nb"}, "failed", "exit code 1): b"),
        ((), {"code": 1, "printed": "ImportError: no"}, "failed", "ImportError: no"),
        (("started", "ok"), {}, "failed", "it gave no time"),
        (("started",), {"raises": RuntimeError("closed")}, "killed", "closed"),
    ],
)
def test_a_process_without_a_time_says_why(
    take: Take, lines: Sequence[str], script: dict[str, object], status: str, words: str
) -> None:
    measured = take(*lines, **script)
    assert measured.record.status == status
    assert words in (measured.record.reason or "")
    assert process_seconds(measured) == 0


def test_the_record_of_one_process_is_not_that_of_the_next(tmp_path: Path, job: Job) -> None:
    facts = RunRecord(AT, {"numpy": "2.4"})
    ok = case_record(job.case, job.time, "ok")
    spawner = ScriptedSpawner(tmp_path, [facts, ok, RoundsRecord(NAME, "n=16", AT, (1.0,))])
    bench = ScriptedCommits(spawner)
    assert process_seconds(bench.take(0, job)) == 1.0
    spawner.lines = [replace(ok, status="failed")]
    spawner.code = 1
    assert bench.take(0, job).record.status == "failed"
    assert bench.sides[0].run == facts


def test_after_a_server_that_has_ended_there_is_another(tmp_path: Path, job: Job) -> None:
    bench = ScriptedCommits(ScriptedSpawner(tmp_path, raises=ConnectionResetError("gone")))
    bench.take(0, job)
    assert bench.rounds == 2


def test_a_case_that_a_side_does_not_have_is_not_found(tmp_path: Path, job: Job) -> None:
    (side, _) = ScriptedCommits(ScriptedSpawner(tmp_path)).sides
    assert side.find(job) == (side.benchmarks[NAME], 1)
    side.benchmarks = {NAME: {"name": NAME, "params": [["'n=8'"]]}}
    assert side.find(job) is None
    side.benchmarks = {}
    assert side.find(job) is None
