"""A subject at one point of its axes: where formulas of the suite become numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gpubench.errors import PlanError
from gpubench.names import Value, format_identity
from gpubench.plan.subject import Subject
from gpubench.suite.expressions import Expression, ExpressionError

if TYPE_CHECKING:
    from gpubench.suite.model import Extent, Fill, Intent

Path = tuple[str | int, ...]
"""Where a field stands inside its kernel: ``("arrays", "A", "shape", 0)``."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """One array of the kernel, as large as it is at this point."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    intent: Intent
    fill: Fill | None
    """As the suite says; ``None`` where it leaves the choice to the dtype."""

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


@dataclass(frozen=True)
class Point:
    """A subject with a value for each of its axes."""

    subject: Subject
    values: dict[str, Value]

    @cached_property
    def identity(self) -> str:
        """The part of an identity that tells the axes; names at their default are left out."""
        values, defaults = self.values, self.subject.defaults
        parts = {
            name: values[name]
            for name in self.subject.identity_order
            if name not in defaults or not _same(values[name], defaults[name])
        }
        return format_identity(parts)

    @cached_property
    def arrays(self) -> dict[str, ArraySpec]:
        """Declared arrays; what only ``init`` returns has no shape before it is made."""
        specs: dict[str, ArraySpec] = {}
        for name, array in self.subject.kernel.arrays.items():
            shape = self.shape(array.shape, ("arrays", name, "shape"))
            dtype = self.dtype(array.dtype, ("arrays", name, "dtype"))
            specs[name] = ArraySpec(shape, dtype, array.intent, array.fill)
        return specs

    def evaluate(
        self, term: Value | Expression, path: Path, scope: Mapping[str, Value] | None = None
    ) -> Value:
        """Value of a formula, or the number or word that stands in its place.

        Names are those of ``scope``, by default the point's values. Raises ``PlanError`` naming
        the implementation, the point, the field and the formula.
        """
        if not isinstance(term, Expression):
            return term
        try:
            return term.evaluate(
                self.values if scope is None else scope, self.arrays if term.arrays else None
            )
        except ExpressionError as error:
            raise self.error(path, term, error.problem) from error

    def whole(self, term: Extent, path: Path, least: int = 0) -> int:
        """Whole number that is at least ``least``; raises ``PlanError`` for anything else."""
        return self._whole(term, self.evaluate(term, path), path, least)

    def shape(self, extents: Sequence[Extent], path: Path, least: int = 0) -> tuple[int, ...]:
        """Whole numbers for a shape, each at least ``least``."""
        return tuple(
            extent if type(extent) is int and extent >= least else self.whole(extent, path, least)
            for extent in extents
        )

    def dtype(self, name: str, path: Path) -> np.dtype[np.generic]:
        """A dtype by its name, or by the parameter that holds the name."""
        value = self.values.get(name, name)
        try:
            return np.dtype(str(value))
        except TypeError as error:
            raise self.error(path, name, f"{value!r} is no dtype of NumPy") from error

    def error(self, path: Path, term: object, problem: str) -> PlanError:
        """What is wrong with a field at this point, with its place in the file."""
        field = ".".join(map(str, path))
        at = format_identity(self.values)
        where = f"{self.subject.title} at {at}" if at else self.subject.title
        return PlanError(self.subject.fault_at(path, f"{where}: {field} `{term}`: {problem}"))

    def _whole(self, term: Extent, value: Value, path: Path, least: int) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.error(
                path,
                term,
                f"is {value!r}; a whole number of at least {least} is needed: change the formula, "
                "or `exclude` such cases",
            )
        return value


def _same(value: Value, default: Value) -> bool:
    """Equal as YAML has them: ``1``, ``1.0`` and ``true`` are three values."""
    return type(value) is type(default) and value == default
