"""Where a case is found again by another process: the file and the preset, and its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite


def locate(case: Case) -> dict[str, Any]:
    """What ``case_at`` needs to make the case again: plain values, for JSON."""
    subject = case.subject
    return {
        "path": str(subject.loaded.path),
        "preset": subject.loaded.preset,
        "benchmark": case.benchmark("kernel").class_name,
        "case": case.identity,
        "gpu_count": subject.machine.gpu_count,
    }


def case_at(place: Mapping[str, Any]) -> Case:
    """The case that ``locate`` described; raises ``GpubenchError`` when the file has changed."""
    loaded = load_suite(place["path"], place["preset"])
    plan = build_plan([loaded], place["gpu_count"])
    return plan.group(place["benchmark"]).case(place["case"])
