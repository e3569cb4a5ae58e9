"""A group of cases between processes: read from one file instead of planned again.

asv starts a process for every case. Reading suites, validating them and planning takes longer than
many kernels; so the process that plans (asv discovers benchmarks in one) leaves each group beside
its suite, in ``__pycache__``, and others take it from there. As with Python's compiled modules the
files that it was made from have to be as they were, and whoever may write there may write code.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gpubench
from gpubench.backends import registry
from gpubench.backends.software import requested
from gpubench.plan.group import Group
from gpubench.suite.loaded import LoadedSuite
from gpubench.whole_file import write_whole

FORMAT = 2
_ENGINE = ("suite", "plan", "backends")
"""Packages that decide what a plan is."""

Stamp = tuple[str, int, int]
"""A file, its size in bytes, and when it was changed, in nanoseconds."""


@dataclass(frozen=True)
class Blueprint:
    """One class of asv: what asv asks of it, and the cases behind it."""

    group: Group
    title: str
    identities: tuple[str, ...]
    """Of its cases, in order: asv's parameters."""
    compiled: tuple[str, ...]
    """Those of them whose compilation is measured."""
    attributes: Mapping[str, Any]
    """asv's own attributes, ``rounds`` and ``timeout`` for example."""
    versions: Mapping[str, str]
    """Of the benchmark of each labelled time."""
    source: str
    """What asv's pages show as its code."""
    gpu_count: int | None
    """GPUs that were found; ``None`` where no case is on a device, so that it does not matter."""


def store(suite: Path, preset: str | None, blueprints: Sequence[Blueprint]) -> None:
    """Leave the blueprints of a suite file for other processes.

    Nothing is left where the folder cannot be written, and of a blueprint that cannot be pickled.
    """
    groups = [blueprint.group for blueprint in blueprints]
    backends = {name for group in groups for name in group.subject.backends}
    places = {name: registry.place(name) for name in sorted(backends)}
    pickled = {blueprint.group.class_name: _pickled(blueprint) for blueprint in blueprints}
    with suppress(OSError):
        stamps = [_stamp(path) for path in _sources(groups)]
        write_whole(_file(suite, preset), pickle.dumps((stamps, places, pickled)))


def stored(suite: Path, preset: str | None, class_name: str) -> Blueprint | None:
    """The blueprint that was left for a class, or ``None`` where there is none that still holds."""
    try:
        stamps, places, pickled = pickle.loads(_file(suite, preset).read_bytes())
        if any(_stamp(stamp[0]) != stamp for stamp in stamps):
            return None
        for backend, place in places.items():
            registry.prefer(backend, place)
        blueprint: Blueprint = pickle.loads(pickled[class_name])
        return blueprint if _same_machine(blueprint) else None
    except Exception:  # whatever is wrong with the file: planning again is always right
        return None


def _same_machine(blueprint: Blueprint) -> bool:
    """Counting GPUs takes a while, so that it is left out where no case is on one."""
    if blueprint.gpu_count is None:
        return True
    from gpubench.backends.devices import gpu_count

    return blueprint.gpu_count == gpu_count()


class Fields(SimpleNamespace):
    """The fields of a model of the suite, without the model and what it takes to import it."""


def _file(suite: Path, preset: str | None) -> Path:
    """One for each way in which the same suite gives another plan."""
    way = (FORMAT, gpubench.__version__, sys.prefix, sys.version, preset, requested())
    key = hashlib.sha256(repr(way).encode()).hexdigest()[:16]
    return suite.resolve().parent / "__pycache__" / f"{suite.stem}.{key}.gpubench"


def _stamp(path: Path | str) -> Stamp:
    status = Path(path).stat()
    return str(path), status.st_size, status.st_mtime_ns


def _sources(groups: Iterable[Group]) -> list[Path]:
    """Files of the suites, of the modules that were read to tell backends, and of the engine."""
    from gpubench.backends.definitions import files_read

    engine = Path(gpubench.__file__).parent
    files = {path for name in _ENGINE for path in (engine / name).glob("*.py")}
    for loaded in {id(group.subject.loaded): group.subject.loaded for group in groups}.values():
        files |= {Path(path) for path in _origins(loaded)}
    return sorted({path.resolve() for path in (*files, *files_read())})


def _origins(loaded: LoadedSuite) -> set[str]:
    """Files that a suite's values come from."""
    nodes, found = [loaded.root], {str(loaded.path)}
    while nodes:
        node = nodes.pop()
        found.add(str(node.origin.path))
        nodes += node.items
        nodes += [entry.value for entry in node.entries.values()]
    return found


def _pickled(blueprint: Blueprint) -> bytes | None:
    buffer = io.BytesIO()
    try:
        _Pickler(buffer).dump(blueprint)
    except Exception:  # a backend of another package may be no such object: it is planned again
        return None
    return buffer.getvalue()


class _Pickler(pickle.Pickler):
    """Puts plain fields for models, and of a suite only what its groups do not have themselves."""

    def reducer_override(self, found: Any) -> Any:
        from pydantic import BaseModel

        if isinstance(found, Group):
            found.subject.settle()
            return Group, (found.subject,)
        if isinstance(found, LoadedSuite):
            return _loaded, (found.path, found.preset, found.warnings, found.suite.suite)
        if isinstance(found, BaseModel):
            return _fields, (dict(found),)
        return NotImplemented


def _fields(fields: dict[str, Any]) -> Fields:
    return Fields(**fields)


def _loaded(path: Path, preset: str | None, warnings: tuple[Any, ...], name: str) -> LoadedSuite:
    suite: Any = Fields(suite=name)
    root: Any = _Root(path, preset)
    return LoadedSuite(suite, path, preset, warnings, root)


class _Root:
    """The places of a suite's values, read when something is to be said about them."""

    def __init__(self, path: Path, preset: str | None) -> None:
        self._place = path, preset

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    @cached_property
    def _node(self) -> Any:
        from gpubench.suite.loading import load_suite

        path, preset = self._place
        return load_suite(path, preset).root
