"""Cases of values that no suite declares: whoever measures at once asks for them by ``-a``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from gpubench.errors import PlanError
from gpubench.names import Value, parse_value
from gpubench.plan.group import Group, kernel_groups
from gpubench.plan.plan import Plan
from gpubench.plan.rules import SHAPES, as_in_identity, read_shape, value_text
from gpubench.suite.arrays import Range, Zip, axis_values
from gpubench.suite.model import Implementation, Kernel
from gpubench.suite.types import AxisValue, DeviceName, SizeValue

_LATER = ConfigDict(defer_build=True)  # where a value is asked for, which is seldom
SIZE = TypeAdapter[Any](SizeValue, config=_LATER)
PARAMETER = TypeAdapter[Any](AxisValue, config=_LATER)
DEVICE = TypeAdapter[Any](DeviceName, config=_LATER)
LAUNCH_NAMES = frozenset({*SHAPES, "threads"})
"""Names of what implementations declare of their launch."""


def with_values(plan: Plan, texts: Iterable[str]) -> Plan:
    """Return the plan with the values of ``NAME=VALUE,VALUE`` that none of its cases has; itself
    where it has them all.

    A value of a size, a parameter, ``device``, ``block``, ``grid`` or ``threads`` becomes one of
    every kernel or implementation that has the name, and its cases have to keep the limits of the
    suite like all others. A name that no kernel has is left alone. Raises ``PlanError`` for a value
    that cannot be one, and for a name that is given twice.
    """
    asked: dict[str, list[str]] = {}
    for text in texts:
        name, _, listed = (part.strip() for part in text.partition("="))
        if name in asked:
            both = ",".join([*asked[name], listed])
            raise PlanError(f"-a {name} is given twice; write its values at once: -a {name}={both}")
        values = (value.strip() for value in listed.split(",") if value.strip())
        asked[name] = [as_in_identity(name, value) for value in values]
    if not asked:
        return plan
    every = list(plan.cases())
    new = {
        name: values
        for name, values in asked.items()
        if not {*values} <= {value_text(case, name) for case in every}
    }
    kernels = tuple(_widened(groups, new, asked) for groups in plan.kernels)
    is_same = all(map(is_, kernels, plan.kernels))
    return plan if is_same else replace(plan, kernels=kernels)


def _widened(
    groups: tuple[Group, ...], new: Mapping[str, Sequence[str]], asked: Mapping[str, Sequence[str]]
) -> tuple[Group, ...]:
    """Return the groups of a kernel with more values; themselves where it has none of the names,
    or no case."""
    first = groups[0]
    if not any(group.has_cases for group in groups):
        return groups
    kernel = _with_values(first.kernel, new, asked)
    return groups if kernel is first.kernel else groups_of(first, kernel)


def groups_of(first: Group, kernel: Kernel) -> tuple[Group, ...]:
    """Return the groups that a kernel has with other axes, by one of its groups as declared."""
    loaded, suite = first.loaded, first.loaded.suite
    of_suite = suite.model_copy(update={"kernels": {**suite.kernels, first.kernel_name: kernel}})
    fresh = replace(loaded, suite=of_suite)
    return tuple(kernel_groups(fresh, first.kernel_name, first.gpu_count))


def _with_values(
    kernel: Kernel, new: Mapping[str, Sequence[str]], asked: Mapping[str, Sequence[str]]
) -> Kernel:
    """Return the kernel with more values on its axes; itself where it has none of the names."""
    sizes, parameters = dict(kernel.sizes), dict(kernel.parameters)
    update: dict[str, Any] = {}
    for name, declared in kernel.sizes.items():
        if isinstance(declared, Zip):
            if not new.keys().isdisjoint(declared.zip):
                sizes[name] = _with_rows(declared, asked)
                update["sizes"] = sizes
        elif name in new:
            sizes[name] = _extend(declared, [_read(SIZE, name, text) for text in new[name]])
            update["sizes"] = sizes
    for name, axis in kernel.parameters.items():
        if name in new:
            parameters[name] = _extend(axis, [_read(PARAMETER, name, text) for text in new[name]])
            update["parameters"] = parameters
    if "device" in new:
        devices = [_read(DEVICE, "device", text) for text in new["device"]]
        update["devices"] = tuple(dict.fromkeys((*kernel.devices, *devices)))
    if not new.keys().isdisjoint(LAUNCH_NAMES):
        before = kernel.implementations
        changed = {name: _launched(one, new) for name, one in before.items()}
        if any(changed[name] is not one for name, one in before.items()):
            update["implementations"] = changed
    return kernel.model_copy(update=update) if update else kernel


def _launched(implementation: Implementation, new: Mapping[str, Sequence[str]]) -> Implementation:
    """Return the implementation with more blocks, grids and numbers of threads; itself where it
    declares none of those asked for."""
    update: dict[str, Any] = {}
    if (launch := implementation.launch) is not None:
        shapes: dict[str, Any] = {}
        if "block" in new and launch.block:
            blocks = [_shape("block", text) for text in new["block"]]
            shapes["block"] = _more(launch.blocks(), blocks)
        if "grid" in new:
            grids = [_shape("grid", text) for text in new["grid"]]
            shapes["grid"] = _more(launch.grids(), grids)
        if shapes:
            update["launch"] = launch.model_copy(update=shapes)
    if "threads" in new and implementation.threads:
        update["threads"] = _more(implementation.threads, map(_threads, new["threads"]))
    return implementation.model_copy(update=update) if update else implementation


def _more(declared: Iterable[Any], values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys((*declared, *values)))


def _threads(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise PlanError(f"-a threads={text}: a whole number from 1")
    return int(text)


def _shape(name: str, text: str) -> Literal["cover"] | tuple[int, ...]:
    """Read a block or a grid as an identity has it; raises ``PlanError`` with what is allowed."""
    if name == "grid" and text == "cover":
        return "cover"
    shape = read_shape(text)
    if shape is None or 0 in shape:
        cover = ", or cover" if name == "grid" else ""
        raise PlanError(
            f"-a {name}={text}: one to three whole numbers from 1, x first, as 256 or 16x16{cover}"
        )
    return shape


def _with_rows(declared: Zip, asked: Mapping[str, Sequence[str]]) -> Zip:
    """Return axes that move together with one row more for each value of theirs."""
    names = list(declared.zip)
    counts = {len(asked.get(name, ())) for name in names}
    if len(counts) > 1 or 0 in counts:
        example = " ".join(f"-a {name}=..." for name in names)
        raise PlanError(
            f"{', '.join(names)} move together: give equally many values of each, {example}"
        )
    columns = [[_read(PARAMETER, name, text) for text in asked[name]] for name in names]
    there = {*zip(*map(axis_values, declared.zip.values()), strict=True)}
    rows = [row for row in zip(*columns, strict=True) if row not in there]
    axes = {
        name: _extend(axis, [row[place] for row in rows], again=True)
        for place, (name, axis) in enumerate(declared.zip.items())
    }
    return declared.model_copy(update={"zip": axes})


def _extend(axis: Iterable[Value] | Range, values: Sequence[Value], again: bool = False) -> Any:
    """Return an axis with more values; ``again``: also such as it has."""
    there = axis_values(axis)
    every = (*there, *(value for value in dict.fromkeys(values) if value not in there))
    if again:
        every = (*there, *values)
    if not isinstance(axis, Range):
        return every
    forms = dict.fromkeys(("pow2", "geometric", "linear"))
    return axis.model_copy(update={**forms, "values": every})


def _read(kind: TypeAdapter[Any], name: str, text: str) -> Value:
    """Read a value as a suite would; raises ``PlanError`` with what is allowed."""
    try:
        value: Value = kind.validate_python(text if kind is DEVICE else parse_value(text))
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise PlanError(f"-a {name}={text}: {reason}") from error
    return value
