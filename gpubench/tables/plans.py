"""What ``gpubench check``, ``plan`` and ``devices`` show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gpubench.backends.protocol import Description
from gpubench.errors import PlanError
from gpubench.names import format_identity, format_shape
from gpubench.plan.case import Case
from gpubench.plan.plan import Plan
from gpubench.report import text

if TYPE_CHECKING:  # `check` prints one line, without rich
    from rich.table import Table

_WHERE = ("suite", "kernel", "implementation", "backend", "device")


def plan_counts(plan: Plan, cases: Sequence[Case]) -> dict[str, int]:
    """Return how much is planned, by what it is; ``cases`` are those that are counted."""
    return {
        "suite": len(plan.loaded),
        "kernel": len(plan.kernels),
        "implementation": len(plan.groups()),
        "case": len(cases),
    }


def counts_line(plan: Plan, cases: Sequence[Case]) -> str:
    """Return ``6 suites, 6 kernels, 19 implementations, 214 cases``."""
    return ", ".join(text.plural(n, what) for what, n in plan_counts(plan, cases).items())


def check_row(plan: Plan, cases: Sequence[Case]) -> dict[str, Any]:
    """Return what ``gpubench check`` finds, as JSON shows it."""
    return {
        "counts": plan_counts(plan, cases),
        "faults": [asdict(fault) for fault in plan.faults()],
        "warnings": [asdict(warning) for warning in plan.warnings()],
    }


def plan_table(
    cases: Sequence[Case], *, listed: bool
) -> tuple[tuple[str, ...], list[tuple[str, ...]], tuple[str, ...]]:
    """Return columns, rows and the columns on the right of a table of cases, counted by suite,
    kernel, implementation and device; ``listed`` names every one."""
    if listed:
        return (*_WHERE, "case"), [(*_where(case), case.identity) for case in cases], ()
    counts = [(*where, f"{count:,}") for where, count in Counter(map(_where, cases)).items()]
    total = ("", "", "", "", "total", f"{len(cases):,}")
    return (*_WHERE, "cases"), [*counts, total], ("cases",)


def devices_table(devices: Iterable[Description]) -> Table:
    """Return one row for each device, with what is known about it or why it cannot be used."""
    from gpubench.tables.table import table

    rows = ((d.device, d.name, d.unavailable or format_identity(d.facts)) for d in devices)
    return table(("device", "name", "facts"), rows, folded=True)


def case_name(case: Case) -> str:
    """Its asv benchmark and its identity: what ``gpubench plan --explain`` takes."""
    return f"{case.benchmark('kernel').asv_name} {case.identity}".rstrip()


def case_row(case: Case, times: Iterable[str]) -> dict[str, Any]:
    """Return one case and the labelled times that are taken of it, as JSON shows them; shapes and
    work are ``null`` where a formula has no value."""
    row: dict[str, Any] = {
        "name": case_name(case),
        **dict(zip(_WHERE, _where(case), strict=True)),
        "case": case.identity,
        "values": dict(case.values),
        "threads": case.threads,
        "times": list(times),
    }
    try:
        launch, (nbytes, flops), baseline = case.launch, case.work(), case.baseline()
    except PlanError as error:
        return {**row, "launch": None, "work": None, "baseline": None, "fault": str(error)}
    return {
        **row,
        "launch": launch
        and {
            "block": format_shape(launch.block),
            "grid": format_shape(launch.grid),
            "shared_bytes": launch.shared_bytes,
            "cooperative": launch.cooperative,
        },
        "work": {"bytes": nbytes, "flops": flops},
        "baseline": baseline
        and {"implementation": baseline.implementation_name, "case": baseline.identity},
        "fault": case.fault,
    }


def _where(case: Case) -> tuple[str, str, str, str, str]:
    names = (case.suite.suite, case.kernel_name, case.implementation_name)
    return (*names, case.backend or "unknown", case.device)
