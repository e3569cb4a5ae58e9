"""Which backend an implementation is for, when its suite does not say ``backend:``.

First from the source alone: a function without a decorator is NumPy's, one under ``numba.njit`` is
Numba's. Only where the source does not tell is the module imported and every backend asked.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

from gpubench.backends import registry
from gpubench.backends.definitions import (
    Definition,
    Module,
    bindings,
    did_you_mean,
    find_module,
    imported_names,
    reference_of,
)
from gpubench.errors import BackendError, KernelError
from gpubench.suite.model import Implementation

NUMPY, NUMBA, NUMBA_CUDA = "numpy", "numba", "numba_cuda"

_DECORATORS: Mapping[str, str] = {
    "numba.njit": NUMBA,
    "numba.jit": NUMBA,
    "numba.vectorize": NUMBA,
    "numba.guvectorize": NUMBA,
    "numba.stencil": NUMBA,
    "numba.cuda.jit": NUMBA_CUDA,
}
_TARGETED = ("numba.vectorize", "numba.guvectorize")
_LAZY = "gpubench.kernels.lazy_numba."
"""Module whose names are Numba's own, imported later."""
_FOLLOWED = 8
"""Most names that are followed from one to the next before the source counts as not telling."""


def recognise(implementation: Implementation) -> str:
    """Name of the backend of an implementation that names no ``backend``.

    Raises ``KernelError`` for a module or name that is not there (with the nearest that is), and
    where neither the source nor any backend can tell.
    """
    reference = reference_of(implementation)
    if reference is None:
        raise KernelError(_unknown(f"source {str(implementation.source)!r}"))
    module_name, _, name = reference.partition(":")
    module = find_module(module_name)
    if module is not None:
        backend = _from_source(_View.of(module), name, _reader(implementation))
        if backend is not None:
            return backend
    return _from_import(module_name, name, implementation)


@dataclass(frozen=True)
class _View:
    """What the names at one place in a source file are bound to."""

    module: Module
    definitions: Mapping[str, tuple[Definition, ...]]
    imports: Mapping[str, str]
    followed: int = 0

    @classmethod
    def of(cls, module: Module) -> _View:
        return cls(module, module.definitions, module.imports)

    def inside(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> _View:
        """The view from inside a function: its own names before the module's."""
        local: dict[str, tuple[Definition, ...]] = {}
        for name, definition in bindings(function.body):
            local[name] = (*local.get(name, ()), definition)
        package = self.module.name.rpartition(".")[0]
        imports = dict(imported_names(function.body, package))
        return replace(
            self, definitions={**self.definitions, **local}, imports={**self.imports, **imports}
        )

    def full_name(self, node: ast.expr) -> str | None:
        """``numba.cuda.jit`` for ``cuda.jit``; ``None`` where it is not plain to see."""
        match node:
            case ast.Name(id=name) if not self._is_rebound(name):
                imported = self.imports.get(name)
                return imported and imported.replace(_LAZY, "numba.")
            case ast.Attribute(value=value, attr=attribute):
                owner = self.full_name(value)
                return None if owner is None else f"{owner}.{attribute}"
        return None

    def _is_rebound(self, name: str) -> bool:
        """Other than to a constant: ``except ImportError: cuda = None`` stands beside an import."""
        found = self.definitions.get(name, ())
        return not all(isinstance(definition, ast.Constant) for definition in found)

    def followed_once(self) -> _View:
        return replace(self, followed=self.followed + 1)


_Reader = Callable[[_View, Definition], str | None]
"""Tells a backend from a definition and what its names are bound to, if that is plain to see."""


def _reader(implementation: Implementation) -> _Reader:
    if implementation.function is not None:
        return _backend
    return _product if implementation.factory is not None else _launched


def _from_source(view: _View, name: str, read: _Reader) -> str | None:
    """What a name of the file is, followed to the module that it is imported from."""
    if name in view.definitions:
        definition = _only(view, name)
        return None if definition is None else read(view, definition)
    source, _, original = view.imports.get(name, "").rpartition(".")
    if not source or view.followed >= _FOLLOWED:
        return None
    try:
        module = find_module(source)
    except KernelError:
        return None
    if module is None:
        return None
    return _from_source(replace(_View.of(module), followed=view.followed + 1), original, read)


def _only(view: _View, name: str) -> Definition | None:
    """What a name is bound to, if it is bound once."""
    found = view.definitions.get(name, ())
    return found[0] if len(found) == 1 else None


def _backend(view: _View, definition: Definition) -> str | None:
    """Backend of what a definition defines; ``None`` where the source does not tell."""
    if view.followed >= _FOLLOWED:
        return None
    match definition:
        case ast.FunctionDef(decorator_list=[]) | ast.Lambda():
            return NUMPY
        case ast.FunctionDef(decorator_list=decorators):
            return _agreed(_decorator(view, decorator) for decorator in decorators)
        case ast.Name(id=name):
            bound = _only(view, name)
            return None if bound is None else _backend(view.followed_once(), bound)
        case ast.Call(func=function):
            return _decorator(view, function)
        case ast.Attribute():
            full_name = view.full_name(definition) or ""
            return NUMPY if full_name.startswith("numpy.") else None
    return None


def _decorator(view: _View, node: ast.expr) -> str | None:
    """Backend that a decorator makes a function for: ``njit``, ``njit(parallel=True)``, or a name
    for one of them."""
    if view.followed >= _FOLLOWED:
        return None
    if isinstance(node, ast.Call):
        if view.full_name(node.func) == "functools.partial" and node.args:
            return _decorator(view.followed_once(), node.args[0])
        if view.full_name(node.func) in _TARGETED:
            return _targeted(node)
        return _decorator(view.followed_once(), node.func)
    if isinstance(node, ast.Name):
        bound = _only(view, node.id)
        if isinstance(bound, ast.expr):
            return _decorator(view.followed_once(), bound)
    return _DECORATORS.get(view.full_name(node) or "")


def _targeted(call: ast.Call) -> str | None:
    """``vectorize(..., target='cuda')`` is not the CPU's."""
    targets = [keyword.value for keyword in call.keywords if keyword.arg == "target"]
    match targets:
        case [] | [ast.Constant(value="cpu" | "parallel")]:
            return NUMBA
        case [ast.Constant(value="cuda")]:
            return NUMBA_CUDA
    return None


def _product(view: _View, factory: Definition) -> str | None:
    """Backend of what a factory returns."""
    if not isinstance(factory, ast.FunctionDef):
        return None
    inside = view.inside(factory)
    returns = (node for node in _own_statements(factory.body) if isinstance(node, ast.Return))
    return _agreed(_returned(inside, node.value) for node in returns if node.value is not None)


def _returned(view: _View, value: ast.expr) -> str | None:
    """A returned name, ``njit(inner)``, or what another factory of the file makes."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        other = _only(view, value.func.id)
        if isinstance(other, ast.FunctionDef) and view.followed < _FOLLOWED:
            return _product(view.followed_once(), other)
    return _backend(view, value)


def _launched(view: _View, launcher: Definition) -> str | None:
    """Backend of the kernels that a launcher launches: ``kernel[grid, block](...)``."""
    if not isinstance(launcher, ast.FunctionDef):
        return None
    inside = view.inside(launcher)
    return _agreed(
        _from_source(inside, node.func.value.id, _backend)
        for node in ast.walk(launcher)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Subscript)
        and isinstance(node.func.value, ast.Name)
    )


def _own_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a function without those of the functions inside it."""
    for statement in body:
        yield statement
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.stmt)]
            yield from _own_statements(inner)


def _agreed(backends: Iterable[str | None]) -> str | None:
    """The one backend that all of them are; ``None`` where they differ or one is not known."""
    found = set(backends)
    return found.pop() if len(found) == 1 else None


def _from_import(module_name: str, name: str, implementation: Implementation) -> str:
    """Import the module and ask every backend about what it names, or about what it launches."""
    target = _imported(module_name, name)
    if implementation.function is not None:
        asked = [target]
    elif implementation.launcher is not None and isinstance(target, FunctionType):
        asked = [target.__globals__.get(used) for used in target.__code__.co_names]
    else:
        asked = []
    takers = {backend for function in asked for backend in _takers(function)}
    if implementation.launcher is not None:
        takers.discard(NUMPY)
    if len(takers) != 1:
        raise KernelError(_unknown(repr(f"{module_name}:{name}"), takers))
    return takers.pop()


def _imported(module_name: str, name: str) -> Any:
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise KernelError(f"cannot import {module_name!r}: {cause}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            hint = did_you_mean(part, dir(found))
            raise KernelError(f"module {module_name!r} has no {name!r}{hint}")
        found = getattr(found, part)
    return found


def _takers(function: Any) -> Iterator[str]:
    """Backends that take a loaded object for theirs. One that cannot be loaded takes nothing: it is
    reported where a suite names it."""
    if function is None:
        return
    for name in registry.names():
        try:
            backend = registry.get(name)
        except BackendError:
            continue
        if backend.recognises(function):
            yield name


def _unknown(what: str, takers: set[str] | None = None) -> str:
    several = f" ({' and '.join(sorted(takers))} both take it)" if takers else ""
    return (
        f"cannot tell which backend runs {what}{several}: write `backend:`, one of "
        f"{', '.join(registry.names())}"
    )
