"""Cases that a person asks for: those for which a formula holds, those at given values."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gpubench.errors import PlanError
from gpubench.names import Value, format_shape, format_value
from gpubench.plan.case import Case
from gpubench.plan.rules import CASE_NAMES, scope
from gpubench.suite.expressions import Expression, ExpressionError

SHOWN = 12
"""Most names or values that a message lists."""


def selected(
    cases: Iterable[Case], where: str | None = None, axes: Sequence[str] = ()
) -> Iterator[Case]:
    """Cases for which ``where`` holds and that have one of the values that ``axes`` keep.

    ``where`` is a formula over the names of a case: its axes, ``suite``, ``kernel``,
    ``implementation``, ``backend``, ``device``, ``threads``, ``threads_per_block`` and ``blocks``.
    A case that lacks one of its names is left out. Each of ``axes`` is ``NAME=VALUE,VALUE...``,
    values as an identity has them (``block`` and ``grid`` too); a case that lacks the name stays.

    Raises ``PlanError`` for a text that cannot be read and, once all cases have gone by, for a name
    or value that none of them had.
    """
    rule = None if where is None else _Rule(_parsed(where))
    filters = [_filter(text) for text in axes]
    for case in cases:
        kept = [one.keeps(case) for one in filters]
        if all(kept) and (rule is None or rule.holds(case)):
            yield case
    for one in filters:
        one.require_met()
    if rule is not None:
        rule.require_met()


@dataclass
class _Filter:
    """Values to keep of one axis, and what the cases had."""

    name: str
    texts: tuple[str, ...]
    seen: dict[str, None] = field(default_factory=dict)
    names: set[str] = field(default_factory=lambda: {"block", "grid", *CASE_NAMES})

    def keeps(self, case: Case) -> bool:
        self.names.update(case.values)
        text = _text(case, self.name)
        if text is None:
            return True
        self.seen[text] = None
        return text in self.texts

    def require_met(self) -> None:
        if not self.seen:
            raise PlanError(_unknown(self.name, self.names))
        missing = [text for text in self.texts if text not in self.seen]
        if missing:
            raise PlanError(
                f"no case has {self.name}={missing[0]}; values are {_listed(list(self.seen))}"
            )


@dataclass
class _Rule:
    """A formula over cases, and which names the cases had."""

    formula: Expression
    names: set[str] = field(default_factory=lambda: set(CASE_NAMES))
    met: bool = False

    def holds(self, case: Case) -> bool:
        self.names.update(case.values)
        values = scope(case, self.formula.names)
        if len(values) < len(self.formula.names):
            return False
        self.met = True
        return bool(case.point.evaluate(self.formula, ("--where",), values))

    def require_met(self) -> None:
        unknown = sorted(self.formula.names - self.names)
        if unknown:
            raise PlanError(_unknown(unknown[0], self.names))
        if not self.met:
            raise PlanError(f"no case has all of {', '.join(sorted(self.formula.names))}")


def _parsed(where: str) -> Expression:
    try:
        return Expression(where)
    except ExpressionError as error:
        raise PlanError(f"--where {where!r}: {error}") from error


def _filter(text: str) -> _Filter:
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        raise PlanError(f"-a {text!r}: write NAME=VALUE or NAME=VALUE,VALUE such as n=1024,4096")
    return _Filter(name.strip(), tuple(value.strip() for value in values.split(",")))


def _text(case: Case, name: str) -> str | None:
    """Text of one value of a case as its identity has it; ``None`` where the case has none."""
    if name == "block":
        return None if case.block is None else format_shape(case.block)
    if name == "grid":
        grid = case.grid
        return grid if grid is None or isinstance(grid, str) else format_shape(grid)
    value: Value | None = scope(case, frozenset([name])).get(name)
    return None if value is None else format_value(value)


def _unknown(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"names are {_listed(names)}"
    return f"no case has {name!r}; {hint}"


def _listed(items: Sequence[str]) -> str:
    rest = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(items[:SHOWN]) + rest
