"""Two commits whose processes last as long as a script says, for commands that measure in turn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gpubench.measure.direct import Job, Measured
from gpubench.measure.in_turn import Bench
from gpubench.measure.installing import CommitSide
from gpubench.measure.outcomes import case_record

SUITE = """\
version: 1
suite: s
backend: scripted
kernels:
  k:
    sizes: {n: [8]}
    arrays: {x: {shape: [n], dtype: float64}, y: {shape: [n], dtype: float64, intent: out}}
    call: [x, y]
    baseline: plain
    implementations:
      plain: {function: "kernels:plain"}
      kernel: {function: "kernels:kernel"}
      other: {function: "kernels:other"}
"""

PLAIN, KERNEL, OTHER = (f"suites.s__k__{name}.time_kernel" for name in ("plain", "kernel", "other"))


def enter_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "suites").mkdir()
    (folder / "suites/s.yaml").write_text(SUITE)
    monkeypatch.chdir(folder)


def scripted_side(label: str, commit: str, versions: Iterable[tuple[str, str]]) -> CommitSide:
    """Return an installed commit that has these benchmarks, each with its version."""
    benchmarks = {
        name: {"name": name, "params": [["'n=8'"]], "version": version}
        for name, version in versions
    }
    environment = SimpleNamespace(name="virtualenv-py3.11")
    return CommitSide(
        label, commit, 86_400.0, "a subject", "runner", environment, {}, Path(), benchmarks
    )


@dataclass(kw_only=True)
class ScriptedBench(Bench):
    """Takes processes that ``log_of`` gives the time of, until Ctrl-C ends that."""

    stops_after: float = math.inf
    taken: int = 0
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def log_of(self, side: int, benchmark: str) -> float:
        """Return the logarithm of a process's time in milliseconds."""
        raise NotImplementedError

    def why_without_time(self, side: int, benchmark: str) -> tuple[str, str] | None:
        """Return status and reason of a process that has no time."""
        raise NotImplementedError

    def begin_round(self) -> None:
        pass

    def take(self, side: int, job: Job, seconds_left: float) -> Measured:
        if self.taken >= self.stops_after:
            raise KeyboardInterrupt
        self.taken += 1
        name = job.case.benchmark(job.time).asv_name
        record = case_record(job.case, job.time, "ok")
        if without := self.why_without_time(side, name):
            status, reason = without
            return Measured(replace(record, status=status, reason=reason))  # type: ignore[arg-type]
        seconds = float(1e-3 * math.exp(self.log_of(side, name)))
        return Measured(record, (((seconds,),),), (None,))
