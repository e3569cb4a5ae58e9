"""One case bound on an open session: its arrays on the device, its call, its outputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gpubench.arrow import AnyArray
from gpubench.backends import registry
from gpubench.backends.protocol import (
    Call,
    DeviceMemoryError,
    Native,
    Sampler,
    Session,
    Target,
    refuse_layouts,
)
from gpubench.backends.software import name_arrays
from gpubench.errors import KernelError
from gpubench.measure.check import same_bits
from gpubench.measure.inputs import Inputs, cast_inputs, poisoned
from gpubench.measure.memory import limited
from gpubench.measure.tables import comparable, fitted, same_table
from gpubench.measure.targets import load_target
from gpubench.plan.case import Case

if TYPE_CHECKING:  # the device in software is imported only where it is asked for
    from softcuda.counts import LaunchCounts

SMALL = 6 * 2**20
"""Bytes of a case's arrays up to which those of earlier rounds are kept, so that later ones lie
where none has been: memory that is given back is used again, and all rounds of a process would
share few places. Twenty rounds of samples and forty of pairs are then 360 MiB at most; large arrays
get fresh pages anyway."""


@contextmanager
def opened(case: Case, inputs: Inputs) -> Iterator[BoundCase]:
    """Bind the case on a session of its own, which is closed afterwards.

    Raises ``KernelError`` where what the implementation names cannot be loaded, ``BackendError``
    where its device cannot be opened, ``LayoutError`` where the backend cannot have an array in its
    layout, ``DeviceError`` where the device refuses arrays or launch, and ``MemoryLimitError``
    where it exceeds its memory limit.
    """
    # Before the session: what it imports may bring a BLAS whose threads the session sets.
    target, backend = load_target(case), registry.get(case.backend)
    with backend.open(case.device, case.threads, case.options()) as session, limited(case):
        yield BoundCase(session, case, target, inputs)


class BoundCase:
    """Arrays and call of one case, resident where the session puts them."""

    def __init__(self, session: Session, case: Case, target: Target, inputs: Inputs) -> None:
        inputs = cast_inputs(case, inputs)
        self.session, self.case, self.inputs = session, case, inputs
        self._target = target
        intents = case.kernel.intents()
        returned = case.implementation.returns
        self._made = {name for name in returned if intents[name] == "out"}
        """Arrays that a call makes and returns, so that none is given to it."""
        intents |= dict.fromkeys(returned, "in")
        self._written = [name for name in intents if intents[name] in ("out", "inout")]
        self.changing = [name for name in intents if intents[name] != "in"]
        """Arrays that a run may leave otherwise than it found them."""
        given = case.kernel.arguments(case.implementation_name)
        arrays = {name: inputs.arrays[name] for name in given if name in inputs.arrays}
        refuse_layouts(_name_with_backend(case), session, arrays)
        self._native = self.upload()
        self._read_only = [name for name in self._native if intents.get(name, "in") == "in"]
        overwritten = [name for name in intents if intents[name] == "inout"]
        self._pristine = {name: session.pristine(inputs.arrays[name]) for name in overwritten}
        """Where ``restore`` brings these back from, without a transfer."""
        # One element for all: writing it reads no other memory, so that nothing leaves the cache.
        self._poison = {
            name: np.broadcast_to(poisoned(np.empty((), spec.dtype)), spec.shape)
            for name, spec in case.given_specs.items()
            if intents[name] == "out"
        }
        name_arrays({f"{name} as it was": copy for name, copy in self._pristine.items()})
        name_arrays(self._native)
        self.call = self.bind(self._native)
        self.expected: Mapping[str, AnyArray] = {}
        """What its outputs have to be, by name, once they are verified."""
        self.launches: tuple[LaunchCounts, ...] | None = None
        """What its first run counted, once it is verified; ``None`` where nothing was counted."""
        self.launches_in_another_order: tuple[LaunchCounts, ...] | None = None
        """What a run in another order of threads counted; ``None`` where none was needed."""
        self.run_seconds = 0.0
        """Seconds of the last run whose outputs were fetched, by the host's clock."""
        self._held: list[dict[str, Native]] = []
        self.aliases: dict[str, str] = {}
        """Returned results that were arrays of the call, or views of one, by the arrays' names."""

    def upload(self) -> dict[str, Native]:
        """Return copies on the device of all arrays and tables that a call is given, by name."""
        names = (*self.inputs.arrays, *self.inputs.tables)
        return {name: self._uploaded(name) for name in names if name not in self._made}

    def _uploaded(self, name: str) -> Native:
        if name in self.inputs.tables:
            return self.session.table_to_native(self.inputs.tables[name])
        return self.session.to_native(self.inputs.arrays[name])

    def bind(self, native: Mapping[str, Native]) -> Call:
        """Return the case's call over these native arrays, its scalars and the values of its
        axes."""
        scope = {**self.case.values, **self.inputs.scalars, **native}
        names = self.case.kernel.arguments(self.case.implementation_name)
        return self.session.bind(self._target, self.case.launch, [scope[name] for name in names])

    def why_wrong(self) -> str | None:
        """Return what may have made its results wrong, as far as the library tells."""
        return self.session.why_wrong(self._target)

    def sampler(self, again: bool) -> Sampler:
        """Return the session's own way to time the call; ``again``: not for the first time."""
        return (self.session.sampler_again if again else self.session.sampler)(self.call)

    def move(
        self, verify: Callable[[Mapping[str, AnyArray]], None] | None = None, *, run: bool = True
    ) -> None:
        """Put all arrays elsewhere in memory, with what they held at first, and bind the call to
        them; ``run`` it once, untimed, and let ``verify`` see its outputs.

        Each new copy is made while the old array is still there, so that the copy lies elsewhere.
        The arrays move one after another to save memory. Without room for a copy, an array stays in
        place.
        """
        del self.call
        if self.inputs.nbytes <= SMALL:
            self._held.append(dict(self._native))
        for name in list(self._native):
            try:
                self._native[name] = self._uploaded(name)
            except (DeviceMemoryError, MemoryError):
                self._held.clear()
                del self._native[name]
                self._native[name] = self._uploaded(name)
        self.call = self.bind(self._native)
        if verify is not None:
            verify(self.outputs(seen=True))
        elif run:
            self.call()
        self.session.synchronize()

    def restore(self) -> None:
        """Undo what runs did to ``inout`` arrays, on the device; returns when that is done."""
        for name, pristine in self._pristine.items():
            self.session.restore(self._native[name], pristine)
        self.session.synchronize()

    def refresh(self) -> None:
        """Do the same, and put poison in ``out`` arrays: whatever a run finds there, it has to
        write."""
        self.overwrite(self._poison)
        self.restore()

    def give(self, inputs: Inputs) -> None:
        """Put other inputs where the present ones lie; tables stay."""
        inputs = self.inputs = cast_inputs(self.case, inputs)
        self.overwrite({n: inputs.arrays[n] for n in self._native if n in inputs.arrays})
        for name in self._pristine:
            self._pristine[name] = self.session.pristine(inputs.arrays[name])
        self.session.synchronize()

    @property
    def in_place(self) -> bool:
        """Whether a run goes on with what the run before left."""
        return bool(self._pristine)

    def fresh(self) -> dict[str, AnyArray]:
        """Return what the arrays that a run may change held at first; ``out`` arrays were
        poisoned."""
        return {name: self.inputs.arrays[name] for name in self.changing}

    def left(self) -> dict[str, AnyArray]:
        """Return what these arrays hold now, on the host."""
        return {name: self.session.to_host(self._native[name]) for name in self.changing}

    def putter(self, arrays: Mapping[str, AnyArray]) -> Callable[[], None]:
        """Return what puts these values into native arrays, by name, and waits, as often as it is
        called: from copies on the device, or from the host where there is no room for them."""
        copies: Mapping[str, Native] = {}
        with suppress(DeviceMemoryError, MemoryError):
            copies = {name: self.session.pristine(array) for name, array in arrays.items()}

        def put() -> None:
            for name, copy in copies.items():
                self.session.restore(self._native[name], copy)
            if not copies:
                self.overwrite(arrays)
            self.session.synchronize()

        return put

    def overwrite(self, arrays: Mapping[str, AnyArray]) -> None:
        """Put other values into native arrays, by name."""
        for name, array in arrays.items():
            self.session.restore(self._native[name], self.session.pristine(array))

    def outputs(self, *, seen: bool = False) -> dict[str, AnyArray]:
        """Run once; every ``out`` and ``inout`` array and what the call returns, by name, without
        what the suite does not compare: copies on the host, or where they are to be ``seen`` before
        anything else runs, views of what lies there anyway."""
        start = perf_counter()
        returned = self.call()
        self.session.synchronize()
        self.run_seconds = perf_counter() - start
        return self.fetched(self.results(returned), seen=seen)

    def fetched(self, results: Mapping[str, Any], *, seen: bool = False) -> dict[str, AnyArray]:
        """Return what the arrays hold now that a run has written, and these results, as
        ``outputs``."""
        fetch = self.session.view if seen else self.session.to_host
        self.aliases = {}
        tables, uncompared = self.case.kernel.tables, self.case.kernel.check.uncompared()
        written = [name for name in self._written if name not in uncompared]
        outputs = {name: fetch(self._native[name]) for name in written}
        for name, result in results.items():
            if name in uncompared:
                continue
            if name in tables:
                outputs |= comparable(name, self.session.table_to_host(result), tables[name].key)
                continue
            # Python's numbers carry no dtype: they get NumPy's.
            is_number = isinstance(result, bool | int | float | complex)
            # Behind a mask may stand the right numbers, and count for nothing.
            is_array = hasattr(result, "dtype") and not isinstance(result, np.ma.MaskedArray)
            if not is_number and not is_array:
                raise KernelError(
                    f"{self.case.implementation_name} returned a {type(result).__name__} as "
                    f"{name!r}; allowed: an array, or a number. Return numpy.asarray(...) of it"
                )
            outputs[name] = np.asarray(result) if is_number else fetch(result)
            for array, native in self._native.items():
                on_host = isinstance(result, np.ndarray) and isinstance(native, np.ndarray)
                if result is native or (on_host and np.may_share_memory(result, native)):
                    self.aliases.setdefault(name, array)
        return outputs

    def unchanged_tables(self, outputs: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
        """By the names of outputs: what a returned table would hold if it were a table of the call,
        where one has the same columns and as many rows."""
        started: dict[str, AnyArray] = {}
        pairs = itertools.product(self.case.kernel.tables.items(), self.inputs.tables.values())
        for (name, declared), table in pairs:
            mine = {n: len(a) for n, a in outputs.items() if n.startswith(f"{name}.")}
            columns = {f"{name}.{column}" for column in table.column_names}
            if mine and columns <= mine.keys() and set(mine.values()) == {table.num_rows}:
                given = fitted(comparable(name, table, declared.key), outputs)
                started |= given if given.keys() == mine.keys() else {}
        return started

    def fetched_result(self, name: str, result: Native) -> object:
        """Return a result on the host, as a user would have it there."""
        is_table = name in self.case.kernel.tables
        return (self.session.table_to_host if is_table else self.session.to_host)(result)

    def results(self, returned: Any) -> dict[str, Any]:
        """Return what a call returned, native, by name; raises ``KernelError`` where that is not
        what the suite declares."""
        names = self.case.returns
        if not names:
            return {}
        results = returned if len(names) > 1 else (returned,)
        is_sequence = returned is not None and isinstance(results, tuple | list)
        if not (is_sequence and len(results) == len(names)):
            raise KernelError(
                f"{self.case.implementation_name} returned {type(returned).__name__}; the suite "
                f"declares `returns: [{', '.join(names)}]`"
            )
        return dict(zip(names, results, strict=True))

    def changed_inputs(self) -> list[str]:
        """Arrays and tables that a run must only read and that are no longer what they were."""
        arrays, session = self.inputs.arrays, self.session

        def is_same(name: str) -> bool:
            native = self._native[name]
            if name in arrays:
                return same_bits(session.view(native), arrays[name])
            # A frame may have fewer types than Arrow: it is compared with what it was as a frame.
            as_it_was = session.table_to_host(self._uploaded(name))
            return same_table(session.table_to_host(native), as_it_was)

        return [name for name in self._read_only if not is_same(name)]

    def download(self, native: Mapping[str, Native]) -> dict[str, AnyArray]:
        """Host copies of the arrays that a run writes."""
        return {name: self.session.to_host(native[name]) for name in self._written}


def _name_with_backend(case: Case) -> str:
    name = case.implementation_name
    return name if name == case.backend else f"{name} ({case.backend})"
