"""Whether machines are equal: the same cases on each, compared by the one rule for ratios (A/A)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from gpubench.edge.fleet.shares import Machine
from gpubench.names import format_value
from gpubench.plan.plan import Plan
from gpubench.results.ratio import MIN_UNPAIRED_FACTOR, Ratio, quotient

KERNELS = 8
"""Measured on each machine. A choice: with some three implementations each they take a minute or
two, and suites differ in what they ask of a machine."""

CaseTimes = Mapping[str, tuple[float, ...]]
"""Of each case its median and the ends of its interval, seconds; NaN for an end not known."""


def proof_commands(plan: Plan) -> list[tuple[str, ...]]:
    """Arguments of ``gpubench time`` for the cases that are compared: of kernels from all over the
    suites, every implementation at the middle size."""
    baselines = [
        group for groups in plan.kernels for group in groups if not group.baseline and group.count()
    ]
    commands = []
    for group in baselines[:: max(1, math.ceil(len(baselines) / KERNELS))]:
        cases = plan.expansion(group).cases
        values = cases[len(cases) // 2].values if cases else {}
        sizes = [f"{n}={format_value(values[n])}" for n in group.axes.size_names if n in values]
        options = [word for size in sizes for word in ("-a", size)]
        commands.append((f"{group.loaded.path}::{group.kernel_name}", *options))
    return commands


def compare(reference: CaseTimes, other: CaseTimes) -> tuple[float, str | None]:
    """Return the largest factor between times of two machines, and why they are not proven equal;
    ``None`` where they are.

    Every case needs an interval on both, and a ratio within the factor from which it could be a
    verdict: what is nearer to 1, no two processes of one machine tell apart.
    """
    common = sorted(reference.keys() & other.keys())
    if not common:
        return math.inf, "no case succeeded on both"
    largest, why_not = 1.0, None
    pairs = [np.array([times[name] for name in common]).T for times in (reference, other)]
    for name, values in zip(common, quotient(*pairs).T, strict=True):
        ratio = Ratio(*map(float, values))
        largest = max(largest, ratio.factor)
        if not ratio.has_interval:
            why_not = f"{name} has no interval on one of them: other work disturbed it"
        elif not 1 / MIN_UNPAIRED_FACTOR <= ratio.value <= MIN_UNPAIRED_FACTOR:
            ends = f"{ratio.low:.3g} to {ratio.high:.3g}"
            why_not = f"{name} is {ratio.value:.3g} times as fast ({ends})"
    return largest, why_not


def groups_of(
    machines: Sequence[Machine], times: Mapping[str, CaseTimes], keeper: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Under which name the results of each machine are kept, and what the page *Machines* says of
    it, by the machine's name.

    ``machines`` are of one kind; the others are compared with the first. Those that are proven
    equal to it divide the work under the name ``keeper``.
    """
    first, *others = (machine.name for machine in machines)
    compared = {name: compare(times[first], times[name]) for name in others}
    equal = [name for name in others if compared[name][1] is None]
    keepers = {name: keeper if equal and name in (first, *equal) else name for name in times}
    notes = {
        name: f"kept apart, not proven equal to {first}: {why_not}"
        for name, (_, why_not) in compared.items()
        if why_not is not None
    }
    if equal:
        apart = max(compared[name][0] for name in equal) - 1
        note = (
            f"{', '.join((first, *equal))} divide the work: equal within {apart:.1%} in "
            f"{len(times[first])} cases measured on each ({datetime.now(UTC).date().isoformat()})"
        )
        notes |= dict.fromkeys((first, *equal), note)
    return keepers, notes
