"""The places of Numba into which counting hooks, and whether they are what they were.

Counting changes a process for as long as it lives: what Numba compiles there has counters, and is
neither taken from Numba's caches nor kept in them. So it is done in processes of its own, before
Numba compiles anything.
"""

from __future__ import annotations

import ctypes
import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module, metadata
from typing import Any

import numpy as np

from gpubench.counts.counters import Counter, instrument
from gpubench.counts.ir import Lines, parse
from gpubench.counts.remarks import LoopRemark
from gpubench.errors import GpubenchError

FIRST_UNTYPED_LLVM = 16
"""The first LLVM in whose text Numba's pointers have no types."""

_EXPECTED = (
    ("numba.core.codegen", "JITCPUCodegen._add_module", ("self", "module")),
    ("numba.core.codegen", "JitEngine.add_module", ("self", "module")),
    ("numba.core.codegen", "JitEngine._load_defined_symbols", ("self", "mod")),
    ("numba.core.caching", "Cache.load_overload", ("self", "sig", "target_context")),
    ("numba.core.caching", "Cache.save_overload", ("self", "sig", "data")),
    ("numba.core.compiler", "_make_subtarget", ("targetctx", "flags")),
)
"""Module, function and parameters of each hook."""


class NotCountable(GpubenchError):
    """This Numba cannot be counted; the message says which hook is another."""


Values = list[np.ndarray[Any, np.dtype[np.int64]]]
"""Of each module in the order in which they were compiled: what its counters counted, ``(n,)``."""


@dataclass(frozen=True)
class CountedCode:
    """Machine code with an array of counts."""

    engine: Any
    symbol: str
    """Of the array."""
    length: int
    """Of the array."""

    @cached_property
    def array(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the array where it lies; compiles the module where that is not done yet."""
        address = int(self.engine.get_global_value_address(self.symbol))
        cells = (ctypes.c_int64 * self.length).from_address(address)
        return np.ctypeslib.as_array(cells)


def count_call(modules: Sequence[CountedCode], call: Callable[[], Any]) -> tuple[Any, Values]:
    """Call once; return what it returns, and what the counters of all modules say then: also of
    those that the call adds to ``modules``."""
    for module in modules:
        module.array[:] = 0
    result = call()
    return result, [module.array.copy() for module in modules]


@dataclass(frozen=True)
class CountedModule(CountedCode):
    """A module that was compiled with counters."""

    counters: Sequence[Counter]
    lines: Lines
    defined: frozenset[str]
    """Names of its functions."""
    sources: frozenset[str]
    """Names of the functions that its code comes from, those that were inlined included."""
    remarks: Sequence[LoopRemark]
    """What LLVM said while it optimized the module."""


class Hooks:
    """Counters in all that Numba compiles from now on; one for each process."""

    def __init__(self, take_remarks: Callable[[], Sequence[LoopRemark]]) -> None:
        """Put the hooks in place. Raises ``NotCountable`` where a hook is not what it was.

        ``take_remarks`` returns what LLVM has said since it was called last.
        """
        refuse_other_hooks()
        self.modules: list[CountedModule] = []
        self.cache_calls: set[str] = set()
        """Which of ``load`` and ``save`` Numba asked its caches for, in vain."""
        self._take_remarks = take_remarks
        self._numbers = itertools.count()
        self._llvm = import_module("llvmlite.binding")
        self._hook_codegen()
        hook_caches(self.cache_calls)
        self._hook_flags()

    def _hook_codegen(self) -> None:
        def add_module(codegen: Any, module: Any) -> None:
            self._add_counted(codegen, module, self._take_remarks())

        hook_modules(add_module)

    def _add_counted(self, codegen: Any, module: Any, remarks: Sequence[LoopRemark]) -> None:
        typed = self._llvm.llvm_version_info[0] < FIRST_UNTYPED_LLVM
        parsed = parse(str(module))
        counted = instrument(parsed, next(self._numbers), typed_pointers=typed)
        compiled = self._llvm.parse_assembly(counted.text)
        compiled.name = module.name
        # What other modules link is the one without counters: they get counters of their own.
        engine = engine_of(codegen, module)
        engine.add_module(compiled)
        if counted.counters:
            self.modules.append(
                CountedModule(
                    engine=engine,
                    symbol=counted.symbol,
                    length=len(counted.counters),
                    counters=counted.counters,
                    lines=Lines(parsed),
                    defined=frozenset(function.name for function in parsed.functions),
                    sources=parsed.source_functions(),
                    remarks=remarks,
                )
            )

    def _hook_flags(self) -> None:
        """Have all code compiled with tables of lines, also what Numba compiles by no decorator, as
        the body of ``stencil``. Bounds checks, which come with debugging, are decided before, and
        stay as they are."""
        compiler: Any = import_module("numba.core.compiler")
        make_subtarget = compiler._make_subtarget

        def make_subtarget_with_lines(targetctx: Any, flags: Any) -> Any:
            if not flags.debuginfo:
                flags.debuginfo = True
                flags.dbg_directives_only = True
            return make_subtarget(targetctx, flags)

        compiler._make_subtarget = make_subtarget_with_lines
        # Numba's own parses the whole file for each function that has lines: a third of the time.
        lowering: Any = import_module("numba.core.lowering")
        lowering.get_func_body_first_lineno = _first_line_of_body


def hook_modules(add_module: Callable[[Any, Any], None]) -> None:
    """Have Numba give each module of LLVM that it has made to a function, with who made it."""
    import_module("numba.core.codegen").JITCPUCodegen._add_module = add_module


def engine_of(codegen: Any, module: Any) -> Any:
    """Return the engine that runs code, which then knows the names that a module defines."""
    codegen._engine._load_defined_symbols(module)
    return codegen._engine


def hook_caches(calls: set[str]) -> None:
    """Have Numba find nothing in its caches and keep nothing there; ``calls`` gets ``load`` and
    ``save`` when it asks them."""

    def load(cache: Any, sig: Any, target_context: Any) -> None:
        calls.add("load")

    def save(cache: Any, sig: Any, data: Any) -> None:
        calls.add("save")

    cache = import_module("numba.core.caching").Cache
    cache.load_overload, cache.save_overload = load, save


def versions() -> str:
    """Return what makes code in this process: ``numba 0.68.1, LLVM 22.1.0, haswell``."""
    llvm = ".".join(map(str, import_module("llvmlite.binding").llvm_version_info))
    processor = import_module("numba").config.CPU_NAME or "the processor of this machine"
    return f"numba {metadata.version('numba')}, LLVM {llvm}, {processor}"


def _first_line_of_body(function: Any) -> int:
    """Return the line of the first statement of a Python function that does something."""
    code = function.__code__
    lines = (line for _, _, line in code.co_lines() if line and line > code.co_firstlineno)
    return min(lines, default=int(code.co_firstlineno))


def refuse_other_hooks() -> None:
    """Raise ``NotCountable`` where a function of Numba is missing or takes other parameters."""
    for module, path, parameters in _EXPECTED:
        function: Any = import_module(module)
        for part in path.split("."):
            function = getattr(function, part, None)
        found = tuple(inspect.signature(function).parameters) if callable(function) else None
        if found != parameters:
            has = "is missing" if found is None else f"takes ({', '.join(found)})"
            raise NotCountable(
                f"not counted: {module}.{path}({', '.join(parameters)}) {has} in numba "
                f"{metadata.version('numba')}; numba 0.61 to 0.68 are known to be countable"
            )
