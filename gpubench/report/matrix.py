"""The matrix of the overview: a row for each kernel, a column for each implementation."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpubench.analysis.changes import Change
from gpubench.analysis.direction import direction_word
from gpubench.analysis.headline import Headline, KernelKey
from gpubench.analysis.tally import count, worst_status
from gpubench.names import SECONDS
from gpubench.report import text, work
from gpubench.report.findings import counts_in_words, history_spark
from gpubench.report.lists import listed
from gpubench.report.navigation import CommitLabel, Link, commit_label, kernel_label
from gpubench.report.site import Site
from gpubench.report.sparkline import Sparkline
from gpubench.results import ABSENT, CaseHistories, CaseName, History, Ratio, geometric_mean
from gpubench.statuses import STATUSES, Status

MAX_MATRIX_COLUMNS = 6
"""Implementations that have a column each, as many as a screen shows; more of them share one for
each backend."""

RECENT_COMMITS = 20
"""Newest commits of the heat map, as many as stand beside each other at 1,280 pixels."""


@dataclass(frozen=True, slots=True)
class MatrixColumn:
    """One implementation, or those of one backend."""

    name: str
    """Of the implementation; of several in one column, of the most common."""
    is_baseline: bool


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One implementation of one kernel; in a column of several, the fastest of them."""

    speedup: Ratio | None = None
    status: Status | None = None
    """What stands there where there is no speedup; ``None``: not measured."""
    note: str = ""
    """What is not as the column and the row say: name, size, what is missing, how many flaws."""
    is_baseline: bool = False
    """Whether the row's ``baseline_seconds`` stand there."""
    value: str = ""
    """Of a benchmark that measures no time, what it gave at its largest size."""
    work: str = ""
    """What was counted where it is right and has no time: ``4.0 sectors a load, 100 % lanes``."""


@dataclass(frozen=True, slots=True)
class KernelChange:
    """The largest among the newest changes of a kernel's cases."""

    factor: float
    """At least 1."""
    direction: str
    """``slower``, ``larger`` and their like (``gpubench.analysis.direction``)."""
    is_worse: bool
    at: CommitLabel


@dataclass(frozen=True, slots=True)
class RecentCell:
    """A case at one of the newest commits."""

    ratio: float | None
    """Its value over the median of the values at the newest commits; ``None`` without one."""
    status: Status | None
    """Why there is none; ``None``: not measured."""

    @property
    def level(self) -> int:
        """Step of the diverging scale: below 0 slower, or more, than usual."""
        return text.level(Ratio(1 / self.ratio, 0.0, math.inf)) if self.ratio else 0


@dataclass(frozen=True, slots=True)
class MatrixRow:
    suite: str
    kernel: Link
    commit: CommitLabel | None
    """Where it was last measured, if not at the page's commit."""
    size: str
    """The size that most of its cells are of; empty where it has none."""
    baseline_seconds: float | None
    """Time that the speedups are against, else the baseline's at its largest size."""
    cells: tuple[MatrixCell, ...]
    change: KernelChange | None
    """``None``: none was found."""
    is_judged: bool
    """Whether the times of any of its cases were judged, so that ``None`` says something."""
    backends: tuple[str, ...]
    """Of its implementations, as far as a record says."""
    tags: tuple[str, ...]
    """Of its suite, as far as a record says."""
    is_regressed: bool = False
    """Whether a case of it is worse now than at its best level."""
    spark: Sparkline | None = None
    """History of the case that stands for it; ``None`` with one commit."""
    recent: tuple[RecentCell, ...] = ()
    """That case at the newest commits of the setup, oldest first."""

    @property
    def listed(self) -> dict[str, Any]:
        speedups = [cell.speedup for cell in self.cells if cell.speedup]
        flaws = {cell.status for cell in self.cells if cell.status and cell.status != "ok"}
        only = [ratio.verdict for ratio in speedups] + [*map(text.status_label, flaws)]
        return listed(
            suite=[self.suite],
            tag=self.tags,
            backend=self.backends,
            only=[
                *only,
                "changed" if self.change else "",
                "regressed" if self.is_regressed else "",
            ],
            speedup=max((ratio.value for ratio in speedups), default=None),
            change=self.change.factor if self.change else None,
        )


@dataclass(frozen=True, slots=True)
class Matrix:
    """Kernels and what stands for each of their implementations."""

    columns: tuple[MatrixColumn, ...] = ()
    by_backend: bool = False
    rows: tuple[MatrixRow, ...] = ()
    suites: dict[str, Ratio | None] = field(default_factory=dict)
    """Geometric mean over the kernels of each suite, as that of all of them."""
    over_commits: bool = True
    """Whether there is more than one commit, so that something may have changed."""
    recent: tuple[CommitLabel, ...] = ()
    """The newest commits, oldest first; empty with one."""


HeadlinesOfKernels = dict[KernelKey, list[Headline]]
"""Implementations by name of each kernel, as they were last measured."""


def build_matrix(
    kernels: HeadlinesOfKernels,
    best: Mapping[KernelKey, Ratio],
    newest: Sequence[tuple[CaseName, Change]],
    regressed: Collection[KernelKey],
    history: History,
    site: Site,
) -> Matrix:
    every = [shown for kernel in kernels.values() for shown in kernel]
    by_backend = len({shown.implementation for shown in every}) > MAX_MATRIX_COLUMNS
    columns: dict[str, list[Headline]] = defaultdict(list)
    for shown in every:
        columns[_column(shown, by_backend)].append(shown)
    heads = []
    for key, shared in columns.items():
        (name, _), *_ = Counter(shown.implementation for shown in shared).most_common(1)
        is_baseline = any(shown.is_baseline for shown in shared)
        # Baselines first, then those with a speedup, each by name.
        order = (not is_baseline, not any(shown.speedup for shown in shared), name)
        heads.append((order, key, MatrixColumn(name, is_baseline)))
    heads.sort()
    units = site.units(history)
    changes: dict[KernelKey, KernelChange] = {}
    for case, change in newest:
        at = site.labels(history)[change.after]
        direction = direction_word(change, units.get(case, SECONDS))
        found = KernelChange(change.ratio.factor, direction, change.slower, at)
        changes.setdefault((case.suite, case.kernel), found)
    rows = []
    represented = {key: its for key, kernel in kernels.items() if (its := _represent(kernel))}
    over_commits = len(history.commits) > 1
    past = site.of_cases(history, represented.values()) if over_commits and represented else None
    for kernel_key, kernel in kernels.items():
        standing = represented.get(kernel_key)
        cases = [row for shown in kernel for row in shown.cases]
        # The size that most implementations are shown at.
        sizes = Counter(text.sizes(shown.cases[0].sizes) for shown in kernel if shown.cases)
        size = sizes.most_common(1)[0][0] if sizes else ""
        baselines = [row.baseline_seconds for row in cases]
        baselines += [row.seconds for row in cases if row.is_baseline]
        in_columns: dict[str, list[Headline]] = defaultdict(list)
        for shown in kernel:
            in_columns[_column(shown, by_backend)].append(shown)
        commit = site.current(history)[kernel_key].commit
        counted = site.counts(history.snapshots[history.places[commit]])
        rows.append(
            MatrixRow(
                suite=kernel_key[0],
                kernel=Link(kernel_label(kernel_key), site.address(history.setup, kernel_key)),
                commit=commit_label(commit) if commit != history.latest else None,
                size=size,
                baseline_seconds=next((s for s in baselines if s is not None), None),
                cells=tuple(
                    _cell(in_columns[key], column, size, counted) for _, key, column in heads
                ),
                change=changes.get(kernel_key),
                is_judged=site.is_judged(
                    history, (history.names[case] for case in site.kernels(history)[kernel_key])
                ),
                is_regressed=kernel_key in regressed,
                backends=tuple(sorted({shown.rows[0].backend for shown in kernel} - {""})),
                tags=tuple(sorted({tag for shown in kernel for tag in shown.rows[0].tags})),
                spark=history_spark(past, standing, (), units.get(standing, SECONDS))
                if past and standing
                else None,
                recent=_recent(past, standing) if past and standing else (),
            )
        )
    suites = {
        suite: geometric_mean([ratio for key, ratio in best.items() if key[0] == suite])
        for suite in dict.fromkeys(suite for suite, _ in kernels)
    }
    named = tuple(column for _, _, column in heads)
    recent = site.labels(history)[-RECENT_COMMITS:] if over_commits else ()
    return Matrix(named, by_backend, tuple(rows), suites, over_commits, recent)


def _represent(kernel: Sequence[Headline]) -> CaseName | None:
    """Return the case that stands for a kernel: of its fastest implementation at the largest size,
    and where none has a time, its largest."""
    best = max(kernel, key=lambda shown: (bool(shown.cases), shown.speed))
    rows = best.cases or sorted(best.rows, key=lambda row: -row.size)
    return rows[0].name if rows else None


def _recent(history: CaseHistories, name: CaseName) -> tuple[RecentCell, ...]:
    """Return what a case gave at the newest commits, over its median there."""
    row = history.rows_of[name]
    values = history.times[0, row, -RECENT_COMMITS:]
    statuses = history.statuses[row, -RECENT_COMMITS:].tolist()
    if history.by_speedup or not (values > 0).any():
        values = np.full(len(values), np.nan)
    usual = float(np.median(values[values > 0])) if (values > 0).any() else math.nan
    return tuple(
        RecentCell(
            value / usual if value > 0 else None,
            None if status == ABSENT or value > 0 else STATUSES[status],
        )
        for value, status in zip(values.tolist(), statuses, strict=True)
    )


def _column(shown: Headline, by_backend: bool) -> str:
    """Key of its column; its name, too, where no record says its backend."""
    if not by_backend:
        return shown.implementation
    return "" if shown.is_baseline else shown.rows[0].backend or shown.implementation


def _cell(
    shared: Sequence[Headline], column: MatrixColumn, size: str, counted: work.Counted
) -> MatrixCell:
    """Return what stands for implementations that share a column: the fastest; where none has a
    time, one that was counted."""
    if not shared:
        return MatrixCell()
    best = max(shared, key=lambda shown: shown.speed)
    if cell := _work_cell(shared, column, size, counted):
        return cell
    name = best.implementation if best.implementation != column.name else ""
    flaws: dict[str, int] = {key: n for key, n in count(best.rows).items() if key in STATUSES}
    worst, words = worst_status(best.rows), counts_in_words(flaws)
    if best.is_baseline and any(row.seconds is not None for row in best.cases):
        return MatrixCell(status="ok", note=_joined(name, words), is_baseline=True)
    others = [row for row in best.rows if not row.is_time and row.value is not None]
    if others and not best.cases:
        largest = max(others, key=lambda row: row.size)
        note = _joined(name, text.time_label(largest.name.time), words)
        return MatrixCell(status="ok", value=text.measured(largest), note=note)
    if best.speedup:
        at = text.sizes(best.cases[0].sizes)
        note = _joined(name, at if at != size else "", words)
        return MatrixCell(best.speedup, "ok", note)
    if worst == "ok":
        missing = next((row.missing for row in best.rows if row.missing), None)
        return MatrixCell(note=_joined(name, missing or "its kernel time was not measured"))
    if set(flaws) == {worst}:  # which the cell says already
        words = text.plural(flaws[worst], "case") if flaws[worst] > 1 else ""
    return MatrixCell(status=worst, note=_joined(name, words))


def _work_cell(
    shared: Sequence[Headline], column: MatrixColumn, size: str, counted: work.Counted
) -> MatrixCell | None:
    """Return what the first of these implementations that is right and has no time does; ``None``
    where one has a time, and where none was counted. One that is wrong says that instead."""
    if any(row.seconds is not None for shown in shared for row in shown.rows):
        return None
    for shown in shared:
        row = work.representative(shown.rows, counted)
        if row and worst_status(shown.rows) == "verified":
            name = shown.implementation if shown.implementation != column.name else ""
            at, others = text.sizes(row.sizes), count(shown.rows)
            del others["verified"]
            note = _joined(name, at if at != size else "", counts_in_words(others))
            words = work.work_words(counted[row.name])
            return MatrixCell(status="verified", note=note, work=words)
    return None


def _joined(*words: str) -> str:
    return "; ".join(filter(None, words))
