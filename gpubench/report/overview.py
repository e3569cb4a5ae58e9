"""View model of the overview: the verdict, the machine, kernel by implementation, what changed."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpubench.analysis.changes import Change, Regression, slower_than_best
from gpubench.analysis.direction import direction_word
from gpubench.analysis.headline import Headline, KernelKey, does_nothing, headline
from gpubench.analysis.renamed import find_renames
from gpubench.analysis.tally import count, worst_status
from gpubench.names import SECONDS
from gpubench.report import text, work, work_changes
from gpubench.report.findings import (
    ONE_COMMIT,
    ChangeView,
    ReasonView,
    change_view,
    counts_in_words,
    disturbed_states,
    history_spark,
    not_judged_words,
    processor_states,
    reason_views,
    regression_view,
    running_states,
)
from gpubench.report.lists import listed
from gpubench.report.machines import MachinePanel, machine_panel
from gpubench.report.site import (
    CommitLabel,
    Link,
    Navigation,
    Site,
    State,
    commit_label,
    kernel_label,
    setup_label,
    snapshot_label,
)
from gpubench.report.sparkline import Sparkline
from gpubench.results import (
    ABSENT,
    CaseHistories,
    CaseName,
    History,
    Problem,
    Ratio,
    Row,
    geometric_mean,
)
from gpubench.statuses import STATUSES, Status

MAX_MATRIX_COLUMNS = 6
"""Implementations that have a column each, as many as a screen shows; more of them share one for
each backend."""

RECENT_COMMITS = 20
"""Newest commits of the heat map, as many as stand beside each other at 1,280 pixels."""

_MAX_CHANGES = 8
"""Listed in either direction; the page of changes has all."""


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


@dataclass(frozen=True, slots=True)
class SetupRow:
    """One machine and environment, for the comparison side by side."""

    setup: Link
    commit: CommitLabel
    speedup: Ratio | None
    counts: str

    @property
    def listed(self) -> dict[str, Any]:
        return listed(speedup=self.speedup)


@dataclass(frozen=True, slots=True)
class Overview:
    title: str
    navigation: Navigation
    verdict: str
    details: str
    speedup: Ratio | None = None
    counts: dict[str, int] = field(default_factory=dict)
    commit: CommitLabel | None = None
    branch: str = ""
    """Whose commits the history has; empty where no repository tells."""
    outside: int = 0
    """Commits with results that are in no history."""
    machine: MachinePanel | None = None
    matrix: Matrix = Matrix()
    is_plain: bool = False
    """Whether nothing is compared with another, as in most projects of asv: changes come first."""
    regressions: tuple[ChangeView, ...] = ()
    more_regressions: int = 0
    """Implementations with one that are not listed."""
    checks: tuple[ChangeView, ...] = ()
    """What one commit alone showed."""
    more_checks: int = 0
    improvements: tuple[ChangeView, ...] = ()
    shared: str = ""
    """What most cases shared the last time, a sentence; empty where they never did."""
    growth: tuple[work_changes.WorkChange, ...] = ()
    """Counted work that grew, the newest first."""
    judged: int = 0
    """Cases with enough commits for a verdict."""
    changes_note: str | None = None
    reasons: tuple[ReasonView, ...] = ()
    setups: tuple[SetupRow, ...] = ()
    """On the first page of the report alone."""
    problems: tuple[Problem, ...] = ()
    states: tuple[State, ...] = ()


_Kernels = dict[KernelKey, list[Headline]]
"""Implementations by name of each kernel, as they were last measured."""


def build(history: History | None, site: Site) -> Overview:
    """Return the overview of one setup; without a history, of nothing measured yet."""
    if history is None:
        state = State(
            "Nothing measured yet",
            "There is no result file of asv here that holds one of gpubench's benchmarks.",
            "asv run --quick",
        )
        return Overview(
            title="Overview",
            navigation=site.navigation(None),
            verdict="No results yet.",
            details="",
            problems=site.table.problems,
            states=(state,),
        )
    setups = tuple(_setup_row(other, site) for other in _side_by_side(history, site))
    kernels, rows = _kernels(history, site), site.rows_now(history)
    best = _best(kernels)
    mean = geometric_mean([*best.values()])
    newest = [
        (name, steps[-1])
        for name, changes in site.changes(history).items()
        if (steps := [change for change in changes if change.kind == "step"])
    ]
    newest.sort(key=lambda item: -item[1].ratio.factor)
    worse = lasting_regressions(history, site)
    better = [item for item in newest if not item[1].slower and item[0] not in worse]
    checks = [
        (name, change)
        for name, changes in site.unacknowledged(history).items()
        for change in changes
        if change.kind == "check"
    ]
    checks.sort(key=lambda item: (not item[1].slower, -item[1].ratio.factor))
    is_plain = bool(history.names) and not site.has_choices(history)
    regressed = {(name.suite, name.kernel) for name in worse}
    judged, not_judged = site.count_judged(history, history.names)
    return Overview(
        title="Overview",
        navigation=site.navigation(history.setup),
        verdict=_plain_verdict(worse, checks, history, site)
        if is_plain
        else _verdict(kernels, best, mean, history),
        details="" if is_plain else _details(kernels, best, rows),
        is_plain=is_plain,
        speedup=mean,
        counts=count(rows),
        commit=snapshot_label(history.snapshots[-1]),
        branch=site.branch_of(history.setup),
        outside=len(site.table.outside),
        machine=machine_panel(history, site),
        matrix=_matrix(kernels, best, newest, regressed, history, site),
        regressions=_largest(worse.items(), history, site),
        more_regressions=_left_out(worse),
        improvements=_largest(better, history, site),
        checks=_largest(checks, history, site),
        more_checks=_left_out(name for name, _ in checks),
        shared=_newest_shared(history, site),
        growth=work_changes.newest_growth(history, site),
        judged=judged,
        changes_note=not_judged_words(judged, not_judged),
        reasons=reason_views(rows),
        setups=setups,
        problems=site.table.problems,
        states=tuple(_states(history, site)),
    )


def stamp(history: History, site: Site) -> str:
    """Return a text that changes with what an overview shows beside the history of its setup."""
    machine = site.table.machines.get(history.snapshots[-1].measured_on)
    others = [other.digest_now for other in _side_by_side(history, site)]
    branch = site.branch_of(history.setup), len(site.table.outside)
    table = site.table
    return repr((table.problems, machine, others, branch, table.acknowledged))


def _side_by_side(history: History, site: Site) -> Sequence[History]:
    """Return all setups on the first page: on every one, each new commit would change all of
    them."""
    return site.histories if history is site.histories[0] else ()


def _setup_row(history: History, site: Site) -> SetupRow:
    return SetupRow(
        setup=Link(setup_label(history.setup), site.address(history.setup)),
        commit=snapshot_label(history.snapshots[-1]),
        speedup=geometric_mean([*_best(_kernels(history, site)).values()]),
        counts=counts_in_words(count(site.rows_now(history))),
    )


def _kernels(history: History, site: Site) -> _Kernels:
    kernels = {}
    for key, now in site.current(history).items():
        names = sorted({name.implementation for name in now.cases})
        kernels[key] = [headline(now.cases.values(), name) for name in names]
    return kernels


def _is_empty(kernel: Sequence[Headline]) -> bool:
    """Return how fast a kernel does nothing is no speedup of a computation."""
    return does_nothing(row for shown in kernel for row in shown.rows)


def _best(kernels: _Kernels) -> dict[KernelKey, Ratio]:
    """Speedup of the fastest implementation of each kernel that computes. One without an interval
    would leave the mean without one, so that such count only where there is no other."""
    best = {
        key: speedup
        for key, kernel in kernels.items()
        if not _is_empty(kernel) and (speedup := max(kernel, key=lambda shown: shown.speed).speedup)
    }
    return {key: speedup for key, speedup in best.items() if speedup.has_interval} or best


def _verdict(
    kernels: _Kernels, best: Mapping[KernelKey, Ratio], mean: Ratio | None, history: History
) -> str:
    where = f"at {commit_label(history.latest).short} on {history.setup.machine}"
    if not kernels:
        return f"Nothing is known {where} of what is measured today."
    computing = [key for key, kernel in kernels.items() if not _is_empty(kernel)]
    counted: Collection[KernelKey] = best or computing or kernels
    suites = text.plural(len({suite for suite, _ in counted}), "suite")
    scope = f"{text.plural(len(counted), 'kernel')} of {suites}"
    if mean is None:
        return f"No speedup can be stated for {scope} {where}."
    unclear = f": unclear, the interval allows {text.ratio(1)} or is not known"
    return (
        f"Over {scope} {where}, the fastest implementations reach {text.speedup(mean)} "
        f"({text.interval(mean)}) the speed of the baseline"
        f"{unclear if mean.verdict == 'unclear' else ''}."
    )


def _details(kernels: _Kernels, best: Mapping[KernelKey, Ratio], rows: Sequence[Row]) -> str:
    counts = counts_in_words(count(rows))
    cases = f"Of {text.plural(len(rows), 'case')}, {counts}." if counts else ""
    if not best:
        return cases
    words = (
        "Geometric mean over the kernels, each at its largest size with its fastest implementation"
    )
    if empty := [kernel_label(key) for key, kernel in kernels.items() if _is_empty(kernel)]:
        does = "which does" if len(empty) == 1 else "which do"
        words += f"; without {text.some(empty)}, {does} nothing (work: 0)"
    if uncertain := [
        kernel_label(key)
        for key, kernel in kernels.items()
        if key not in best and not _is_empty(kernel) and any(shown.speedup for shown in kernel)
    ]:
        words += f"; without {text.some(uncertain)}, whose speedup has no interval"
    return f"{words}. {cases}"


def _states(history: History, site: Site) -> Iterator[State]:
    yield from running_states(history.snapshots)
    yield from processor_states(history)
    yield from disturbed_states(site.rows_now(history), history.latest)
    if len(history.commits) == 1 and not history.snapshots[-1].running:
        yield ONE_COMMIT
    renames = find_renames(*map(site.rows, history.snapshots[-2:])) if history.commits[1:] else []
    if renames:
        words = ". ".join(rename.words for rename in renames)
        yield State("Old names have a history of their own", f"{words}.", "gpubench check")
    dropped = {name for snapshot in history.snapshots for name in snapshot.superseded}
    if dropped:
        # Their newer values may be of another setup alone.
        names = {name.benchmark for each in site.histories for name in each.names}
        of_dropped = (each for each in names if each.asv_name in dropped)
        labels = sorted({kernel_label((each.suite, each.kernel)) for each in of_dropped})
        yield State(
            "Older values are left out",
            f"What {text.some(labels)} measured has changed since; older values belong to "
            "another history.",
            "asv run --skip-existing HEAD~10..HEAD",
        )


def lasting_regressions(history: History, site: Site) -> dict[CaseName, Regression]:
    """Return the cases that are worse now than at their best level, the worst first, without what
    the project knows of."""
    worse = {
        name: regression
        for name, changes in site.unacknowledged(history).items()
        if (regression := slower_than_best(changes, site.threshold(name)))
    }
    return dict(sorted(worse.items(), key=lambda item: item[1].ratio.value))


def _plain_verdict(
    worse: Mapping[CaseName, Regression],
    checks: Sequence[tuple[CaseName, Change]],
    history: History,
    site: Site,
) -> str:
    """Return what changed, of benchmarks that are compared with none."""
    cases = text.plural(len(history.names), "case")
    commits = text.plural(len(history.commits), "commit")
    if not site.is_judged(history, history.names):
        return f"{cases} measured at {commits}: not judged yet."
    words = f"No lasting regression in {cases} over {commits}"
    if worse:
        worst = text.ratio(next(iter(worse.values())).ratio.factor)
        regressions = text.plural(len(worse), "lasting regression")
        words = f"{regressions}, worst {worst}, in {cases} over {commits}"
    if checks:
        words += f"; {len(checks):,} to be checked"
    return f"{words}."


def _key(name: CaseName) -> tuple[str, ...]:
    return name.suite, name.kernel, name.implementation


def _left_out(names: Iterable[CaseName]) -> int:
    return max(len({*map(_key, names)}) - _MAX_CHANGES, 0)


def _largest(
    newest: Iterable[tuple[CaseName, Change | Regression]], history: History, site: Site
) -> tuple[ChangeView, ...]:
    """Return the first of these changes, of each kernel's implementation its largest."""
    largest: dict[tuple[str, ...], tuple[CaseName, Change | Regression]] = {}
    for name, change in newest:
        largest.setdefault(_key(name), (name, change))
    shown = [*largest.values()][:_MAX_CHANGES]
    cases = site.of_cases(history, [name for name, _ in shown])
    return tuple(
        regression_view(cases, name, change, site)
        if isinstance(change, Regression)
        else change_view(cases, name, change, site)
        for name, change in shown
    )


def _newest_shared(history: History, site: Site) -> str:
    shared = site.shared_changes(history)
    new = [one for one in shared if not site.shared_acknowledged(history, one)]
    if not new:
        return ""
    newest = new[-1]
    direction = "slower" if newest.slower else "faster"
    at = site.labels(history)[newest.after]
    cases = f"{len(newest.changes):,} of {text.plural(newest.measured, 'case')}"
    if newest.runs:
        what = f"The run of {at.short} is off"
        if newest.runs > 1:
            what = f"{newest.runs} runs are off from {at.short} on"
        return (
            f"{what}: {cases} were {direction} alike, by {text.ratio(newest.ratio.factor)}. That "
            "is the machine more often than the code; measure the commit again. It is in none of "
            "these rows."
        )
    return (
        f"{cases} became {direction} alike at {at.short}, by {text.ratio(newest.ratio.factor)}: "
        "the machine, or code that all share. That is in none of these rows."
    )


def _matrix(
    kernels: _Kernels,
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
