"""One row for each case: what became of it, its time, its baseline and its speedup.

Rows come from a result file and its record (``RowsOfFiles.add``) or from samples that were just
taken (``measured_rows``), by the same rules. They are made in columns, so that a million of them
take seconds, and the details that a case's rows have in common over commits are made once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import repeat
from typing import Any, cast

import numpy as np
from asv_runner.statistics import compute_stats
from numpy.typing import NDArray

from gpubench.names import (
    BenchmarkName,
    Value,
    format_identity,
    parse_benchmark_name,
    parse_identity,
)
from gpubench.record import CaseRecord
from gpubench.results.asv_files import ResultFile
from gpubench.results.model import STATUSES, CaseName, Pair, Row, Status
from gpubench.results.pairs import Baselines, Partner, partners
from gpubench.results.ratio import Ratio, interval_of_rounds, paired_speedup, quotient, verdicts
from gpubench.results.records import CaseStory, RecordFile

DEFAULT_BASELINE = "numpy"
"""Baseline where no record names one."""

COMPARED_TIMES = ("kernel", "end_to_end", "cold")
"""Times that a speedup is stated for; a transfer or a compilation has no counterpart."""

LAUNCH_PARTS = ("block", "grid", "threads", "device")
"""Parts of an identity that say how a case runs, not what it computes."""

NO_RECORD = "asv stored no value and there is no record; run `asv run --show-stderr`"
NOT_APPLICABLE = "asv stored n/a and there is no record of why; run `asv run --show-stderr`"
NO_TIME = "its outputs were right, but asv stored no time; run `asv run --show-stderr`"
INTERRUPTED = "asv was stopped before it stored a time; run `asv run --skip-existing-successful`"
NO_BASELINE = (
    f"no baseline: `{DEFAULT_BASELINE}` has no case for these sizes; name one with `baseline:`"
)
SIMULATED = (
    "checked by an earlier release on Numba's simulator, whose times mean nothing; "
    "run it on a machine with an NVIDIA GPU to measure"
)

_TIMEOUT_SHARE = 0.95
"""A case that ran for this share of its timeout was most likely ended by it: between its
``started`` line and asv's kill lie the start of the process and asv's own polling, but a crash so
shortly before the limit is rare."""

_TIME, _NOTHING, _NOT_APPLICABLE, _NO_ROW = range(4)
"""What asv stored of a case: a time, nothing, n/a; the last one: it does not have the case."""

_OK = STATUSES.index("ok")
_VALUES = ("seconds", "low", "high", "q25", "q75", "runs_per_sample", "samples")
"""Rows of ``ResultFile.values``."""
_RATIO = ("speedup", "speedup_low", "speedup_high")
_RATES = ("bytes_per_second", "flops_per_second")
_CELLS = (*_VALUES, *_RATES, "rounds", "version", "missing")
"""Columns that ``Row`` has as they are."""

Outcome = tuple[Status, str | None, CaseRecord | None]
"""What became of a case, why there is no time, and the record that tells of it."""


@dataclass(slots=True, eq=False)
class _Case:
    """What became of one case, the same in many files."""

    name: int
    status: Status
    reason: str | None
    record: CaseRecord | None
    bench: str | None = None
    """As of ``Row``; present where the case is of a pair."""
    row: tuple[int, int, int] | None = None
    """Status, detail and baseline; ``None`` where they depend on the other cases of a file."""

    @property
    def baseline_benchmark(self) -> str | None:
        """By the record."""
        return self.record.baseline_benchmark if self.record else None


@dataclass(frozen=True, slots=True, eq=False)
class RowColumns:
    """Rows of several snapshots in columns."""

    names: Sequence[CaseName]
    details: Sequence[Row]
    """Rows without times, which those of many commits have in common."""
    cells: Mapping[str, NDArray[Any]]
    """An array for each column of the table, with an element for each row; masked or ``None``
    where there is nothing. ``case`` and ``baseline`` are indices into ``names``, ``detail`` into
    ``details``, ``status`` into ``STATUSES``, ``verdict`` into ``VERDICTS``; ``snapshot`` is the
    number that was given to ``add``."""


class RowsOfFiles:
    """Makes the rows of files one after the other; what they have in common is made once."""

    def __init__(self, pairs: Sequence[Pair] = ()) -> None:
        self._pairs = pairs
        self._names: list[CaseName] = []
        self._details: list[Row] = []
        self._paired: dict[int, Ratio] = {}
        """By detail, the ratio of its pairs of samples."""
        self._files: list[tuple[NDArray[Any], ...]] = []
        """Of each file: snapshot, version, rounds, case, status, detail, baseline and its row,
        values."""
        self._length = 0

    def add(self, snapshot: int, result: ResultFile | None, record: RecordFile) -> None:
        """Rows of the cases that a result file, its record or both have."""
        names: list[int] = []
        keys: list[tuple[str, str]] = []
        stored: list[int] = []
        values, versions = np.empty((len(_VALUES), 0)), {}
        if result:
            values = result.values
            timed = np.where(np.isnan(values[0]), _NOT_APPLICABLE, _TIME)
            stored = np.where(result.missing, _NOTHING, timed).tolist()
            versions = {benchmark.asv_name: benchmark.version for benchmark in result.benchmarks}
            for benchmark in result.benchmarks:
                names += self._ids(benchmark.name, benchmark.cases)
                keys += [(benchmark.asv_name, case) for case in benchmark.cases]
        in_file = set(keys)
        for key in [key for key in record.stories if key not in in_file]:
            benchmark_name = parse_benchmark_name(key[0])
            if benchmark_name:
                names += self._ids(benchmark_name, (key[1],))
                keys.append(key)
                stored.append(_NO_ROW)
        places: Iterable[Partner | None] = repeat(None)
        if self._pairs:
            partner_of = partners((self._names[name] for name in names), self._pairs)
            places = [partner_of.get(self._names[name]) for name in names]
        cases = map(self._case, names, map(record.stories.get, keys), stored, places)
        self._add(
            snapshot,
            list(cases),
            values,
            [versions.get(benchmark) for benchmark, _ in keys],
            [*map(record.rounds.get, keys)] if record.rounds else [None] * len(keys),
        )

    def add_measured(
        self, measured: Iterable[tuple[CaseRecord, Sequence[float], Sequence[float]]]
    ) -> None:
        """Rows of cases that were measured together, without files: see ``measured_rows``."""
        cases: list[_Case] = []
        values: list[tuple[float, ...]] = []
        rounds: list[Sequence[float] | None] = []
        for record, samples, medians in measured:
            benchmark = parse_benchmark_name(record.benchmark)
            if benchmark is None:
                raise ValueError(f"{record.benchmark!r} names no benchmark of gpubench")
            number = self._id(_case_name(benchmark, record.case))
            if record.status == "ok" and samples:
                cases.append(self._settled(number, "ok", None, record))
                median, stats = compute_stats(list(samples), record.runs_per_sample)
                ends = stats["ci_99_a"], stats["ci_99_b"], stats["q_25"], stats["q_75"]
                values.append((median, *ends, record.runs_per_sample or math.nan, len(samples)))
            else:
                status = "killed" if record.status in ("ok", "started") else record.status
                reason = record.reason or "it gave no samples"
                cases.append(self._settled(number, cast(Status, status), reason, record))
                values.append((math.nan,) * len(_VALUES))
            rounds.append(medians or None)
        stored = np.array(values, np.float64).reshape(-1, len(_VALUES)).T
        self._add(0, cases, stored, [None] * len(cases), rounds)

    def _add(
        self,
        snapshot: int,
        cases: Sequence[_Case],
        values: NDArray[np.float64],
        versions: Sequence[str | None],
        rounds: Sequence[Sequence[float] | None],
    ) -> None:
        count = len(cases)
        status, detail, baseline = np.array(self._joined(cases), np.int32).reshape(-1, 3).T
        names = np.array([case.name for case in cases], np.int32)
        row_of = np.full(len(self._names) + 1, -1)  # the last one is that of no baseline
        row_of[names] = np.arange(self._length, self._length + count)
        self._length += count
        lacking = np.full((len(_VALUES), count - values.shape[1]), math.nan)
        objects = np.fromiter(versions, object, count), np.fromiter(rounds, object, count)
        indices = names, status, detail, baseline, row_of[baseline]
        values = np.concatenate([values, lacking], axis=1)
        self._files.append((np.full(count, snapshot, np.int32), *objects, *indices, values))

    def columns(self) -> RowColumns:
        """All rows so far."""
        if not self._files:
            self.add(0, None, RecordFile())
        snapshot, version, rounds, name, status, detail, baseline, against, values = (
            np.concatenate(parts, axis=-1) for parts in zip(*self._files, strict=True)
        )
        values[:, status != _OK] = math.nan
        is_timed = ~np.isnan(values[0])
        for row in np.flatnonzero(is_timed & rounds.astype(np.bool_)).tolist():
            values[1:3, row] = _ends(values[0, row], rounds[row])

        compared = np.array([name.time in COMPARED_TIMES for name in self._names], np.bool_)[name]
        speedup = np.full((3, len(name)), math.nan)
        rows = np.flatnonzero(compared & (against >= 0))
        speedup[:, rows] = quotient(values[:3, against[rows]], values[:3, rows])
        of_pairs = np.isin(detail, [*self._paired]) & ~np.isnan(speedup[0])
        for row in np.flatnonzero(of_pairs).tolist():
            ratio = self._paired[detail[row]]
            speedup[:, row] = ratio.value, ratio.low, ratio.high
        work = np.array([(d.bytes, d.flops) for d in self._details], np.float64).reshape(-1, 2)
        rates = np.where(compared, work[detail].T / values[0], math.nan)

        missing = np.full(len(name), None, object)
        is_baseline = np.array([d.is_baseline for d in self._details], np.bool_)[detail]
        lacking = compared & ~is_baseline & is_timed & np.isnan(speedup[0])
        for row in np.flatnonzero(lacking).tolist():
            missing[row] = self._details[detail[row]].missing
            if against[row] >= 0:
                became = STATUSES[status[against[row]]].replace("_", " ")
                where = _place(self._names[baseline[row]])
                missing[row] = f"the baseline {where} has no time: {became}"
        cells: dict[str, NDArray[Any]] = {
            "snapshot": snapshot,
            "case": name,
            "detail": detail,
            "version": version,
            "status": status,
            "rounds": rounds,
            "baseline": np.ma.masked_array(baseline, against < 0),
            "verdict": np.ma.masked_array(verdicts(speedup), np.isnan(speedup[0])),
            "missing": missing,
        }
        speedup[1, speedup[1] <= 0] = math.nan  # an end that is not known
        for names, arrays in ((_VALUES, values), (_RATIO, speedup), (_RATES, rates)):
            cells |= zip(names, map(np.ma.masked_invalid, arrays), strict=True)
        return RowColumns(self._names, self._details, cells)

    # These remember for one batch of files, whose reader they belong to (B019 is about more).

    @cache  # noqa: B019
    def _id(self, name: CaseName) -> int:
        self._names.append(name)
        return len(self._names) - 1

    @cache  # noqa: B019
    def _ids(self, benchmark: BenchmarkName, cases: tuple[str, ...]) -> list[int]:
        return [self._id(_case_name(benchmark, case)) for case in cases]

    @cache  # noqa: B019
    def _case(
        self, number: int, story: CaseStory | None, stored: int, partner: Partner | None
    ) -> _Case:
        status, reason, record = _settle(story, stored)
        if partner is None:
            return self._settled(number, status, reason, record)
        record = partner.record(self._names[number].case)
        return self._settled(number, status, reason, record, partner.bench)

    def _settled(
        self,
        number: int,
        status: Status,
        reason: str | None,
        record: CaseRecord | None,
        bench: str | None = None,
    ) -> _Case:
        """A case, with its row where its record, its pair or its name tell the baseline."""
        case = _Case(number, status, reason, record, bench)
        benchmark = case.baseline_benchmark
        if record and benchmark and record.baseline_case is not None:
            parsed = parse_benchmark_name(benchmark)
            baseline = _case_name(parsed, record.baseline_case) if parsed else None
            case.row = self._row(case, False, baseline)
        elif not benchmark and (bench or self._names[number].implementation == DEFAULT_BASELINE):
            case.row = self._row(case, True, None)  # in a pair, a candidate names its baseline
        return case

    def _joined(self, cases: Sequence[_Case]) -> list[tuple[int, int, int]]:
        """Status, detail and baseline of each case of a file; -1 without a baseline.

        Where no record names the baseline, it is the default baseline's case that has the most of
        the case's values.
        """
        if all(case.row for case in cases):
            return [case.row for case in cases if case.row]
        measured_against = {
            (baseline.suite, baseline.kernel, baseline.implementation)
            for benchmark in {case.baseline_benchmark for case in cases}
            if benchmark and (baseline := parse_benchmark_name(benchmark))
        }
        defaults = defaultdict(list)
        for case in cases:
            name = self._names[case.name]
            if (name.implementation, name.time) == (DEFAULT_BASELINE, "kernel"):
                defaults[name.suite, name.kernel].append(name.case)
        baselines = {place: Baselines(identities) for place, identities in defaults.items()}

        def row_of(case: _Case) -> tuple[int, int, int]:
            name = self._names[case.name]
            place = name.suite, name.kernel
            if not case.baseline_benchmark and (*place, name.implementation) in measured_against:
                return self._row(case, True, None)
            identity = baselines[place].fitting(name.case) if place in baselines else None
            if identity is None:
                return self._row(case, False, None)
            return self._row(case, False, CaseName(*place, DEFAULT_BASELINE, "kernel", identity))

        return [case.row or row_of(case) for case in cases]

    @cache  # noqa: B019
    def _row(
        self, case: _Case, is_baseline: bool, baseline: CaseName | None
    ) -> tuple[int, int, int]:
        number, record = len(self._details), case.record
        self._details.append(_detail(self._names[case.name], case, is_baseline, baseline))
        ratio = record and paired_speedup(record.pair_ratios, record.pair_rounds)
        if ratio:
            self._paired[number] = ratio
        against = -1 if baseline is None else self._id(baseline)
        return STATUSES.index(case.status), number, against


def _settle(story: CaseStory | None, stored: int) -> Outcome:
    """What became of a case, by its record and by what asv stored."""
    if story is None:
        if stored == _TIME:
            return "ok", None, None
        if stored == _NOT_APPLICABLE:
            return "skipped", NOT_APPLICABLE, None
        return "failed", NO_RECORD, None
    outcome, pending = story.outcome, story.pending
    if outcome and outcome.simulated and outcome.status == "ok":
        return "verified", outcome.reason or SIMULATED, outcome
    if outcome and outcome.status != "ok":
        reason = outcome.reason or (
            f"the record gives no reason for {outcome.status}; run `asv run --show-stderr`"
        )
        return cast(Status, outcome.status), reason, outcome
    if stored == _TIME:
        return "ok", None, outcome or pending
    if pending:
        return _stopped(pending, story.pending_seconds, stored != _NO_ROW)
    if stored == _NO_ROW:
        return "killed", INTERRUPTED, outcome
    return "failed", NO_TIME, outcome


def _stopped(started: CaseRecord, seconds: float | None, is_stored: bool) -> Outcome:
    """A case that never finished: asv's timeout, or something that killed the process."""
    timeout = started.timeout
    if seconds is not None and timeout is not None:
        timed_out = seconds >= _TIMEOUT_SHARE * timeout
    else:
        timed_out = is_stored and seconds is None
    if timed_out:
        limit = f"its timeout of {timeout:g} s" if timeout is not None else "its timeout"
        reason = (
            f"started and never finished, most likely stopped by {limit}; "
            "raise `timeout` under `sampling`, or make the case smaller"
        )
        return "timed_out", reason, started
    if not is_stored and seconds is None:
        return "killed", INTERRUPTED, started
    limit = f" before its timeout of {timeout:g} s" if timeout is not None else ""
    reason = (
        f"started and ended without an outcome{limit}, most likely killed (a crash, or too "
        "little memory); run `asv run --show-stderr`"
    )
    return "killed", reason, started


def _ends(median: float, rounds: Sequence[float]) -> tuple[float, float]:
    """Interval of a time from its rounds; it holds the median of all samples, whose rounds may have
    had different numbers of samples."""
    ends = interval_of_rounds(rounds)
    if ends is None:
        return -math.inf, math.inf
    return min(ends[0], median), max(ends[1], median)


def _detail(name: CaseName, case: _Case, is_baseline: bool, baseline: CaseName | None) -> Row:
    record = case.record or _NO_RECORD
    problem = baseline.case if baseline else name.case
    values = parse_identity(problem)
    if record.sizes:
        sizes = {size: _number(record.values.get(size)) for size in record.sizes}
    else:
        sizes = {
            key: float(value)
            for key, value in values.items()
            if key not in LAUNCH_PARTS and isinstance(value, int) and not isinstance(value, bool)
        }
    product = math.prod(sizes.values()) if sizes else 0.0
    kept = {k: v for k, v in values.items() if k not in sizes and k not in LAUNCH_PARTS}
    identity = values if problem == name.case else parse_identity(name.case)
    missing = None
    if baseline:
        command = f"asv run --bench {case.bench or baseline.benchmark.class_name}"
        missing = (
            f"the baseline {_place(baseline)} was not measured at this commit; run `{command}`"
        )
    elif not is_baseline:
        missing = NO_BASELINE
    return Row(
        name=name,
        status=case.status,
        reason=case.reason,
        bench=case.bench,
        is_baseline=is_baseline,
        problem=problem,
        missing=missing,
        backend=record.backend,
        device=record.device or str(identity.get("device", "")),
        title=record.title,
        compiled=record.compiled,
        values=record.values or identity,
        sizes=sizes,
        size=0.0 if math.isnan(product) else product,
        parameters=format_identity(kept),
        block=record.block,
        grid=record.grid,
        shared_bytes=record.shared_bytes,
        threads=record.threads,
        bytes=record.bytes,
        flops=record.flops,
        max_abs_error=record.max_abs_error,
        max_rel_error=record.max_rel_error,
        method=record.method,
        batch=record.runs_per_sample,
        conditions=record.conditions,
        warnings=record.warnings,
        pairs=len(record.pair_ratios),
        recorded=case.record is not None,
    )


_NO_RECORD = CaseRecord("", "", "ok", "")


def _number(value: Value | None) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _place(name: CaseName) -> str:
    return f"{name.implementation} {name.case}".strip()


def _case_name(benchmark: BenchmarkName, case: str) -> CaseName:
    return CaseName(
        benchmark.suite, benchmark.kernel, benchmark.implementation, benchmark.time, case
    )


def rows_from(details: Sequence[Row], cells: Mapping[str, Sequence[Any]]) -> dict[CaseName, Row]:
    """Rows of one snapshot: of each its detail, and the table's columns with the rest; ``None``
    where there is nothing."""
    rows: dict[CaseName, Row] = {}
    place_of = {case: place for place, case in enumerate(cells["case"])}
    for place, detail in enumerate(details):
        fields = {name: cells[name][place] for name in _CELLS}
        fields["rounds"] = tuple(fields["rounds"] or ())
        for name in ("samples", "runs_per_sample"):
            fields[name] = None if fields[name] is None else int(fields[name])
        ratio, low, high = (cells[name][place] for name in _RATIO)
        if ratio is not None:
            fields["speedup"] = Ratio(ratio, low or 0.0, math.inf if high is None else high)
        against = place_of.get(cells["baseline"][place])
        if against is not None:
            fields |= {
                "baseline": details[against].name,
                "baseline_status": details[against].status,
                "baseline_seconds": cells["seconds"][against],
                "baseline_low": cells["low"][against],
                "baseline_high": cells["high"][against],
            }
        pairs = 0 if ratio is None else detail.pairs
        rows[detail.name] = replace(detail, pairs=pairs, **fields)
    return rows


def measured_rows(
    measured: Iterable[tuple[CaseRecord, Sequence[float], Sequence[float]]],
) -> list[Row]:
    """Rows of cases that were measured without asv: of each its record, its samples in seconds and
    the medians of its rounds, which may be none.

    Median and quartiles are asv's, so that both ways to measure state the same.
    """
    rows = RowsOfFiles()
    rows.add_measured(measured)
    columns = rows.columns()
    details = [columns.details[detail] for detail in columns.cells["detail"]]
    cells = {name: column.tolist() for name, column in columns.cells.items()}
    return list(rows_from(details, cells).values())
