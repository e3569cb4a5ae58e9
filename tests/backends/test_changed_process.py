"""A case that changes its process for good, as those of ``cudf.pandas`` and ``cuml.accel`` do, is
alone in it, so that no other one is refused or computed by something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_registry import package, python

from gpubench.backends.registry import get

REPLACING = '''
"""A backend which with ``accel`` puts itself in the place of every other one."""

import os

from gpubench.backends.host import HostBackend, HostSession
from gpubench.errors import BackendError

replaced = False


class AbacusBackend(HostBackend):
    name, title, times = "abacus", "Abacus", ("kernel", "cold")
    options = {"accel": "true: for the whole process"}

    def changes_process(self, options):
        return "accel" in options

    def start(self, device, threads, accel=False):
        global replaced
        if replaced and not accel:
            raise BackendError("another case has changed this process")
        replaced = replaced or accel
        return AbacusSession("abacus")


class AbacusSession(HostSession):
    def facts(self):
        return {**super().facts(), "pid": os.getpid()}


def twice(a, out):
    out[:] = 2 * a
'''
SUITE = """
version: 1
suite: replacing
kernels:
  doubled:
    arrays:
      a: {shape: [64], dtype: float64}
      out: {shape: [64], dtype: float64, intent: out}
    call: [a, out]
    baseline: first
    measure: [kernel, cold]
    sampling: {rounds: 1, repeat: 2, sample_time: 0.001, warmup_time: 0, paired: PAIRED}
    implementations:
      first: {function: "plugin:twice", backend: abacus}
      second: {function: "plugin:twice", backend: abacus}
      accelerated: {function: "plugin:twice", backend: abacus, options: {accel: true}}
      also: {function: "plugin:twice", backend: abacus, options: {accel: true}}
      third: {function: "plugin:twice", backend: abacus}
"""
CASES = """
import json, sys
from gpubench.measure.direct import bench, jobs, measure
from gpubench.measure.verify_cases import Manner, verified
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite

cases = list(build_plan([load_suite(sys.argv[1])], gpu_count=0).cases())
"""
MEASURED = """
work = jobs(cases)
with bench() as take:
    for place, found in measure(work, take):
        record = found.record
        name, reason = work[place].case.implementation_name, record.reason
        pairs = [bool(record.pair_ratios), *(one for one in record.warnings if "paired" in one)]
        print(json.dumps([name, record.status, reason, record.conditions.get("pid"), pairs]))
"""
VERIFIED = """
for place, outcome in verified(cases, Manner(processes=1)):
    print(json.dumps([cases[place].implementation_name, outcome.status, outcome.reason]))
"""


def outcomes(folder: Path, program: str, paired: str = "false") -> list[list[object]]:
    package(folder, "plugin", "plugin:AbacusBackend", REPLACING)
    suite = folder / "replacing.yaml"
    suite.write_text(SUITE.replace("PAIRED", paired))
    lines = python(CASES.replace("sys.argv[1]", repr(str(suite))) + program, folder)
    return [json.loads(line) for line in lines.splitlines()]


@pytest.mark.parametrize("paired", ["false", "true"])
def test_it_is_measured_alone_in_its_process_and_no_case_is_refused(
    tmp_path: Path, paired: str
) -> None:
    lines = outcomes(tmp_path, MEASURED, paired)
    assert {(status, reason) for _, status, reason, *_ in lines} == {("ok", None)}
    pids = {name: [pid for one, *_, pid, _ in lines if one == name] for name, *_ in lines}
    assert len(pids) == 5
    assert len({*pids["first"], *pids["second"]}) == 1
    for alone in ("accelerated", "also"):
        assert len(set(pids[alone])) == 2  # one for each of its times
    assert len({pid for of_case in pids.values() for pid in of_case}) == 1 + 4 + 1
    if paired == "true":
        pairs = {name: told for name, *_, told in lines}
        assert pairs["second"] == pairs["third"] == [True]
        why = "accelerated and first cannot share a process, which one of them changes for good"
        assert pairs["accelerated"] == [False, f"not paired: {why}"]


def test_it_is_verified_and_no_case_after_it_is_refused(tmp_path: Path) -> None:
    lines = outcomes(tmp_path, VERIFIED)
    assert len(lines) == 5
    assert {(status, reason) for _, status, reason in lines} == {("right", None)}


@pytest.mark.parametrize("backend", ["cudf", "cuml"])
def test_those_with_accel_change_their_process_and_others_do_not(backend: str) -> None:
    assert get(backend).changes_process({"accel": True})
    assert not get(backend).changes_process({"accel": False})
    assert not get(backend).changes_process({})
    assert not get("numpy").changes_process({})
