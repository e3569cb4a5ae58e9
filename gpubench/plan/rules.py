"""Rules over cases: ``exclude`` leaves them out of the plan, ``skip`` says why they cannot run.

A rule applies to the cases that have every name it uses; to the others it says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gpubench.names import Value
from gpubench.plan.case import Case
from gpubench.suite import tree
from gpubench.suite.expressions import Expression

if TYPE_CHECKING:  # a group asks its rules while it makes cases
    from gpubench.plan.group import Group

Scope = Mapping[str, Value]


def excluded_points(group: Group) -> Callable[[Case], int | None]:
    """Asks which ``exclude`` rule, by its index, takes a point out with all its launches.

    These are the rules over axes alone. They come before launch shapes are computed, so that they
    can take out the points at which a shape makes no sense.
    """
    at_points = axis_names(group)
    rules = [rule for rule in _exclude_rules(group) if rule[1].names <= at_points]
    if not rules:
        return lambda point: None
    name = {"implementation": group.implementation_name}
    return lambda point: _first(rules, point, {**point.values, **name})


def excluded_cases(group: Group) -> Callable[[Case], int | None]:
    """Asks which ``exclude`` rule over launch shapes or threads, by its index, takes a case out."""
    at_points, of_cases = axis_names(group), case_names(group)
    rules = [
        rule
        for rule in _exclude_rules(group)
        if rule[1].names <= of_cases and not rule[1].names <= at_points
    ]
    if not rules:
        return lambda case: None
    needed = frozenset[str]().union(*(rule.names for _, rule in rules))
    return lambda case: _first(rules, case, scope(case, needed))


def _exclude_rules(group: Group) -> list[tuple[int, Expression]]:
    return [(index, rule.when) for index, rule in enumerate(group.kernel.exclude)]


def _first(rules: list[tuple[int, Expression]], case: Case, values: Scope) -> int | None:
    for index, rule in rules:
        if case.evaluate(rule, ("exclude", index, "when"), values):
            return index
    return None


def skip_reason(case: Case, device_scope: Scope) -> str | None:
    """Reason of the first ``skip`` rule that holds for a case on a device, else ``None``.

    ``device_scope`` has the facts that are known about the device; a rule over a fact that is not
    known does not apply. Raises ``PlanError`` where a rule has no value.
    """
    for index, rule in enumerate(case.kernel.skip):
        if holds(case, rule.when, ("skip", index, "when"), device_scope):
            return rule.reason
    return None


def holds(case: Case, rule: Expression, path: tree.Path, device_scope: Scope) -> bool:
    """Whether a rule applies to a case and holds for it."""
    if not rule.names <= case_names(case.group) | {"device"} | device_scope.keys():
        return False
    values = {**scope(case, rule.names), **device_scope}
    return bool(case.evaluate(rule, path, values))


def axis_names(group: Group) -> frozenset[str]:
    """Names that a rule may use before a launch shape is known."""
    return frozenset((*group.identity_order, "implementation"))


def case_names(group: Group) -> frozenset[str]:
    """Names that a rule may use without asking a device."""
    threads = {"threads"} if group.implementation.threads else set()
    launch = {"threads_per_block", "blocks"} if group.blocks else set()
    return axis_names(group) | threads | launch


_DERIVED: Mapping[str, Callable[[Case], Value | None]] = {
    "suite": lambda case: case.suite.suite,
    "kernel": lambda case: case.kernel_name,
    "implementation": lambda case: case.implementation_name,
    "backend": lambda case: case.backend,
    "device": lambda case: case.device,
    "threads": lambda case: case.threads,
    "threads_per_block": lambda case: math.prod(case.block) if case.block else None,
    "blocks": lambda case: case.launch.blocks if not case.problem and case.launch else None,
}

CASE_NAMES = frozenset(_DERIVED)
"""Names that a case may have beside its axes."""


def scope(case: Case, names: frozenset[str]) -> dict[str, Value]:
    """Values of a case under those of ``names`` that it has."""
    values = {}
    for name in names:
        if name in case.values:
            values[name] = case.values[name]
        elif name in _DERIVED and (value := _DERIVED[name](case)) is not None:
            values[name] = value
    return values
