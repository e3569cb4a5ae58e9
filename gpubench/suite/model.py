"""The suite format as a model: what a person may write, and what every field means.

The loader validates against these classes; the JSON Schema for editors and the reference page in
``docs/`` are generated from them. A field's docstring is its documentation there. Of a
thing that is a class elsewhere too, what a file says is a ``DeclaredLaunch``, ``DeclaredTable`` ...
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, model_validator

from gpubench.names import Time, Value
from gpubench.suite.arrays import (
    OLD_NAMES_FORM,
    RANGE_FORMS,
    Array,
    Column,
    DeclaredTable,
    Fill,
    FunctionFill,
    Init,
    Intent,
    OldNames,
    Range,
    Scalar,
    SizeRange,
    Zip,
    old_names,
)
from gpubench.suite.expressions import Expression
from gpubench.suite.sampling import Check, Sampling
from gpubench.suite.types import (
    LIST,
    MAPPING,
    ORDERS,
    SINGLE,
    ZIP,
    AxisName,
    AxisValue,
    Computed,
    Count,
    DeviceName,
    Distinct,
    Extent,
    Formula,
    GridExtent,
    Identifier,
    LaunchExtent,
    Model,
    Name,
    OldTarget,
    PresetName,
    Reference,
    SizeValue,
    Version,
    Words,
    by_form,
    is_name_of_code,
    problem,
)

OldTargets = Annotated[
    Annotated[OldTarget, SINGLE]
    | Annotated[tuple[OldTarget, ...], Field(min_length=1), Distinct, LIST],
    OLD_NAMES_FORM,
]


AxisValues = Annotated[tuple[AxisValue, ...], Field(min_length=1), Distinct, LIST]
SizeValues = Annotated[tuple[SizeValue, ...], Field(min_length=1), Distinct, LIST]
DeclaredAxis = Annotated[
    AxisValues | Annotated[Range, MAPPING],
    by_form(f"a list of values, or a mapping with one of {', '.join(RANGE_FORMS)}"),
]
"""An axis as written: a list, or a mapping."""


Size = Annotated[
    SizeValues | Annotated[SizeRange, MAPPING] | Annotated[Zip, ZIP],
    by_form("a list of whole numbers, a range, or zip", ZIP),
]


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
        returned, intents = self.implementations[implementation].returns, self.intents()
        made = {name for name in returned if intents[name] == "out"}
        return tuple(name for name in self.call if name not in made)

    def intents(self) -> dict[str, Intent]:
        """Return the intents of all arrays that have one, the declared ones first. What only
        ``init`` returns is read, unless it says otherwise."""
        intents = {name: array.intent for name, array in self.arrays.items()}
        return intents | dict.fromkeys(self.init.inout if self.init else (), "inout")

    def written(self) -> list[str]:
        """Return the names of the arrays that a run writes and that are looked at."""
        return [name for name, intent in self.intents().items() if intent in ("out", "inout")]

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
