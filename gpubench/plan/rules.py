"""Rules over cases: ``exclude`` leaves them out of the plan, ``skip`` says why they cannot run, and
a person keeps those that ``--where`` and ``-a`` name.

A rule applies to the cases that have every name it uses; to the others it says nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from gpubench.errors import PlanError, did_you_mean
from gpubench.names import Value, format_shape, format_value, parse_value
from gpubench.plan.case import Case
from gpubench.suite.expressions import Expression, ExpressionError

T = TypeVar("T")

SHOWN = 12
"""Most names or values that a message lists."""

_DERIVED: Mapping[str, Callable[[Case], Value | None]] = {  # beside a case's axes
    "suite": lambda case: case.suite.suite,
    "kernel": lambda case: case.kernel_name,
    "implementation": lambda case: case.implementation_name,
    "backend": lambda case: case.backend,
    "device": lambda case: case.device,
    "threads": lambda case: case.threads,
    "threads_per_block": lambda case: math.prod(case.block) if case.block else None,
    "blocks": lambda case: case.launch.blocks if not case.problem and case.launch else None,
}


def scope(case: Case, names: frozenset[str]) -> dict[str, Value]:
    """Values of a case under those of ``names`` that it has."""
    values = {}
    for name in names:
        if name in case.values:
            values[name] = case.values[name]
        elif name in _DERIVED and (value := _DERIVED[name](case)) is not None:
            values[name] = value
    return values


def is_excluded(case: Case, rules: Mapping[int, Expression], counted: set[int]) -> bool:
    """Return whether one of these ``exclude`` rules takes a case out, all of which apply to it; the
    index of the first that does is ``counted``. Raises ``PlanError`` where one has no value."""
    for index, rule in rules.items():
        if case.evaluate(rule, ("exclude", index, "when"), scope(case, rule.names)):
            counted.add(index)
            return True
    return False


def skip_reason(case: Case, device_scope: Mapping[str, Value]) -> str | None:
    """Reason of the first ``skip`` rule that holds for a case on a device, else ``None``.

    ``device_scope`` has the facts that are known about the device; a rule over a fact that is not
    known does not apply. Raises ``PlanError`` where a rule has no value.
    """
    for index, rule in enumerate(case.kernel.skip):
        if skips(case, index, device_scope):
            return rule.reason
    return None


def skips(case: Case, index: int, device_scope: Mapping[str, Value]) -> bool:
    """Return whether a ``skip`` rule applies to a case and holds for it."""
    rule = case.kernel.skip[index].when
    if not case.group.names(rule) <= case.group.rule_names | {"device"} | device_scope.keys():
        return False
    values = {**scope(case, rule.names), **device_scope}
    return bool(case.evaluate(rule, ("skip", index, "when"), values))


def selected(
    cases: Iterable[Case], where: str | None = None, axes: Sequence[str] = ()
) -> list[Case]:
    """Cases for which ``where`` holds and that have one of the values that ``axes`` keep.

    ``where`` is a formula over the names of a case: its axes, ``suite``, ``kernel``,
    ``implementation``, ``backend``, ``device``, ``threads``, ``threads_per_block`` and ``blocks``.
    A case that lacks one of its names is left out. Each of ``axes`` is ``NAME=VALUE,VALUE...``,
    values as an identity has them (``block`` and ``grid`` too); a case that lacks the name stays.

    Raises ``PlanError`` for a text that cannot be read, and for a name or value that no case has.
    """
    every = list(cases)
    names = frozenset(_DERIVED).union(*(case.values for case in every))

    def evaluate(case: Case, formula: Expression, values: Mapping[str, Value]) -> Value:
        return case.evaluate(formula, ("--where",), values)

    return select(every, names, where, axes, value_text, scope, evaluate)


def select(
    every: Sequence[T],
    names: frozenset[str],
    where: str | None,
    axes: Sequence[str],
    text_of: Callable[[T, str], str | None],
    values_of: Callable[[T, frozenset[str]], Mapping[str, Value]],
    evaluate: Callable[[T, Expression, Mapping[str, Value]], Value],
) -> list[T]:
    """Return the items that ``where`` and ``axes`` keep, as ``selected`` says, of cases or of rows
    of results.

    ``names`` are the names that any item has. ``text_of`` gives the text of one value,
    ``values_of`` the values of some names of an item, ``evaluate`` the value of a formula.
    """
    kept = list(every)
    for text in axes:
        name, _, listed = (part.strip() for part in text.partition("="))
        if not name or not listed:
            raise PlanError(
                f"-a {text!r}: write NAME=VALUE or NAME=VALUE,VALUE such as n=1024,4096"
            )
        asked = [as_in_identity(name, value.strip()) for value in listed.split(",")]
        there = dict.fromkeys(filter(None, (text_of(item, name) for item in every)))
        if not there:
            others = names.union(SHAPES)
            known = {each for each in others if any(text_of(item, each) for item in every)}
            raise PlanError(_unknown(name, known))
        for value in asked:
            if value not in there:
                raise PlanError(f"no case has {name}={value}; values are {_listed([*there])}")
        kept = [item for item in kept if text_of(item, name) in (*asked, None)]
    if where is None:
        return kept
    try:
        formula = Expression(where)
    except ExpressionError as error:
        raise PlanError(f"--where {where!r}: {error}") from error
    for name in sorted(formula.names - names):
        if any(text_of(item, other) == name for item in every for other in names):
            raise PlanError(f"--where {where!r}: write a text in quotes: '{name}'")
        raise PlanError(_unknown(name, names))
    scopes = ((item, values_of(item, formula.names)) for item in kept)
    concerned = [(item, values) for item, values in scopes if values.keys() == formula.names]
    if not concerned:
        raise PlanError(f"no case has all of {', '.join(sorted(formula.names))}")
    return [item for item, values in concerned if evaluate(item, formula, values)]


SHAPES = ("block", "grid")
"""Names of launches' shapes, which an identity has as ``16x16``."""

_SHAPE = re.compile(r"\d+(x\d+){0,2}")


def read_shape(text: str) -> tuple[int, ...] | None:
    """Read a shape as an identity has it, ``16x16``; ``None`` where the text is none."""
    return tuple(map(int, text.split("x"))) if _SHAPE.fullmatch(text) else None


def as_in_identity(name: str, text: str) -> str:
    """Return a value that a person wrote as an identity has it: 1000 for ``1_000``, 64 for the
    block ``64x1``."""
    if name in SHAPES:
        shape = read_shape(text)
        return text if shape is None else format_shape(shape)
    return format_value(parse_value(text)) if "_" in text else text


def value_text(case: Case, name: str) -> str | None:
    """Return the text of one value of a case as its identity has it; ``None`` where the case has
    none."""
    if name in SHAPES:
        shape = case.block if name == "block" else case.grid
        return shape if shape is None or isinstance(shape, str) else format_shape(shape)
    value = scope(case, frozenset([name])).get(name)
    return None if value is None else format_value(value)


def _unknown(name: str, names: Iterable[str]) -> str:
    hint = did_you_mean(name, names) or f"; names are {_listed(sorted(names))}"
    return f"no case has {name!r}{hint}"


def _listed(items: Sequence[str]) -> str:
    rest = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(items[:SHOWN]) + rest
