"""From a group to its cases: the product of its axes, launches and devices, then what a suite
includes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from gpubench.backends import registry
from gpubench.errors import PlanError, did_you_mean
from gpubench.plan.case import Case
from gpubench.plan.group import Group, devices_named
from gpubench.plan.rules import is_excluded
from gpubench.suite.expressions import Expression
from gpubench.suite.model import Include

UNKNOWN = "?"
"""In an identity, the value of an axis that an ``include`` does not give."""


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """A group with its cases, of which asv gets one class, and what was left out on the way."""

    group: Group
    by_identity: Mapping[str, Case]
    """The cases. The order follows the names of axes and, on each axis, the order of the file."""
    excluded: frozenset[int]
    """Indexes of the ``exclude`` rules that took something out."""
    included: frozenset[int]
    """Indexes of the ``include`` entries that added something."""
    repeated: tuple[str, ...]
    """Identities that the product gave again and that were dropped."""

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases in their order."""
        return tuple(self.by_identity.values())

    def find(self, identity: str) -> Case:
        """Return the case with that identity; raises ``PlanError`` with the nearest that there
        is."""
        if identity not in self.by_identity:
            hint = nearest(identity, list(self.by_identity))
            raise PlanError(f"{self.group.class_name} has no case {identity!r}{hint}")
        return self.by_identity[identity]


def expand(group: Group) -> Expansion:
    """Make all cases of a group, no identity twice.

    Where a formula has no value, the case says so itself (``Case.problem``), and the others are as
    they would be.
    """
    excluded, included = set[int](), set[int]()
    cases, repeated = dict[str, Case](), list[str]()
    for case in _product(group, excluded):
        if case.identity in cases:
            repeated.append(case.identity)
        else:
            cases[case.identity] = case
    for index, entry in group.includes:
        for case in _included(group, index, entry):
            if case.identity not in cases:
                cases[case.identity] = case
                included.add(index)
    return Expansion(group, cases, frozenset(excluded), frozenset(included), tuple(repeated))


def nearest(name: str, candidates: list[str]) -> str:
    """Return the end of a message: the nearest name that there is, or an example of one."""
    example = f"; the first of {len(candidates)} is {candidates[0]!r}" if candidates else None
    return did_you_mean(name, candidates) or example or "; it has none"


def _product(group: Group, excluded: set[int]) -> Iterator[Case]:
    """Yield the product of axes, launches and devices; ``excluded`` gets the rules that took some
    of it out."""
    devices = group.served
    # Rules over axes alone come before launch shapes are computed, so that they can take out the
    # points at which a shape makes no sense.
    point_names = {*group.axes.names, "implementation"}
    of_points, of_cases = dict[int, Expression](), dict[int, Expression]()
    for index, rule in enumerate(group.kernel.exclude):
        if (names := group.names(rule.when)) <= point_names:
            of_points[index] = rule.when
        elif names <= group.rule_names:
            of_cases[index] = rule.when
    for point in group.axes.points() if devices else ():
        unlaunched = Case(group, point)
        try:
            if is_excluded(unlaunched, of_points, excluded):
                continue
            shapes = tuple(unlaunched.shapes())
        except PlanError as problem:
            yield from (replace(unlaunched, device=each, problem=problem) for each in devices)
            continue
        for shape, device in itertools.product(shapes, devices):
            case = Case(group, point, *shape, device)
            try:
                is_out = is_excluded(case, of_cases, excluded)
            except PlanError as problem:
                case, is_out = replace(case, problem=problem), False
            if not is_out:
                yield case


def _included(group: Group, index: int, entry: Include) -> Iterator[Case]:
    """Cases of one ``include``: without a ``device``, one on every device that is served."""
    given = {**group.axes.defaults, **entry.values}
    point = {name: given.get(name, UNKNOWN) for name in group.axes.names}
    case = Case(group, point)
    try:
        if missing := [name for name in point if name not in given]:
            message = (
                f"this entry gives no value for {', '.join(missing)}; the axes of "
                f"{group.implementation_name!r} are {', '.join(point)}"
            )
            raise PlanError(group.fault_at(("include", index), message))
        field = "block" if entry.block is not None else "grid"
        is_launched = not group.backend or registry.get(group.backend).takes_launch
        if getattr(entry, field) is not None and not is_launched:
            message = f"the backend {group.backend} launches nothing: remove `{field}`"
            raise PlanError(group.fault_at(("include", index, field), message))
        case = Case(group, point, *next(case.shapes(entry, index)))
    except PlanError as error:
        case = replace(case, problem=error)
    named = group.kernel.devices if entry.device is None else (entry.device,)
    for device in filter(group.serves, devices_named(named, group.gpu_count)):
        yield replace(case, device=device)


def compiled_apart(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Return the first case of each group that is compiled alike.

    A size, a launch and a number of threads do not change what is compiled, unless a factory is
    called with them.
    """
    first: dict[str, Case] = {}
    for case in cases:
        sizes = case.group.axes.size_names
        parameters = {name: value for name, value in case.values.items() if name not in sizes}
        try:
            constants = case.with_values()
        except PlanError:  # a formula without a value, of which the case itself will fail
            constants = {}
        compiled_as = repr((case.group.title, case.device, parameters, constants))
        first.setdefault(compiled_as, case)
    return tuple(first.values())
