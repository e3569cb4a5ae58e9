"""One row for each case: status, time, baseline and speedup.

Rows come from a result file and its record (``RowsOfFiles.add``) or from samples that were just
taken (``measured_rows``), by the same rules. They are made in columns, so that a million of them
take seconds, and the details that a case's rows have in common over commits are made once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, pairwise
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.names import (
    COMPARED_TIMES,
    SECONDS,
    BenchmarkName,
    Value,
    format_identity,
    parse_benchmark_name,
    parse_identity,
)
from gpubench.record import CaseRecord
from gpubench.results.asv_files import NO_RESULT, ResultFile, StoredBenchmark, values_of
from gpubench.results.model import CELLS, DETAILS, CaseName, Row
from gpubench.results.pairs import Baselines, BenchmarkPairs, Partner
from gpubench.results.ratio import (
    MAX_DISTURBED,
    MIN_PAIRED_FACTOR,
    MIN_UNPAIRED_FACTOR,
    NO_ROUNDS,
    Ratio,
    Rounds,
    interval_of_rounds,
    paired_speedup,
    quotient,
    verdicts,
)
from gpubench.results.records import CaseStory, RecordFile
from gpubench.results.settling import (
    NOT_STORED,
    STORED_NA,
    STORED_NOTHING,
    STORED_TIME,
    settle_status,
)
from gpubench.statuses import STATUSES, Status

DEFAULT_BASELINE = "numpy"
"""Baseline where no record names one."""

LAUNCH_PARTS = ("block", "grid", "threads", "device")
"""Parts of an identity that say how a case runs, not what it computes."""

NO_BASELINE = (
    f"no baseline: `{DEFAULT_BASELINE}` has no case for these sizes; name one with `baseline:`"
)

MAX_IN_BLOCKS = 2**17
"""Cases, in some 30 bytes each, from which the rows that files had in common are forgotten: random
failures make those of every file others."""

_OK = STATUSES.index("ok")
_VALUES = ("seconds", "low", "high", "q25", "q75", "runs_per_sample", "samples")
"""Rows of ``ResultFile.values``."""
_RUNS_ROW = _VALUES.index("runs_per_sample")
_AS_STORED = -1.0
"""In place of runs in a sample."""
_RATIO_COLUMNS = ("speedup", "speedup_low", "speedup_high")
_RATES = ("bytes_per_second", "flops_per_second")
_OF_ROW = (*CELLS, "missing")
"""Columns that ``Row`` has as a row of the table does."""


@dataclass(slots=True, eq=False)
class _Case:
    """What became of one case, the same in many files."""

    name: CaseName
    status: Status
    reason: str | None
    record: CaseRecord | None
    bench: str | None
    """As of ``Row``; present where the case is of a pair."""
    unit: str = SECONDS
    row: tuple[int, int, int, int] = (0, 0, -1, -1)
    """Name, status, detail and baseline as ``RowColumns`` has them. The last two are -1 where they
    depend on the other cases of a file, the baseline also where there is none."""

    @property
    def baseline_benchmark(self) -> str | None:
        """By the record."""
        return self.record.baseline_benchmark if self.record else None


_BenchmarkRows = tuple[Sequence[_Case], NDArray[np.int32]]
"""The cases of a benchmark in a file, and the ``row`` of each, shape (4, cases)."""


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

    def __init__(self, pairs: BenchmarkPairs) -> None:
        self._pairs = pairs
        self._ids: dict[CaseName, int] = {}
        self._details: list[Row] = []
        self._runs: list[float] = []
        """By detail, the runs in a sample by the record; NaN where it does not tell them, and
        ``_AS_STORED`` of benchmarks that asv alone has measured."""
        self._paired: dict[int, tuple[Ratio, tuple[float, ...]]] = {}
        """By detail, the ratio of its pairs of samples."""
        # Thousands of files have the same benchmarks, of whose cases mostly became the same.
        self._blocks: dict[tuple[Any, ...], _BenchmarkRows] = {}
        """By all that tells what became of a benchmark's cases."""
        self._in_blocks = 0
        self._files_alone: dict[tuple[Any, ...], NDArray[np.int32]] = {}
        """The ``row`` of each case of a file without a record, by its benchmarks and by what asv
        stored of their cases; they count as blocks."""
        self._cases: dict[tuple[Any, ...], _Case] = {}
        self._rows: dict[tuple[Any, ...], tuple[int, int, int, int]] = {}
        self._files: list[tuple[NDArray[Any], ...]] = []
        """Of each file: snapshot, version, rounds, processes, disturbed, case, status, detail,
        baseline and its row, values."""
        self._length = 0

    def add(self, snapshot: int, result: ResultFile | None, record: RecordFile) -> None:
        """Rows of the cases that a result file, its record or both have."""
        result = result or NO_RESULT
        benchmarks = [*result.benchmarks]
        stored = np.where(np.isnan(result.values[0]), STORED_NA, STORED_TIME).astype(np.int8)
        stored[result.missing] = STORED_NOTHING
        of_result = {benchmark.asv_name: benchmark for benchmark in benchmarks}
        for asv_name, stories in record.stories.items():
            name, of_asv = parse_benchmark_name(asv_name), of_result.get(asv_name)
            lacking = stories.keys() - (of_asv.cases if of_asv else ())
            if name and lacking:
                cases = tuple(case for case in stories if case in lacking)
                version = of_asv.version if of_asv else None
                benchmarks.append(StoredBenchmark(name, asv_name, version, 0.0, cases))
                stored = np.append(stored, np.full(len(cases), NOT_STORED, np.int8))
        has_record = bool(record.stories or record.rounds or record.disturbed)
        rounds: list[Rounds | None] = []
        disturbed: list[float | None] = []
        versions: list[str | None] = []
        for _, asv_name, version, _, cases in benchmarks:
            versions += [version] * len(cases)
            if has_record:
                medians, shares = record.rounds.get(asv_name), record.disturbed.get(asv_name)
                rounds += map(medians.get, cases) if medians else [None] * len(cases)
                disturbed += map(shares.get, cases) if shares else [None] * len(cases)
        if has_record:
            rows = self._rows_of(benchmarks, record, stored)
        else:
            rounds, disturbed = [None] * len(versions), [None] * len(versions)
            key = (*((each.name, each.cases) for each in benchmarks), stored.tobytes())
            if key not in self._files_alone:
                self._files_alone[key] = self._rows_of(benchmarks, record, stored)
                self._in_blocks += len(versions)
            rows = self._files_alone[key]
        self._add(snapshot, rows, result.values, versions, rounds, disturbed)

    def _rows_of(
        self, benchmarks: Sequence[StoredBenchmark], record: RecordFile, stored: NDArray[np.int8]
    ) -> NDArray[np.int32]:
        """Return the ``row`` of each case of a file; ``stored`` has what asv stored of each."""
        cases_at = {benchmark.name: benchmark.cases for benchmark in benchmarks}
        blocks: list[_BenchmarkRows] = [((), np.empty((4, 0), np.int32))]
        start = 0
        for name, asv_name, _, _, cases in benchmarks:
            stories = record.stories.get(asv_name, {})
            against = self._pairs.baseline_of(name)
            baselines = cases_at.get(against, ()) if against else ()
            of_benchmark = stored[start : start + len(cases)].tobytes()
            start += len(cases)
            blocks.append(
                self._block(name, cases, (*map(stories.get, cases),), of_benchmark, baselines)
            )
        rows = np.concatenate([rows for _, rows in blocks], axis=1)
        if (rows[2] < 0).any():
            self._join([case for cases, _ in blocks for case in cases], rows)
        return rows

    def _block(
        self,
        name: BenchmarkName,
        cases: tuple[str, ...],
        stories: tuple[CaseStory | None, ...],
        stored: bytes,
        baselines: tuple[str, ...],
    ) -> _BenchmarkRows:
        """Cases of one benchmark in a file; ``stored`` has what asv stored of each."""
        key = name, cases, stories, stored, baselines
        if key not in self._blocks:
            partners = self._pairs.partners(name, cases, baselines)
            each = [
                self._case(_case_name(name, case), story, of_case, partner)
                for case, story, of_case, partner in zip(
                    cases, stories, stored, partners, strict=True
                )
            ]
            self._blocks[key] = each, _rows(each)
            self._in_blocks += len(each)
        return self._blocks[key]

    def add_measured(
        self, measured: Iterable[tuple[CaseRecord, Sequence[float], Rounds, float | None]]
    ) -> None:
        """Rows of cases that were measured together, without files: see ``measured_rows``."""
        cases: list[_Case] = []
        values: list[tuple[float, ...]] = []
        rounds: list[Rounds | None] = []
        shares: list[float | None] = []
        for record, samples, medians, disturbed in measured:
            benchmark = parse_benchmark_name(record.benchmark)
            if benchmark is None:
                raise ValueError(f"{record.benchmark!r} names no benchmark of gpubench")
            if record.status == "ok" and samples:
                values.append(values_of(samples))
            else:
                status: Any = "killed" if record.status in ("ok", "started") else record.status
                reason = record.reason or "it gave no samples"
                record = replace(record, status=status, reason=reason)
                values.append((math.nan,) * len(_VALUES))
            name = _case_name(benchmark, record.case)
            cases.append(self._case(name, CaseStory(record), STORED_TIME, None))
            rounds.append(medians)
            shares.append(disturbed)
        stored = np.array(values, np.float64).reshape(-1, len(_VALUES)).T
        rows = _rows(cases)
        self._join(cases, rows)
        self._add(0, rows, stored, [None] * len(cases), rounds, shares)

    def _add(
        self,
        snapshot: int,
        rows: NDArray[np.int32],
        values: NDArray[np.float64],
        versions: Sequence[str | None],
        rounds: Sequence[Rounds | None],
        disturbed: Sequence[float | None],
    ) -> None:
        names, count = rows[0], rows.shape[1]
        row_of = np.full(len(self._ids) + 1, -1)  # the last one is that of no baseline
        row_of[names] = np.arange(self._length, self._length + count)
        self._length += count
        lacking = np.full((len(_VALUES), count - values.shape[1]), math.nan)
        known = [each or NO_ROUNDS for each in rounds]
        objects = (
            np.fromiter(versions, object, count),
            np.fromiter((each.counted for each in known), object, count),
            np.fromiter((each.processes for each in known), object, count),
        )
        values = np.concatenate([values, lacking], axis=1)
        snapshots, shares = np.full(count, snapshot, np.int32), np.array(disturbed, np.float64)
        self._files.append((snapshots, *objects, shares, *rows, row_of[rows[3]], values))

    def columns(self) -> RowColumns:
        """Return all rows since it was asked for the last time."""
        if not self._files:
            self.add(0, None, RecordFile())
        parts = (np.concatenate(each, axis=-1) for each in zip(*self._files, strict=True))
        snapshot, version, rounds, processes, shares, *parts_of_rows = parts
        name, status, detail, baseline, against, values = parts_of_rows
        self._files, self._length = [], 0
        if self._in_blocks > MAX_IN_BLOCKS:
            self._blocks, self._files_alone, self._in_blocks = {}, {}, 0
        case_names = [*self._ids]
        values[:, status != _OK] = math.nan
        is_timed = ~np.isnan(values[0])
        _put_intervals(values, rounds, is_timed)
        runs = np.array(self._runs, np.float64)[detail]
        # What asv stores is its own ``number``: calls of ours, each of which is a batch of runs.
        values[_RUNS_ROW] = np.where(runs == _AS_STORED, values[_RUNS_ROW], runs)
        values[_RUNS_ROW, ~is_timed] = math.nan
        shares[~is_timed] = math.nan
        disturbed = shares > MAX_DISTURBED
        values[1, disturbed], values[2, disturbed] = -math.inf, math.inf

        compared = np.array([name.time in COMPARED_TIMES for name in case_names], np.bool_)[name]
        speedup = np.full((3, len(name)), math.nan)
        rows = np.flatnonzero(compared & (against >= 0))
        speedup[:, rows] = quotient(values[:3, against[rows]], values[:3, rows])
        process_speedups = np.full(len(name), None, object)
        of_pairs = np.isin(detail, [*self._paired]) & ~np.isnan(speedup[0])
        for row in np.flatnonzero(of_pairs).tolist():
            ratio, process_speedups[row] = self._paired[detail[row]]
            speedup[:, row] = ratio.value, ratio.low, ratio.high
        in_turn = of_pairs & ~disturbed & ~disturbed[against]
        work = np.array([(d.bytes, d.flops) for d in self._details], np.float64).reshape(-1, 2)
        rates = np.where(compared, work[detail].T / values[0], math.nan)

        missing = np.full(len(name), None, object)
        is_baseline = np.array([d.is_baseline for d in self._details], np.bool_)[detail]
        lacking = compared & ~is_baseline & is_timed & np.isnan(speedup[0])
        for row in np.flatnonzero(lacking).tolist():
            missing[row] = self._details[detail[row]].missing
            if against[row] >= 0:
                of_baseline = STATUSES[status[against[row]]]
                missing[row] = _without_time(case_names[baseline[row]], of_baseline)
        cells: dict[str, NDArray[Any]] = {
            "snapshot": snapshot,
            "case": name,
            "detail": detail,
            "version": version,
            "status": status,
            "rounds": rounds,
            "processes": processes,
            "process_speedups": process_speedups,
            "disturbed": np.ma.masked_invalid(shares),
            "baseline": np.ma.masked_array(baseline, against < 0),
            "verdict": np.ma.masked_array(verdicts(speedup, in_turn), np.isnan(speedup[0])),
            "missing": missing,
        }
        speedup[1, speedup[1] <= 0] = math.nan  # an end that is not known
        for names, arrays in ((_VALUES, values), (_RATIO_COLUMNS, speedup), (_RATES, rates)):
            cells |= zip(names, map(np.ma.masked_invalid, arrays), strict=True)
        return RowColumns(case_names, self._details, cells)

    def number_of(self, name: CaseName) -> int:
        """Return the index of a case into ``RowColumns.names``, whether or not it has a row."""
        return self._ids.setdefault(name, len(self._ids))

    def _case(
        self, name: CaseName, story: CaseStory | None, stored: int, partner: Partner | None
    ) -> _Case:
        """Return a case; with its row where the case's record, pair or name tells the baseline."""
        key = name, story, stored, partner
        if key in self._cases:
            return self._cases[key]
        status, reason, record = settle_status(story, stored)
        if partner:
            record = partner.record(name.case)
        case = _Case(name, status, reason, record, partner.bench if partner else None)
        if partner:
            case.unit = partner.pair.unit
        benchmark = case.baseline_benchmark
        if partner and partner.baseline:
            case.row = self._row(case, False, partner.baseline)
        elif record and benchmark and record.baseline_case is not None:
            parsed = parse_benchmark_name(benchmark)
            baseline = _case_name(parsed, record.baseline_case) if parsed else None
            case.row = self._row(case, False, baseline)
        elif not benchmark and (partner or name.implementation == DEFAULT_BASELINE):
            case.row = self._row(case, True, None)  # in a pair, a candidate names its baseline
        else:
            case.row = (self.number_of(name), STATUSES.index(status), -1, -1)
        self._cases[key] = case
        return case

    def _join(self, cases: Sequence[_Case], rows: NDArray[np.int32]) -> None:
        """Complete the rows of a file where no record names the baseline: it is the default
        baseline's case that has the most of the case's values."""
        others = {
            (baseline.suite, baseline.kernel, baseline.implementation)
            for benchmark in {case.baseline_benchmark for case in cases}
            if benchmark and (baseline := parse_benchmark_name(benchmark))
        }
        defaults = defaultdict(list)
        for name in (case.name for case in cases):
            if (name.implementation, name.time) == (DEFAULT_BASELINE, "kernel"):
                defaults[name.suite, name.kernel].append(name.case)
        baselines = {place: Baselines(identities) for place, identities in defaults.items()}
        for index in np.flatnonzero(rows[2] < 0).tolist():
            case = cases[index]
            place = case.name.suite, case.name.kernel
            is_baseline, against = False, None
            if not case.baseline_benchmark and (*place, case.name.implementation) in others:
                is_baseline = True
            elif place in baselines:
                identity = baselines[place].fitting(case.name.case)
                if identity is not None:
                    against = CaseName(*place, DEFAULT_BASELINE, "kernel", identity)
            rows[:, index] = self._row(case, is_baseline, against)

    def _row(
        self, case: _Case, is_baseline: bool, baseline: CaseName | None
    ) -> tuple[int, int, int, int]:
        key = case, is_baseline, baseline
        if key not in self._rows:
            number, record = len(self._details), case.record
            self._details.append(_detail(case, is_baseline, baseline))
            recorded = (record and record.runs_per_sample) or math.nan
            self._runs.append(recorded if case.bench is None else _AS_STORED)
            ratio = record and paired_speedup(record.pair_ratios, record.pair_rounds)
            if record and ratio:
                self._paired[number] = ratio, _process_speedups(record)
            against = -1 if baseline is None else self.number_of(baseline)
            self._rows[key] = (
                self.number_of(case.name),
                STATUSES.index(case.status),
                number,
                against,
            )
        return self._rows[key]


def _put_intervals(
    values: NDArray[np.float64], rounds: NDArray[Any], is_timed: NDArray[np.bool_]
) -> None:
    """Set the ends of the interval of each timed row with rounds; ``values`` has a row for each of
    ``_VALUES``, and ``rounds`` has the medians of each row of the table."""
    lengths = np.array([len(medians) for medians in rounds.tolist()], np.int32)
    for length in {*lengths.tolist()} - {0}:
        rows = np.flatnonzero(is_timed & (lengths == length))
        medians = np.array([*rounds[rows]], np.float64).reshape(-1, length)
        low, high = interval_of_rounds(medians)
        # It holds the median of all samples, whose rounds may have had different numbers.
        values[1, rows] = np.minimum(low, values[0, rows])
        values[2, rows] = np.maximum(high, values[0, rows])


def _without_time(baseline: CaseName, status: Status) -> str:
    return f"the baseline {_place(baseline)} has no time: {status.replace('_', ' ')}"


def _process_speedups(record: CaseRecord) -> tuple[float, ...]:
    """Return the middle of the pairs of each process, baseline over candidate."""
    ends = [*accumulate(record.pair_processes or (len(record.pair_ratios),))]
    parts = (record.pair_ratios[start:end] for start, end in pairwise([0, *ends]))
    return tuple(median(part) for part in parts if part)


def _rows(cases: Sequence[_Case]) -> NDArray[np.int32]:
    """``row`` of these cases, shape (4, cases)."""
    return np.array([case.row for case in cases], np.int32).reshape(-1, 4).T


def _detail(case: _Case, is_baseline: bool, baseline: CaseName | None) -> Row:
    name, record = case.name, case.record or _NO_RECORD
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
    of_record = {field: getattr(record, field) for field in _OF_RECORD}
    return Row(
        **of_record
        | {
            "name": name,
            "status": case.status,
            "reason": case.reason,
            "bench": case.bench,
            "unit": case.unit,
            "is_baseline": is_baseline,
            "problem": problem,
            "missing": missing,
            "device": record.device or str(identity.get("device", "")),
            "values": record.values or identity,
            "sizes": sizes,
            "size": 0.0 if math.isnan(product) else product,
            "parameters": format_identity(kept),
            "pairs": len(record.pair_ratios),
            "recorded": case.record is not None,
        }
    )


_OF_RECORD = DETAILS.keys() & {field.name for field in fields(CaseRecord)}
"""Details that a row has as its record says them, but for those that are filled otherwise above."""

_NO_RECORD = CaseRecord("", "", "ok", "")


def _number(value: Value | None) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _place(name: CaseName) -> str:
    return f"{name.implementation} {name.case}".strip()


def _case_name(benchmark: BenchmarkName, case: str) -> CaseName:
    return CaseName(
        benchmark.suite, benchmark.kernel, benchmark.implementation, benchmark.time, case
    )


def rows_from(
    details: Iterable[Mapping[str, Any]], stored: Iterable[Mapping[str, Any]]
) -> dict[CaseName, Row]:
    """Rows of one snapshot: of each the fields of its detail, and what the table's columns have of
    the rest; ``None`` where there is nothing."""
    rows: dict[CaseName, Row] = {}
    of_cases = {
        cells["case"]: (detail, cells) for detail, cells in zip(details, stored, strict=True)
    }
    for detail, cells in of_cases.values():
        row = {**detail, **{name: cells[name] for name in _OF_ROW}}
        for name in ("rounds", "processes", "process_speedups"):
            row[name] = tuple(row[name] or ())
        row["value"] = row["seconds"]
        if not row["name"].is_time:
            row["seconds"] = None
        for name in ("samples", "runs_per_sample"):
            row[name] = None if row[name] is None else int(row[name])
        ratio, low, high = (cells[name] for name in _RATIO_COLUMNS)
        against = of_cases.get(cells["baseline"])
        if ratio is None:
            row["pairs"] = 0
        else:
            ends = low or 0.0, math.inf if high is None else high
            both = [cells, against[1]] if against else [cells]
            shares = [each["disturbed"] or 0.0 for each in both]
            in_turn = detail["pairs"] and max(shares) <= MAX_DISTURBED
            least = MIN_PAIRED_FACTOR if in_turn else MIN_UNPAIRED_FACTOR
            row["speedup"] = Ratio(ratio, *ends, least)
        if against:
            baseline, of_baseline = against
            row |= {
                "baseline": baseline["name"],
                "baseline_status": baseline["status"],
                "baseline_seconds": of_baseline["seconds"],
                "baseline_low": of_baseline["low"],
                "baseline_high": of_baseline["high"],
            }
        rows[detail["name"]] = Row(**row)
    return rows


def measured_rows(
    measured: Iterable[tuple[CaseRecord, Sequence[float], Rounds, float | None]],
) -> list[Row]:
    """Rows of cases that were measured without asv: of each its record, its samples in seconds, the
    medians of its rounds, which may be none, and the share of its samples that others disturbed.

    Median and quartiles are asv's, so that both ways to measure state the same.
    """
    rows = RowsOfFiles(BenchmarkPairs())
    rows.add_measured(measured)
    columns = rows.columns()
    details = [
        {one.name: getattr(columns.details[detail], one.name) for one in fields(Row)}
        for detail in columns.cells["detail"]
    ]
    by_row = zip(*(column.tolist() for column in columns.cells.values()), strict=True)
    stored = (dict(zip(columns.cells, row, strict=True)) for row in by_row)
    return list(rows_from(details, stored).values())
