"""Counts what NumPy does in a call: ufuncs, operations, bytes, arrays that are made.

Arrays of the call are of a subclass that NumPy tells of each ufunc. That is all the work only where
a function does nothing else: other functions of NumPy, other libraries, single elements and copies
are noticed, and then nothing but memory is counted.
"""

from __future__ import annotations

import builtins
import dis
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import BuiltinMethodType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any, ClassVar

import numpy as np

from gpubench.counts.numpy_memory import AllocationCounter

_OPERATIONS = {"add": (1, 2), "subtract": (1, 2), "multiply": (1, 6), "square": (1, 6)}
"""Operations for each number that a ufunc makes: of real numbers, of complex ones."""
_DIVISIONS = ("divide", "floor_divide", "remainder", "fmod", "reciprocal")
_ROOTS_AND_SINES = (
    *("sqrt", "cbrt", "hypot", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "power"),
    *("float_power", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh"),
    *("tanh", "arcsinh", "arccosh", "arctanh", "logaddexp", "logaddexp2"),
)
_REDUCING = ("sum", "prod", "max", "min", "amax", "amin", "mean", "any", "all")
"""Functions and methods of NumPy that do their work by ufuncs."""
_VIEWING = ("reshape", "transpose", "swapaxes", "squeeze", "ravel")
"""Methods that give views; a copy takes memory, which is noticed."""
_UNSEEN = (
    *("linalg", "fft", "random", "ma", "lib", "polynomial", "char", "strings", "rec", "ctypeslib"),
    *("emath", "testing", "memoryview", "bytes", "bytearray"),
)
"""Names of parts of NumPy that work in C of their own, and of what reads an array's memory."""
_MAX_ELEMENTS = 32
"""Single elements that a call may read: constants. What is done with more is work of Python's."""


@dataclass(frozen=True, slots=True)
class NumpyCounts:
    """What one call did."""

    totals: Mapping[str, int]
    """``allocations`` and ``allocated_bytes`` always; operations, bytes and calls where all is
    seen."""
    missing: str | None
    """Why calls, operations and bytes are not counted; ``None`` where they are."""


class UnseenWork(Exception):
    """What was called does work that no ufunc does; the message says which."""


class NumpyCounter:
    """Counts calls of NumPy in this process."""

    def __init__(self) -> None:
        self._memory = AllocationCounter()

    def count(
        self,
        call: Callable[[], Any],
        watched_call: Callable[[], Any],
        within: Callable[[Callable[[], None]], None],
    ) -> NumpyCounts:
        """Call as it is, for its memory, then ``watched_call``: the same on watched arrays.

        ``within`` is given the second call, makes it, and may raise ``UnseenWork``.
        """
        count, size = self._memory.count, self._memory.bytes
        call()
        memory = {
            "allocations": self._memory.count - count,
            "allocated_bytes": self._memory.bytes - size,
        }
        watch = _Watch(self._memory)
        try:
            within(lambda: watch.run(watched_call))
        except UnseenWork as error:
            watch.miss(str(error))
        except Exception as error:
            watch.miss(f"it refuses a subclass of numpy.ndarray ({type(error).__name__})")
        if watch.unseen_allocations(memory["allocations"]):
            watch.miss("it makes arrays outside ufuncs")
        totals = {**memory, **({} if watch.missing else watch.totals)}
        return NumpyCounts({name: n for name, n in totals.items() if n}, watch.missing)


class WatchedArray(np.ndarray):
    """An array whose ufuncs are counted while a watch is on."""

    watch: ClassVar[_Watch | None] = None

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        given = [_plain(one) for one in inputs]
        if out is not None:
            options["out"] = tuple(map(_plain, out))
        with_plain = {name: _plain(one) for name, one in options.items()}
        if self.watch is None:
            return getattr(ufunc, method)(*given, **with_plain)
        result = self.watch.ufunc(ufunc, method, given, with_plain)
        if out is not None:
            return out[0] if len(out) == 1 else out
        return tuple(map(_watched, result)) if isinstance(result, tuple) else _watched(result)

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        if self.watch is None or function.__name__ in _REDUCING:
            return super().__array_function__(function, types, given, options)
        return self.watch.function(function, given, options)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if self.watch:
            self.watch.index(key, is_element=not isinstance(found, np.ndarray))
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.watch:
            self.watch.index(key, is_element=False)
            self.watch.assign(np.ndarray.__getitem__(self, key), value)
        super().__setitem__(key, _plain(value))

    def __iter__(self) -> Any:
        if self.watch:
            self.watch.miss("it goes through an array element by element")
        return super().__iter__()


class _Watch:
    """Counts one call, and notices work that no ufunc does."""

    def __init__(self, memory: AllocationCounter) -> None:
        self.totals: Counter[str] = Counter()
        self.missing: str | None = None
        self._memory = memory
        self._seen = self._outside = self._elements = 0
        self._codes: set[CodeType] = set()

    def run(self, call: Callable[[], Any]) -> None:
        before, profile = self._memory.count, sys.getprofile()
        WatchedArray.watch = self
        sys.setprofile(self._event)
        try:
            call()
        finally:
            sys.setprofile(profile)
            WatchedArray.watch = None
        self._outside = self._memory.count - before - self._seen

    def unseen_allocations(self, as_it_is: int) -> bool:
        """Return whether arrays were made outside ufuncs, or others than without a watch."""
        return self._outside != 0 or self._seen != as_it_is

    def miss(self, why: str) -> None:
        self.missing = self.missing or why

    def ufunc(self, ufunc: np.ufunc, method: str, given: list[Any], options: Any) -> Any:
        before = self._memory.count
        result = getattr(ufunc, method)(*given, **options)
        self._seen += self._memory.count - before
        if method not in ("__call__", "reduce", "accumulate", "outer"):
            self.miss(f"np.{ufunc.__name__}.{method} works by places")
        if options.get("where", True) is not True:
            self.miss(f"np.{ufunc.__name__} works where a mask says")
        if getattr(np, ufunc.__name__, None) is not ufunc:
            self.miss(f"{ufunc.__name__} is no ufunc of NumPy's")
        results = result if isinstance(result, tuple) else (result,)
        size = np.size(given[0]) if method in ("reduce", "accumulate") else np.size(results[0])
        made = size - np.size(results[0]) if method == "reduce" else size
        self._operations(ufunc.__name__, made, given, np.asarray(results[0]))
        self.totals["calls"] += 1
        self.totals["load_bytes"] += sum(map(_bytes_of, given))
        self.totals["store_bytes"] += sum(np.asarray(one).nbytes for one in results)
        return result

    def function(self, function: Any, given: Any, options: Any) -> Any:
        """Call a function that is no ufunc, and count a copy and a product of two arrays."""
        name, arrays = function.__name__, list(map(_plain, given))
        before = self._memory.count
        result = function(*arrays, **{key: _plain(one) for key, one in options.items()})
        self._seen += self._memory.count - before
        if name == "copyto" and len(arrays) == 2 and not options:
            self.assign(*arrays)
        elif name == "dot" and len(arrays) == 2 and all(np.ndim(one) for one in arrays):
            self._operations("matmul", np.size(result), arrays, np.asarray(result))
            self.totals["calls"] += 1
            self.totals["load_bytes"] += sum(map(_bytes_of, arrays))
            self.totals["store_bytes"] += np.asarray(result).nbytes
        else:
            self.miss(f"np.{name} is no ufunc")
        return options.get("out", _watched(result))

    def _operations(self, name: str, made: int, given: list[Any], result: Any) -> None:
        kind, bits = result.dtype.kind, 8 * result.dtype.itemsize
        if kind not in "fc":
            return
        precision = f"flops_float{bits if kind == 'f' else bits // 2}"
        if name == "matmul":
            self.totals[precision] += made * np.shape(given[0])[-1] * (2 if kind == "f" else 8)
        elif name in _OPERATIONS:
            self.totals[precision] += made * _OPERATIONS[name][kind == "c"]
        elif name in _DIVISIONS or name in _ROOTS_AND_SINES:
            self.totals["special_functions"] += made

    def assign(self, target: Any, value: Any) -> None:
        self.totals["calls"] += 1
        self.totals["load_bytes"] += _bytes_of(value)
        self.totals["store_bytes"] += np.asarray(target).nbytes

    def index(self, key: Any, *, is_element: bool) -> None:
        parts = key if isinstance(key, tuple) else (key,)
        basic = (int, np.integer, slice, type(None), type(Ellipsis))
        if any(isinstance(one, bool) or not isinstance(one, basic) for one in parts):
            self.miss("it indexes by arrays")
        self._elements += is_element
        if self._elements > _MAX_ELEMENTS:
            self.miss("it reads single elements")

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        """Notice what code outside NumPy and gpubench calls."""
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(("numpy.", f"{__package__}.")):
            return
        if event == "call" and frame.f_code not in self._codes:
            self._codes.add(frame.f_code)
            self._look_at(frame)
        elif event == "c_call" and not _is_harmless(argument):
            self.miss(f"it calls {getattr(argument, '__name__', argument)}")

    def _look_at(self, frame: FrameType) -> None:
        """Miss work where a function imports, or names what may work unseen."""
        code = frame.f_code
        if any(one.opname == "IMPORT_NAME" for one in dis.get_instructions(code)):
            self.miss("it imports a module")
        named = {name: frame.f_globals.get(name) for name in code.co_names}
        named |= {name: frame.f_locals.get(name) for name in code.co_freevars}
        for name, value in named.items():
            if name in _UNSEEN or not _is_known(value):
                self.miss(f"it uses {name}")


def _is_known(value: Any) -> bool:
    """Return whether nothing works unseen where a function uses this: a number, a function of
    Python's, whose code is looked at too."""
    if isinstance(value, ModuleType):
        return value in (np, math)
    known = (FunctionType, np.ufunc, int, float, complex, str, tuple, np.generic, np.dtype)
    return value is None or isinstance(value, known)


def _is_harmless(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ndarray):
        return function.__name__ in (*_REDUCING, *_VIEWING)
    if isinstance(owner, np.ufunc):
        return True  # its reduce and accumulate are told
    is_plain = isinstance(function, BuiltinMethodType) and owner in (builtins, math)
    return is_plain or function is sys.setprofile or isinstance(owner, list | dict | tuple | str)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, WatchedArray) else value


def _watched(value: Any) -> Any:
    return value.view(WatchedArray) if isinstance(value, np.ndarray) else value


def _bytes_of(value: Any) -> int:
    return int(value.nbytes) if isinstance(value, np.ndarray) else 0
