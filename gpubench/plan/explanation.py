"""Which line of which file sets each value of a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import BaseModel

from gpubench.names import format_shape, format_value
from gpubench.plan.case import Case
from gpubench.plan.plan import Plan
from gpubench.plan.point import Path
from gpubench.suite.model import Zip

DEFAULT = "default"
"""Stands where no file says anything."""


class Explained(NamedTuple):
    """One value of a case."""

    field: str
    value: str
    origin: str
    """``suites/matmul.yaml:14:21``, with the preset where one set it; else why it is so."""


def explain(plan: Plan, case: Case) -> list[Explained]:
    """Every value that decides what is measured and how, each with the place that set it.

    Raises ``PlanError`` where a formula of the suite has no value at this case.
    """
    return [*_axes(case), *_shape(case), *_implementation(case), *_data(case), *_taking(case)]


def _axes(case: Case) -> Iterator[Explained]:
    for name in case.subject.identity_order:
        value = case.values[name]
        yield Explained(name, format_value(value), _origin(case, _axis_path(case, name)))


def _shape(case: Case) -> Iterator[Explained]:
    launch = case.launch
    own: Path = ("implementations", case.implementation_name)
    if launch is not None:
        yield _row(case, "block", format_shape(launch.block), (*own, "launch", "block"))
        grid = format_shape(launch.grid)
        text = f"{grid} (cover)" if case.grid in (None, "cover") else grid
        yield _row(case, "grid", text, (*own, "launch", "grid"))
        path = (*own, "launch", "shared_bytes")
        yield _row(case, "shared_bytes", str(launch.shared_bytes), path)
    if case.threads is not None:
        yield _row(case, "threads", str(case.threads), (*own, "threads"))
    yield _row(case, "device", case.device, ("devices",))


def _implementation(case: Case) -> Iterator[Explained]:
    implementation = case.implementation
    own: Path = ("implementations", case.implementation_name)
    for field in ("function", "factory", "launcher", "source", "entry"):
        text = getattr(implementation, field)
        if text is not None:
            yield _row(case, field, text, (*own, field))
    for name, value in case.with_values().items():
        yield _row(case, f"with.{name}", format_value(value), (*own, "with", name))
    if implementation.backend is None:
        yield Explained("backend", case.backend or "unknown", "recognised from the function")
    else:
        yield _row(case, "backend", implementation.backend, (*own, "backend"))


def _data(case: Case) -> Iterator[Explained]:
    for name, spec in case.array_specs().items():
        text = f"{spec.dtype} {list(spec.shape)} {spec.intent}"
        yield _row(case, f"arrays.{name}", text, ("arrays", name))
    for name, scalar in case.scalars().items():
        yield _row(case, f"scalars.{name}", str(scalar), ("scalars", name))
    for field, amount in zip(("bytes", "flops"), case.work(), strict=True):
        if amount is not None:
            yield _row(case, f"work.{field}", str(amount), ("work", field))
    yield _row(case, "call", ", ".join(case.kernel.call), ("call",))


def _taking(case: Case) -> Iterator[Explained]:
    yield _row(case, "baseline", case.kernel.baseline, ("baseline",))
    yield _row(case, "measure", ", ".join(case.subject.times), ("measure",))
    for field, value in case.kernel.sampling.model_dump(exclude_none=True).items():
        yield _row(case, f"sampling.{field}", str(value), ("sampling", field))


def _row(case: Case, field: str, value: str, path: Path) -> Explained:
    return Explained(field, value, _origin(case, path))


def _origin(case: Case, path: Path) -> str:
    if not _is_written(case.kernel, path):
        return DEFAULT
    return str(case.subject.loaded.origin(case.subject.path(*path)))


def _is_written(model: object, path: Path) -> bool:
    """Whether a file sets what the path leads to; a mapping of names to models has no defaults."""
    for step in path:
        if isinstance(model, BaseModel):
            field = "with_" if step == "with" else str(step)
            if field not in model.model_fields_set:
                return False
            model = getattr(model, field)
        elif isinstance(model, Mapping):
            model = model[step]
    return True


def _axis_path(case: Case, name: str) -> Path:
    """Path of the value itself in a list, of the range otherwise."""
    path, declared = _declared(case, name)
    if isinstance(declared, tuple) and case.values[name] in declared:
        return (*path, declared.index(case.values[name]))
    return path


def _declared(case: Case, name: str) -> tuple[Path, object]:
    kernel = case.kernel
    if name in kernel.parameters:
        return ("parameters", name), kernel.parameters[name]
    for size, declared in kernel.sizes.items():
        if isinstance(declared, Zip) and name in declared.zip:
            return ("sizes", size, "zip", name), declared.zip[name]
    return ("sizes", name), kernel.sizes[name]
