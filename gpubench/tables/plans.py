"""What the command line shows, as rich tables and plain rows. Nothing here prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table

from gpubench.backends.protocol import Description
from gpubench.errors import PlanError
from gpubench.names import Value, format_identity, format_shape
from gpubench.plan.case import Case
from gpubench.plan.explanation import explain
from gpubench.plan.plan import Plan


def counts_line(plan: Plan) -> str:
    """``6 suites, 6 kernels, 19 implementations, 214 cases``."""
    kernels = sum(len(loaded.suite.kernels) for loaded in plan.loaded)
    counts = {
        "suite": len(plan.loaded),
        "kernel": kernels,
        "implementation": len(plan.groups()),
        "case": sum(1 for _ in plan.cases()),
    }
    return ", ".join(f"{n:,} {what}{'' if n == 1 else 's'}" for what, n in counts.items())


def plan_table(cases: Sequence[Case], *, listed: bool) -> Table:
    """Cases counted by suite, kernel, implementation and device; ``listed`` names every one."""
    columns = ("suite", "kernel", "implementation", "backend", "device")
    table = Table(*columns, "case" if listed else "cases", box=None, header_style="bold")
    if listed:
        for case in cases:
            table.add_row(*_where(case), case.identity)
        return table
    for where, count in Counter(map(_where, cases)).items():
        table.add_row(*where, f"{count:,}")
    table.columns[-1].justify = "right"
    table.add_section()
    table.add_row("", "", "", "", "total", f"{len(cases):,}")
    return table


def case_row(case: Case) -> dict[str, Any]:
    """One case and its labelled times as JSON shows them; shapes and work are ``null`` where a
    formula has no value."""
    suite, kernel, implementation, backend, device = _where(case)
    name = f"{case.benchmark('kernel').asv_name} {case.identity}"
    return {
        "name": name,
        "suite": suite,
        "kernel": kernel,
        "implementation": implementation,
        "backend": backend,
        "device": device,
        "case": case.identity,
        "values": dict(case.values),
        "threads": case.threads,
        "times": list(case.group.times_of(case)),
        **_computed(case),
    }


def explanation(plan: Plan, name: str) -> Table:
    """Every value of a case and the line that set it."""
    table = Table("field", "value", "set in", box=None, header_style="bold")
    for field, value, origin in explain(plan.find(name)):
        table.add_row(str(field), str(value), str(origin))
    return table


def devices_table(devices: Iterable[Description]) -> Table:
    """One row for each device, with what is known about it or why it cannot be used."""
    table = Table("device", "name", "facts", box=None, header_style="bold")
    for device in devices:
        facts = device.unavailable or _facts(device.facts)
        table.add_row(device.device, device.name, facts)
    return table


def _where(case: Case) -> tuple[str, str, str, str, str]:
    return (
        case.suite.suite,
        case.kernel_name,
        case.implementation_name,
        case.backend or "unknown",
        case.device,
    )


def _computed(case: Case) -> dict[str, Any]:
    try:
        launch, (nbytes, flops) = case.launch, case.work()
        baseline = case.baseline()
    except PlanError as error:
        return {"launch": None, "work": None, "baseline": None, "fault": str(error)}
    return {
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


def _facts(facts: Mapping[str, Value]) -> str:
    return format_identity(facts)
