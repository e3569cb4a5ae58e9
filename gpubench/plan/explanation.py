"""Which line of which file sets each value of a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gpubench.names import format_shape, format_value
from gpubench.plan.case import Case
from gpubench.suite import tree
from gpubench.suite.model import Zip
from gpubench.suite.types import Model


class Explained(NamedTuple):
    """One value of a case."""

    field: str
    value: str
    origin: str
    """``suites/matmul.yaml:14:21``, with the preset where one set it; ``default`` where no file
    says anything."""


def explain(case: Case) -> list[Explained]:
    """Every value that decides what is measured and how, each with the place that set it.

    Raises ``PlanError`` where a formula of the suite has no value at this case.
    """
    values = (*_axes(case), *_launch(case), *_implementation(case), *_data(case), *_taking(case))
    return [Explained(field, value, _origin(case, path)) for field, value, path in values]


_Value = tuple[str, str, tree.Path]
"""Name of a field, its text, and where it stands inside the kernel."""


def _axes(case: Case) -> Iterator[_Value]:
    for name in case.group.identity_order:
        value = case.values[name]
        path, declared = _declared(case, name)
        if isinstance(declared, tuple) and value in declared:
            path = (*path, declared.index(value))  # the value itself in a list, else the range
        yield name, format_value(value), path


def _declared(case: Case, name: str) -> tuple[tree.Path, object]:
    kernel = case.kernel
    if name in kernel.parameters:
        return ("parameters", name), kernel.parameters[name]
    for group, size in kernel.sizes.items():
        if isinstance(size, Zip) and name in size.zip:
            return ("sizes", group, "zip", name), size.zip[name]
    return ("sizes", name), kernel.sizes[name]


def _launch(case: Case) -> Iterator[_Value]:
    path, launch = ("implementations", case.implementation_name), case.launch
    if launch is not None:
        grid = format_shape(launch.grid)
        grid = f"{grid} (cover)" if case.grid in (None, "cover") else grid
        yield "block", format_shape(launch.block), (*path, "launch", "block")
        yield "grid", grid, (*path, "launch", "grid")
        yield "shared_bytes", str(launch.shared_bytes), (*path, "launch", "shared_bytes")
    if case.threads is not None:
        yield "threads", str(case.threads), (*path, "threads")
    yield "device", case.device, ("devices",)


def _implementation(case: Case) -> Iterator[_Value]:
    path = ("implementations", case.implementation_name)
    for field in ("function", "factory", "launcher", "source", "entry"):
        if text := getattr(case.implementation, field):
            yield field, text, (*path, field)
    for name, value in case.with_values().items():
        yield f"with.{name}", format_value(value), (*path, "with", name)
    yield "backend", case.backend or "unknown", (*path, "backend")


def _data(case: Case) -> Iterator[_Value]:
    for name, spec in case.array_specs().items():
        yield f"arrays.{name}", f"{spec.dtype} {list(spec.shape)} {spec.intent}", ("arrays", name)
    for name, scalar in case.scalars().items():
        yield f"scalars.{name}", str(scalar), ("scalars", name)
    for field, amount in zip(("bytes", "flops"), case.work(), strict=True):
        if amount is not None:
            yield f"work.{field}", str(amount), ("work", field)
    yield "call", ", ".join(case.kernel.call), ("call",)


def _taking(case: Case) -> Iterator[_Value]:
    yield "baseline", case.kernel.baseline, ("baseline",)
    yield "measure", ", ".join(case.group.times), ("measure",)
    for field, value in case.kernel.sampling.model_dump(exclude_none=True).items():
        yield f"sampling.{field}", str(value), ("sampling", field)


def _origin(case: Case, path: tree.Path) -> str:
    loaded = case.group.loaded
    if _is_written(case.kernel, path):
        return str(loaded.origin(("kernels", case.kernel_name, *path)))
    if path[-1] != "backend":
        return "default"
    # Not beside the implementation: its name says it, or the top of the file.
    if case.backend == case.implementation_name or loaded.suite.backend is None:
        return "the implementation's name"
    return str(loaded.origin(("backend",)))


def _is_written(model: object, path: tree.Path) -> bool:
    """Whether a file sets what the path leads to; a mapping of names to models has no defaults."""
    for step in path:
        if isinstance(model, Model):
            field = "with_" if step == "with" else str(step)
            if field not in model.model_fields_set:
                return False
            model = getattr(model, field)
        elif isinstance(model, Mapping):
            model = model[step]
    return True
