"""Suites to blueprints of asv's classes, left for the processes that asv starts for one case."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpubench.backends.devices import gpu_count
from gpubench.backends.software import requested
from gpubench.measure.repeats import default_rounds
from gpubench.plan.case import Case
from gpubench.plan.machine import is_cuda
from gpubench.plan.plan import Group, build_plan
from gpubench.plan.stored import Blueprint, store
from gpubench.plan.subject import HOME
from gpubench.plan.version import benchmark_version
from gpubench.suite.loading import load_suites
from gpubench.suite.model import Sampling

_NOT_OF_ASV = {"sample_time", "number", "paired"}
"""What of ``sampling`` is carried out here: asv sees one call a sample."""


def plan_blueprints(suites: Path, preset: str | None) -> tuple[Blueprint, ...]:
    """Blueprints of all suite files in a folder, in the order of the files.

    Raises ``SuiteError`` with every fault of the files.
    """
    count = gpu_count()
    plan = build_plan(load_suites([suites], preset), count)
    planned: dict[Path, list[Blueprint]] = {}
    for group in plan.groups():
        path = Path(group.subject.loaded.path)
        planned.setdefault(path, []).append(_blueprint(group, count))
    for path, blueprints in planned.items():
        store(path, preset, blueprints)
    return tuple(blueprint for blueprints in planned.values() for blueprint in blueprints)


def _blueprint(group: Group, count: int) -> Blueprint:
    cases = list(group.cases())
    name = group.implementation_name
    return Blueprint(
        group=group,
        title=group.kernel.title or "",
        identities=tuple(case.identity for case in cases),
        compiled=tuple(case.identity for case in cases if "compile" in group.times_of(case)),
        attributes=_asv_attributes(group.kernel.sampling, one_round=_has_no_times(cases, count)),
        versions={time: benchmark_version(group.kernel, name, time) for time in group.times},
        source=group.source_text(),
        gpu_count=None if all(case.device == HOME for case in cases) else count,
    )


def _has_no_times(cases: Iterable[Case], gpu_count: int) -> bool:
    """Whether all of the cases need a CUDA device and there is none, or one in software."""
    return (gpu_count == 0 or requested()) and all(is_cuda(case.device) for case in cases)


def _asv_attributes(sampling: Sampling, one_round: bool) -> dict[str, Any]:
    """asv's own attributes; what the suite leaves out is asv's default, but for paired rounds.

    Cases that get no time anyway are done in ``one_round``: there are thousands of them.
    """
    given = sampling.model_dump(exclude_none=True, exclude=_NOT_OF_ASV)
    if one_round:
        return {**given, "rounds": 1}
    return {"rounds": default_rounds(sampling), **given} if sampling.paired else given
