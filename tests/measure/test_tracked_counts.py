"""asv gets a benchmark for each count only where somebody asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench import asv_benchmarks
from gpubench.backends import software
from gpubench.measure.asv_settings import AsvSettings
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

SUITE = Path(__file__).parents[2] / "suites/vector_add.yaml"


@pytest.fixture(scope="module")
def expansion() -> asv_benchmarks.Expansion:
    plan = build_plan(load_suites([SUITE], "smoke"), gpu_count=1)
    return next(each for each in plan.expansions() if each.group.backend == "numba_cuda")


@pytest.mark.parametrize(
    ("variable", "benchmarks", "is_tracked"),
    [
        ("", (), False),
        ("0", (), False),
        ("1", (), True),
        ("", ("vector_add",), False),
        ("", ("track_",), True),
        ("", ("suites.vector_add__numba_cuda.track_registers",), True),
    ],
)
def test_counts_are_benchmarks_where_they_are_asked_for(
    variable: str,
    benchmarks: tuple[str, ...],
    is_tracked: bool,
    expansion: asv_benchmarks.Expansion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = AsvSettings(run="1-1", benchmarks=benchmarks)
    monkeypatch.setenv(software.TRACK_SWITCH, variable)
    monkeypatch.setattr(asv_benchmarks, "asv_settings", lambda: settings)
    monkeypatch.setattr(asv_benchmarks, "requested", lambda: True)
    monkeypatch.setattr(asv_benchmarks, "counts_model", lambda: "1")

    made = asv_benchmarks.benchmark_class(expansion, 1)

    assert any(name.startswith("track_") for name in vars(made)) == is_tracked
    assert hasattr(made, "time_kernel")
