"""Counts what one call of Numba's compiled code does on the CPU: the part inside a process."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import PurePath
from typing import Any

import numpy as np

from gpubench.counts.hooks import CountedModule, Hooks, NotCountable, Values, count_call, versions
from gpubench.counts.instructions import called_function, count_instruction, named_functions
from gpubench.counts.ir import NO_FILE, Place
from gpubench.counts.remarks import LoopRemark, RemarkReader

CPU_MODEL = 3
"""Version of the rules by which is counted; counts of two versions are not compared."""


_PARALLEL_LOOP = "__numba_parfor_gufunc"
"""In the names of functions that Numba makes of loops which threads share."""
_PARALLEL_UFUNC = ".kernel."
"""Beginning of the names of functions with which threads share a ufunc."""


@dataclass(frozen=True, slots=True)
class CpuCounts:
    """What one call did. Only instructions that come from a line of Python count: what stands
    between Python and a kernel, and Numba's management of memory, has none."""

    totals: Mapping[str, int]
    """By the names of ``CPU_COUNTS``; those that are 0 are left out."""
    lines: Mapping[Place, Mapping[str, int]]
    """The same by lines of Python."""
    called: Mapping[str, int]
    """How often functions were called that were not inlined, by their names in the code."""
    remarks: tuple[LoopRemark, ...] = ()
    """What LLVM says of the loops of what ran, by whole names of files; empty where it was not
    asked."""


class CpuCounter:
    """Counts calls in this process, in which Numba must not have compiled anything before."""

    def __init__(self, *, remarks: bool = False) -> None:
        """Put the hooks in place and try them; raise ``NotCountable`` where counts are wrong.

        ``remarks``: LLVM says of each loop why it is not vectorized.
        """
        self._remarks = RemarkReader() if remarks else None
        self._hooks = Hooks(self._remarks.take if self._remarks else tuple)
        self._users: dict[int, Place] = {}
        self._shared: tuple[int, frozenset[str]] = 0, frozenset()
        """How many modules there were, and the functions of theirs that threads share."""
        self._try_hooks()

    def count(self, call: Callable[[], Any]) -> tuple[Any, Values]:
        """Call once; return what it returns, and what the counters of all modules say then."""
        # Numba's, of code that it generates: nobody asked for its lines but this room.
        warnings.filterwarnings("ignore", "Could not find source for function")
        return count_call(self._hooks.modules, call)

    def read(self, values: Values) -> CpuCounts:
        """Add up what a call counted."""
        lines: dict[Place, Counter[str]] = defaultdict(Counter)
        called: Counter[str] = Counter()
        sources: set[str] = set()
        for index, (module, of_module) in enumerate(zip(self._hooks.modules, values, strict=False)):
            for place, counts, function in _read_module(module, of_module, self._shared_code()):
                lines[self._real_place(place, index)].update(counts)
                if function is not None:
                    called[function] += counts["calls"]
            if of_module.any():
                sources |= module.sources
        totals: Counter[str] = Counter()
        for of_line in lines.values():
            totals.update(of_line)
        return CpuCounts(
            {name: count for name, count in sorted(totals.items()) if count},
            {place: {n: c for n, c in sorted(of.items()) if c} for place, of in lines.items()},
            dict(called),
            tuple(dict.fromkeys(self._remarks_of(sources, lines))),
        )

    def _shared_code(self) -> frozenset[str]:
        """Return the functions that threads share, and those that these call."""
        if self._shared[0] == len(self._hooks.modules):
            return self._shared[1]
        calls: dict[str, set[str]] = defaultdict(set)
        for module in self._hooks.modules:
            for counter in module.counters:
                if counter.measured is None:
                    for text in counter.block.instructions:
                        calls[counter.block.function].update(named_functions(text))
        waiting = [name for name in calls if _PARALLEL_LOOP in name]
        waiting += [n for name in calls if name.startswith(_PARALLEL_UFUNC) for n in calls[name]]
        shared: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in shared:
                shared.add(name)
                waiting += calls.get(name, ())
        self._shared = len(self._hooks.modules), frozenset(shared)
        return self._shared[1]

    def _remarks_of(self, sources: set[str], ran: Collection[Place]) -> Iterator[LoopRemark]:
        """Yield what LLVM said while it optimized these functions, of loops with lines that ran."""
        for index, module in enumerate(self._hooks.modules):
            for remark in module.remarks if module.defined & sources else ():
                place = self._real_place(Place(remark.file, remark.line), index)
                name = PurePath(place.file).name
                files = (one.file for one in ran if PurePath(one.file).name == name)
                if file := next(files, None):
                    yield replace(remark, file=file, line=place.line)

    def _real_place(self, place: Place, index: int) -> Place:
        """Return the line of code that Numba generated: of its own, as of the loop of ``prange``,
        it is the line which hands the code on."""
        if place.file != NO_FILE:
            return place
        user = self._user_of(index)
        return Place(user.file, max(place.line, user.line))

    def _user_of(self, index: int) -> Place:
        """Return the first line of a later module that names a function of this one, or a wrapper
        of it."""
        if index not in self._users:
            sources = self._hooks.modules[index].sources
            wrappers = (
                one.defined for one in self._hooks.modules if one.sources and one.sources <= sources
            )
            generated = [f"@{name}" for names in wrappers for name in names]
            users = (
                place
                for module in self._hooks.modules[index + 1 :]
                for counter in module.counters
                if counter.measured is None
                for place, text in zip(
                    module.lines.places_in(counter.block),
                    counter.block.instructions,
                    strict=True,
                )
                if place and place.file != NO_FILE and any(name in text for name in generated)
            )
            self._users[index] = next(users, Place(NO_FILE, 0))
        return self._users[index]

    def _try_hooks(self) -> None:
        """Raise ``NotCountable`` where counters do not count what a known function does, or where
        Numba asks other caches."""
        numba, elements = import_module("numba"), 3

        @numba.njit(cache=True)  # type: ignore[untyped-decorator, unused-ignore]
        def multiply_and_add(x: Any, y: Any) -> None:
            for i in range(x.size):
                y[i] = x[i] * 2.0 + 1.0

        x, y = np.zeros(elements), np.zeros(elements)
        multiply_and_add(x, y)
        totals = self.read(self.count(lambda: multiply_and_add(x, y))[1]).totals
        found = {name: totals.get(name, 0) for name in ("flops_float64", "load_bytes")}
        expected = {"flops_float64": 2 * elements, "load_bytes": x.nbytes}
        if found != expected:
            raise NotCountable(
                f"not counted: {versions()} compiles a function of {expected} so that counters "
                f"say {found}"
            )
        if self._hooks.cache_calls != {"load", "save"}:
            raise NotCountable(
                f"not counted: {versions()} keeps compiled code otherwise than by "
                "Cache.load_overload and Cache.save_overload, and counted code must not be kept"
            )


def _read_module(
    module: CountedModule, values: Sequence[int] | np.ndarray[Any, Any], shared: Collection[str]
) -> Iterator[tuple[Place, Mapping[str, int], str | None]]:
    """Yield lines with what instructions counted there, and the function that one calls.

    ``shared``: names of functions that threads share.
    """
    for counter, value in zip(module.counters, values, strict=True):
        times = int(value)
        if not times:
            continue
        places = module.lines.places_in(counter.block)
        if (measured := counter.measured) is not None:
            if place := places[counter.instruction]:
                yield place, {measured.name: measured.unit * times}, None
            continue
        for place, text in zip(places, counter.block.instructions, strict=True):
            if place is not None and (counts := count_instruction(text)):
                its = {name: times * count for name, count in counts.items()}
                if counter.block.function in shared:
                    its["parallel_instructions"] = its["ir_instructions"]
                yield place, its, called_function(text)
