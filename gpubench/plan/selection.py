"""Cases that a person asks for: those for which a formula holds, those at given values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpubench.errors import PlanError, did_you_mean
from gpubench.names import format_shape, format_value
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
    formula = None if where is None else _formula(where)
    kept = [_kept_values(text) for text in axes]
    names = set(CASE_NAMES)
    seen: list[dict[str, None]] = [{} for _ in kept]  # values that the cases have on each axis
    formula_applied = False
    for case in cases:
        names.update(case.values)
        texts = [_text(case, name) for name, _ in kept]
        for values, text in zip(seen, texts, strict=True):
            if text is not None:
                values[text] = None
        if any(text not in (*values, None) for text, (_, values) in zip(texts, kept, strict=True)):
            continue
        if formula is not None:
            of_case = scope(case, formula.names)
            if len(of_case) < len(formula.names):
                continue
            formula_applied = True
            if not case.evaluate(formula, ("--where",), of_case):
                continue
        yield case
    for (name, asked), values in zip(kept, seen, strict=True):
        if not values:
            raise PlanError(_unknown(name, {*names, "block", "grid"}))
        for text in asked:
            if text not in values:
                listed = _listed(list(values))
                raise PlanError(f"no case has {name}={text}; values are {listed}")
    if formula is not None:
        for name in sorted(formula.names - names):
            raise PlanError(_unknown(name, names))
        if not formula_applied:
            raise PlanError(f"no case has all of {', '.join(sorted(formula.names))}")


def _formula(where: str) -> Expression:
    try:
        return Expression(where)
    except ExpressionError as error:
        raise PlanError(f"--where {where!r}: {error}") from error


def _kept_values(text: str) -> tuple[str, list[str]]:
    """Name of an axis, and texts of its values."""
    name, _, values = text.partition("=")
    if not name.strip() or not values.strip():
        raise PlanError(f"-a {text!r}: write NAME=VALUE or NAME=VALUE,VALUE such as n=1024,4096")
    return name.strip(), [value.strip() for value in values.split(",")]


def _text(case: Case, name: str) -> str | None:
    """Text of one value of a case as its identity has it; ``None`` where the case has none."""
    if name in ("block", "grid"):
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
