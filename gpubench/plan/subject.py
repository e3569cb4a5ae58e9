"""What cases have in common: one implementation of one kernel, with its backend and devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Literal

from gpubench.errors import Fault
from gpubench.names import BenchmarkName, Value
from gpubench.plan.axis import Axis
from gpubench.plan.machine import Machine
from gpubench.plan.origins import fault_at
from gpubench.suite.loaded import LoadedSuite

if TYPE_CHECKING:
    from gpubench.suite.model import Extent, Implementation, Kernel, Suite

HOME = "cpu"
"""The device of an ordinary function; an identity does not name it."""


@dataclass(frozen=True, eq=False)
class Subject:
    """An implementation of a kernel. Two are equal only if they are the same object."""

    loaded: LoadedSuite
    kernel_name: str
    implementation_name: str
    backend: str
    """Name of the backend; empty where it cannot be told, and then ``fault`` says why."""
    machine: Machine
    """What the words for devices stand for."""
    serves: Callable[[str], bool]
    """Whether its backend runs on a device, by the device's name."""
    times: tuple[str, ...]
    """Labelled times to be taken: those of ``measure`` that mean something on the backend."""
    baseline: Subject | None = None
    """What speedup is measured against; ``None`` for the baseline itself."""
    fault: str | None = None
    """Why no case of it can run anywhere: a function that is missing, an unknown backend."""

    @property
    def suite(self) -> Suite:
        return self.loaded.suite

    @cached_property
    def kernel(self) -> Kernel:
        return self.suite.kernels[self.kernel_name]

    @cached_property
    def implementation(self) -> Implementation:
        return self.kernel.implementations[self.implementation_name]

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """The kernel's devices, ``cuda:*`` taken apart."""
        return self.machine.devices(self.kernel.devices)

    @cached_property
    def served_devices(self) -> tuple[str, ...]:
        """Devices on which it has cases."""
        return tuple(device for device in self.devices if self.serves(device))

    @property
    def has_cases(self) -> bool:
        """Whether any device serves it, or an ``include`` names one that does."""
        includes = (
            entry.device
            for entry in self.kernel.include
            if entry.implementation == self.implementation_name and entry.device is not None
        )
        return any(map(self.serves, (*self.devices, *self.machine.devices(includes))))

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Axes that it multiplies over, in the order of an identity."""
        from gpubench.plan.axes import used_axes  # needs the model; a stored plan has the axes

        return used_axes(self.kernel, self.implementation)

    @cached_property
    def defaults(self) -> dict[str, Value]:
        """Values at which a name is left out of an identity."""
        return dict(chain.from_iterable(axis.defaults.items() for axis in self.axes))

    @cached_property
    def identity_order(self) -> tuple[str, ...]:
        """Names of axes as an identity has them: sizes, then parameters, each alphabetically."""
        return (*self.size_names, *self._names(is_size=False))

    @cached_property
    def size_names(self) -> tuple[str, ...]:
        """Those names that are sizes, alphabetically."""
        return self._names(is_size=True)

    @cached_property
    def data_names(self) -> frozenset[str]:
        """Names of the axes that decide the inputs, the same for all implementations."""
        from gpubench.plan.axes import data_names

        return data_names(self.kernel)

    @cached_property
    def blocks(self) -> tuple[tuple[Extent, ...], ...]:
        """Shapes of block as written; empty without a launch."""
        launch = self.implementation.launch
        return launch.blocks() if launch is not None else ()

    @cached_property
    def grids(self) -> tuple[Literal["cover"] | tuple[Extent, ...], ...]:
        """Shapes of grid as written, or ``cover``; empty without a launch."""
        launch = self.implementation.launch
        return launch.grids() if launch is not None else ()

    @property
    def backends(self) -> frozenset[str]:
        """Names of its own backend and its baseline's, where they could be told."""
        own = {self.backend, self.baseline.backend if self.baseline is not None else ""}
        return frozenset(own - {""})

    @property
    def baseline_fault(self) -> str | None:
        """Why there can be no speedup: a baseline that runs nowhere; ``None`` where it runs."""
        baseline = self.baseline
        if baseline is None:
            return None
        if baseline.fault is not None:
            return f"the baseline {baseline.title} cannot run: {baseline.fault}"
        devices = dict.fromkeys((*baseline.devices, HOME))
        if any(map(baseline.serves, devices)):
            return None
        return (
            f"the baseline {baseline.title} (backend {baseline.backend}) runs on none of "
            f"{', '.join(devices)}: name a device that it serves, or another `baseline`"
        )

    @property
    def title(self) -> str:
        """For messages: ``vector_add/vector_add/numba_cuda``."""
        return f"{self.suite.suite}/{self.kernel_name}/{self.implementation_name}"

    def settle(self) -> None:
        """Compute once what is told by the suite's model, so that the rest works without it."""
        for name, member in vars(Subject).items():
            if isinstance(member, cached_property):
                getattr(self, name)
        if self.baseline is not None:
            self.baseline.settle()

    def path(self, *within: str | int) -> tuple[str | int, ...]:
        """Path inside the suite of something inside the kernel."""
        return ("kernels", self.kernel_name, *within)

    def fault_at(self, within: tuple[str | int, ...], message: str) -> Fault:
        """A fault at the place that sets something inside the kernel."""
        return fault_at(self.loaded, self.path(*within), message)

    def benchmark(self, time: str) -> BenchmarkName:
        """Name of the asv benchmark of one labelled time."""
        return BenchmarkName(self.suite.suite, self.kernel_name, self.implementation_name, time)

    def _names(self, is_size: bool) -> tuple[str, ...]:
        kept = (axis.names for axis in self.axes if axis.is_size == is_size)
        return tuple(sorted(chain.from_iterable(kept)))
