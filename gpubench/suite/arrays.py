"""Axes, arrays, tables and scalars of the suite format: what a kernel is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from gpubench.names import Value, format_identity
from gpubench.suite.types import (
    FILL_FORMS,
    FORMULA,
    FUNCTION,
    LIKE,
    LIST,
    MAPPING,
    SINGLE,
    AxisName,
    AxisValue,
    ColumnName,
    Computed,
    Count,
    Distinct,
    Exponent,
    Extent,
    FillWord,
    Formula,
    Identifier,
    Model,
    Name,
    Reference,
    SizeValue,
    Whole,
    by_form,
    problem,
)

OLD_NAMES_FORM = by_form("a name, or a list of names")

OldNames = Annotated[
    Annotated[Name, SINGLE] | Annotated[tuple[Name, ...], Field(min_length=1), Distinct, LIST],
    OLD_NAMES_FORM,
]


OldAxisNames = Annotated[
    Annotated[AxisName, SINGLE]
    | Annotated[tuple[AxisName, ...], Field(min_length=1), Distinct, LIST],
    OLD_NAMES_FORM,
]


OldReferences = Annotated[
    Annotated[Reference, SINGLE]
    | Annotated[tuple[Reference, ...], Field(min_length=1), Distinct, LIST],
    OLD_NAMES_FORM,
]


def old_names(was: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the names that something had before, the newest first."""
    return (was,) if isinstance(was, str) else was or ()


def first_name(name: str, was: str | tuple[str, ...] | None) -> str:
    """Return the first name that something had: the one that is its own in hashes and seeds."""
    return (name, *old_names(was))[-1]


Intent = Literal["in", "out", "inout", "scratch"]


RANGE_FORMS = ("values", "pow2", "geometric", "linear")
"""The ways to write the values of an axis."""


MAX_DIMENSIONS = 64
"""Most dimensions of an array, NumPy's own bound (``NPY_MAXDIMS`` from NumPy 2 on)."""


MAX_AXIS_VALUES = 10_000
"""Most values of one axis: more than anybody measures, and made in no time."""


class Range(Model):
    """Values of one axis; exactly one of the first four is given."""

    values: Annotated[tuple[AxisValue, ...], Field(min_length=1)] | None = None
    """The values, one by one."""
    pow2: Annotated[tuple[Exponent, ...], Field(min_length=2, max_length=3)] | None = None
    """`[first, last, step]`: exponents of two, inclusive; step 1 if absent."""
    geometric: Annotated[tuple[Count, ...], Field(min_length=3, max_length=3)] | None = None
    """`[first, last, factor]`: each value the factor times the one before."""
    linear: Annotated[tuple[Whole, ...], Field(min_length=2, max_length=3)] | None = None
    """`[first, last, step]`: equal steps, inclusive; step 1 if absent."""
    default: AxisValue | None = None
    """The value that is left out of a case's name, so that history is kept."""
    was: OldAxisNames | None = None
    """The name that the axis had before, or a list of such, the newest first."""

    @model_validator(mode="before")
    @classmethod
    def _no_zip(cls, value: Any) -> Any:
        if isinstance(value, dict) and "zip" in value:
            raise problem("what moves together is written once: sizes: {NAME: {zip: {...}}}")
        return value

    @model_validator(mode="after")
    def _check(self) -> Range:
        given = [form for form in RANGE_FORMS if getattr(self, form) is not None]
        if len(given) != 1:
            forms, listed = ", ".join(RANGE_FORMS), " and ".join(given) or "none"
            raise problem(f"exactly one of {forms} is needed; found {listed}")
        if self.values is None:
            first, last, step = (*getattr(self, given[0]), 1)[:3]
            kind, least = ("factor", 2) if self.geometric else ("step", 1)
            if last < first:
                message = f"runs from {first} to {last}; the last is not below the first"
                raise problem(message, (given[0],))
            if step < least:
                raise problem(f"found the {kind} {step}; allowed: {least} or more", (given[0],))
        # `linear` is counted before it is made: it may have 2**128 values
        count = (last - first) // step + 1 if self.linear else len(self.expand())
        if count > MAX_AXIS_VALUES:
            message = f"found {count} values; allowed: at most {MAX_AXIS_VALUES}, by larger steps"
            raise problem(message, (given[0],))
        return self

    def expand(self) -> tuple[Value, ...]:
        """Return the values of the axis, in order; both ends where the steps reach them."""
        if self.values is not None:
            return self.values
        if self.geometric is not None:
            value, last, factor = self.geometric
            values = []
            while value <= last:
                values.append(value)
                value *= factor
            return tuple(values)
        first, last, *step = self.pow2 or self.linear or ()
        numbers = range(first, last + 1, *step)
        return tuple(2**exponent for exponent in numbers) if self.pow2 else tuple(numbers)


class SizeRange(Range):
    """Whole numbers of one size; exactly one of the first four is given."""

    values: Annotated[tuple[SizeValue, ...], Field(min_length=1)] | None = None
    """The values, one by one."""
    default: SizeValue | None = None
    """The value that is left out of a case's name, so that history is kept."""


# A value may be there twice: what has to differ are the values that belong together.
ZippedAxis = Annotated[
    Annotated[tuple[AxisValue, ...], Field(min_length=1), LIST] | Annotated[Range, MAPPING],
    by_form(f"a list of values, or a mapping with one of {', '.join(RANGE_FORMS)}"),
]


class Zip(Model):
    """Axes that move together."""

    zip: Annotated[dict[AxisName, ZippedAxis], Field(min_length=1)]
    """Axes by name, each with the same number of values. Whole numbers from 0 make it a size, other
    values a parameter. A value may come again, but not the same values together."""

    @model_validator(mode="after")
    def _check(self) -> Zip:
        counts = {name: len(axis_values(axis)) for name, axis in self.zip.items()}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{name} has {count}" for name, count in list(counts.items())[:10])
            raise problem(f"axes that move together need equally many values; {listed}")
        rows: dict[str, int] = {}
        for index, row in enumerate(zip(*map(axis_values, self.zip.values()), strict=True)):
            text = format_identity(dict(zip(self.zip, row, strict=True)))
            if (first := rows.setdefault(text, index)) != index:
                message = f"{text} is there twice, as values {first + 1} and {index + 1}"
                raise problem(f"{message}; remove one of them")
        return self


def axis_values(axis: Iterable[Value] | Range) -> tuple[Value, ...]:
    """Values of an axis as written, in order; a zip's inner axes are axes too."""
    return axis.expand() if isinstance(axis, Range) else tuple(axis)


def axis_default(axis: Iterable[Value] | Range) -> Value | None:
    """Return the value that is left out of a case's identity; ``None`` when every value is
    named."""
    return axis.default if isinstance(axis, Range) else None


class FunctionFill(Model):
    """Values from a function of one's own."""

    function: Reference
    """`module:name`, called with the case's values and a seeded Generator."""
    was: OldReferences | None = None
    """The `module:name` that the function had before, or a list of such, the newest first."""


class FormulaFill(Model):
    """Values by a formula over the indices of the array."""

    formula: Formula
    """Formula over indices, axes and `let`: `i * j % 7 / n`."""
    indices: tuple[AxisName, ...] = ()
    """Names of the indices, one for each dimension; absent: i, j, k, l."""


class LikeFill(Model):
    """The same values as another array."""

    like: Identifier
    """Name of the other array."""


Fill = Annotated[
    Annotated[FillWord, SINGLE]
    | Annotated[FormulaFill, FORMULA]
    | Annotated[LikeFill, LIKE]
    | Annotated[FunctionFill, FUNCTION],
    by_form(FILL_FORMS, FORMULA, LIKE, FUNCTION),
]


class Array(Model):
    """One array that a kernel works on."""

    shape: Annotated[tuple[Extent, ...], Field(max_length=MAX_DIMENSIONS)]
    """Extents, first dimension first: numbers, or formulas over the axes."""
    dtype: str
    """NumPy's name of a type, or the name of a parameter."""
    fill: Fill | None = Field(
        default=None,
        description=f"First contents: {FILL_FORMS}."
        " Absent: normal; uniform for integers and booleans.",
    )
    intent: Intent = "in"
    """`in` is read, `out` written, `inout` both; what is written is checked. `scratch` is room to
    work in: of no meaning before or after."""
    order: str | None = None
    """`C` or `F`, how elements lie in memory, or the name of a parameter. Absent: C, or what a
    function gives."""


class Column(Model):
    """One column of a frame."""

    dtype: str
    """NumPy's name of a real type, `text`, `category` (text of few distinct values), or the name of
    a parameter."""
    fill: Fill | None = None
    """First contents, as of an array with one dimension. Text needs a function, which returns the
    words, or two arrays: for each row the index of its word, and the words."""
    nulls: Computed = 0
    """Share of rows without a value, from 0 to 1, or a formula over the axes; which rows is
    drawn."""


class DeclaredTable(Model):
    """One frame: columns of equal length that a kernel reads or returns."""

    rows: Extent | None = None
    """Number of rows; not of one that is returned."""
    columns: dict[ColumnName, Column] = Field({})
    """Its columns, by name; not of one that is returned."""
    intent: Literal["in", "out"] = "in"
    """`in` is read; `out` is returned, and named in the kernel's `returns`."""
    key: Annotated[tuple[ColumnName, ...], Distinct] = ()
    """Columns that tell the rows of a returned frame apart, which may then come in any order;
    absent: their order is compared too."""


class Init(Model):
    """A function that makes several arrays at once (ragged or dependent data)."""

    function: Reference
    """`module:name`, called with the case's values and a seeded Generator."""
    returns: Annotated[tuple[Identifier, ...], Field(min_length=1)]
    """Names of the arrays that it returns, in order."""
    inout: Annotated[tuple[Identifier, ...], Distinct] = ()
    """Which of these a run changes in place, of any dtype; what it leaves is checked. One that
    `arrays` declares has its `intent` there."""
    was: OldReferences | None = None
    """The `module:name` that the function had before, or a list of such, the newest first."""


class Scalar(Model):
    """A named value handed to the call."""

    value: Computed
    """A number, a boolean, or a formula over the axes."""
    dtype: str | None = None
    """NumPy's name of a type, or of a parameter; absent: a Python number."""
