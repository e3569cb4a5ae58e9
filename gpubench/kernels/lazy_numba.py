"""Numba's names, imported when something compiled is first used.

A file of kernels holds all of their forms. Whoever asks for a NumPy form should not wait for Numba,
nor whoever asks for a CPU form for CUDA. So kernels import from here what they would import from
``numba``::

    from gpubench.kernels.lazy_numba import cuda, njit, prange

A function under ``@njit`` or ``@cuda.jit`` waits as it is written. Its first use (a call, a launch,
an attribute) imports Numba and puts Numba's own names and compiled functions into the file's
namespace, the waiting ones' included, so that the kernels that it calls are there too. Forms for
the CPU leave those for CUDA waiting. Signatures are written as text, because a type of Numba is
only there once Numba is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from importlib import import_module
from types import FunctionType
from typing import Any

_DECORATORS = ("njit", "jit", "vectorize", "guvectorize", "stencil", "cuda.jit")


def __getattr__(name: str) -> Any:
    """``from gpubench.kernels.lazy_numba import njit``: any name of ``numba``."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return LazyName(name)


def resolve(value: Any) -> Any:
    """Numba's own object for one that waits; anything else as it is."""
    return value._resolve() if isinstance(value, _Lazy) else value


class _Lazy:
    """Stands for an object of Numba until something is done with it."""

    on_cuda: bool

    def __gpubench_target__(self) -> Any:
        """Return what a suite means that names this object (see ``docs/adding-a-kernel.md``)."""
        return self._resolve()

    def _resolve(self) -> Any:
        raise NotImplementedError

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._resolve()(*map(resolve, arguments), **options)

    def __getitem__(self, index: Any) -> Any:
        return self._resolve()[index]


class LazyName(_Lazy):
    """A name inside ``numba``: ``njit``, ``cuda``, ``cuda.jit``."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.on_cuda = path.partition(".")[0] == "cuda"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"numba.{self._path} is not imported yet: {name!r}")
        return LazyName(f"{self._path}.{name}")

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if self._path not in _DECORATORS:
            return super().__call__(*arguments, **options)
        match arguments:
            case [FunctionType() as function] if not options:
                return self._decorate(function, lambda decorator: decorator)
        return functools.partial(
            self._decorate, make=lambda decorator: decorator(*arguments, **options)
        )

    def _decorate(self, function: FunctionType, make: Callable[[Any], Any]) -> Any:
        """Have a function of the file wait; one made inside another is made to be used."""
        lazy = LazyFunction(function, self, make)
        return lazy._resolve() if "<locals>" in function.__qualname__ else lazy

    def _resolve(self) -> Any:
        value: Any = import_module("numba.cuda" if self.on_cuda else "numba")
        for part in self._path.split(".")[self.on_cuda :]:
            if not hasattr(value, part):
                raise ImportError(f"cannot import name {part!r} from {value.__name__!r}")
            value = getattr(value, part)
        return value


class LazyFunction(_Lazy):
    """A function whose decorator waits."""

    def __init__(
        self, function: FunctionType, decorator: LazyName, make: Callable[[Any], Any]
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._decorator = decorator
        self._make = make
        self.on_cuda = decorator.on_cuda

    def __getattr__(self, name: str) -> Any:
        if name == "_compiled":  # decorating failed: there is nothing to ask
            raise AttributeError(name)
        return getattr(self._resolve(), name)

    def _resolve(self) -> Any:
        _settle(self._function.__globals__, self.on_cuda)
        return self._compiled

    @functools.cached_property
    def _compiled(self) -> Any:
        return self._make(self._decorator._resolve())(self._function)


def _settle(namespace: dict[str, Any], on_cuda: bool) -> None:
    """Put Numba's objects for the waiting ones. Names come first, because a decorator with a
    signature compiles at once; code for CUDA may use what is there for the CPU."""
    for kind in (LazyName, LazyFunction):
        for name, lazy in _waiting(namespace, kind, on_cuda):
            # A function of this file is compiled here: resolving it would settle the file again.
            local = isinstance(lazy, LazyFunction) and lazy._function.__globals__ is namespace
            namespace[name] = lazy._compiled if local else lazy._resolve()


def _waiting(
    namespace: dict[str, Any], kind: type[_Lazy], on_cuda: bool
) -> Iterator[tuple[str, Any]]:
    for name, value in list(namespace.items()):
        if isinstance(value, kind) and (on_cuda or not value.on_cuda):
            yield name, value
