"""One case bound on an open session: its arrays on the device, its call, its outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpubench.backends.protocol import Call, DeviceMemoryError, Native, Session, Target
from gpubench.backends.software import name_arrays
from gpubench.errors import KernelError
from gpubench.measure.check import same_bits
from gpubench.measure.inputs import Inputs
from gpubench.plan.case import Case

Array = np.ndarray[Any, Any]

SMALL = 6 * 2**20
"""Bytes of a case's arrays up to which those of earlier rounds are kept, so that later ones lie
where none has been: memory that is given back is used again, and all rounds of a process would
share few places. Twenty rounds are then 120 MiB at most; large arrays get fresh pages anyway."""


class Execution:
    """Arrays and call of one case, resident where the session puts them.

    ``inout`` arrays are kept where ``restore`` brings them back from without a transfer.
    """

    def __init__(self, session: Session, case: Case, target: Target, inputs: Inputs) -> None:
        self.session = session
        self.case = case
        self.target = target
        self.inputs = inputs
        specs = case.array_specs()
        self._overwritten = [name for name in specs if specs[name].intent == "inout"]
        self._written = [name for name in specs if specs[name].intent in ("out", "inout")]
        self._scratch = {name for name in specs if specs[name].intent == "scratch"}
        self._native = self.upload()
        self._pristine = {n: session.pristine(inputs.arrays[n]) for n in self._overwritten}
        name_arrays({f"{name} as it was": copy for name, copy in self._pristine.items()})
        name_arrays(self._native)
        self.call = self.bind(self._native)
        self._held: list[dict[str, Native]] = []
        self.aliases: dict[str, str] = {}
        """Returned results that were arrays of the call, or views of one, by the arrays' names."""

    def upload(self) -> dict[str, Native]:
        """Copies of all arrays on the device, by name."""
        return {name: self.session.to_native(a) for name, a in self.inputs.arrays.items()}

    def bind(self, native: Mapping[str, Native]) -> Call:
        """The case's call over these native arrays, its scalars and the values of its axes."""
        scope = {**self.case.values, **self.inputs.scalars, **native}
        arguments = [scope[name] for name in self.case.kernel.call]
        return self.session.bind(self.target, self.case.launch, arguments)

    def move(self) -> None:
        """Put all arrays elsewhere in memory and bind the call to them; run it once, untimed.

        A new copy is made while the old one is still there, so that it lies elsewhere; one after
        another, so that there is room for it, and in the old one's place where there is none.
        """
        del self.call
        if self.inputs.nbytes <= SMALL:
            self._held.append(dict(self._native))
        for name, array in self.inputs.arrays.items():
            try:
                self._native[name] = self.session.to_native(array)
            except (DeviceMemoryError, MemoryError):
                self._held.clear()
                del self._native[name]
                self._native[name] = self.session.to_native(array)
        self.call = self.bind(self._native)
        self.call()
        self.session.synchronize()

    def restore(self) -> None:
        """Undo what runs did to ``inout`` arrays, on the device; returns when that is done."""
        for name in self._overwritten:
            self.session.restore(self._native[name], self._pristine[name])
        self.session.synchronize()

    def overwrite(self, arrays: Mapping[str, Array]) -> None:
        """Put other values into native arrays, by name."""
        for name, array in arrays.items():
            self.session.restore(self._native[name], self.session.pristine(array))

    def outputs(self) -> dict[str, Array]:
        """Run once and bring back every ``out`` and ``inout`` array and what the call returns."""
        return self._run(self.session.to_host)

    def seen_outputs(self) -> dict[str, Array]:
        """The same, to be read before anything else runs."""
        return self._run(self.session.view)

    def changed_inputs(self) -> list[str]:
        """Arrays that a run must only read and that are no longer what they were."""
        return [
            name
            for name, array in self.inputs.arrays.items()
            if name not in {*self._written, *self._scratch}
            and not same_bits(self.session.view(self._native[name]), array)
        ]

    def download(self, native: Mapping[str, Native]) -> dict[str, Array]:
        """Host copies of the arrays that a run writes."""
        return {name: self.session.to_host(native[name]) for name in self._written}

    def _run(self, fetch: Callable[[Any], Array]) -> dict[str, Array]:
        returned = self._named(self.call())
        self.session.synchronize()
        self.aliases = {}
        for name, result in returned.items():
            arrays = (array for array, native in self._native.items() if _overlap(result, native))
            if array := next(arrays, None):
                self.aliases[name] = array
        outputs = {name: fetch(self._native[name]) for name in self._written}
        for name, result in returned.items():
            # Python's numbers carry no dtype: they get NumPy's.
            is_number = isinstance(result, bool | int | float | complex)
            outputs[name] = np.asarray(result) if is_number else fetch(result)
        return outputs

    def _named(self, returned: Any) -> dict[str, Any]:
        """What the call returned, by the names of ``returns``."""
        names = self.case.kernel.returns
        if not names:
            return {}
        results = returned if len(names) > 1 else (returned,)
        if returned is None or not isinstance(results, tuple | list) or len(results) != len(names):
            raise KernelError(
                f"{self.case.implementation_name} returned {type(returned).__name__}; the suite "
                f"declares `returns: [{', '.join(names)}]`"
            )
        return dict(zip(names, results, strict=True))


def _overlap(result: Any, native: Native) -> bool:
    if result is native:
        return True
    both = isinstance(result, np.ndarray) and isinstance(native, np.ndarray)
    return both and np.may_share_memory(result, native)
