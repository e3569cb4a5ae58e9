"""The record beside asv's results: the format that both halves of gpubench share.

asv keeps numbers only. For each result file ``<commit>-<environment>.json`` there is a record
``<commit>-<environment>.gpubench.jsonl`` in the same folder, a name that asv does not read. Every
line is one JSON object, appended whole: a ``run`` line with the machine's facts, and for each case
a ``started`` line, its outcome, and where it was timed the medians of its rounds. A case with a
``started`` line alone was killed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from gpubench.errors import GpubenchError
from gpubench.names import Value

FORMAT = 1
"""Raised when a reader of an older release could misunderstand a line."""

SUFFIX = ".gpubench.jsonl"

Status = Literal["started", "ok", "verified", "skipped", "failed", "wrong", "timed_out"]
"""``verified``: right on a device in software, which has no times."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Facts about the machine and the software, once for each process that measured."""

    at: str
    """Time in UTC, ISO 8601."""
    facts: Mapping[str, Value | None] = field(default_factory=dict)
    """Flat: ``cpu``, ``numba``, ``numpy``, ``blas``, ``blas_threads``, ``gpu``, ``driver`` ..."""
    concerns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By backend, the names of those ``facts`` that only some backends depend on: a change of
    ``numba`` explains nothing of a NumPy time. A fact that no backend lists concerns all."""


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """What happened to one case, and under which conditions. Seconds, bytes, counts."""

    benchmark: str
    """Name of the asv benchmark."""
    case: str
    """Identity of the case, as in asv's parameters."""
    status: Status
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
    baseline_benchmark: str | None = None
    """asv benchmark of the baseline's ``kernel`` time; ``None`` for the baseline itself."""
    baseline_case: str | None = None
    """Identity of the case that this one's speedup is measured against."""
    reason: str | None = None
    """Why there is no time, with the next step."""
    block: tuple[int, ...] | None = None
    grid: tuple[int, ...] | None = None
    shared_bytes: int = 0
    threads: int | None = None
    """Threads that the implementation was given (CPU)."""
    bytes: int | None = None
    """Bytes moved by one run, by the suite's formula."""
    flops: int | None = None
    """Floating-point operations of one run, by the suite's formula."""
    max_abs_error: float | None = None
    """Largest absolute difference from the baseline's outputs."""
    max_rel_error: float | None = None
    simulated: bool = False
    """Of earlier releases: True, beside ``ok``, for what is ``verified`` now."""
    method: str | None = None
    """How samples were taken: ``host loop``, ``event loop``, ``graph replay`` ..."""
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
    compiled: bool | None = None
    """Whether its backend compiles, so that ``compile`` means something; ``None`` in the records of
    earlier releases."""


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
    """Median of the samples of each round, in seconds of one run."""


Line = RunRecord | CaseRecord | RoundsRecord

_KINDS: dict[str, type[Line]] = {"run": RunRecord, "case": CaseRecord, "rounds": RoundsRecord}


def record_name(commit: str, environment: str) -> str:
    """File name of the record that belongs to asv's result file of that commit and environment.

    asv hashes environment names of 128 characters and more (``asv.results.get_filename``).
    """
    if len(environment) >= 128:
        environment = "env-" + hashlib.md5(environment.encode()).hexdigest()
    return f"{commit[:8]}-{environment}{SUFFIX}"


def to_line(record: Line) -> str:
    """One line of a record file, newline included; fields at their default are left out."""
    kind = next(kind for kind, type_ in _KINDS.items() if type(record) is type_)
    defaults = {f.name: f.default for f in fields(record)}
    content = {k: v for k, v in asdict(record).items() if v != defaults[k] and v != {}}
    return json.dumps({"format": FORMAT, "kind": kind, **content}, default=str) + "\n"


def parse_line(line: str) -> Line:
    """Read one line; raises ``GpubenchError`` for what is no line of this format."""
    try:
        content: dict[str, Any] = json.loads(line)
        version, kind = content.pop("format"), content.pop("kind")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise GpubenchError(f"no line of a gpubench record: {line[:80]!r}") from error
    if version != FORMAT:
        raise GpubenchError(f"record format {version!r}; this release reads {FORMAT}")
    if kind not in _KINDS:
        raise GpubenchError(f"unknown kind of record line: {kind!r}")
    record_type = _KINDS[kind]
    known = {f.name for f in fields(record_type)}
    lists: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in content.items()
        if name in known
    }
    try:
        return record_type(**lists)
    except TypeError as error:
        raise GpubenchError(f"incomplete line of a gpubench record: {error}") from error
