"""Find the formulas of a suite in its fields."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from gpubench.suite.expressions import Expression
from gpubench.suite.types import Model

_LEAVES = frozenset([str, int, float, bool])


def formulas(part: object) -> list[tuple[tuple[str | int, ...], Expression]]:
    """Return every formula anywhere in a part of a suite, with its path inside that part."""
    found: list[tuple[tuple[str | int, ...], Expression]] = []
    _collect_formulas(part, (), found)
    return found


def _collect_formulas(
    part: object,
    path: tuple[str | int, ...],
    found: list[tuple[tuple[str | int, ...], Expression]],
) -> None:
    steps: Iterable[tuple[str | int, object]] = ()
    if type(part) is Expression:
        found.append((path, part))
    elif type(part) is dict:
        steps = part.items()
    elif isinstance(part, list | tuple):
        steps = enumerate(part)
    elif isinstance(part, Model):  # last, since pydantic makes the question a slow one
        values = vars(part)
        steps = [(step, values[name]) for step, name in _steps(type(part))]
    for step, inner in steps:
        if inner and type(inner) not in _LEAVES:  # most of what there is
            _collect_formulas(inner, (*path, step), found)


@cache
def _steps(model: type[Model]) -> tuple[tuple[str, str], ...]:
    """Return the name of each field of a model in a suite, and that in Python."""
    return tuple((field.alias or name, name) for name, field in model.model_fields.items())
