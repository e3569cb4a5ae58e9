"""A case: one implementation of a kernel at one point of its axes, on one device."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from gpubench.backends.protocol import Launch
from gpubench.errors import PlanError
from gpubench.layouts import Order
from gpubench.names import CPU, BenchmarkName, Value, format_identity, format_shape, is_gpu
from gpubench.plan.group import ArraySpec, Group
from gpubench.suite import tree
from gpubench.suite.arrays import FormulaFill, FunctionFill, LikeFill, first_name
from gpubench.suite.elementwise import PIECE_ELEMENTS, elements, why_not_held
from gpubench.suite.expressions import Expression, ExpressionError
from gpubench.suite.model import Implementation, Include, Kernel, Suite, extents
from gpubench.suite.types import INDICES, ORDERS, TEXTS, Extent

MAX_ARRAY_BYTES = 2**47
"""Of one array: the addresses that a process has on x86-64 and ARM."""
TRIED_ELEMENTS = 256
"""Elements of an array that are computed to see that its formula has values: some microseconds for
each case of a plan. What fails only later fails when the case is prepared."""

Grid = tuple[int, ...] | Literal["cover"]
Shape = tuple[tuple[int, ...] | None, Grid | None, int | None]
"""Block, grid and threads of one launch; ``None`` for what the implementation does not declare."""


def cast_dtype(dtype: np.dtype[Any], precision: str) -> np.dtype[Any]:
    """Return the dtype of this precision for floating-point numbers, for complex ones that of two
    such numbers (or the smallest that NumPy has); others stay what they are."""
    if dtype.kind == "c":
        return np.result_type(precision, np.complex64)
    return np.dtype(precision) if dtype.kind == "f" else dtype


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """One column of a table at a case."""

    values: ArraySpec
    """Of one dimension; of dtype object where they are text."""
    is_category: bool
    """Whether they are text of few distinct values."""
    nulls: float
    """Share of the rows that have no value."""


@dataclass(frozen=True)
class Case:
    """One thing to measure. Cheap to make: whatever costs something is computed when it is asked.

    Every method that evaluates a formula of the suite raises ``PlanError`` where the formula has no
    value at this case, naming the case, the field and the formula.
    """

    group: Group
    values: dict[str, Value]
    """Its point: the value of each axis that the implementation uses, zipped ones taken apart."""
    block: tuple[int, ...] | None = None
    """Threads in a block, x first; ``None`` without a launch."""
    grid: Grid | None = None
    """Blocks in the grid, x first, or ``cover``; ``None`` without a launch."""
    threads: int | None = None
    """Thread count that the implementation is given; ``None`` where it declares none."""
    device: str = CPU
    """``cpu``, ``cuda:0``, ``cl:0:0`` ..."""
    problem: PlanError | None = field(default=None, compare=False)
    """Why no shape is known, or not whether a rule excludes the case: a formula has no value. The
    case stays in the plan, so that it is seen to fail."""
    _let: dict[str, Value] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Values of ``let`` that were asked for, each computed once."""

    def __hash__(self) -> int:
        return hash(self.identity)

    @classmethod
    def first_at(cls, group: Group, point: dict[str, Value], device: str) -> Case:
        """Return the case there with the first launch that the suite has at this point."""
        return cls(group, point, *next(cls(group, point).shapes()), device)

    @cached_property
    def identity(self) -> str:
        """``n=1048576 dtype=float32 block=256 device=cuda:0``, the same however the file is
        ordered.

        Sizes alphabetically, parameters alphabetically, then block, grid, threads and device. Left
        out are an axis at its default, a grid that covers, and the CPU.
        """
        parts = {name: self.values[name] for name in self.group.axes.names}
        parts = self._without_defaults(parts)
        if self.block is not None:
            parts["block"] = format_shape(self.block)
        if isinstance(self.grid, tuple):
            parts["grid"] = format_shape(self.grid)
        if self.threads is not None:
            parts["threads"] = self.threads
        if self.device != CPU:
            parts["device"] = self.device
        return format_identity(parts)

    @property
    def suite(self) -> Suite:
        return self.group.loaded.suite

    @property
    def kernel_name(self) -> str:
        return self.group.kernel_name

    @property
    def implementation_name(self) -> str:
        return self.group.implementation_name

    @property
    def kernel(self) -> Kernel:
        return self.group.kernel

    @property
    def implementation(self) -> Implementation:
        return self.group.implementation

    @property
    def backend(self) -> str:
        """Name of the backend; empty where ``fault`` says why none is known."""
        return self.group.backend

    @property
    def fault(self) -> str | None:
        """Why the case can run nowhere (a missing function, a baseline that runs nowhere, a formula
        without a value ...), else ``None``."""
        problem = None if self.problem is None else str(self.problem)
        data_fault = next(map(str, self.group.data_faults), None)
        return self.group.fault or self.group.baseline_fault or data_fault or problem

    def benchmark(self, time: str) -> BenchmarkName:
        """Name of the asv benchmark that takes one of the labelled times."""
        return self.group.benchmark(time)

    def _without_defaults(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Values of axes that a name has: those that are not at their default."""
        defaults = self.group.axes.defaults
        # As YAML has them: 1, 1.0 and true are three values.
        return {
            name: value
            for name, value in values.items()
            if type(value) is not type(defaults.get(name)) or value != defaults[name]
        }

    # --- what it works on

    @property
    def data_identity(self) -> str:
        """Name the inputs among all of the kernel's.

        A new axis at its default is not in it, and names are the first that there were: neither
        another axis nor another name changes what is drawn.
        """
        values = self._without_defaults(self.data_values())
        first_names = {name: old[-1] for name, old in self.kernel.old_axes().items()}
        point = {first_names.get(name, name): value for name, value in values.items()}
        return format_identity(dict(sorted(point.items())))

    @property
    def data_title(self) -> str:
        """First names of suite and kernel, which seed the inputs."""
        suite = first_name(self.suite.suite, self.suite.was)
        return f"{suite}/{first_name(self.kernel_name, self.kernel.was)}"

    def data_values(self) -> dict[str, Value]:
        """Return those of ``values`` that decide the inputs: equal for all implementations
        compared."""
        names = self.group.axes.data_names
        return {name: value for name, value in self.values.items() if name in names}

    @cached_property
    def data_key(self) -> str:
        """Text that cases of a kernel have in common where their inputs are declared alike."""
        return repr(self.data_values())

    @cached_property
    def array_specs(self) -> dict[str, ArraySpec]:
        """Shape, dtype, intent and fill of every declared array, in the file's order.

        What only ``init`` returns has no shape before it is made.
        """
        known = self.group.array_specs
        if self.data_key not in known:
            known[self.data_key] = self._make_array_specs()
        return known[self.data_key]

    def _make_array_specs(self) -> dict[str, ArraySpec]:
        specs = {}
        for name, array in self.kernel.arrays.items():
            path = ("arrays", name)
            shape = self._extents(array.shape, (*path, "shape"))
            dtype = self._dtype(array.dtype, (*path, "dtype"))
            order = self._order(array.order, (*path, "order"))
            specs[name] = spec = ArraySpec(shape, dtype, array.intent, array.fill, path, order)
            if (nbytes := spec.size * dtype.itemsize) > MAX_ARRAY_BYTES:
                problem = f"is {nbytes:.2g} bytes; no machine has room for more than 2**47"
                raise self.error((*path, "shape"), ", ".join(map(str, array.shape)), problem)
        return specs

    @cached_property
    def given_specs(self) -> dict[str, ArraySpec]:
        """``array_specs`` with the dtypes in which the implementation is given the arrays."""
        specs, cast = self.array_specs, self.implementation.cast
        if cast is None:
            return specs
        dtypes = {name: cast_dtype(spec.dtype, cast) for name, spec in specs.items()}
        return {name: replace(spec, dtype=dtypes[name]) for name, spec in specs.items()}

    @cached_property
    def table_specs(self) -> dict[str, dict[str, ColumnSpec]]:
        """Columns of every table that is read, each with the table's number of rows."""
        specs: dict[str, dict[str, ColumnSpec]] = {}
        for name, table in self.kernel.tables.items():
            if table.intent != "in":
                continue
            rows, specs[name] = self._whole(table.rows or 0, ("tables", name, "rows")), {}
            for column, declared in table.columns.items():
                path = ("tables", name, "columns", column)
                words = str(self.values.get(declared.dtype, declared.dtype))
                is_text = words in TEXTS
                dtype = np.dtype(object) if is_text else self._dtype(words, (*path, "dtype"))
                nulls = self.evaluate(declared.nulls, (*path, "nulls"))
                if not isinstance(nulls, int | float) or not 0 <= nulls <= 1:
                    problem = f"is {nulls!r}; a share of the rows is needed, from 0 to 1"
                    raise self.error((*path, "nulls"), declared.nulls, problem)
                if is_text and not isinstance(declared.fill, FunctionFill):
                    problem = "is text, which needs fill: {function: module:name}"
                    raise self.error((*path, "dtype"), words, problem)
                values = ArraySpec((rows,), dtype, "in", declared.fill, path)
                specs[name][column] = ColumnSpec(values, words == "category", float(nulls))
        return specs

    def filled(self, spec: ArraySpec) -> np.ndarray[Any, Any]:
        """Return one of its arrays or columns whose ``fill`` is a formula; raises ``PlanError``
        where an element has no value that its dtype holds."""
        array = np.empty(spec.shape, spec.dtype)
        for start, piece in self._elements(spec):
            array.reshape(-1)[start : start + piece.size] = piece
        return array

    def try_fills(self) -> None:
        """Compute the first elements of each array and column that a formula or a number fills;
        raises like ``filled``."""
        columns = (one.values for table in self.table_specs.values() for one in table.values())
        for spec in (*self.array_specs.values(), *columns):
            fill, path = spec.fill, (*spec.path, "fill")
            if isinstance(fill, FormulaFill):
                next(self._elements(spec, TRIED_ELEMENTS), None)
            elif isinstance(fill, int | float) and (problem := why_not_held(fill, spec.dtype)):
                raise self.error(path, fill, problem)
            elif isinstance(fill, LikeFill):
                other = self.array_specs.get(fill.like, spec)
                if other.size != spec.size:
                    problem = f"has {other.size:,} elements, and this array {spec.size:,}"
                    raise self.error((*path, "like"), fill.like, problem)

    def _elements(self, spec: ArraySpec, piece: int = PIECE_ELEMENTS) -> Iterator[tuple[int, Any]]:
        assert isinstance(spec.fill, FormulaFill), spec.path
        formula, indices = spec.fill.formula, spec.fill.indices or INDICES[: len(spec.shape)]
        scope = self._scope(formula.names, self.values)
        try:
            arguments = (scope, self.array_specs, indices, spec.shape, spec.dtype, piece)
            yield from elements(formula, *arguments)
        except ExpressionError as error:
            raise self.error((*spec.path, "fill", "formula"), formula, error.problem) from error

    def constants(self) -> dict[str, Value]:
        """Values of ``let``, those left out that are over an axis that the case has not."""
        kernel = self.kernel
        names = [name for name in kernel.let if kernel.axes_behind([name]) <= self.values.keys()]
        return dict(self._scope(names, {}))

    def scalars(self) -> dict[str, Any]:
        """Scalars of the call: of the declared dtype (NumPy's), else Python's own numbers."""
        scalars = {}
        for name, scalar in self.kernel.scalars.items():
            value: Any = self.evaluate(scalar.value, ("scalars", name, "value"))
            if scalar.dtype is not None:
                dtype = self._dtype(scalar.dtype, ("scalars", name, "dtype"))
                if problem := why_not_held(value, dtype):
                    raise self.error(("scalars", name, "value"), scalar.value, problem)
                value = dtype.type(value)
            scalars[name] = value
        return scalars

    def with_values(self) -> dict[str, Value]:
        """Compile-time constants that the factory is called with."""
        with_ = self.implementation.with_
        return {name: self.evaluate(term, self._at("with", name)) for name, term in with_.items()}

    def options(self) -> dict[str, Value]:
        """Return the settings that its backend is opened with."""
        options = self.implementation.options
        return {
            name: self.evaluate(term, self._at("options", name)) for name, term in options.items()
        }

    @cached_property
    def returns(self) -> tuple[str, ...]:
        """Return the names of what a call returns, in order: arrays that others write, then the
        kernel's."""
        return (*self.implementation.returns, *self.kernel.returns)

    def source_path(self) -> Path:
        """File of the ``source`` that the implementation names, relative to its suite's file."""
        return self.group.loaded.path.parent / str(self.implementation.source)

    def work(self) -> tuple[int | None, int | None]:
        """Bytes moved and floating-point operations of one run, rounded to whole numbers.

        ``None`` where the suite gives no formula, or one over an axis that the case has not.
        """
        work = self.kernel.work
        return self._count(work.bytes, "bytes"), self._count(work.flops, "flops")

    @property
    def memory_limit(self) -> int | None:
        """Bytes that a run may hold beyond what stands before it; ``None`` without a limit."""
        limit = self.kernel.memory_limit
        return None if limit is None else self._whole(limit, ("memory_limit",), least=1)

    def _count(self, formula: Extent | None, field: str) -> int | None:
        if formula is None:
            return None
        if not isinstance(formula, Expression):
            return self._whole_count(formula, field)
        # Most kernels have one count for each point of their data, and many launches there.
        known, key = self.group.work_counts, (field, self.implementation.cast, self.data_key)
        if key in known:
            return known[key]
        names = self.group.names(formula)
        if not names <= self.values.keys():
            return None
        count = self._whole_count(formula, field)
        if names <= self.group.axes.data_names:
            known[key] = count
        return count

    def _whole_count(self, formula: Extent, field: str) -> int:
        count = self.evaluate(formula, ("work", field))
        if not isinstance(count, int | float) or count < 0:
            raise self.error(("work", field), formula, f"is {count!r}; a count is needed")
        return round(count)

    def baseline(self) -> Case | None:
        """Return the case that this one's speedup is measured against; ``None`` for the baseline
        itself.

        The baseline's case has this case's values on the axes that the baseline uses, and the
        baseline's first block, grid and thread count. Its device is this case's device where the
        baseline's backend serves it, else the first of the kernel's devices, then the CPU, that the
        backend serves.
        """
        group = self.group.baseline
        if group is None:
            return None
        firsts = {name: v for axis in group.axes.axes for name, v in axis.first().items()}
        point = {name: self.values.get(name, v) for name, v in firsts.items()}
        own = (self.device,) if group.serves(self.device) else ()
        return Case.first_at(group, point, next(iter((*own, *group.served)), CPU))

    def parts(self) -> tuple[Case, ...]:
        """Return the implementations that do its work together, each as if it did all of it: on
        every GPU, or on the last device that serves it, for pools are listed by their number of
        workers."""
        cases = []
        for group in self.group.parts:
            point = {name: self.values[name] for axis in group.axes.axes for name in axis.names}
            gpus = [device for device in group.served if is_gpu(device)]
            cases += [Case.first_at(group, point, device) for device in gpus or group.served[-1:]]
        return tuple(cases)

    def with_size(self, name: str, value: int) -> Case:
        """Return the same with another value of a size, and the first launch that there is for
        it."""
        return Case.first_at(self.group, {**self.values, name: value}, self.device)

    # --- how it is launched

    def shapes(self, entry: Include | None = None, index: int = 0) -> Iterator[Shape]:
        """Return every block x grid x thread count of the implementation, in the file's order.

        For an ``include`` and its index: what it gives in place of the implementation's.
        """
        launch, threads = self.implementation.launch, self.implementation.threads
        blocks, block_at = launch.blocks() if launch else (), self._at("launch", "block")
        grids, grid_at = launch.grids() if launch else (), self._at("launch", "grid")
        if entry is not None:
            launches = self.group.idle_launch is None
            if entry.block is not None and launches:
                blocks, block_at = (extents(entry.block),), ("include", index, "block")
            if entry.grid is not None and launches:
                is_cover = entry.grid == "cover"
                grids = ("cover",) if is_cover else (extents(entry.grid),)
                grid_at = ("include", index, "grid")
            threads = (entry.threads,) if entry.threads else threads
        of_block: list[tuple[int, ...] | None] = [
            self._extents(block, block_at, least=1) for block in blocks
        ]
        # ``cover`` stays a word until the launch is asked for.
        of_grid: list[Grid | None] = [
            grid if grid == "cover" else self._extents(grid, grid_at, least=1) for grid in grids
        ]
        of_threads: list[int | None] = [
            self._whole(count, self._at("threads"), least=1) for count in threads
        ]
        return itertools.product(of_block or [None], of_grid or [None], of_threads or [None])

    @cached_property
    def launch(self) -> Launch | None:
        """Block and grid in whole numbers; ``None`` without a launch.

        Raises ``PlanError`` for a launch without a block, and where ``cover`` does not fit a grid.
        """
        if self.problem is not None:
            raise self.problem
        declared = self.implementation.launch
        if declared is None:
            return None
        at = self._at("launch")
        if self.block is None:
            message = "`launch` has no `block`; write `block: [64, 256]` in it, threads in a block"
            raise PlanError(self.group.fault_at(at, message))
        grid = self.grid
        if not isinstance(grid, tuple):  # the fewest blocks that give every element a thread
            covered = self._covered(declared.over)
            pairs = itertools.zip_longest(covered, self.block, fillvalue=1)
            grid = tuple(-(-extent // width) for extent, width in pairs)
        return Launch(
            block=_three(self.block),
            grid=_three(grid),
            shared_bytes=self._whole(declared.shared_bytes, (*at, "shared_bytes")),
            cooperative=declared.cooperative,
        )

    @property
    def covered(self) -> str:
        """What a grid that covers gives a thread for each element of, in words."""
        launch = self.implementation.launch
        is_given = launch is not None and launch.over is not None
        return "what `over` says" if is_given else self.kernel.written()[0]

    def _covered(self, over: Sequence[Extent] | None) -> tuple[int, ...]:
        """Extents that a grid covers: those of ``over``, else of the first output's shape.

        A shape of NumPy has its fastest dimension last, a grid has it first. A suite without either
        is not loaded.
        """
        at = self._at("launch", "over")
        if over is not None:
            return self._extents(over, at)
        shape = self.array_specs[self.kernel.written()[0]].shape
        if len(shape) > 3:
            dimensions = f"an array of {len(shape)} dimensions"
            problem = f"{dimensions} does not fit a grid of three: write `over`"
            raise self.error(at, "cover", problem)
        return shape[::-1]

    def _at(self, *fields: str) -> tree.Path:
        """Return where something stands of its implementation, inside the kernel."""
        return ("implementations", self.implementation_name, *fields)

    # --- from formulas to numbers

    def evaluate(
        self, term: Value | Expression, path: tree.Path, scope: Mapping[str, Value] | None = None
    ) -> Value:
        """Value of a formula, or the number or word that stands in its place.

        ``path`` is where it stands inside its kernel: ``("arrays", "A", "shape", 0)``. Names are
        those of ``scope``, by default the case's values, and of ``let``. Raises ``PlanError``
        naming the implementation, the point, the field and the formula.
        """
        if not isinstance(term, Expression):
            return term
        scope = self._scope(term.names, self.values if scope is None else scope)
        try:
            return term.evaluate(scope, self.given_specs if term.arrays else None)
        except ExpressionError as error:
            raise self.error(path, term, error.problem) from error

    def _scope(self, names: Iterable[str], values: Mapping[str, Value]) -> Mapping[str, Value]:
        """``values``, and those of ``names`` that ``let`` defines."""
        let = self.kernel.let
        defined = [name for name in names if name in let] if let else ()
        for name in defined:
            if name not in self._let:
                self._let[name] = self.evaluate(let[name], ("let", name))
        return {**values, **{name: self._let[name] for name in defined}} if defined else values

    def error(self, path: tree.Path, term: object, problem: str) -> PlanError:
        """Return what is wrong with a field at this point, with its place in the file."""
        at = format_identity(self.values)
        where = f"{self.group.title} at {at}" if at else self.group.title
        message = f"{where}: {'.'.join(map(str, path))} `{term}`: {problem}"
        return PlanError(self.group.fault_at(path, message))

    def _extents(self, shape: Sequence[Extent], path: tree.Path, least: int = 0) -> tuple[int, ...]:
        return tuple(self._whole(extent, path, least) for extent in shape)

    def _whole(self, term: Extent, path: tree.Path, least: int = 0) -> int:
        value = self.evaluate(term, path)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            problem = (
                f"is {value!r}; a whole number of at least {least} is needed: change the formula, "
                "or `exclude` such cases"
            )
            raise self.error(path, term, problem)
        return value

    def _dtype(self, name: str, path: tree.Path) -> np.dtype[np.generic]:
        """Return a dtype by its name, or by the parameter that holds the name."""
        value = self.values.get(name, name)
        try:
            return np.dtype(str(value))
        except TypeError as error:
            raise self.error(path, name, f"{value!r} is no dtype of NumPy") from error

    def _order(self, name: str | None, path: tree.Path) -> Order | None:
        """Return an order by its name, or by the parameter that holds the name."""
        if name is None:
            return None
        value = name if name in ORDERS else self.values.get(name, name)
        if value not in ORDERS:
            raise self.error(path, name, f"{value!r} is no order; allowed: {', '.join(ORDERS)}")
        return cast(Order, value)


def _three(shape: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*shape, 1, 1)[:3]
    return x, y, z
