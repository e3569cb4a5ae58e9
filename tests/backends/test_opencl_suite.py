"""A suite with an OpenCL source, from its YAML to samples, on a real device."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.measure.case_run import CaseRun
from gpubench.measure.outcomes import WrongResult
from gpubench.measure.recorder import Recorder
from gpubench.names import TIMES
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.record import CaseRecord, parse_line
from gpubench.suite.loading import load_suite

pytestmark = pytest.mark.opencl

SUITE = Path(__file__).parent / "opencl" / "vector_add.yaml"


class Measured:
    """One time of an implementation of the suite, prepared as for asv."""

    def __init__(self, folder: Path, implementation: str, time: str = "kernel") -> None:
        self.path = folder / "record.jsonl"
        self.run = CaseRun(case_of(implementation), time, Recorder(self.path))

    @property
    def last(self) -> CaseRecord:
        last = parse_line(self.path.read_text().splitlines()[-1])
        assert isinstance(last, CaseRecord)
        return last


def case_of(implementation: str) -> Case:
    cases = build_plan([load_suite(SUITE)], gpu_count=0).cases()
    return next(case for case in cases if case.implementation_name == implementation)


@pytest.mark.parametrize("time", TIMES)
def test_every_labelled_time_of_a_suite_is_taken(tmp_path: Path, time: str) -> None:
    measured = Measured(tmp_path, "opencl", time)
    try:
        sampling = measured.run.prepare()
        assert sampling.sample() > 0
    finally:
        measured.run.close()
    assert (measured.last.status, measured.last.max_abs_error) == ("ok", 0.0)
    assert measured.last.conditions["opencl_device"]


def test_a_wrong_kernel_gets_no_time(tmp_path: Path) -> None:
    measured = Measured(tmp_path, "opencl_wrong")
    with pytest.raises(WrongResult):
        measured.run.prepare()
    assert measured.last.status == "wrong"
