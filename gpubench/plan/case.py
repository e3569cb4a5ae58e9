"""A case: one implementation of a kernel at one point of its axes, on one device."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpubench.backends.protocol import Launch
from gpubench.errors import PlanError
from gpubench.names import BenchmarkName, Value
from gpubench.plan import launches
from gpubench.plan.identity import identity
from gpubench.plan.point import ArraySpec, Point
from gpubench.plan.subject import HOME, Subject
from gpubench.suite.expressions import Expression

if TYPE_CHECKING:
    from gpubench.suite.model import Extent, Implementation, Kernel, Suite

__all__ = ["ArraySpec", "Case"]


@dataclass(frozen=True)
class Case:
    """One thing to measure. Cheap to make: whatever costs something is computed when it is asked.

    Every method that evaluates a formula of the suite raises ``PlanError`` where the formula has no
    value at this case, naming the case, the field and the formula.
    """

    point: Point
    shape: launches.Shape
    """Block, grid and threads, as far as the implementation declares them."""
    device: str
    """``cpu``, ``cuda:0``, ``cl:0:0`` ..."""
    problem: PlanError | None = field(default=None, compare=False)
    """Why no shape is known, or not whether a rule excludes the case: a formula has no value. The
    case stays in the plan, so that it is seen to fail."""
    identity: str = field(init=False, compare=False)
    """``n=1048576 dtype=float32 block=256``: stable under reordering of the file."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "identity", identity(self.point, self.shape, self.device))

    def __hash__(self) -> int:
        return hash(self.identity)

    @property
    def subject(self) -> Subject:
        return self.point.subject

    @property
    def suite(self) -> Suite:
        return self.subject.suite

    @property
    def kernel_name(self) -> str:
        return self.subject.kernel_name

    @property
    def implementation_name(self) -> str:
        return self.subject.implementation_name

    @property
    def kernel(self) -> Kernel:
        return self.subject.kernel

    @property
    def implementation(self) -> Implementation:
        return self.subject.implementation

    @property
    def backend(self) -> str:
        """Name of the backend; empty where ``fault`` says why none is known."""
        return self.subject.backend

    @property
    def fault(self) -> str | None:
        """Why the case can run nowhere (a missing function, a baseline that runs nowhere, a formula
        without a value ...), else ``None``."""
        problem = None if self.problem is None else str(self.problem)
        return self.subject.fault or self.subject.baseline_fault or problem

    @property
    def values(self) -> dict[str, Value]:
        """Value of each axis that the implementation uses, zipped sizes taken apart."""
        return self.point.values

    @property
    def sizes(self) -> tuple[str, ...]:
        """Which of ``values`` are array sizes."""
        return self.subject.size_names

    @property
    def block(self) -> tuple[int, ...] | None:
        """Threads in a block, x first; ``None`` without a launch."""
        return self.shape.block

    @property
    def grid(self) -> launches.Grid | None:
        """Blocks in the grid, x first, or ``cover``; ``None`` without a launch."""
        return self.shape.grid

    @property
    def threads(self) -> int | None:
        """Thread count that the implementation is given; ``None`` where it declares none."""
        return self.shape.threads

    @cached_property
    def launch(self) -> Launch | None:
        """Block and grid in whole numbers; ``None`` without a launch."""
        if self.problem is not None:
            raise self.problem
        return launches.launch(self.point, self.shape)

    def benchmark(self, time: str) -> BenchmarkName:
        """Name of the asv benchmark that takes one of the labelled times."""
        return self.subject.benchmark(time)

    def data_values(self) -> dict[str, Value]:
        """Those of ``values`` that decide the inputs: equal for all implementations compared."""
        names = self.subject.data_names
        return {name: value for name, value in self.values.items() if name in names}

    def array_specs(self) -> dict[str, ArraySpec]:
        """Shape, dtype, intent and fill of every declared array, in the file's order."""
        return self.point.arrays

    def scalars(self) -> dict[str, Any]:
        """Scalars of the call: of the declared dtype (NumPy's), else Python's own numbers."""
        scalars = {}
        for name, scalar in self.kernel.scalars.items():
            value: Any = self.point.evaluate(scalar.value, ("scalars", name, "value"))
            if scalar.dtype is not None:
                value = self.point.dtype(scalar.dtype, ("scalars", name, "dtype")).type(value)
            scalars[name] = value
        return scalars

    def with_values(self) -> dict[str, Value]:
        """Compile-time constants that the factory is called with."""
        path = ("implementations", self.implementation_name, "with")
        with_ = self.implementation.with_
        return {name: self.point.evaluate(term, (*path, name)) for name, term in with_.items()}

    def work(self) -> tuple[int | None, int | None]:
        """Bytes moved and floating-point operations of one run, rounded to whole numbers.

        ``None`` where the suite gives no formula, or one over an axis that the case has not.
        """
        work = self.kernel.work
        return self._count(work.bytes, "bytes"), self._count(work.flops, "flops")

    def source_path(self) -> Path:
        """File of the ``source`` that the implementation names, relative to its suite's file."""
        source = self.implementation.source
        if source is None:
            raise PlanError(f"{self.subject.title} names no `source`")
        return Path(self.subject.loaded.path).parent / source

    def baseline(self) -> Case | None:
        """The case that this one's speedup is measured against; ``None`` for the baseline itself.

        It has this case's values on the axes that the baseline uses, the baseline's first block,
        grid and thread count, and this case's device if the baseline's backend serves that, else
        the first of the kernel's devices (then the CPU) that it serves.
        """
        subject = self.subject.baseline
        if subject is None:
            return None
        values: dict[str, Value] = {}
        for axis in subject.axes:
            values.update((name, self.values.get(name, v)) for name, v in axis.first().items())
        point = Point(subject, values)
        devices = filter(subject.serves, (self.device, *subject.devices))
        return Case(point, next(launches.shapes(point)), next(devices, HOME))

    def _count(self, formula: Extent | None, field: str) -> int | None:
        if formula is None:
            return None
        if isinstance(formula, Expression) and not formula.names <= self.values.keys():
            return None
        count = self.point.evaluate(formula, ("work", field))
        if not isinstance(count, int | float) or count < 0:
            raise self.point.error(("work", field), formula, f"is {count!r}; a count is needed")
        return round(count)
