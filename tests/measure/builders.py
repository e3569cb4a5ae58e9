"""Small builders for the tests of measuring: a case from a few words of YAML."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from gpubench.measure.case_run import CaseRun
from gpubench.measure.recorder import Recorder
from gpubench.plan.case import Case
from gpubench.plan.plan import Plan, build_plan
from gpubench.record import CaseRecord, RunRecord, parse_line
from gpubench.suite.loading import load_suite

SCALE = """
sizes: {n: [64]}
arrays:
  a: {shape: [n], dtype: float32}
  out: {shape: [n], dtype: float32, intent: out}
call: [a, out]
implementations:
  numpy: {function: measured_kernels:scale}
"""


def plan_of(folder: Path, kernel: str) -> Plan:
    """Plan of a suite ``sample`` with one kernel ``sample``, whose body is given as YAML."""
    path = folder / "sample.yaml"
    body = textwrap.indent(textwrap.dedent(kernel), "    ")
    path.write_text(f"version: 1\nsuite: sample\nbackend: numpy\nkernels:\n  sample:\n{body}\n")
    return build_plan([load_suite(path)], gpu_count=0)


def case_of(folder: Path, kernel: str, implementation: str) -> Case:
    """The first case of an implementation."""
    cases = plan_of(folder, kernel).cases()
    return next(case for case in cases if case.implementation_name == implementation)


def scale_with(folder: Path, implementation: str, extra: str = "") -> Case:
    """The kernel ``out = 2 a`` with another implementation, ``candidate``, beside NumPy's."""
    line = f"  candidate: {{function: measured_kernels:{implementation}, backend: numpy}}\n"
    return case_of(folder, SCALE + line + extra, "candidate")


class Recording:
    """A preparation whose record can be read back."""

    def __init__(self, folder: Path, case: Case, time: str = "kernel") -> None:
        self.path = folder / "record.jsonl"
        self.run = CaseRun(case, time, Recorder(self.path))

    def refusal(self, error: type[Exception]) -> CaseRecord:
        """Prepare, expect to be refused, and return what is on record."""
        with pytest.raises(error):
            self.run.prepare()
        return self.last

    @property
    def lines(self) -> list[RunRecord | CaseRecord]:
        return [parse_line(line) for line in self.path.read_text().splitlines()]

    @property
    def last(self) -> CaseRecord:
        last = self.lines[-1]
        assert isinstance(last, CaseRecord)
        return last
