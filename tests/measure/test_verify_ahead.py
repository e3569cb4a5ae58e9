"""Which cases of an ``asv run`` are verified ahead, and what goes on record of those that end their
process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpubench.measure import verify_ahead
from gpubench.measure.asv_settings import AsvSettings
from gpubench.measure.provenance import NOBODY_LOOKED, Provenance
from gpubench.measure.recorder import Recorder
from gpubench.measure.verify_cases import Verified
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.record import CaseRecord
from gpubench.suite.loading import load_suites

SUITE = """\
version: 1
suite: turn
backend: numba_cuda
kernels:
  turn:
    sizes: {n: [8, 16]}
    arrays:
      a: {shape: [n], dtype: float32, intent: inout}
    call: [a]
    implementations:
      numpy: {function: "no_such:f", backend: numpy}
      straight: {function: "no_such:f", launch: {block: [32], grid: cover}}
      slanted: {function: "no_such:f", launch: {block: [32], grid: cover}}
    devices: [cpu, "cuda:0"]
"""


@pytest.fixture
def cases(tmp_path: Path) -> list[Case]:
    (tmp_path / "turn.yaml").write_text(SUITE)
    return [*build_plan(load_suites([tmp_path / "turn.yaml"]), 1).cases()]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Case]]:
    """Cases that are handed to the processes, each of which is then killed."""
    cases: list[Case] = []

    def killed(handed: list[Case], *_: Any, **__: Any) -> Iterator[tuple[int, Verified]]:
        cases.extend(handed)
        yield from ((place, Verified("killed", "signal")) for place in range(len(handed)))

    monkeypatch.setattr(verify_ahead, "verified", killed)
    monkeypatch.setenv("GPUBENCH_SOFTCUDA", "1")
    monkeypatch.setenv("ASV_COMMIT", "c" * 40)
    use(monkeypatch, tmp_path)
    yield cases


def use(monkeypatch: pytest.MonkeyPatch, folder: Path, **fields: Any) -> None:
    settings = AsvSettings(run="1-1", results_dir=str(folder), machine="m", **fields)
    monkeypatch.setattr(verify_ahead, "asv_settings", lambda: settings)


def names(cases: list[Case]) -> list[str]:
    return [f"{case.implementation_name} {case.values['n']}" for case in cases]


def test_all_cuda_cases_are_and_a_lost_process_is_on_record(
    cases: list[Case], asked: list[Case]
) -> None:
    verify_ahead.verify_ahead(cases, NOBODY_LOOKED)
    assert names(asked) == ["straight 8", "straight 16", "slanted 8", "slanted 16"]
    lines = Recorder(verify_ahead.asv_settings().record).lines()
    outcomes = [
        (line.benchmark, line.status, line.reason) for line in lines if isinstance(line, CaseRecord)
    ]
    assert outcomes == [
        *[("suites.turn__straight.time_kernel", "killed", "signal")] * 2,
        *[("suites.turn__slanted.time_kernel", "killed", "signal")] * 2,
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("straight", ["straight 8", "straight 16"]),
        ("track_registers", ["straight 8", "straight 16", "slanted 8", "slanted 16"]),
        (r"slanted.*n=16 ", ["slanted 16"]),
        ("numpy", []),
    ],
)
def test_only_what_asv_was_asked_for_is(
    cases: list[Case],
    asked: list[Case],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    pattern: str,
    expected: list[str],
) -> None:
    use(monkeypatch, tmp_path, benchmarks=(pattern,))
    verify_ahead.verify_ahead(cases, NOBODY_LOOKED)
    assert names(asked) == expected


@pytest.mark.parametrize(
    "fields", [{"skip_successful": True}, {"skip_failed": True}, {"results_dir": None}]
)
def test_nothing_is_where_asv_skips_what_exists_or_keeps_nothing(
    cases: list[Case],
    asked: list[Case],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    fields: dict[str, Any],
) -> None:
    settings = AsvSettings(**{"run": "1-1", "results_dir": str(tmp_path), "machine": "m"} | fields)
    monkeypatch.setattr(verify_ahead, "asv_settings", lambda: settings)
    verify_ahead.verify_ahead(cases, NOBODY_LOOKED)
    assert asked == []


def test_nothing_is_of_code_that_is_not_the_commits(cases: list[Case], asked: list[Case]) -> None:
    verify_ahead.verify_ahead(cases, Provenance(refusal="not this commit"))
    assert asked == []


def test_nothing_is_where_cuda_is_not_in_software(
    cases: list[Case], asked: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUBENCH_SOFTCUDA", "0")
    verify_ahead.verify_ahead(cases, NOBODY_LOOKED)
    assert asked == []
