"""What was measured, free of asv's formats: one row for each case of each snapshot.

All that a report, a comparison or a table in the terminal shows of a case is a field of its
``Row``. Rows are made once, when a result file is read (``gpubench.results.rows``); whoever shows
them calculates nothing of his own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, get_type_hints

from gpubench.names import QUANTITIES, SECONDS, BenchmarkName, Value
from gpubench.record import UNCOMMITTED
from gpubench.results.ratio import MAX_DISTURBED, Ratio
from gpubench.statuses import STATUSES, Status

ALONE = "time"
"""Name of the implementation of a benchmark that is reported alone."""


@dataclass(frozen=True, order=True, slots=True)
class CaseName:
    """Names one case across commits, machines and environments."""

    suite: str
    kernel: str
    implementation: str
    time: str
    """One of ``gpubench.names.LABELS``."""
    case: str
    """Identity, ``n=1048576 block=256``."""

    @property
    def is_time(self) -> bool:
        """Whether it names a time, and not memory or a tracked number."""
        return self.time not in QUANTITIES

    @property
    def benchmark(self) -> BenchmarkName:
        return BenchmarkName(self.suite, self.kernel, self.implementation, self.time)


EVERY = "*"
"""In place of a branch: all commits. No branch has such a name."""


@dataclass(frozen=True, order=True, slots=True)
class Setup:
    """Where cases are comparable over commits: one machine, one environment."""

    machine: str
    environment: str
    branch: str = ""
    """Whose commits its history has: one of several branches, or ``EVERY``; empty where there is
    one history only, and for a snapshot."""

    @property
    def place(self) -> Setup:
        """The machine and the environment, whatever the branch."""
        return Setup(self.machine, self.environment)

    @property
    def everywhere(self) -> Setup:
        """The setup with all of its commits, those outside every history too."""
        return Setup(self.machine, self.environment, EVERY)

    def fits(self, machine: str | None, environment: str | None) -> bool:
        """Return whether it is on this machine and environment; ``None`` stands for any."""
        return machine in (None, self.machine) and environment in (None, self.environment)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with results."""

    hash: str
    date: float
    """Seconds since 1970."""
    subject: str | None = None
    """First line of its message; ``None`` without the repository."""
    address: str = ""
    """Of its page on the web; empty where none is known."""


@dataclass(frozen=True, slots=True)
class Running:
    """How far a run of asv is that measures a snapshot now."""

    since: float
    """Seconds since 1970."""
    finished: int
    """Cases, with or without a time."""
    planned: int | None
    """Cases of the project; ``None`` where the run was asked for a part of them."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One commit measured on one setup: one of asv's result files, without its rows."""

    id: int
    """Of this snapshot in the table, for as long as its files do not change."""
    setup: Setup
    commit: Commit
    facts: Mapping[str, Value | None] = field(default_factory=dict)
    """Of the last process that measured: ``cpu``, ``numba``, ``gpu``, ``driver`` ..."""
    concerns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By backend, those facts that only some backends depend on (``RunRecord.concerns``)."""
    params: Mapping[str, Value | None] = field(default_factory=dict)
    """What asv's result file says of machine and environment: ``cpu``, ``python``, requirements."""
    measured_at: str | None = None
    """When those facts were taken, UTC, ISO 8601."""
    superseded: tuple[str, ...] = ()
    """asv benchmarks whose rows are left out, because what they measure has changed since (asv's
    ``version`` of a benchmark)."""
    measured_on: str = ""
    """asv's name of the machine; the setup has another where several machines are one."""
    running: Running | None = None
    """``None`` where no run is at work on it, as far as this machine can tell."""
    digest: str = ""
    """Changes with anything that its rows or these fields are made from."""

    @property
    def processor(self) -> str:
        """Name of the processor; empty where neither the record nor asv has it."""
        return str(self.facts.get("cpu") or self.params.get("cpu") or "")

    @property
    def uncommitted(self) -> tuple[str, ...]:
        """Paths in the repository of code and suites that differed from the commit when it was
        measured; empty where nothing did, or where no record says it."""
        paths = self.facts.get(UNCOMMITTED)
        return tuple(str(paths).split(", ")) if paths else ()


@dataclass(frozen=True, slots=True)
class Cell:
    """Marks a column of which each row has a value of its own."""

    sql_type: str


@dataclass(frozen=True, slots=True)
class Row:
    """One case of one snapshot, or one that was just measured without asv.

    Seconds, bytes, counts; ``None`` where something is not known or has no meaning. Text beside a
    type is what ``gpubench query`` says of the column. A third entry is the SQL type, of a ``Cell``
    or of a *detail*: what a case's rows mostly have in common over commits, so that the table holds
    it once.
    """

    name: CaseName
    status: Annotated[Status, f"{', '.join(STATUSES[:-1])} or {STATUSES[-1]}"]
    reason: Annotated[str | None, "why there is no time", "VARCHAR"] = None
    """With the next step; ``None`` when there is a time."""
    seconds: Annotated[float | None, "median of all samples", Cell("DOUBLE")] = None
    """``None`` of what is no time (``gpubench.names.QUANTITIES``)."""
    low: Annotated[float | None, "lower end of its interval, seconds", Cell("DOUBLE")] = None
    """See ``gpubench.results.ratio``."""
    high: Annotated[float | None, "upper end of its interval, seconds", Cell("DOUBLE")] = None
    q25: Annotated[float | None, "lower quartile of the samples, seconds", Cell("DOUBLE")] = None
    q75: Annotated[float | None, "upper quartile of the samples, seconds", Cell("DOUBLE")] = None
    value: Annotated[float | None, "what was measured, in the unit"] = None
    """The same as ``seconds`` of a time; present exactly when the status is ``ok``."""
    unit: Annotated[str, "unit of the value: seconds, bytes, another", "VARCHAR"] = SECONDS
    samples: Annotated[int | None, "how many samples were taken", Cell("BIGINT")] = None
    runs_per_sample: Annotated[
        int | None, "runs between two readings of the clock", Cell("BIGINT")
    ] = None
    """By the record. Of benchmarks that asv alone has measured asv's ``number``."""
    rounds: Annotated[
        tuple[float, ...],
        "median of each round, or of each of five processes and more, seconds",
        Cell("DOUBLE[]"),
    ] = ()
    """Empty where they were not recorded."""
    processes: Annotated[
        tuple[float, ...], "median of the rounds of each process, seconds", Cell("DOUBLE[]")
    ] = ()
    """Empty where they were not recorded."""
    process_speedups: Annotated[
        tuple[float, ...],
        "middle of the pairs of each process, the baseline's seconds over the case's",
        Cell("DOUBLE[]"),
    ] = ()
    """Empty where samples were not taken in turn."""
    disturbed: Annotated[
        float | None,
        "share of the samples that waited for other work; over 0.5 without a verdict",
        Cell("DOUBLE"),
    ] = None
    """0 to 1; ``None`` where the system does not tell, or a device timed the samples."""
    version: Annotated[str | None, "asv's version of the benchmark", Cell("VARCHAR")] = None
    """A hash of what is measured."""
    is_baseline: Annotated[
        bool, "whether others are measured against this implementation", "BOOLEAN"
    ] = False
    baseline: Annotated[CaseName | None, "implementation that the speedup is against"] = None
    """Where that was measured in the same snapshot, with or without a time."""
    baseline_status: Status | None = None
    baseline_seconds: float | None = None
    baseline_low: float | None = None
    baseline_high: float | None = None
    speedup: Annotated[Ratio | None, "the baseline's seconds over the case's"] = None
    """Present where both have a time and the time is one of ``gpubench.names.COMPARED_TIMES``."""
    missing: Annotated[str | None, "why a case with a time has no speedup", "VARCHAR"] = None
    """With the next step. The detail is what is said if the baseline was not measured."""
    problem: Annotated[str, "the problem solved: identity of the baseline's case", "VARCHAR"] = ""
    """All candidates of a baseline share it."""
    pairs: Annotated[int, "pairs of samples that the speedup comes from, 0 for none", "INTEGER"] = 0
    backend: Annotated[str, "backend of the implementation", "VARCHAR"] = ""
    device: Annotated[str, "device that it ran on", "VARCHAR"] = ""
    """Empty where neither a record nor the identity tells."""
    title: Annotated[str | None, "the implementation's title", "VARCHAR"] = None
    tags: Annotated[tuple[str, ...], "the suite's tags", ["VARCHAR"]] = ()
    compiled: Annotated[bool | None, "whether its backend compiles", "BOOLEAN"] = None
    capabilities: Annotated[
        tuple[str, ...] | None,
        "gpu, cluster, out_of_core, in_place, compiles: its backend's",
        ["VARCHAR"],
    ] = None
    """``None`` where no record tells."""
    values: Annotated[Mapping[str, Value], "value of each axis, JSON", "JSON"] = field(
        default_factory=dict
    )
    """From the record, else from the identity."""
    sizes: Annotated[Mapping[str, float], "array sizes by name, JSON", "JSON"] = field(
        default_factory=dict
    )
    """From the record, else the problem's whole numbers."""
    size: Annotated[float, "product of the sizes", "DOUBLE"] = 0.0
    """Orders problems; 0 without any sizes."""
    parameters: Annotated[str, "what of the problem is no size: dtype=float32", "VARCHAR"] = ""
    """Neither a size nor a way to run."""
    layouts: Annotated[
        Mapping[str, str], "layouts of arrays that are not in C order, by name, JSON", "JSON"
    ] = field(default_factory=dict)
    """``F`` or ``strides (1024, 16)``."""
    block: Annotated[tuple[int, ...] | None, "threads in a block", ["INTEGER"]] = None
    grid: Annotated[tuple[int, ...] | None, "blocks in the grid", ["INTEGER"]] = None
    shared_bytes: Annotated[int, "dynamic shared memory of a block", "BIGINT"] = 0
    threads: Annotated[int | None, "threads that the implementation was given", "INTEGER"] = None
    bytes: Annotated[int | None, "bytes moved by one run, by the suite's formula", "BIGINT"] = None
    flops: Annotated[
        int | None, "floating-point operations of one run, by the suite's formula", "BIGINT"
    ] = None
    bytes_per_second: Annotated[float | None, "bytes over seconds", Cell("DOUBLE")] = None
    """Of the ``gpubench.names.COMPARED_TIMES`` only: the formula is that of a run of the kernel."""
    flops_per_second: Annotated[float | None, "flops over seconds", Cell("DOUBLE")] = None
    peak_bytes: Annotated[
        int | None, "most memory that one run holds beyond what stands before it", "BIGINT"
    ] = None
    max_abs_error: Annotated[
        float | None, "largest absolute difference from the baseline's outputs", "DOUBLE"
    ] = None
    max_rel_error: Annotated[
        float | None, "largest relative error of the outputs, as in docs/checks.md", "DOUBLE"
    ] = None
    score: Annotated[
        float | None, "what its outputs are worth, where the suite has a score", "DOUBLE"
    ] = None
    """In place of the errors."""
    method: Annotated[str | None, "how samples were taken", "VARCHAR"] = None
    """``host loop``, ``graph replay`` ..."""
    conditions: Annotated[Mapping[str, Value], "what the backend says of the run, JSON", "JSON"] = (
        field(default_factory=dict)
    )
    warnings: Annotated[tuple[str, ...], "warnings", ["VARCHAR"]] = ()
    bench: Annotated[str | None, "what `asv run --bench` takes for a case of a pair", "VARCHAR"] = (
        None
    )
    """``None`` where its name says it (``class_name``)."""
    recorded: Annotated[
        bool, "whether a record tells of it, or only asv's number is left", "BOOLEAN"
    ] = False

    @property
    def is_alone(self) -> bool:
        """Whether it is of another project's benchmark, reported by its times in no pair."""
        return self.is_baseline and self.bench is not None and self.name.implementation == ALONE

    @property
    def is_time(self) -> bool:
        """Whether it is of a time, and not of memory or of a tracked number."""
        return self.name.is_time

    @property
    def is_disturbed(self) -> bool:
        """Whether so much other work was in its samples that they tell nothing of the case."""
        return self.disturbed is not None and self.disturbed > MAX_DISTURBED


ROW_COLUMNS: dict[str, tuple[Any, ...]] = {
    name: hint.__metadata__
    for name, hint in get_type_hints(Row, include_extras=True).items()
    if hasattr(hint, "__metadata__")
}
"""Meaning of the fields of ``Row`` that ``gpubench query`` shows, and the SQL type of fields that a
table has as they are."""

CELLS = {
    name: sql_type.sql_type
    for name, (_, *types) in ROW_COLUMNS.items()
    for sql_type in types
    if isinstance(sql_type, Cell)
}
"""SQL types of the columns that each row has for itself."""

DETAILS = {
    name: sql_type
    for name, (_, *types) in ROW_COLUMNS.items()
    for sql_type in types
    if not isinstance(sql_type, Cell)
}
"""SQL types of the columns that are details."""


@dataclass(frozen=True, slots=True)
class Described:
    """What asv's ``benchmarks.json`` says of one benchmark."""

    param_names: tuple[str, ...] = ()
    kind: str = ""
    """``time``, ``track``, ``memory`` or ``peakmemory``; empty when unknown."""
    unit: str = ""
    """Of its values; empty when unknown."""
    source: str = ""
    """The code that the benchmark shows; empty when unknown."""
    cases: int = 0
    """Combinations of its parameters' values; 0 when unknown."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two benchmarks that an asv project runs, reported as one kernel."""

    suite: str
    name: str
    """Of the kernel that the report shows."""
    baseline: str
    """asv's name of the benchmark that speedup is measured against."""
    candidate: str
    """asv's name of the benchmark whose speedup is reported; empty where the baseline is reported
    alone, by its values."""
    label: str = "kernel"
    """What is measured, one of ``gpubench.names.LABELS``."""
    unit: str = SECONDS
    """Of the values."""


@dataclass(frozen=True, slots=True)
class PairPattern:
    """Pairs of all benchmarks whose names match."""

    suite: str
    """That the pairs are shown in; empty: that of the baseline's name, its first part."""
    baseline: str
    """Regular expression of baselines: of whole names or of their last parts."""
    candidate: str
    """What replaces that, with the groups of the expression as ``\\1``: the name of what is
    compared with it, without module and class where it has those of the baseline."""

    def __str__(self) -> str:
        return f"{self.baseline}={self.candidate}"


@dataclass(frozen=True, slots=True)
class KernelNames:
    """What a kernel is called now, and its implementations and axes."""

    suite: str
    kernel: str
    implementations: Mapping[str, str] = field(default_factory=dict)
    """Names now by names before, where the two differ."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """Names now by names before, where the two differ."""
    order: tuple[str, ...] = ()
    """All axes, as an identity has them."""


@dataclass(frozen=True)
class Renames:
    """What suites, kernels, implementations and axes are called now that had other names."""

    kernels: Mapping[tuple[str, str], KernelNames] = field(default_factory=dict)
    """By the names of suite and kernel that results may have."""
    suites: Mapping[str, str] = field(default_factory=dict)
    """Names of suites now by names before."""

    def __bool__(self) -> bool:
        """Return whether anything had another name."""
        return bool(self.kernels or self.suites)

    def concern(self, name: BenchmarkName) -> bool:
        """Return whether anything in the name of a benchmark or of its cases had another name."""
        return (name.suite, name.kernel) in self.kernels or name.suite in self.suites

    def benchmark(self, name: BenchmarkName) -> BenchmarkName:
        """Return the name of a benchmark now."""
        kernel = self.kernels.get((name.suite, name.kernel))
        if kernel is None:
            return replace(name, suite=self.suites.get(name.suite, name.suite))
        implementation = kernel.implementations.get(name.implementation, name.implementation)
        return BenchmarkName(kernel.suite, kernel.kernel, implementation, name.time)

    def axes_of(self, name: BenchmarkName) -> Mapping[str, str]:
        """Return the names of a kernel's axes now by those before."""
        kernel = self.kernels.get((name.suite, name.kernel))
        return kernel.axes if kernel else {}

    def identity(self, name: BenchmarkName, identity: str) -> str:
        """Return the identity now of a case of this benchmark."""
        kernel = self.kernels.get((name.suite, name.kernel))
        if kernel is None or not kernel.axes:
            return identity
        parts = [part.partition("=") for part in identity.split()]
        named = [(kernel.axes.get(axis, axis), value) for axis, _, value in parts]
        places = {axis: place for place, axis in enumerate(kernel.order)}
        # What is no axis, such as the block, stands after all of them and keeps its order.
        named.sort(key=lambda part: places.get(part[0], len(places)))
        return " ".join(f"{axis}={value}" for axis, value in named)


NO_RENAMES = Renames()


@dataclass(frozen=True, slots=True)
class Problem:
    """A file, or a part of one, that was left out."""

    path: str
    """Relative to the results directory."""
    message: str
