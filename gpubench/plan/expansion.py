"""A subject becomes its cases, one at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from gpubench.errors import PlanError
from gpubench.names import Value
from gpubench.plan import launches
from gpubench.plan.axis import points
from gpubench.plan.case import Case
from gpubench.plan.point import Point
from gpubench.plan.rules import excluded_cases, excluded_points
from gpubench.plan.subject import Subject

if TYPE_CHECKING:
    from gpubench.suite.model import Include


UNKNOWN = "?"
"""In an identity, the value of an axis that an ``include`` does not give."""


@dataclass
class Tally:
    """What an expansion left out, for the warnings of a plan."""

    excluded: set[int] = field(default_factory=set)
    """Indexes of the ``exclude`` rules that took something out."""
    included: set[int] = field(default_factory=set)
    """Indexes of the ``include`` entries that added something."""
    repeated: list[str] = field(default_factory=list)
    """Identities that the product gave again and that were dropped."""


def expand(subject: Subject, tally: Tally | None = None) -> Iterator[Case]:
    """Cases of a subject in a stable order: the product of what it uses, then what is included.

    The order follows the names of axes and, on each axis, the order of the file. Of two cases with
    the same identity the first is kept. Where a formula has no value, the case says so itself
    (``Case.problem``), and the others are as they would be.
    """
    tally = tally if tally is not None else Tally()
    seen: set[str] = set()
    for case in _product(subject, tally):
        if case.identity in seen:
            tally.repeated.append(case.identity)
        else:
            seen.add(case.identity)
            yield case
    for index, entry in enumerate(subject.kernel.include):
        for case in _included(subject, index, entry):
            if case.identity not in seen:
                seen.add(case.identity)
                tally.included.add(index)
                yield case


def _product(subject: Subject, tally: Tally) -> Iterator[Case]:
    devices = subject.served_devices
    excluded_point, excluded_case = excluded_points(subject), excluded_cases(subject)
    for values in points(subject.axes) if devices else ():
        point = Point(subject, values)
        try:
            rule = excluded_point(point)
            shapes = () if rule is not None else tuple(launches.shapes(point))
        except PlanError as problem:
            yield from (Case(point, launches.UNKNOWN, device, problem) for device in devices)
            continue
        if rule is not None:
            tally.excluded.add(rule)
        made = itertools.starmap(partial(Case, point), itertools.product(shapes, devices))
        yield from _kept(made, excluded_case, tally)


def _kept(
    cases: Iterable[Case], excluded: Callable[[Case], int | None], tally: Tally
) -> Iterator[Case]:
    for case in cases:
        try:
            rule = excluded(case)
        except PlanError as problem:
            yield replace(case, problem=problem)
            continue
        if rule is None:
            yield case
        else:
            tally.excluded.add(rule)


def _included(subject: Subject, index: int, entry: Include) -> Iterator[Case]:
    """Cases of one ``include``: without a ``device``, one on every device that is served."""
    if entry.implementation != subject.implementation_name:
        return
    point, shape, problem = _included_point(subject, index, entry)
    named = (entry.device,) if entry.device is not None else subject.kernel.devices
    for device in filter(subject.serves, subject.machine.devices(named)):
        yield Case(point, shape, device, problem)


def _included_point(
    subject: Subject, index: int, entry: Include
) -> tuple[Point, launches.Shape, PlanError | None]:
    """Where it stands and how it launches, as far as these can be told."""
    point = Point(subject, {**dict.fromkeys(subject.identity_order, UNKNOWN), **entry.values})
    try:
        point = Point(subject, _included_values(subject, index, entry))
        return point, launches.included(point, index, entry), None
    except PlanError as problem:
        return point, launches.UNKNOWN, problem


def _included_values(subject: Subject, index: int, entry: Include) -> dict[str, Value]:
    """A value for each axis; one that is not given is taken at its default."""
    values = {**subject.defaults, **entry.values}
    missing = [name for name in subject.identity_order if name not in values]
    if missing:
        message = (
            f"this entry gives no value for {', '.join(missing)}; the axes of "
            f"{subject.implementation_name!r} are {', '.join(subject.identity_order)}"
        )
        raise PlanError(subject.fault_at(("include", index), message))
    return {name: values[name] for name in subject.identity_order}
