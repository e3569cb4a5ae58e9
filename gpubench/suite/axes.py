"""Axes: what varies from case to case, as a person writes it and as the values it stands for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field, model_validator

from gpubench.names import Value
from gpubench.suite import ranges
from gpubench.suite.types import (
    LIST,
    MAPPING,
    ZIP,
    AxisName,
    AxisValue,
    Count,
    Distinct,
    Exponent,
    Model,
    SizeValue,
    Whole,
    by_form,
    by_size_form,
    problem,
)


class Range(Model):
    """Values of one axis; exactly one of the first four is given."""

    values: Annotated[tuple[AxisValue, ...], Field(min_length=1)] | None = Field(
        default=None, description="The values, one by one."
    )
    pow2: Annotated[tuple[Exponent, ...], Field(min_length=2, max_length=3)] | None = Field(
        default=None,
        description="`[first, last, step]`: exponents of two, inclusive; step 1 if absent.",
    )
    geometric: Annotated[tuple[Count, ...], Field(min_length=3, max_length=3)] | None = Field(
        default=None,
        description="`[first, last, factor]`: each value the factor times the one before.",
    )
    linear: Annotated[tuple[Whole, ...], Field(min_length=2, max_length=3)] | None = Field(
        default=None, description="`[first, last, step]`: equal steps, inclusive; step 1 if absent."
    )
    default: AxisValue | None = Field(
        default=None,
        description="The value that is left out of a case's name, so that history is kept.",
    )

    @model_validator(mode="after")
    def _check(self) -> Range:
        given = [form for form in ranges.FORMS if getattr(self, form) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise problem(f"exactly one of {', '.join(ranges.FORMS)} is needed; found {found}")
        if fault := ranges.fault(given[0], getattr(self, given[0])):
            raise problem(fault, (given[0],))
        return self

    def _form(self) -> str:
        return next(form for form in ranges.FORMS if getattr(self, form) is not None)

    def count(self) -> int:
        """Number of values."""
        form = self._form()
        return ranges.count(form, getattr(self, form))

    def expand(self) -> tuple[Value, ...]:
        """The values of the axis, in order."""
        form = self._form()
        return ranges.expand(form, getattr(self, form))


class SizeRange(Range):
    """Whole numbers of one size; exactly one of the first four is given."""

    values: Annotated[tuple[SizeValue, ...], Field(min_length=1)] | None = Field(
        default=None, description="The values, one by one."
    )
    default: SizeValue | None = Field(
        default=None,
        description="The value that is left out of a case's name, so that history is kept.",
    )


Values = Annotated[tuple[AxisValue, ...], Field(min_length=1), Distinct, LIST]
SizeValues = Annotated[tuple[SizeValue, ...], Field(min_length=1), Distinct, LIST]
Axis = Annotated[
    Values | Annotated[Range, MAPPING],
    by_form(f"a list of values, or a mapping with one of {', '.join(ranges.FORMS)}"),
]
"""An axis as written: a list, or a mapping."""
SizeAxis = Annotated[
    SizeValues | Annotated[SizeRange, MAPPING],
    by_form(f"a list of whole numbers, or a mapping with one of {', '.join(ranges.FORMS)}"),
]


class Zip(Model):
    """Sizes that move together."""

    zip: Annotated[dict[AxisName, SizeAxis], Field(min_length=1)] = Field(
        description="Sizes by name, each with the same number of values."
    )

    @model_validator(mode="after")
    def _check(self) -> Zip:
        counts = {
            name: axis.count() if isinstance(axis, Range) else len(axis)
            for name, axis in self.zip.items()
        }
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{name} has {count}" for name, count in list(counts.items())[:10])
            raise problem(f"sizes that move together need equally many values; {found}")
        return self


Size = Annotated[
    SizeValues | Annotated[SizeRange, MAPPING] | Annotated[Zip, ZIP],
    by_size_form,
]


def axis_values(axis: Iterable[Value] | Range) -> tuple[Value, ...]:
    """Values of an axis as written, in order; a zip's inner axes are axes too."""
    return axis.expand() if isinstance(axis, Range) else tuple(axis)


def axis_default(axis: Iterable[Value] | Range) -> Value | None:
    """The value that is left out of a case's identity; ``None`` when every value is named."""
    return axis.default if isinstance(axis, Range) else None
