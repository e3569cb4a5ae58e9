"""Numba's cases of an ``asv run`` are counted before asv measures, where somebody asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from summing_project import enter_project

from gpubench.measure import count_ahead
from gpubench.measure.asv_settings import AsvSettings
from gpubench.measure.provenance import NOBODY_LOOKED, Provenance
from gpubench.measure.recorder import Recorder
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.record import CountsRecord, RunRecord
from gpubench.suite.loading import load_suites


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    enter_project(tmp_path, monkeypatch)
    monkeypatch.setenv("GPUBENCH_COUNT", "cpu")
    monkeypatch.setenv("ASV_COMMIT", "c" * 40)
    use(monkeypatch, tmp_path)
    every = build_plan(load_suites([tmp_path / "suites"]), 1).cases()
    return [case for case in every if case.implementation_name in ("numpy", "numba")]


def use(monkeypatch: pytest.MonkeyPatch, folder: Path, **fields: Any) -> None:
    settings = AsvSettings(run="1-1", results_dir=str(folder / "kept"), machine="m", **fields)
    monkeypatch.setattr(count_ahead, "asv_settings", lambda: settings)


def test_counts_go_on_record_with_reasons(cases: list[Case]) -> None:
    count_ahead.count_ahead(cases, NOBODY_LOOKED)

    run, counts = Recorder(count_ahead.asv_settings().record).lines()
    assert isinstance(run, RunRecord) and isinstance(counts, CountsRecord)
    assert counts.benchmark == "suites.sums__total__numba.time_kernel"
    assert (counts.target, counts.missing, counts.totals["flops_float64"]) == ("cpu", None, 1000)
    assert counts.made_by and counts.made_by.startswith("numba ")
    (launch,) = counts.launches
    reasons = {line.line: line.reason for line in launch.lines if line.reason}
    assert list(reasons) == [10] and launch.lines[0].file == "summing.py"
    assert reasons[10].startswith("cannot prove it is safe to reorder floating-point operations")


@pytest.mark.parametrize(
    ("variable", "fields", "provenance"),
    [
        ("", {}, NOBODY_LOOKED),
        ("0", {}, NOBODY_LOOKED),
        ("cpu", {"results_dir": None}, NOBODY_LOOKED),
        ("cpu", {"benchmarks": ("numpy",)}, NOBODY_LOOKED),
        ("cpu", {}, Provenance(refusal="the code is another")),
    ],
)
def test_nothing_is_counted_that_nobody_asked_for(
    cases: list[Case],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    fields: dict[str, Any],
    provenance: Provenance,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(count_ahead, "verified", refuse)
    monkeypatch.setenv("GPUBENCH_COUNT", variable)
    settings = {"run": "1-1", "results_dir": "kept", "machine": "m", **fields}
    monkeypatch.setattr(count_ahead, "asv_settings", lambda: AsvSettings(**settings))
    count_ahead.count_ahead(cases, provenance)
