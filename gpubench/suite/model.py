"""The suite format as a model: what a person may write, and what every field means.

The loader validates against these classes; the JSON Schema for editors and the reference page in
``docs/`` are generated from them. A field's docstring is its documentation there. Of a
thing that is a class elsewhere too, what a file says is a ``DeclaredLaunch``, ``DeclaredTable`` ...
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, model_validator

from gpubench.names import Time, Value, format_identity
from gpubench.suite.expressions import Expression
from gpubench.suite.types import (
    FILL_FORMS,
    FORMULA,
    FUNCTION,
    LIKE,
    LIST,
    MAPPING,
    ORDERS,
    SINGLE,
    ZIP,
    AbsoluteTolerance,
    AtLeast,
    AtMost,
    AxisName,
    AxisValue,
    ColumnName,
    Computed,
    Count,
    DeviceName,
    Distinct,
    Dtype,
    Exponent,
    Extent,
    FillWord,
    Formula,
    GridExtent,
    Identifier,
    LaunchExtent,
    Model,
    Name,
    OldTarget,
    PresetName,
    Reference,
    RelativeTolerance,
    RepeatSeconds,
    SampleSeconds,
    SizeValue,
    Timeout,
    Version,
    WarmupSeconds,
    Whole,
    Words,
    by_form,
    is_name_of_code,
    problem,
)

_OLD_NAMES = by_form("a name, or a list of names")
OldNames = Annotated[
    Annotated[Name, SINGLE] | Annotated[tuple[Name, ...], Field(min_length=1), Distinct, LIST],
    _OLD_NAMES,
]
OldAxisNames = Annotated[
    Annotated[AxisName, SINGLE]
    | Annotated[tuple[AxisName, ...], Field(min_length=1), Distinct, LIST],
    _OLD_NAMES,
]
OldTargets = Annotated[
    Annotated[OldTarget, SINGLE]
    | Annotated[tuple[OldTarget, ...], Field(min_length=1), Distinct, LIST],
    _OLD_NAMES,
]
OldReferences = Annotated[
    Annotated[Reference, SINGLE]
    | Annotated[tuple[Reference, ...], Field(min_length=1), Distinct, LIST],
    _OLD_NAMES,
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


AxisValues = Annotated[tuple[AxisValue, ...], Field(min_length=1), Distinct, LIST]
SizeValues = Annotated[tuple[SizeValue, ...], Field(min_length=1), Distinct, LIST]
DeclaredAxis = Annotated[
    AxisValues | Annotated[Range, MAPPING],
    by_form(f"a list of values, or a mapping with one of {', '.join(RANGE_FORMS)}"),
]
"""An axis as written: a list, or a mapping."""
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


Size = Annotated[
    SizeValues | Annotated[SizeRange, MAPPING] | Annotated[Zip, ZIP],
    by_form("a list of whole numbers, a range, or zip", ZIP),
]


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
    was: OldReferences | None = None
    """The `module:name` that the function had before, or a list of such, the newest first."""


class Scalar(Model):
    """A named value handed to the call."""

    value: Computed
    """A number, a boolean, or a formula over the axes."""
    dtype: str | None = None
    """NumPy's name of a type, or of a parameter; absent: a Python number."""


LaunchShape = Annotated[
    Annotated[LaunchExtent, SINGLE]
    | Annotated[tuple[LaunchExtent, ...], Field(min_length=1, max_length=3), LIST],
    by_form("a whole number from 1, a formula, or a list of one to three of them"),
]
"""A grid or block: one extent, or up to three (x first)."""

GridShape = Annotated[
    Annotated[GridExtent, SINGLE]
    | Annotated[tuple[LaunchExtent, ...], Field(min_length=1, max_length=3), LIST],
    by_form("cover, a whole number from 1, a formula, or a list of one to three of them"),
]

DeclaredGrid = Annotated[
    Annotated[GridExtent, SINGLE] | Annotated[tuple[GridShape, ...], Field(min_length=1), LIST],
    by_form("cover, a whole number from 1, a formula, or a list of shapes"),
]


class DeclaredLaunch(Model):
    """Shape of a launch on a device with blocks of threads."""

    block: tuple[LaunchShape, ...] = ()
    """Block shapes to measure, each a number, a formula, or up to three of them."""
    grid: DeclaredGrid = "cover"
    """Grid shapes to measure. `cover`: enough blocks to give every element of `over` a thread. A
    flat list with a formula in it is one shape; of numbers, several."""
    over: Annotated[tuple[Extent, ...], Field(min_length=1, max_length=3)] | None = None
    """What `cover` covers, x first; absent: the first `out` or `inout` array, its last dimension on
    x."""
    shared_bytes: Extent = 0
    """Bytes of dynamic shared memory for each block."""
    cooperative: StrictBool = False
    """Whether blocks wait for one another."""

    @model_validator(mode="after")
    def _check(self) -> DeclaredLaunch:
        if any(grid != "cover" and len(grid) > 3 for grid in self.grids()):
            raise problem(
                "a flat list with formulas is one grid of up to three extents;"
                " put each shape into a list of its own",
                ("grid",),
            )
        return self

    def blocks(self) -> tuple[tuple[int | Expression, ...], ...]:
        """Return every block shape as a tuple of one to three extents, x first."""
        return tuple(extents(block) for block in self.block)

    def grids(self) -> tuple[Literal["cover"] | tuple[int | Expression, ...], ...]:
        """Return every grid shape: ``cover``, or a tuple of one to three extents, x first."""
        items = self.grid if isinstance(self.grid, tuple) else (self.grid,)
        has_formula = any(isinstance(item, Expression) for item in items)
        if has_formula and not any(item == "cover" or isinstance(item, tuple) for item in items):
            return (items,)  # type: ignore[return-value]  # the line above narrows it
        return tuple("cover" if item == "cover" else extents(item) for item in items)


def extents(shape: Any) -> tuple[int | Expression, ...]:
    """Return a shape as written: one extent alone is a shape of one dimension."""
    return shape if isinstance(shape, tuple) else (shape,)


class Implementation(Model):
    """One way to do a kernel's work; exactly one of function, factory, launcher, source and
    parts."""

    function: Reference | None = None
    """`module:name` of what is called."""
    factory: Reference | None = None
    """`module:name` of what is called with the values of `with`; returns it."""
    with_: dict[Identifier, Computed] = Field({}, alias="with")
    """Values for the factory, or constants of the source; text is a formula."""
    launcher: Reference | None = None
    """`module:name`, called with the launch and the arguments; queues several launches."""
    source: Words | None = None
    """Path of a program in the backend's language, relative to the suite."""
    entry: Words | None = None
    """What is called inside `source`."""
    parts: Annotated[tuple[Name, ...], Field(min_length=1), Distinct] | None = None
    """Other implementations that do the work at once, each a portion of it: on every GPU of the
    kernel's devices, or on the last of the other devices that it runs on."""
    split: AxisName | None = None
    """With `parts`: the size along which arrays are cut."""
    backend: Name | None = None
    """Name of the backend; absent: the implementation's name where that is a backend's, else the
    suite's `backend`."""
    launch: DeclaredLaunch | None = None
    """Blocks and grids to measure."""
    threads: Annotated[tuple[LaunchExtent, ...], Field(min_length=1)] = ()
    """Numbers of CPU threads to measure; absent: as the machine is set."""
    returns: Annotated[tuple[Identifier, ...], Distinct] = ()
    """Arrays that it returns, in order, where the others write them: for systems whose arrays
    cannot be written. An `out` array of these is then no argument of the call."""
    cast: Literal["float16", "float32", "float64"] | None = None
    """Precision in which it is given what the others get: arrays of floating-point and complex
    numbers, and scalars that declare such a dtype. Its results are compared by value."""
    options: dict[Identifier, Computed] = Field({})
    """Settings of the backend, such as `chunks` of Dask, by name; text is a formula over axes."""
    requires: tuple[Words, ...] = ()
    """Distributions that it needs."""
    title: Words | None = None
    """Name for people."""
    was: OldTargets | None = None
    """What it was called before: its name, the `module:name` of its function, or the path of its
    source; or a list of such, the newest first."""

    def old_names(self) -> tuple[str, ...]:
        """Return the names that it had before, the newest first."""
        return tuple(name for name in old_names(self.was) if not is_name_of_code(name))

    def first_target(self, target: str) -> str:
        """Return the first function or source that it had."""
        targets = filter(is_name_of_code, old_names(self.was))
        return (target, *targets)[-1]


class Work(Model):
    """What one run does, for GB/s, FLOP/s and the roofline."""

    bytes: Extent | None = None
    """Bytes moved from and to memory."""
    flops: Extent | None = None
    """Floating-point operations."""


Tolerances = Annotated[
    Annotated[AbsoluteTolerance, SINGLE] | Annotated[dict[Dtype, AbsoluteTolerance], MAPPING],
    by_form("a number from 0, or one for each dtype"),
]


RelativeTolerances = Annotated[
    Annotated[RelativeTolerance, SINGLE] | Annotated[dict[Dtype, RelativeTolerance], MAPPING],
    by_form("a number from 0 to 1, or one for each dtype"),
]


class OutputCheck(Model):
    """How one output is compared, where that is not as the others are."""

    rtol: RelativeTolerances | None = None
    """Relative tolerance; absent: that of `check`."""
    atol: Tolerances | None = None
    """Absolute tolerance; absent: that of `check`."""
    norm: Literal["max", "l2"] | None = None
    """`max` or `l2`; absent: that of `check`."""
    dtype: Literal["same", "any"] | None = None
    """`same` or `any`; absent: that of `check`."""
    compare: StrictBool = True
    """`false`: it is written and not compared."""
    reason: Words | None = None
    """Why it is not compared, for people; only with `compare: false`, which needs it."""

    @model_validator(mode="after")
    def _check(self) -> OutputCheck:
        if self.compare and self.reason is not None:
            raise problem("a reason goes with compare: false; remove one or add the other")
        if not self.compare and self.reason is None:
            raise problem("compare: false needs a reason: why may this output be anything?")
        fields = ("rtol", "atol", "norm", "dtype")
        given = [field for field in fields if getattr(self, field) is not None]
        if not self.compare and given:
            raise problem(f"compare: false takes no {given[0]}; remove one of them", (given[0],))
        return self


class Check(Model):
    """How an implementation's outputs are compared with the baseline's, or how good they have to
    be."""

    rtol: RelativeTolerances | None = None
    """Relative tolerance, one number or one for each dtype; absent: 1e-2 for float16, 1e-5 for
    float32, 1e-12 for float64."""
    atol: Tolerances | None = None
    """Absolute tolerance, one number or one for each dtype; absent: `rtol` times the root mean
    square of the baseline's output, with `norm: l2` 0."""
    norm: Literal["max", "l2"] = "max"
    """`max` compares element by element, `l2` the norm of the difference."""
    dtype: Literal["same", "any"] = "same"
    """`any`: outputs may be of another precision than the baseline's; by default, tolerances are
    those of the coarser of the two."""
    function: Reference | None = None
    """`module:name` of a checker of one's own, called with outputs and expected."""
    score: Reference | None = None
    """`module:name` of what says in one number above 0 how good outputs are, called with outputs
    and inputs; in place of a comparison."""
    at_most: AtMost | None = None
    """With `score`, where lower is better: how many times the baseline's score is allowed."""
    at_least: AtLeast | None = None
    """With `score`, where higher is better: how many times the baseline's score is needed."""
    outputs: dict[Identifier, OutputCheck] = Field(default={})
    """What is different for single outputs, by the name of an array or of what is returned."""

    @model_validator(mode="after")
    def _check(self) -> Check:
        limits = [name for name in ("at_most", "at_least") if getattr(self, name) is not None]
        if self.score is None:
            if limits:
                raise problem("it goes with score: module:name", (limits[0],))
            return self
        if len(limits) != 1:
            raise problem(
                "a score has exactly one of at_most (lower is better) and at_least (higher is"
                f" better); found {' and '.join(limits) or 'none'}"
            )
        for name in ("rtol", "atol", "norm", "function"):
            if name in self.model_fields_set and getattr(self, name) is not None:
                raise problem("a score takes its place; remove one of them", (name,))
        for name, output in self.outputs.items():
            if output.compare:
                message = "a score looks at all outputs together; allowed here: compare: false"
                raise problem(message, ("outputs", name))
        return self

    def of(self, name: str) -> Check:
        """Return how the output of this name is compared: its own tolerances before those of
        all."""
        # A column's name is its table's and its own: answer.v1.
        output = self.outputs.get(name) or self.outputs.get(name.partition(".")[0])
        if output is None:
            return self
        own = output.model_dump(include={"rtol", "atol", "norm", "dtype"}, exclude_none=True)
        return self.model_copy(update=own)

    def uncompared(self) -> dict[str, str]:
        """Return the outputs that are written and not compared: the reason, by name."""
        outputs = self.outputs.items()
        return {name: output.reason or "" for name, output in outputs if not output.compare}


Repeat = Annotated[
    Annotated[Count, SINGLE] | Annotated[tuple[Count, Count, RepeatSeconds], LIST],
    by_form("a whole number from 1, or [least, most, seconds]"),
]


class Sampling(Model):
    """How often is measured, in asv's words; what is absent is asv's default."""

    rounds: Count | None = None
    """Separate processes for the samples."""
    repeat: Repeat | None = None
    """Samples in a round, or `[least, most, seconds]`."""
    number: Count | None = None
    """Calls in a sample; absent: calibrated."""
    sample_time: SampleSeconds | None = None
    """Seconds that one sample should take."""
    warmup_time: WarmupSeconds | None = None
    """Seconds before the first sample."""
    timeout: Timeout | None = None
    """Seconds after which a case is given up."""
    paired: StrictBool | None = None
    """Whether the speedup comes from samples taken in turn with the baseline's; absent: on the CPU,
    where that takes little."""
    memory: StrictBool | None = None
    """Whether runs that are not timed tell the most memory that one holds."""

    @model_validator(mode="after")
    def _check(self) -> Sampling:
        if isinstance(self.repeat, tuple) and self.repeat[0] > self.repeat[1]:
            least, most, _ = self.repeat
            message = f"at least {least} and at most {most} samples; [least, most, seconds]"
            raise problem(f"{message} has the smaller number first", ("repeat",))
        return self


class Exclude(Model):
    """Cases that make no sense anywhere: they are not in the plan."""

    when: Formula
    """Formula over what the file declares."""


class Skip(Model):
    """Cases that this machine cannot run: they stay in the plan with their reason."""

    when: Formula
    """Formula that may also use facts of the device."""
    reason: Words
    """Why, for people."""


class Include(Model):
    """A whole extra case."""

    implementation: Name
    """Name of the implementation."""
    values: dict[AxisName, AxisValue]
    """Value of every axis that it uses."""
    block: LaunchShape | None = None
    """Block shape; absent: the first declared."""
    grid: GridShape | None = None
    """Grid shape; absent: the first declared."""
    threads: Count | None = None
    """Number of CPU threads."""
    device: DeviceName | None = None
    """Device; absent: all that it runs on."""


class Kernel(Model):
    """One operation with several implementations of it."""

    title: Words | None = None
    """Name for people."""
    description: Words | None = None
    """What it does and teaches."""
    sizes: dict[AxisName, Size] = Field({})
    """Whole numbers by name: axes that become the extents of arrays."""
    parameters: dict[AxisName, DeclaredAxis] = Field({})
    """Any other axis: dtypes, tile widths, options."""
    let: dict[AxisName, Computed] = Field({})
    """Constants and intermediate values by name: a number, a boolean, or a formula over axes and
    other names of `let`. Every formula and the call may use them; no case is named by them."""
    arrays: dict[Identifier, Array] = Field({})
    """What the kernel works on, by name."""
    tables: dict[Identifier, DeclaredTable] = Field({})
    """Frames that the kernel reads or returns, by name."""
    init: Init | None = None
    """A function that makes several arrays at once."""
    scalars: dict[Identifier, Scalar] = Field({})
    """Named values handed to the call."""
    call: tuple[Identifier, ...] = ()
    """Names of arrays, frames, scalars and axes in the order of the arguments."""
    returns: tuple[Identifier, ...] = ()
    """Names for what a function returns, frames among it; checked like `out` arrays."""
    implementations: Annotated[dict[Name, Implementation], Field(min_length=1)]
    """The implementations, by name."""
    devices: Annotated[tuple[DeviceName, ...], Field(min_length=1), Distinct] = ("cpu",)
    """`cpu`, `cuda:0`, `cuda:*` (all of this machine); an implementation runs on those that its
    backend serves."""
    baseline: Name = "numpy"
    """The implementation that speedup is measured against."""
    work: Work = Work.model_construct()  # as below: no validator is made of a part
    """Bytes and operations of one run."""
    memory_limit: LaunchExtent | None = None
    """Bytes that a run may hold beyond what stands before it, a number or a formula; absent: what
    the machine has."""
    check: Check = Check.model_construct()
    """Tolerance against the baseline's outputs."""
    measure: Annotated[tuple[Time, ...], Field(min_length=1), Distinct] = ("kernel",)
    """Which times are taken."""
    sampling: Sampling = Sampling.model_construct()
    """How often is measured."""
    exclude: tuple[Exclude, ...] = ()
    """Cases that are not in the plan."""
    skip: tuple[Skip, ...] = ()
    """Cases that stay in the plan with a reason."""
    include: tuple[Include, ...] = ()
    """Whole extra cases."""
    was: OldNames | None = None
    """The name that the kernel had before, or a list of such, the newest first."""

    def axes(self) -> dict[str, tuple[Value, ...] | Range]:
        """Return all axes as they are written, by name: those that move together one by one."""
        axes: dict[str, tuple[Value, ...] | Range] = {}
        for name, size in self.sizes.items():
            axes |= size.zip if isinstance(size, Zip) else {name: size}
        return axes | self.parameters

    def old_axes(self) -> dict[str, tuple[str, ...]]:
        """Return the names that axes had before, the newest first, by their names now."""
        ranges = ((name, axis) for name, axis in self.axes().items() if isinstance(axis, Range))
        return {name: old_names(axis.was) for name, axis in ranges if axis.was is not None}

    def arguments(self, implementation: str) -> tuple[str, ...]:
        """Return the names of what an implementation is called with: ``call`` without the ``out``
        arrays that it returns."""
        returned = self.implementations[implementation].returns
        made = {name for name in returned if self.arrays[name].intent == "out"}
        return tuple(name for name in self.call if name not in made)

    def written(self) -> list[str]:
        """Return the names of the arrays that a run writes and that are looked at."""
        return [name for name, one in self.arrays.items() if one.intent in ("out", "inout")]

    def drawn(self) -> dict[tuple[str, ...], Array | Column]:
        """Return all that is filled, by its path: arrays, and columns of tables."""
        drawn: dict[tuple[str, ...], Array | Column] = {}
        drawn |= {("arrays", name): array for name, array in self.arrays.items()}
        for name, table in self.tables.items():
            drawn |= {("tables", name, "columns", key): one for key, one in table.columns.items()}
        return drawn

    def drawing_functions(self) -> dict[tuple[str, ...], str]:
        """Return the functions that make data of it, by their path: they are given every axis, and
        do not say which they read."""
        fills = ((path, one.fill) for path, one in self.drawn().items())
        functions = {
            (*path, "fill", "function"): fill.function
            for path, fill in fills
            if isinstance(fill, FunctionFill)
        }
        return functions | ({("init", "function"): self.init.function} if self.init else {})

    def dtypes(self) -> set[str]:
        """Return the names of dtypes, or of parameters that hold such names, and of those that hold
        orders."""
        data = *self.drawn().values(), *self.scalars.values()
        orders = {array.order for array in self.arrays.values() if array.order}
        return {one.dtype for one in data if one.dtype} | (orders - {*ORDERS})

    def axes_behind(self, names: Iterable[str]) -> frozenset[str]:
        """Return the same names, those of ``let`` replaced by what their formulas use, however
        deep."""
        if not self.let:
            return frozenset(names)
        pending, seen = list(names), set[str]()
        while pending:
            name = pending.pop()
            value = self.let.get(name)
            if name not in seen and isinstance(value, Expression):
                pending += value.names
            seen.add(name)
        return frozenset(seen - self.let.keys())


class ArrayOverlay(Model):
    """What a preset changes in one array."""

    shape: tuple[Extent, ...] | None = None
    """Extents, instead."""
    dtype: str | None = None
    """NumPy's name of a type, or the name of a parameter, instead."""
    fill: Fill | None = None
    """First contents, instead."""
    order: str | None = None
    """`C` or `F`, or the name of a parameter, instead."""


class ScalarOverlay(Model):
    """What a preset changes in one scalar."""

    value: Computed | None = None
    """A number, a boolean, or a formula, instead."""
    dtype: str | None = None
    """NumPy's name of a type, or of a parameter, instead."""


class ImplementationOverlay(Model):
    """What a preset changes in one implementation."""

    launch: DeclaredLaunch | None = None
    """Blocks and grids to measure instead."""
    threads: Annotated[tuple[LaunchExtent, ...], Field(min_length=1)] | None = None
    """Numbers of CPU threads to measure instead."""


class Overlay(Model):
    """What a preset changes, for every kernel that declares it."""

    sizes: dict[AxisName, Size] = Field({})
    """Values of sizes, instead."""
    parameters: dict[AxisName, DeclaredAxis] = Field({})
    """Values of parameters, instead."""
    let: dict[AxisName, Computed] = Field({})
    """Constants and intermediate values, instead."""
    arrays: dict[Identifier, ArrayOverlay] = Field({})
    """Changes of single arrays."""
    scalars: dict[Identifier, ScalarOverlay] = Field({})
    """Changes of single scalars."""
    launch: DeclaredLaunch | None = None
    """Blocks and grids, for every implementation that declares a launch."""
    devices: Annotated[tuple[DeviceName, ...], Field(min_length=1)] | None = None
    """Devices, instead."""
    measure: Annotated[tuple[Time, ...], Field(min_length=1), Distinct] | None = None
    """Labelled times, instead."""
    sampling: Sampling | None = None
    """How often is measured."""
    implementations: dict[Name, ImplementationOverlay] = Field({})
    """Changes of single implementations."""


class Preset(Overlay):
    """An overlay for the whole suite; `kernels` refines it for single kernels."""

    description: Words | None = None
    """What it is for."""
    kernels: dict[Name, Overlay] = Field({})
    """Changes of single kernels."""


class DeclaredPair(Model):
    """A baseline and a candidate among the benchmarks of an asv project, or many by a pattern."""

    name: Name | None = None
    """Name of the two together; absent: they are a pattern, which names many benchmarks."""
    baseline: Words
    """Benchmark that speedup is measured against; of a pattern a regular expression of such."""
    candidate: Words
    """Benchmark whose speedup is reported; of a pattern what replaces the baseline's name, with the
    groups of the expression as `\\1`."""


class Suite(Model):
    """A suite: one file, with `extends` and the preset chosen already applied."""

    version: Annotated[Literal[1], Version]
    """Version of the format: 1."""
    suite: Name
    """Name of the suite: the file's, without .yaml."""
    title: Words | None = None
    """Name for people."""
    description: Words | None = None
    """What the suite is about."""
    tags: tuple[Words, ...] = ()
    """Words to find it by."""
    extends: Words | None = None
    """Another suite file, relative to this one: maps merge, lists replace."""
    backend: Name | None = None
    """Backend of every implementation that neither says one nor is called like one."""
    presets: dict[PresetName, Preset] = Field({})
    """Named changes, one chosen by `--preset`."""
    kernels: dict[Name, Kernel] = Field({})
    """The kernels, by name."""
    pairs: tuple[DeclaredPair, ...] = ()
    """Instead of kernels: baselines and candidates among the benchmarks of an asv project."""
    was: OldNames | None = None
    """The name that the suite had before, or a list of such, the newest first."""


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


_LEAVES = frozenset([str, int, float, bool])


@cache
def _steps(model: type[Model]) -> tuple[tuple[str, str], ...]:
    """Return the name of each field of a model in a suite, and that in Python."""
    return tuple((field.alias or name, name) for name, field in model.model_fields.items())
