"""The suite format as a model: what a person may write, and what every field means.

The loader validates against these classes; the JSON Schema for editors and the reference page in
``docs/`` are generated from them. A field's description is its documentation: keep it one line.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool

from gpubench.suite.axes import (
    Axis,
    Range,
    Size,
    SizeRange,
    Zip,
    axis_default,
    axis_values,
)
from gpubench.suite.expressions import Expression
from gpubench.suite.launch import GridShape, Launch, Shape
from gpubench.suite.types import (
    FILL_FORMS,
    FUNCTION,
    LIKE,
    LIST,
    MAPPING,
    SINGLE,
    AxisName,
    AxisValue,
    Computed,
    Count,
    DeviceName,
    Distinct,
    Dtype,
    Extent,
    FillWord,
    Identifier,
    LaunchExtent,
    Model,
    Name,
    Reference,
    Seconds,
    Tolerance,
    Version,
    WarmupSeconds,
    Words,
    by_fill_form,
    by_form,
)

__all__ = [
    "Array", "Axis", "Check", "Exclude", "Expression", "Extent", "Fill", "FunctionFill",
    "Implementation", "ImplementationOverlay", "Include", "Init", "Intent", "Kernel", "Launch",
    "LikeFill", "Model", "Overlay", "Pair", "Preset", "Range", "Sampling", "Scalar", "Shape",
    "Size", "SizeRange", "Skip", "Suite", "Time", "Work", "Zip", "axis_default", "axis_values",
]  # fmt: skip

Time = Literal["kernel", "end_to_end", "transfer", "launch", "compile", "cold"]
Intent = Literal["in", "out", "inout", "scratch"]


class FunctionFill(Model):
    """Values from a function of one's own."""

    function: Reference = Field(
        description="`module:name`, called with the case's values and a seeded Generator."
    )


class LikeFill(Model):
    """The same values as another array."""

    like: Identifier = Field(description="Name of the other array.")


Fill = Annotated[
    Annotated[FillWord, SINGLE] | Annotated[LikeFill, LIKE] | Annotated[FunctionFill, FUNCTION],
    by_fill_form,
]


class Array(Model):
    """One array that a kernel works on."""

    shape: tuple[Extent, ...] = Field(
        description="Extents, first dimension first: numbers, or formulas over the axes."
    )
    dtype: str = Field(description="NumPy's name of a type, or the name of a parameter.")
    fill: Fill | None = Field(
        default=None,
        description=f"First contents: {FILL_FORMS}."
        " Absent: normal; uniform for integers and booleans.",
    )
    intent: Intent = Field(
        default="in",
        description="`in` is read, `out` written, `inout` both; what is written is checked. "
        "`scratch` is room to work in: of no meaning before or after.",
    )


class Init(Model):
    """A function that makes several arrays at once (ragged or dependent data)."""

    function: Reference = Field(
        description="`module:name`, called with the case's values and a seeded Generator."
    )
    returns: Annotated[tuple[Identifier, ...], Field(min_length=1)] = Field(
        description="Names of the arrays that it returns, in order."
    )


class Scalar(Model):
    """A named value handed to the call."""

    value: Computed = Field(description="A number, a boolean, or a formula over the axes.")
    dtype: str | None = Field(
        default=None,
        description="NumPy's name of a type, or of a parameter; absent: a Python number.",
    )


class Implementation(Model):
    """One way to do a kernel's work; exactly one of function, factory, launcher and source."""

    function: Reference | None = Field(default=None, description="`module:name` of what is called.")
    factory: Reference | None = Field(
        default=None,
        description="`module:name` of what is called with the values of `with`; returns it.",
    )
    with_: dict[Identifier, Computed] = Field(
        default={},
        alias="with",
        description="Values for the factory, or constants of the source; text is a formula.",
    )
    launcher: Reference | None = Field(
        default=None,
        description="`module:name`, called with the launch and the arguments; queues several"
        " launches.",
    )
    source: Words | None = Field(
        default=None,
        description="Path of a program in the backend's language, relative to the suite.",
    )
    entry: Words | None = Field(default=None, description="What is called inside `source`.")
    backend: Name | None = Field(
        default=None, description="Name of the backend; absent: recognised from the function."
    )
    launch: Launch | None = Field(default=None, description="Blocks and grids to measure.")
    threads: Annotated[tuple[LaunchExtent, ...], Field(min_length=1)] = Field(
        default=(), description="Numbers of CPU threads to measure; absent: as the machine is set."
    )
    requires: tuple[Words, ...] = Field(default=(), description="Distributions that it needs.")
    title: Words | None = Field(default=None, description="Name for people.")


class Work(Model):
    """What one run does, for GB/s, FLOP/s and the roofline."""

    bytes: Extent | None = Field(default=None, description="Bytes moved from and to memory.")
    flops: Extent | None = Field(default=None, description="Floating-point operations.")


Tolerances = Annotated[
    Annotated[Tolerance, SINGLE] | Annotated[dict[Dtype, Tolerance], MAPPING],
    by_form("a number from 0, or one for each dtype"),
]


class Check(Model):
    """How an implementation's outputs are compared with the baseline's."""

    rtol: Tolerances | None = Field(
        default=None, description="Relative tolerance, one number or one for each dtype."
    )
    atol: Tolerances | None = Field(
        default=None, description="Absolute tolerance, one number or one for each dtype."
    )
    norm: Literal["max", "l2"] = Field(
        default="max",
        description="`max` compares element by element, `l2` the norm of the difference.",
    )
    function: Reference | None = Field(
        default=None, description="`module:name` of a checker of one's own."
    )


Repeat = Annotated[
    Annotated[Count, SINGLE] | Annotated[tuple[Count, Count, Seconds], LIST],
    by_form("a whole number from 1, or [least, most, seconds]"),
]


class Sampling(Model):
    """How often is measured, in asv's words; what is absent is asv's default."""

    rounds: Count | None = Field(default=None, description="Separate processes for the samples.")
    repeat: Repeat | None = Field(
        default=None, description="Samples in a round, or `[least, most, seconds]`."
    )
    number: Count | None = Field(default=None, description="Calls in a sample; absent: calibrated.")
    sample_time: Seconds | None = Field(
        default=None, description="Seconds that one sample should take."
    )
    warmup_time: WarmupSeconds | None = Field(
        default=None, description="Seconds before the first sample."
    )
    timeout: Seconds | None = Field(
        default=None, description="Seconds after which a case is given up."
    )
    paired: StrictBool = Field(
        default=False,
        description="Whether the speedup comes from samples taken in turn with the baseline's.",
    )


class Exclude(Model):
    """Cases that make no sense anywhere: they are not in the plan."""

    when: Expression = Field(description="Formula over what the file declares.")


class Skip(Model):
    """Cases that this machine cannot run: they stay in the plan with their reason."""

    when: Expression = Field(description="Formula that may also use facts of the device.")
    reason: Words = Field(description="Why, for people.")


class Include(Model):
    """A whole extra case."""

    implementation: Name = Field(description="Name of the implementation.")
    values: dict[AxisName, AxisValue] = Field(description="Value of every axis that it uses.")
    block: Shape | None = Field(
        default=None, description="Block shape; absent: the first declared."
    )
    grid: GridShape | None = Field(
        default=None, description="Grid shape; absent: the first declared."
    )
    threads: Count | None = Field(default=None, description="Number of CPU threads.")
    device: DeviceName | None = Field(
        default=None, description="Device; absent: all that it runs on."
    )


class Kernel(Model):
    """One operation with several implementations of it."""

    title: Words | None = Field(default=None, description="Name for people.")
    description: Words | None = Field(default=None, description="What it does and teaches.")
    sizes: dict[AxisName, Size] = Field(
        default={}, description="Whole numbers by name: axes that become the extents of arrays."
    )
    parameters: dict[AxisName, Axis] = Field(
        default={}, description="Any other axis: dtypes, tile widths, options."
    )
    arrays: dict[Identifier, Array] = Field(
        default={}, description="What the kernel works on, by name."
    )
    init: Init | None = Field(
        default=None, description="A function that makes several arrays at once."
    )
    scalars: dict[Identifier, Scalar] = Field(
        default={}, description="Named values handed to the call."
    )
    call: tuple[Identifier, ...] = Field(
        default=(), description="Names of arrays, scalars and axes in the order of the arguments."
    )
    returns: tuple[Identifier, ...] = Field(
        default=(), description="Names for what a function returns; checked like `out` arrays."
    )
    implementations: Annotated[dict[Name, Implementation], Field(min_length=1)] = Field(
        description="The implementations, by name."
    )
    devices: Annotated[tuple[DeviceName, ...], Field(min_length=1), Distinct] = Field(
        default=("cpu",),
        description="`cpu`, `cuda:0`, `cuda:*` (all of this machine); an implementation runs on"
        " those that its backend serves.",
    )
    baseline: Name = Field(
        default="numpy", description="The implementation that speedup is measured against."
    )
    work: Work = Field(default=Work(), description="Bytes and operations of one run.")
    check: Check = Field(default=Check(), description="Tolerance against the baseline's outputs.")
    measure: Annotated[tuple[Time, ...], Field(min_length=1), Distinct] = Field(
        default=("kernel",), description="Which times are taken."
    )
    sampling: Sampling = Field(default=Sampling(), description="How often is measured.")
    exclude: tuple[Exclude, ...] = Field(default=(), description="Cases that are not in the plan.")
    skip: tuple[Skip, ...] = Field(
        default=(), description="Cases that stay in the plan with a reason."
    )
    include: tuple[Include, ...] = Field(default=(), description="Whole extra cases.")


class ImplementationOverlay(Model):
    """What a preset changes in one implementation."""

    launch: Launch | None = Field(default=None, description="Blocks and grids to measure instead.")
    threads: Annotated[tuple[LaunchExtent, ...], Field(min_length=1)] | None = Field(
        default=None, description="Numbers of CPU threads to measure instead."
    )


class Overlay(Model):
    """What a preset changes, for every kernel that declares it."""

    sizes: dict[AxisName, Size] = Field(default={}, description="Values of sizes, instead.")
    parameters: dict[AxisName, Axis] = Field(
        default={}, description="Values of parameters, instead."
    )
    launch: Launch | None = Field(
        default=None,
        description="Blocks and grids, for every implementation that declares a launch.",
    )
    devices: Annotated[tuple[DeviceName, ...], Field(min_length=1)] | None = Field(
        default=None, description="Devices, instead."
    )
    measure: Annotated[tuple[Time, ...], Field(min_length=1), Distinct] | None = Field(
        default=None, description="Labelled times, instead."
    )
    sampling: Sampling | None = Field(default=None, description="How often is measured.")
    implementations: dict[Name, ImplementationOverlay] = Field(
        default={}, description="Changes of single implementations."
    )


class Preset(Overlay):
    """An overlay for the whole suite; `kernels` refines it for single kernels."""

    description: Words | None = Field(default=None, description="What it is for.")
    kernels: dict[Name, Overlay] = Field(default={}, description="Changes of single kernels.")


class Pair(Model):
    """Two benchmarks that an existing asv project already runs."""

    name: Name = Field(description="Name of the pair.")
    baseline: Words = Field(description="Benchmark that speedup is measured against.")
    candidate: Words = Field(description="Benchmark whose speedup is reported.")


class Suite(Model):
    """A suite: one file, with `extends` and the preset chosen already applied."""

    version: Annotated[Literal[1], Version] = Field(description="Version of the format: 1.")
    suite: Name = Field(description="Name of the suite: the file's, without .yaml.")
    title: Words | None = Field(default=None, description="Name for people.")
    description: Words | None = Field(default=None, description="What the suite is about.")
    tags: tuple[Words, ...] = Field(default=(), description="Words to find it by.")
    extends: Words | None = Field(
        default=None,
        description="Another suite file, relative to this one: maps merge, lists replace.",
    )
    presets: dict[Name, Preset] = Field(
        default={}, description="Named changes, one chosen by `--preset`."
    )
    kernels: dict[Name, Kernel] = Field(default={}, description="The kernels, by name.")
    pairs: tuple[Pair, ...] = Field(
        default=(), description="Instead of kernels: pairs of benchmarks that an asv project runs."
    )
