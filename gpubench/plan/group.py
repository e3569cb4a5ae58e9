"""A group: one implementation of one kernel on the devices of a machine, which is one class of
asv."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

import numpy as np

from gpubench.backends import registry
from gpubench.backends.protocol import Backend
from gpubench.errors import BackendError, Fault, KernelError, did_you_mean
from gpubench.layouts import Order
from gpubench.names import CPU, TOGETHER, BenchmarkName, join_source, kernel_title
from gpubench.plan.axes import UsedAxes, used_axes
from gpubench.plan.source import (
    Arguments,
    find_backend,
    find_decorator,
    reference_of,
    require,
    source_text,
)
from gpubench.suite import tree
from gpubench.suite.arrays import Fill, Intent
from gpubench.suite.expressions import Expression
from gpubench.suite.loading import LoadedSuite, kernel_excerpt, read_fields
from gpubench.suite.model import Implementation, Include, Kernel
from gpubench.suite.types import REFERENCE


def devices_named(names: Iterable[str], gpu_count: int) -> tuple[str, ...]:
    """Devices behind the names of a suite on a machine with so many CUDA devices, each once.

    ``cuda:*`` is every device, and ``cuda:0`` where there is none, so that its cases are seen and
    say why they do not run.
    """
    every = [f"cuda:{ordinal}" for ordinal in range(max(gpu_count, 1))]
    meant = (every if name == "cuda:*" else [name] for name in names)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(meant)))


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """One array of the kernel, as large as it is at a case."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    intent: Intent
    fill: Fill | None
    """As the suite says; ``None`` where it leaves the choice to the dtype."""
    path: tree.Path
    """Where the suite declares it, inside the kernel: ``("arrays", "A")``."""
    order: Order | None = None
    """``None`` where the suite leaves it to what makes the array."""

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Group:
    """What the cases of one implementation of one kernel have in common. Two groups are equal only
    if they are one object."""

    loaded: LoadedSuite
    kernel_name: str
    implementation_name: str
    gpu_count: int
    """How many CUDA devices ``cuda:*`` stands for."""
    axes: UsedAxes = field(repr=False)
    """What it multiplies over."""
    of_kernel: Mapping[str, Group] = field(repr=False)
    """The groups of all implementations of the kernel, this one too."""
    backend: str
    """Name of the backend; empty where there is none, and then ``fault`` says why."""
    misfit: str | None
    """Why it cannot run, its parts apart: a function that is missing, an unknown backend."""
    missing: KernelError | None
    """What of its code is not there or takes other arguments; ``misfit`` says it too."""
    missing_data: tuple[tuple[Fault, KernelError], ...]
    """Why no case of its kernel can: functions that draw data or check outputs are missing."""

    @property
    def baseline(self) -> Group | None:
        """What speedup is measured against; ``None`` for the baseline itself."""
        is_baseline = self.implementation_name == self.kernel.baseline
        return None if is_baseline else self.of_kernel[self.kernel.baseline]

    @property
    def data_faults(self) -> tuple[Fault, ...]:
        """Faults of the functions that draw data or check outputs."""
        return tuple(fault for fault, _ in self.missing_data)

    @property
    def missing_code(self) -> KernelError | None:
        """The first function that is missing: of the group, its parts, its baseline, its data;
        ``None`` where all are there."""
        groups = (self, *self.parts, *((self.baseline,) if self.baseline else ()))
        errors = (*(group.missing for group in groups), *(error for _, error in self.missing_data))
        return next(filter(None, errors), None)

    @property
    def parts(self) -> tuple[Group, ...]:
        """What does its work together."""
        return tuple(self.of_kernel[name] for name in self.implementation.parts or ())

    @property
    def fault(self) -> str | None:
        """Why no case of it can run anywhere."""
        if self.misfit is not None:
            return self.misfit
        for part in self.parts:
            why = part.fault
            if why is None and not any(map(part.serves, part.devices)):
                why = f"the backend {part.backend} runs on none of {', '.join(part.devices)}"
            if why is not None:
                return f"its part {part.title}: {why}"
        return None

    # --- what the suite says

    @cached_property
    def kernel(self) -> Kernel:
        return self.loaded.suite.kernels[self.kernel_name]

    @cached_property
    def implementation(self) -> Implementation:
        """What the suite declares, without a launch that its function chooses itself."""
        declared = self.kernel.implementations[self.implementation_name]
        return declared.model_copy(update={"launch": None}) if self.idle_launch else declared

    @cached_property
    def idle_launch(self) -> str | None:
        """Return the decorator whose function makes launches of its own, where the suite declares
        one that would never be made; ``None`` where it does not."""
        declared = self.kernel.implementations[self.implementation_name]
        if declared.launch is None or declared.function is None or self.missing is not None:
            return None
        with suppress(KernelError, BackendError):
            return find_decorator(declared.function, registry.get(self.backend).launches_itself)
        return None

    @cached_property
    def served(self) -> tuple[str, ...]:
        """Those of its devices that its backend runs on."""
        return tuple(filter(self.serves, self.devices))

    @property
    def title(self) -> str:
        """For messages: ``vector_add numba_cuda``."""
        kernel = kernel_title(self.loaded.suite.suite, self.kernel_name)
        return f"{kernel} {self.implementation_name}"

    @property
    def class_name(self) -> str:
        """Name of the class that asv discovers: ``vector_add__numba_cuda``."""
        return self.benchmark("kernel").class_name

    def benchmark(self, time: str) -> BenchmarkName:
        """Name of the asv benchmark of one labelled time."""
        suite = self.loaded.suite.suite
        return BenchmarkName(suite, self.kernel_name, self.implementation_name, time)

    def fault_at(self, within: tree.Path, message: str) -> Fault:
        """Return a fault at the place that sets something inside the kernel."""
        return self.loaded.fault_at(("kernels", self.kernel_name, *within), message)

    def source_text(self) -> str:
        """Source of what the implementation names, read without importing it, and the suite's lines
        of its kernel."""
        place, declaration = kernel_excerpt(self.loaded, self.kernel_name)
        alone = self.parts or (self,)
        code = "\n".join(source_text(one.implementation, self.loaded.path) for one in alone)
        return join_source(code, place, declaration)

    # --- where it runs

    def serves(self, device: str) -> bool:
        """Return whether its backend runs on a device, by the device's name.

        Where the backend is not known, a launch means a device: its cases keep the names that they
        had, so that a history shows the failure.
        """
        if self.backend:
            return registry.get(self.backend).serves(device)
        return (device != CPU) == (self.implementation.launch is not None)

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """The kernel's devices, ``cuda:*`` taken apart."""
        return devices_named(self.kernel.devices, self.gpu_count)

    @cached_property
    def has_cases(self) -> bool:
        """Whether any device serves it, or an ``include`` names one that does."""
        named = [entry.device for _, entry in self.includes if entry.device is not None]
        return any(map(self.serves, (*self.devices, *devices_named(named, self.gpu_count))))

    @cached_property
    def times(self) -> tuple[str, ...]:
        """Labelled times that are taken: those of ``measure`` that the backend has."""
        if not self.backend:
            return self.kernel.measure
        times = registry.get(self.backend).times
        return tuple(time for time in self.kernel.measure if time in times)

    @property
    def backends(self) -> frozenset[str]:
        """Return the names of its own backend and its baseline's, where they are known."""
        return frozenset({self.backend, (self.baseline or self).backend} - {""})

    @property
    def baseline_fault(self) -> str | None:
        """Why there can be no speedup: a baseline that runs nowhere; ``None`` where it runs."""
        baseline = self.baseline
        if baseline is None:
            return None
        if baseline.fault is not None:
            return f"the baseline {baseline.title} cannot run: {baseline.fault}"
        devices = dict.fromkeys((*baseline.devices, CPU))
        if any(map(baseline.serves, devices)):
            return None
        return (
            f"the baseline {baseline.title} (backend {baseline.backend}) runs on none of "
            f"{', '.join(devices)}: name a device that it serves, or another `baseline`"
        )

    # --- what its cases have in common

    @cached_property
    def rule_names(self) -> frozenset[str]:
        """Return the names that a rule may use without asking a device."""
        launch, names = self.implementation.launch, {*self.axes.names, "implementation"}
        if launch is not None and launch.block:
            names |= {"threads_per_block", "blocks"}
        return frozenset(names | ({"threads"} if self.implementation.threads else set()))

    def names(self, formula: Expression) -> frozenset[str]:
        """Return the names that a formula needs a value of, those of ``let`` followed to the
        axes."""
        if formula not in self._names:
            self._names[formula] = self.kernel.axes_behind(formula.names)
        return self._names[formula]

    @cached_property
    def _names(self) -> dict[Expression, frozenset[str]]:
        return {}

    @cached_property
    def array_specs(self) -> dict[str, dict[str, ArraySpec]]:
        """Arrays of the kernel at the cases that were asked for them, by the cases' ``data_key``:
        the same for all implementations."""
        first = next(iter(self.of_kernel.values()))
        return {} if first is self else first.array_specs

    @cached_property
    def work_counts(self) -> dict[tuple[str, str | None, str], int]:
        """Bytes and operations of a run that were asked for, by field, ``cast`` and ``data_key``:
        the same for all implementations."""
        first = next(iter(self.of_kernel.values()))
        return {} if first is self else first.work_counts

    @property
    def includes(self) -> list[tuple[int, Include]]:
        """What the kernel includes of this implementation, each with its index in the file."""
        entries = enumerate(self.kernel.include)
        return [item for item in entries if item[1].implementation == self.implementation_name]

    def count(self) -> int:
        """Cases of the product of its axes, shapes and devices, before ``exclude``: counted without
        making them."""
        launch, threads = self.implementation.launch, self.implementation.threads
        factors = [self.axes.count()]
        factors += [len(launch.blocks()) or 1, len(launch.grids()) or 1] if launch else []
        return math.prod(factors) * (len(threads) or 1) * len(self.served)


def kernel_groups(loaded: LoadedSuite, kernel_name: str, gpu_count: int) -> list[Group]:
    """Return every implementation of a kernel, in the order of the file."""
    groups: dict[str, Group] = {}
    axes = used_axes(loaded.suite.kernels[kernel_name])
    missing_data = tuple(_missing_data(loaded, kernel_name))
    installed = registry.names()
    for name in loaded.suite.kernels[kernel_name].implementations:
        backend, misfit = _backend(loaded, kernel_name, name, installed)
        missing = None
        if backend and misfit is None:
            missing = _missing_code(loaded.suite.kernels[kernel_name], name, registry.get(backend))
            misfit = str(missing) if missing else None
        groups[name] = Group(
            loaded, kernel_name, name, gpu_count, axes[name], groups,
            backend, misfit, missing, missing_data,
        )  # fmt: skip
    return [*groups.values()]


def missing_functions(path: Path) -> Iterator[Fault]:
    """Yield a fault for each function that a suite file names and that is not there: of a file too
    that has other faults, so that no plan can be made of it."""
    for kernel in read_fields(path, "kernels").values():
        for implementation in kernel.fields("implementations").values():
            for way in ("function", "factory", "launcher"):
                named = implementation.find(way)
                if named is None or not REFERENCE.fullmatch(str(named.content)):
                    continue
                try:
                    require(str(named.content))
                except KernelError as error:
                    yield implementation.key_fault(str(error))


def _missing_data(loaded: LoadedSuite, kernel_name: str) -> Iterator[tuple[Fault, KernelError]]:
    """Functions that make a kernel's data or check its outputs, as far as they are not there or
    take other arguments."""
    kernel, made_from = loaded.suite.kernels[kernel_name], Arguments(("values", "generator"))
    named: list[tuple[tree.Path, str | None, Arguments]] = [
        *((path, function, made_from) for path, function in kernel.drawing_functions().items()),
        (("check", "function"), kernel.check.function, Arguments(("outputs", "expected"))),
        (("check", "score"), kernel.check.score, Arguments(("outputs", "inputs"))),
    ]
    for path, reference, arguments in named:
        try:
            if reference is not None:
                require(reference, arguments)
        except KernelError as error:
            yield loaded.fault_at(("kernels", kernel_name, *path), str(error)), error


def _backend(
    loaded: LoadedSuite, kernel_name: str, name: str, installed: Sequence[str]
) -> tuple[str, str | None]:
    """Backend of an implementation (empty where there is none), and why it cannot run.

    It is said: by ``backend``, by the implementation's name, or once for the suite.
    """
    kernel = loaded.suite.kernels[kernel_name]
    implementation = kernel.implementations[name]
    by_name = name if name in installed else None
    by_kind = TOGETHER if implementation.parts else by_name
    chosen = implementation.backend or by_kind or loaded.suite.backend
    if chosen is None:
        return "", _propose_backend(implementation, name, installed)
    try:
        backend = registry.get(chosen)
    except BackendError as error:
        return "", str(error)
    return chosen, _misfit(loaded, kernel, name, backend)


def _propose_backend(implementation: Implementation, name: str, installed: Sequence[str]) -> str:
    """Return what to write where no backend is said: the one whose name is nearly the
    implementation's, else the one that the source shows."""
    if meant := get_close_matches(name, installed, n=1, cutoff=0.8):
        return f"no backend is said; call it {meant[0]}, or write `backend: {meant[0]}` in it"
    reference = reference_of(implementation)
    try:
        shown = find_backend(reference) if reference and implementation.factory is None else None
    except KernelError as error:  # nothing can be proposed before it is there
        return str(error)
    if shown is None:
        return "no backend is said; write `backend:` in it, such as numba, numba_cuda or numpy"
    backend, why = shown
    return f"no backend is said; write `backend: {backend}` in it, as its source has {why}"


def _misfit(loaded: LoadedSuite, kernel: Kernel, name: str, backend: Backend) -> str | None:
    """Return why an implementation cannot run on its backend: what that does not take, and files
    that are not there."""
    implementation, known = kernel.implementations[name], backend.options
    if strange := [option for option in implementation.options if option not in known]:
        hint = did_you_mean(strange[0], known)
        takes = f"{' It' if hint else '; it'} takes {', '.join(known) or 'none'}"
        return f"the backend {backend.name} has no option {strange[0]!r}{hint}{takes}"
    if implementation.launch is not None and not backend.takes_launch:
        return f"the backend {backend.name} launches nothing: remove `launch`"
    if backend.needs_launch and implementation.function and not implementation.launch:
        with suppress(KernelError):
            shown = find_backend(implementation.function)
            if shown and shown[0] == backend.name:
                return f"{shown[1]} makes what is launched: write `launch: {{block: [64]}}`"
    if implementation.threads and backend.no_threads:
        return f"`threads` cannot be set: {backend.no_threads.format(threads='N')}"
    if implementation.source is not None:
        path = loaded.path.parent / implementation.source
        if not path.is_file():
            return f"there is no source {implementation.source!r} in {path.parent}"
    if kernel.tables and not backend.takes_tables:
        takers = ", ".join(one.name for one in registry.usable() if one.takes_tables)
        return (
            f"the backend {backend.name} takes no tables, and the kernel declares "
            f"{', '.join(kernel.tables)}; use one of {takers}"
        )
    return None


def _missing_code(kernel: Kernel, name: str, backend: Backend) -> KernelError | None:
    """Return what an implementation names that is not there or takes other arguments."""
    implementation = kernel.implementations[name]
    if implementation.factory is not None:
        arguments = Arguments(keywords=implementation.with_)
    else:
        launch = () if implementation.launcher is None else ("launch",)
        before = *launch, *backend.passes
        declared = {*kernel.arrays, *kernel.scalars, *kernel.sizes, *kernel.parameters}
        arguments = Arguments((*before, *kernel.arguments(name)), (), len(before), declared)
    try:
        if reference := reference_of(implementation):
            require(reference, arguments)
    except KernelError as error:
        return error
    return None
