"""A first suite for functions of a project: what their source tells, and what the user adds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gpubench.errors import GpubenchError, SuiteError
from gpubench.files import write_new
from gpubench.scaffold.function_source import (
    ANNOTATION_DTYPES,
    FunctionSource,
    Parameter,
    join_parameters,
    read_function,
)
from gpubench.scaffold.writing import SCHEMA, template_environment
from gpubench.suite.schema import schema_text

AXES = {1: ("n",), 2: ("m", "n"), 3: ("l", "m", "n")}
"""Extents that are proposed for an array, by its dimensions."""
SIZES = {1: "[1001, 16384, 262144, 4194304]", 2: "[127, 512, 2048]", 3: "[15, 64, 128]"}
"""Sizes that are proposed for an axis, by how many axes there are: up to 4 million elements. One is
odd: a kernel that takes elements by pairs, or a guard that is missing, is right at round ones."""
SMOKE_SIZES = {1: 65537, 2: 257, 3: 33}
"""Odd too: continuous integration measures these."""
BLOCKS = {1: "[64, 256]", 2: "[[16, 16], [32, 8]]", 3: "[[8, 8, 4]]"}
"""Shapes of blocks that are proposed, by the dimensions of the grid."""
INTENTS = ("in", "out", "inout", "scratch")


class AddError(GpubenchError):
    """A suite that cannot be written: what is not known, and how to say it."""


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array that the functions get."""

    name: str
    shape: tuple[str, ...]
    """Extents: names of axes, whole numbers and formulas."""
    dtype: str
    intent: str


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number that the functions get; the value is ``None`` for the size of an axis."""

    name: str
    value: str | None


Argument = ArrayArgument | ScalarArgument


@dataclass(frozen=True, slots=True)
class Draft:
    """All that a suite of one kernel says."""

    name: str
    title: str
    functions: tuple[FunctionSource, ...]
    """The baseline first, where there is one."""
    has_baseline: bool
    arguments: tuple[Argument, ...]
    sizes: Mapping[str, str]

    @property
    def implementations(self) -> list[tuple[str, FunctionSource]]:
        """Return the names of the implementations: their backends, or their functions where two
        have one."""
        backends = [function.backend for function in self.functions]
        if len(set(backends)) == len(backends):
            return [(function.backend, function) for function in self.functions]
        return [(suite_name(function.name), function) for function in self.functions]


def suite_name(text: str) -> str:
    """Return a name that the format allows: ``MyKernel__2`` becomes ``my_kernel_2``."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()
    name = re.sub(r"[^a-z0-9]+", "_", apart).strip("_")
    return name if name[:1].isalpha() else f"kernel_{name}".rstrip("_")


def draft_suite(
    reference: str,
    baseline: str | None = None,
    *,
    name: str | None = None,
    arrays: Mapping[str, str] = {},
    scalars: Mapping[str, str] = {},
    sizes: Mapping[str, str] = {},
) -> tuple[Draft, list[str]]:
    """Return the suite as far as it is known, and the arguments of which something is missing.

    ``arrays`` has ``SHAPE[:DTYPE][:INTENT]`` by argument, as in ``m,n:float32:inout``; ``scalars``
    values, ``sizes`` the values of axes as a suite writes them. Raises ``AddError`` and
    ``KernelError``.
    """
    functions = [read_function(each) for each in (baseline, reference) if each is not None]
    parameters = _joined(functions)
    known = {one.name for one in parameters}
    for option, names in (("--array", arrays), ("--scalar", scalars)):
        if unknown := next((each for each in names if each not in known), None):
            listed = ", ".join(one.name for one in parameters)
            raise AddError(f"{option} {unknown}: {reference} has no such argument; it has {listed}")
    dtype = _common_dtype(functions, parameters, arrays)
    arguments, missing = [], []
    axes = {extent for text in arrays.values() for extent in _extents(text)} | {*sizes}
    shapes = shapes_by_indices([one for one in parameters if one.name not in arrays])
    for one in parameters:
        argument = _argument(
            one, arrays.get(one.name), scalars.get(one.name), dtype, shapes.get(one.name)
        )
        arguments.append(argument)
        if isinstance(argument, ArrayArgument):
            axes |= {*argument.shape}
    settled: list[Argument] = []
    for one, argument in zip(parameters, arguments, strict=True):
        if argument is None and one.name in axes:
            argument = ScalarArgument(one.name, None)
        if argument is None:
            missing.append(one.name)
            continue
        settled.append(argument)
    used = _axes_of(settled)
    chosen = {axis: sizes.get(axis) or SIZES[min(len(used), 3)] for axis in used}
    if unknown := next((axis for axis in sizes if axis not in used), None):
        listed = ", ".join(used) or "none"
        raise AddError(f"--size {unknown}: no array has that extent; the extents are {listed}")
    draft = Draft(
        suite_name(name or functions[-1].name),
        next((one.summary for one in reversed(functions) if one.summary), functions[-1].name),
        (*functions,),
        baseline is not None,
        (*settled,),
        chosen,
    )
    return draft, missing


def explain_missing(names: Sequence[str]) -> str:
    """Return what to write for arguments of which the source does not tell what they are."""
    options = " ".join(f"--array {name}=n:float64:in" for name in names)
    return (
        f"the source does not tell what {', '.join(names)} {'is' if len(names) == 1 else 'are'}. "
        f"Say it: {options}, or for a number --scalar {names[0]}=2.5"
    )


def describe_arguments(draft: Draft) -> list[str]:
    """Return a line for each argument, in words."""
    words = {"in": "read", "out": "written", "inout": "read and written", "scratch": "room"}
    lines = []
    for one in draft.arguments:
        if isinstance(one, ArrayArgument):
            shape = ", ".join(one.shape)
            lines.append(f"{one.name}: array [{shape}] of {one.dtype}, {words[one.intent]}")
        else:
            lines.append(f"{one.name}: {'the size' if one.value is None else one.value}")
    return lines


def _joined(functions: Sequence[FunctionSource]) -> list[Parameter]:
    first, last = functions[0], functions[-1]
    if len(first.parameters) != len(last.parameters):
        raise AddError(
            f"{first.reference} takes {len(first.parameters)} arguments and {last.reference} "
            f"{len(last.parameters)}: implementations of a kernel are called with the same ones"
        )
    # The names are the kernel's own, whatever the baseline calls them.
    pairs = zip(last.parameters, first.parameters, strict=True)
    return [join_parameters(one, other) for one, other in pairs]


def _common_dtype(
    functions: Sequence[FunctionSource], parameters: Sequence[Parameter], arrays: Mapping[str, str]
) -> str:
    """Return the dtype of arrays that say none: that of the others, else what the device is for."""
    given = [_dtype_of(text) for text in arrays.values()]
    for dtype in (*given, *(one.dtype for one in parameters)):
        if dtype is not None:
            return dtype
    return "float32" if any(one.backend == "numba_cuda" for one in functions) else "float64"


def shapes_by_indices(parameters: Sequence[Parameter]) -> dict[str, tuple[str, ...]]:
    """Return the shapes of arrays by the variables that index them: ``a[i, j]`` and ``b[j]`` have
    an extent in common, ``p[i, k]`` beside ``p[j, k]`` makes one of ``i`` and ``j``. Nothing where
    an index is no variable, or where there are more extents than ``AXES`` has."""
    arrays = [one for one in parameters if one.is_array]
    groups: list[set[str]] = []
    for names in (names for one in arrays for names in one.indices):
        joined = set(names).union(*(group for group in groups if group & names))
        place = next((i for i, group in enumerate(groups) if group & names), len(groups))
        groups[place:] = [joined, *(group for group in groups[place:] if not group & names)]
    if not all(one.indices and all(one.indices) for one in arrays) or len(groups) not in AXES:
        return {}
    extents = {
        name: axis for axis, group in zip(AXES[len(groups)], groups, strict=True) for name in group
    }
    return {one.name: tuple(extents[min(names)] for names in one.indices) for one in arrays}


def _argument(
    one: Parameter,
    array: str | None,
    scalar: str | None,
    dtype: str,
    shape: tuple[str, ...] | None,
) -> Argument | None:
    """Return an argument as it is given, or as the source tells; ``None`` where neither does.
    ``shape`` is an array's by its indices, where they tell it."""
    if array is not None and scalar is not None:
        raise AddError(f"{one.name} is given as an array and as a number: leave one out")
    if scalar is not None:
        return ScalarArgument(one.name, _number(one.name, scalar))
    if array is not None:
        _, *words = array.split(":")
        intent = next((word for word in words if word in INTENTS), _intent(one))
        return ArrayArgument(
            one.name, _extents(array), _dtype_of(array) or one.dtype or dtype, intent
        )
    if one.is_array:
        shape = shape or AXES[min(one.dimensions or 1, 3)]
        return ArrayArgument(one.name, shape, one.dtype or dtype, _intent(one))
    if one.default is not None:
        return ScalarArgument(one.name, _yaml(one.default))
    return None


def _intent(one: Parameter) -> str:
    if not one.is_written:
        return "in"
    return "inout" if one.is_read else "out"


def _extents(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (each.strip() for each in text.partition(":")[0].split(","))))


def _dtype_of(text: str) -> str | None:
    words = text.split(":")[1:]
    for word in words:
        if word not in ANNOTATION_DTYPES and word not in INTENTS:
            allowed = "one of NumPy's types of numbers (float32) or of " + ", ".join(INTENTS)
            raise AddError(f"--array ...{text}: {word!r} is neither {allowed}")
    return next((word for word in words if word in ANNOTATION_DTYPES), None)


def _number(name: str, text: str) -> str:
    try:
        float(text)
    except ValueError:
        raise AddError(f"--scalar {name}={text}: {text!r} is no number") from None
    return text


def _yaml(value: bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _axes_of(arguments: Iterable[Argument]) -> list[str]:
    """Return names that stand in shapes, in their order: each needs sizes."""
    extents = (
        extent for one in arguments if isinstance(one, ArrayArgument) for extent in one.shape
    )
    names = (name for extent in extents for name in re.findall(r"[A-Za-z_]\w*", extent))
    return list(dict.fromkeys(name for name in names if name not in FORMULA_FUNCTIONS))


FORMULA_FUNCTIONS = frozenset({"cdiv", "ceil", "floor", "max", "min", "abs", "itemsize", "size"})
"""Names in a formula that are no axes."""


def suite_text(draft: Draft, schema: str = f"../{SCHEMA}") -> str:
    """Return the suite file, with comments that say what to change; ``schema`` is the path of the
    schema, for editors."""
    arrays = [one for one in draft.arguments if isinstance(one, ArrayArgument)]
    scalars = [one for one in draft.arguments if isinstance(one, ScalarArgument)]
    moved = [
        f"{2 if one.intent == 'inout' else 1} * size({one.name}) * itemsize({one.name})"
        for one in arrays
        if one.intent != "scratch"
    ]
    values: dict[str, Any] = {
        "draft": draft,
        "arrays": arrays,
        "scalars": [one for one in scalars if one.value is not None],
        "bytes": " + ".join(moved).replace("1 * ", ""),
        "smoke": {axis: SMOKE_SIZES[min(len(draft.sizes), 3)] for axis in draft.sizes},
        "blocks": BLOCKS,
        "uses_cuda": any(one.backend == "numba_cuda" for one in draft.functions),
        "title": draft.title.replace('"', "'"),
        "schema": schema,
    }
    return template_environment().get_template("suite.yaml.jinja").render(**values)


def write_suite(draft: Draft, path: Path) -> None:
    """Write a suite in which ``gpubench check`` finds nothing wrong, or nothing.

    Raises ``AddError`` where something stands in its place, and for its faults.
    """
    from gpubench.suite.loading import load_suites

    if os.path.lexists(path):
        raise AddError(f"{path} is there and is kept; name the new one: --name {draft.name}_2")
    schema = Path(os.path.relpath(SCHEMA, path.parent)).as_posix()
    text = suite_text(draft, schema)
    with TemporaryDirectory(prefix="gpubench-add-") as folder:
        trial = Path(folder, path.name)
        trial.write_text(text, encoding="utf-8")
        try:
            load_suites([trial])
        except SuiteError as error:
            said = str(error).replace(str(trial), str(path))
            raise AddError(
                f"nothing is written, since the suite would have faults:\n{said}"
            ) from None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_new(path, text.encode())
        with suppress(FileExistsError):
            write_new(SCHEMA, schema_text().encode())
    except OSError as error:
        raise AddError(f"cannot write {error.filename!r}: {error.strerror}") from error
