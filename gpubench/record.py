"""The record beside asv's results: the format that both halves of gpubench share.

asv keeps numbers only. For each result file ``<commit>-<environment>.json`` there is a record
``<commit>-<environment>.gpubench.jsonl`` in the same folder, a name that asv does not read. Every
line is one JSON object, appended whole: a ``run`` line with the machine's facts, and for each case
a ``started`` line, its outcome, and where it was timed the medians of its rounds. A case with a
``started`` line alone was killed. A case that ran on the device in software has a ``counts`` line.
Releases before that line leave it out and say so.

asv stores the times of a commit when all of its benchmarks are done. Until then they are here alone
(``finished_runs``).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

import msgspec

from gpubench.errors import GpubenchError
from gpubench.names import MAX_NUMBER, Value
from gpubench.statuses import RecordedStatus

RECORD_FORMAT = 1
"""Raised when a reader of an older release could misunderstand a line."""

SUFFIX = ".gpubench.jsonl"

UNCOMMITTED = "uncommitted"
"""Fact of a run: paths in the repository of code and suites that differ from the commit, joined by
``", "``. ``None`` where nothing differs; absent where nobody looked."""

APPENDED = "append_samples"
"""Fact of a run: true where asv adds its samples to those it has stored (``--append-samples``);
absent elsewhere."""

CountTarget = Literal["cuda", "cpu"]
"""What was counted: launches on the device in software, or a call of Numba's code on the CPU."""

ORDER_DEPENDENT = "its work depends on the order of threads"
"""Beginning of the reason why a case has no counts, where two orders gave different ones."""

MAX_LINE = 2**22
"""Bytes of a line: the longest has some 20 for each sample, and nobody takes 200,000."""

MAX_COUNT = 2**63 - 1
"""Of a count: what the table's columns hold."""

MAX_REASON = 20_000
"""Characters of a reason: a traceback of hundreds of lines. An exception may quote an array."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Facts about the machine and the software, once for each process that measured."""

    at: str
    """Time in UTC, ISO 8601."""
    facts: Mapping[str, Value | None] = field(default_factory=dict)
    """Flat: ``cpu``, ``numba``, ``numpy``, ``numpy_blas``, ``gpu``, ``driver`` ..."""
    concerns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By backend, the names of the ``facts`` that only some backends depend on: a change of
    ``numba`` explains nothing of a NumPy time. A fact that no backend lists concerns all."""


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """What happened to one case, and under which conditions. Seconds, bytes, counts."""

    benchmark: str
    """Name of the asv benchmark."""
    case: str
    """Identity of the case, as in asv's parameters."""
    status: RecordedStatus
    at: str
    """Time in UTC, ISO 8601."""
    backend: str = ""
    device: str = ""
    values: Mapping[str, Value] = field(default_factory=dict)
    """Value of each axis that the case uses."""
    sizes: tuple[str, ...] = ()
    """Which of ``values`` are array sizes."""
    title: str | None = None
    """The implementation's title, for people."""
    tags: tuple[str, ...] = ()
    """The suite's tags."""
    baseline_benchmark: str | None = None
    """asv benchmark of the baseline's ``kernel`` time; ``None`` for the baseline itself."""
    baseline_case: str | None = None
    """Identity of the case that this one's speedup is measured against."""
    reason: str | None = None
    """Why there is no time, with the next step."""
    layouts: Mapping[str, str] = field(default_factory=dict)
    """How arrays that are not in C order lie in memory, by name: ``F``, ``strides (1024, 16)``."""
    block: tuple[int, ...] | None = None
    grid: tuple[int, ...] | None = None
    shared_bytes: int = 0
    threads: int | None = None
    """Threads that the implementation was given (CPU)."""
    bytes: int | None = None
    """Bytes moved by one run, by the suite's formula."""
    flops: int | None = None
    """Floating-point operations of one run, by the suite's formula."""
    peak_bytes: int | None = None
    """The most memory that one run holds beyond what stands before it; ``None`` where the suite
    does not ask, or where it is not known."""
    max_abs_error: float | None = None
    """Largest absolute difference from the baseline's outputs."""
    max_rel_error: float | None = None
    """Largest error over the baseline's element, or over the root mean square of the output where
    that is larger."""
    score: float | None = None
    """What its outputs are worth, by the suite's score; ``None`` where outputs are compared."""
    method: str | None = None
    """How samples were taken: ``host loop``, ``event loop``, ``graph replay`` ..., followed by
    ``, fresh inputs for each run`` where they are single runs."""
    runs_per_sample: int | None = None
    """Calls between two readings of the clock."""
    timeout: float | None = None
    """Seconds after which asv kills the case; on the ``started`` line."""
    conditions: Mapping[str, Value] = field(default_factory=dict)
    """What the backend says of the run: threads in use, threading layer, device, clocks."""
    warnings: tuple[str, ...] = ()
    pair_ratios: tuple[float, ...] = ()
    """Paired mode: the baseline's seconds over the case's, for samples taken in turn."""
    pair_rounds: tuple[int, ...] = ()
    """How many of ``pair_ratios`` each round gave; empty where they are all of one round."""
    pair_processes: tuple[int, ...] = ()
    """How many of ``pair_ratios`` each process gave, where a reader has joined several; no line has
    it."""
    compiled: bool | None = None
    """Whether its backend compiles, so that ``compile`` means something; ``None`` where that cannot
    be had."""
    capabilities: tuple[str, ...] | None = None
    """What its backend can do (``gpubench.backends.protocol.Capability``); ``None`` where that
    cannot be had."""
    version: str | None = None
    """Of the asv benchmark, a hash of what it measures (``gpubench.plan.version``); ``None`` in the
    records of ``gpubench time``."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What other work on the machine did to the samples of one process.

    Seconds; ``None`` and empty where the system does not say.
    """

    disturbed: float
    """Share of all samples that waited for others, 0 to 1; 1 where others used a quarter of the
    cores. Those that were taken again are in it: where half of the samples had to be, the rest did
    not have the machine for themselves."""
    waiting: tuple[float, ...]
    """Of each sample, how long its threads together could run and had no core."""
    again: int = 0
    """Samples that do not count, because they were taken again."""


@dataclass(frozen=True, slots=True)
class RoundsRecord:
    """The times of one case by rounds, once all samples of a process are taken.

    A round is the samples that are taken on the same arrays, at the same place in memory. Several
    processes of one ``asv run`` (asv's ``rounds``) write a line each, and their rounds count
    together.
    """

    benchmark: str
    case: str
    at: str
    """Time in UTC, ISO 8601."""
    rounds: tuple[float, ...]
    """Median of the samples of each round, in seconds of one run; empty where samples have no
    rounds, as those of ``compile``."""
    disturbance: Disturbance | None = None
    """``None`` where the system does not tell of waiting, and where a device timed the samples."""
    samples: tuple[float, ...] = ()
    """All samples in seconds of one run; empty where they are ``rounds``, one in each."""


@dataclass(frozen=True, slots=True)
class HintRecord:
    """What costs more than it must at a line of a kernel, and what to change: see
    ``softcuda.hints``."""

    rule: str
    evidence: str
    """Two exact counts."""
    cause: str
    change: str
    share: float
    """Of what the kernel has of ``of``, 0 to 1."""
    of: str
    """``sectors``, ``wavefronts``, ``instructions`` ..."""
    predicted: Mapping[str, str | int] | None = None
    """The ``count`` that the change makes smaller, ``now`` and ``then``, by the addresses; ``None``
    where the change is no pad and no swap."""


@dataclass(frozen=True, slots=True)
class LineRecord:
    """Counts of one line of a kernel's code."""

    file: str
    """Relative to the project where it lies in it, else by its import path: ``numba/cuda/x.py``."""
    line: int
    counts: Mapping[str, int] = field(default_factory=dict)
    """By the names of ``softcuda.counts``; those that are 0 are left out."""
    reason: str | None = None
    """Why LLVM has not vectorized the loop of this line, in its words; ``None`` where it has, or
    was not asked."""
    hints: tuple[HintRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """Counts of a launch on the device in software, and of equal launches of the same run."""

    kernel: str
    """``module.function``."""
    grid: tuple[int, int, int]
    """Blocks, x first."""
    block: tuple[int, int, int]
    """Threads of a block, x first."""
    times: int = 1
    """How often the run launched it so, with the same counts."""
    summed: int = 1
    """Launches of one shape and other counts whose sum ``counts`` are: more than 1 where a run
    makes too many to keep each."""
    shared_bytes: int = 0
    """Shared memory of a block, static and dynamic."""
    architecture: tuple[int, int] = (0, 0)
    """Compute capability of the device in software."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """By the names of ``softcuda.counts``; those that are 0 are left out."""
    resources: Mapping[str, int] | None = None
    """By the fields of ``softcuda.resources.Resources``, on that architecture; ``None``
    where no linker is installed."""
    lines: tuple[LineRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class CountsRecord:
    """Counts of one run of a case, on the device in software or of Numba's code on the CPU."""

    benchmark: str
    """asv benchmark of the case's ``kernel`` time."""
    case: str
    model: int
    """Version of the rules by which is counted; counts of two versions are not compared."""
    missing: str | None = None
    """Why there are no counts; ``launches`` is then empty."""
    launches: tuple[LaunchRecord, ...] = ()
    """In the order of their first launch; on the CPU the call is the only one."""
    target: CountTarget = "cuda"
    made_by: str | None = None
    """Versions of the compiler and the processor that it compiled for: ``numba 0.68.1, LLVM 22.1.0,
    haswell``; ``None`` of ``cuda``, where facts of the run have them."""

    @property
    def hints(self) -> list[tuple[str, LineRecord, HintRecord]]:
        """Kernel, line and hint, those of a kernel by their shares."""
        found = [
            (launch.kernel, line, hint)
            for launch in self.launches
            for line in launch.lines
            for hint in line.hints
        ]
        kernels = [launch.kernel for launch in self.launches]
        return sorted(found, key=lambda each: (kernels.index(each[0]), -each[2].share))

    @property
    def totals(self) -> dict[str, int]:
        """Counts of all launches together, those that are 0 left out."""
        totals: dict[str, int] = defaultdict(int)
        for launch in self.launches:
            for name, count in launch.counts.items():
                totals[name] += launch.times * count
        return dict(totals)


Line = RunRecord | CaseRecord | RoundsRecord | CountsRecord

_RECORD_KINDS: dict[str, type[Line]] = {
    "run": RunRecord,
    "case": CaseRecord,
    "rounds": RoundsRecord,
    "counts": CountsRecord,
}
_DECODERS = {kind.encode(): msgspec.json.Decoder(type_) for kind, type_ in _RECORD_KINDS.items()}
_BEGINNING = re.compile(
    rb'\{"format": %d, "kind": "(%s)", ' % (RECORD_FORMAT, b"|".join(_DECODERS))
)
"""Beginnings of the lines that ``to_line`` writes: the kind of a line shows without parsing."""


def record_name(commit: str, environment: str) -> str:
    """File name of the record that belongs to asv's result file of that commit and environment.

    asv hashes environment names of 128 characters and more (``asv.results.get_filename``).
    """
    if len(environment) >= 128:
        environment = "env-" + hashlib.md5(environment.encode()).hexdigest()
    return f"{commit[:8]}-{environment}{SUFFIX}"


@dataclass(frozen=True, slots=True)
class FinishedProcess:
    """What one process that asv started has put on record of a case when it was done with it."""

    outcome: CaseRecord
    samples: tuple[float, ...] = ()
    """Seconds of one run; empty where there is no time."""
    rounds: RoundsRecord | None = None
    """``None`` where there is no time."""


FinishedCases = dict[tuple[str, str], list[FinishedProcess]]
"""By benchmark and case, the processes of one run that finished it."""


def finished_runs(lines: Iterable[Line]) -> dict[Value, FinishedCases]:
    """Return what each run has finished, by its ``run`` fact, in the order of their beginnings."""
    of_runs: dict[Value | None, list[CaseRecord | RoundsRecord]] = {None: []}
    run = None
    for line in lines:
        if isinstance(line, RunRecord):
            run = line.facts.get("run")
            of_runs.setdefault(run, [])
        elif not isinstance(line, CountsRecord):
            of_runs[run].append(line)
    return {run: _finished_cases(of_run) for run, of_run in of_runs.items() if run is not None}


def _finished_cases(lines: Sequence[CaseRecord | RoundsRecord]) -> FinishedCases:
    """Return a failure that a run ends with counts for nothing: it may have come of what ended the
    run."""
    cases: FinishedCases = defaultdict(list)
    timed: dict[tuple[str, str], CaseRecord] = {}
    for place, line in enumerate(lines, 1):
        key = line.benchmark, line.case
        if isinstance(line, RoundsRecord):
            if outcome := timed.pop(key, None):
                cases[key].append(FinishedProcess(outcome, line.samples or line.rounds, line))
        elif line.status == "ok":
            timed[key] = line  # asv has yet to take its samples
        else:
            timed.pop(key, None)
            is_last_failure = line.status == "failed" and place == len(lines)
            if line.status not in ("started", "killed") and not is_last_failure:
                cases[key].append(FinishedProcess(line))
    return cases


def to_line(record: Line) -> str:
    """Return one line of a record file, newline included; fields at their default are left out, and
    of a long reason its middle."""
    record = _cut(record)
    kind = next(kind for kind, type_ in _RECORD_KINDS.items() if type(record) is type_)
    content = {"format": RECORD_FORMAT, "kind": kind, **_without_defaults(record)}
    line = json.dumps(content, default=str) + "\n"
    if isinstance(record, CountsRecord) and len(line) > MAX_LINE:  # kernels of thousands of lines
        return to_line(replace(record, launches=tuple(map(_without_lines, record.launches))))
    return line


def _without_defaults(record: Line | LaunchRecord | LineRecord) -> dict[str, Any]:
    """Fields by name, those at their default left out, also in launches and their lines."""
    content: dict[str, Any] = {}
    for each in fields(record):
        value = getattr(record, each.name)
        if value == each.default or value == {}:
            continue
        if each.name in ("launches", "lines"):
            content[each.name] = [*map(_without_defaults, value)]
        elif each.name == "hints":
            content[each.name] = [*map(asdict, value)]
        else:
            content[each.name] = asdict(value) if isinstance(value, Disturbance) else value
    return content


def _without_lines(launch: LaunchRecord) -> LaunchRecord:
    return replace(launch, lines=())


def _cut(record: Line) -> Line:
    """Return the record with a reason that a person can read: of a long one beginning and end."""
    if not isinstance(record, CaseRecord) or len(reason := record.reason or "") <= MAX_REASON:
        return record
    half = MAX_REASON // 2 - 40  # with what tells of the middle it is no longer too long
    cut = f"{reason[:half]}\n... {len(reason) - 2 * half:,} characters ...\n{reason[-half:]}"
    return replace(record, reason=cut)


def parse_line(line: str | bytes) -> Line:
    """Read one line; raises ``GpubenchError`` for what is no line of this format, and for a number
    that no suite can give."""
    if len(line) > MAX_LINE:
        raise GpubenchError(f"it has {len(line):,} bytes; a line has {MAX_LINE:,} at most")
    record = _cut(_decoded(line))
    if isinstance(record, CaseRecord):
        numbers: list[object] = [record.bytes, record.flops, record.threads, record.shared_bytes]
        numbers += [record.peak_bytes, record.runs_per_sample]
        numbers += [*(record.block or ()), *(record.grid or ()), *record.values.values()]
        if any(isinstance(number, int) and abs(number) > MAX_NUMBER for number in numbers):
            raise GpubenchError("it holds a number beyond 2**128, which no suite gives")
    elif isinstance(record, CountsRecord):
        _refuse_counts(record)
    return record


def _refuse_counts(record: CountsRecord) -> None:
    """Raise ``GpubenchError`` where a number is none that a launch can have."""
    numbers: list[int] = [record.model]
    for launch in record.launches:
        numbers += [*launch.grid, *launch.block, *launch.architecture, *launch.counts.values()]
        numbers += [launch.times, launch.summed, launch.shared_bytes]
        numbers += (launch.resources or {}).values()
        for line in launch.lines:
            numbers += [line.line, *(launch.times * count for count in line.counts.values())]
    numbers += record.totals.values()
    if any(not 0 <= number <= MAX_COUNT for number in numbers):
        raise GpubenchError(f"it holds a count that is not between 0 and {MAX_COUNT:,}")


def _decoded(line: str | bytes) -> Line:
    try:
        encoded = line.encode() if isinstance(line, str) else line
        if begins := _BEGINNING.match(encoded):
            return _DECODERS[begins[1]].decode(encoded)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass  # damaged, foreign, or with a NaN, which is no JSON but which Python writes
    text = line.decode(errors="replace") if isinstance(line, bytes) else line
    try:
        content: dict[str, Any] = json.loads(text)
        version, kind = content["format"], content["kind"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise GpubenchError(f"no line of a gpubench record: {text[:80]!r}") from error
    if version != RECORD_FORMAT:
        raise GpubenchError(
            f"record format {str(version)[:80]}; this release reads {RECORD_FORMAT}"
        )
    if not isinstance(kind, str) or kind not in _RECORD_KINDS:
        raise GpubenchError(f"unknown kind of record line: {str(kind)[:80]!r}")
    try:
        return msgspec.convert(content, _RECORD_KINDS[kind])
    except (msgspec.MsgspecError, OverflowError, UnicodeError) as error:
        if "missing required field" in str(error):
            raise GpubenchError(f"incomplete line of a gpubench record: {error}") from error
        raise GpubenchError("a field holds what gpubench does not write") from error
