"""Which line of which file sets each value of a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpubench.names import format_shape, format_value
from gpubench.plan.case import Case
from gpubench.suite import tree
from gpubench.suite.arrays import Zip, axis_values
from gpubench.suite.types import Model


def explain(case: Case) -> list[tuple[str, str, str]]:
    """Return every value that decides what is measured and how: its field, its text, and what set
    it.

    That is a place, ``suites/matmul.yaml:14:21``, with the preset where one set it, or ``default``
    where no file says anything. Raises ``PlanError`` where a formula of the suite has no value at
    this case.
    """
    return [(field, text, _origin(case, path)) for field, text, path in _values(case)]


def _values(case: Case) -> Iterator[tuple[str, str, tree.Path]]:
    """Name of each field, its text, and where it stands inside the kernel."""
    kernel, implementation, launch = case.kernel, case.implementation, case.launch
    for name in case.group.axes.names:
        yield name, format_value(case.values[name]), _axis(case, name)
    for name, value in case.constants().items():
        yield f"let.{name}", format_value(value), ("let", name)

    at = ("implementations", case.implementation_name)
    if launch is not None:
        covers = f" (covers {case.covered})" if case.grid in (None, "cover") else ""
        yield "block", format_shape(launch.block), (*at, "launch", "block")
        yield "grid", f"{format_shape(launch.grid)}{covers}", (*at, "launch", "grid")
        yield "shared_bytes", str(launch.shared_bytes), (*at, "launch", "shared_bytes")
    if case.threads is not None:
        yield "threads", str(case.threads), (*at, "threads")
    yield "device", case.device, ("devices",)

    for field in ("function", "factory", "launcher", "source", "entry"):
        if text := getattr(implementation, field):
            yield field, text, (*at, field)
    for name, value in case.with_values().items():
        yield f"with.{name}", format_value(value), (*at, "with", name)
    yield "backend", case.backend or "unknown", (*at, "backend")

    if implementation.cast:
        yield "cast", implementation.cast, (*at, "cast")
    for name, spec in case.array_specs.items():
        order = f" order {spec.order}" if spec.order else ""
        words = f"{spec.dtype} {list(spec.shape)} {spec.intent}{order}"
        yield f"arrays.{name}", words, spec.path
    for name, columns in case.table_specs.items():
        for column, one in columns.items():
            spec = one.values
            text = "category" if one.is_category else "text"
            words = text if spec.dtype.hasobject else str(spec.dtype)
            nulls = f" {one.nulls:g} nulls" if one.nulls else ""
            yield f"tables.{name}.{column}", f"{words} {list(spec.shape)}{nulls}", spec.path
    for name, scalar in case.scalars().items():
        yield f"scalars.{name}", str(scalar), ("scalars", name)
    for field, amount in zip(("bytes", "flops"), case.work(), strict=True):
        if amount is not None:
            yield f"work.{field}", str(amount), ("work", field)
    if case.memory_limit is not None:
        yield "memory_limit", str(case.memory_limit), ("memory_limit",)
    yield "call", ", ".join(kernel.call), ("call",)
    yield "baseline", kernel.baseline, ("baseline",)
    yield "measure", ", ".join(case.group.times), ("measure",)
    for field, setting in kernel.sampling.model_dump(exclude_none=True).items():
        yield f"sampling.{field}", str(setting), ("sampling", field)


def _axis(case: Case, name: str) -> tree.Path:
    """Return where an axis has its value: the value itself in a list, else the range."""
    kernel, values = case.kernel, case.values
    path: tree.Path = ("parameters", name) if name in kernel.parameters else ("sizes", name)
    axis = kernel.parameters.get(name) or kernel.sizes.get(name)
    row: object = values[name]
    rows: object = axis
    for group, size in kernel.sizes.items():
        if isinstance(size, Zip) and name in size.zip:
            path, axis = ("sizes", group, "zip", name), size.zip[name]
            # A value may be there twice, with others beside it.
            row = tuple(values[other] for other in size.zip)
            rows = tuple(zip(*map(axis_values, size.zip.values()), strict=True))
    if isinstance(axis, tuple) and isinstance(rows, tuple) and row in rows:
        return (*path, rows.index(row))
    return path


def _origin(case: Case, path: tree.Path) -> str:
    """Return the place that sets what the path leads to, if a file does; a mapping of names to
    models has no defaults."""
    loaded = case.group.loaded
    model: object = case.kernel
    for step in path:
        if isinstance(model, Model):
            field = "with_" if step == "with" else str(step)
            if field in model.model_fields_set:
                model = getattr(model, field)
                continue
            if step != "backend":
                return "default"
            # Not beside the implementation: its name says it, or the top of the file.
            if case.backend == case.implementation_name or loaded.suite.backend is None:
                return "the implementation's name"
            return str(loaded.origin(("backend",)))
        if isinstance(model, Mapping):
            model = model[step]
    return str(loaded.origin(("kernels", case.kernel_name, *path)))
