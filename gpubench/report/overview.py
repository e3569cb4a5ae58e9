"""View model of the overview: the verdict, the machine, kernel by implementation, what changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gpubench.analysis.changes import Change
from gpubench.analysis.headline import Headline, KernelKey, headline
from gpubench.analysis.tally import count, worst_status
from gpubench.report import text
from gpubench.report.findings import (
    ONE_COMMIT,
    ChangeView,
    ReasonView,
    change_view,
    counts_in_words,
    history_length,
    reason_views,
)
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
)
from gpubench.results import (
    STATUSES,
    CaseName,
    History,
    Problem,
    Ratio,
    Row,
    Status,
    geometric_mean,
)

MOST_COLUMNS = 6
"""Implementations that have a column each, as many as a screen shows; more of them share one for
each backend."""

_MOST_CHANGES = 8
"""Listed in either direction; the page of changes has all."""

_BASELINES = ""
"""Key of the column of baselines, where backends are columns."""


@dataclass(frozen=True, slots=True)
class MatrixColumn:
    """One implementation, or those of one backend."""

    name: str
    """Of the implementation; of several in one column, of the most common."""
    is_baseline: bool
    """Whether it holds baselines."""


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One implementation of one kernel; in a column of several, the fastest of them."""

    speedup: Ratio | None
    status: Status | None
    """What stands there where there is no speedup; ``None``: not measured."""
    note: str
    """What is not as the column and the row say: name, size, what is missing, how many flaws."""
    is_baseline: bool = False
    """Whether the row's ``baseline_seconds`` stand there."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One kernel."""

    kernel: Link
    commit: CommitLabel | None
    """Where it was last measured, if not at the page's commit."""
    size: str
    """The size that most of its cells are of; empty where it has none."""
    baseline_seconds: float | None
    """Time that the speedups are against, else the baseline's at its largest size."""
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Kernels and what stands for each of their implementations."""

    columns: tuple[MatrixColumn, ...] = ()
    by_backend: bool = False
    """Whether implementations share columns."""
    rows: tuple[MatrixRow, ...] = ()


@dataclass(frozen=True, slots=True)
class SetupRow:
    """One machine and environment, for the comparison side by side."""

    setup: Link
    commit: CommitLabel
    speedup: Ratio | None
    counts: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The report's first page."""

    title: str
    navigation: Navigation
    verdict: str
    """One sentence."""
    details: str
    """What its numbers are of."""
    speedup: Ratio | None = None
    counts: dict[str, int] = field(default_factory=dict)
    commit: CommitLabel | None = None
    machine: MachinePanel | None = None
    matrix: Matrix = Matrix()
    """Kernels by implementations."""
    regressions: tuple[ChangeView, ...] = ()
    improvements: tuple[ChangeView, ...] = ()
    changes_note: str | None = None
    reasons: tuple[ReasonView, ...] = ()
    setups: tuple[SetupRow, ...] = ()
    problems: tuple[Problem, ...] = ()
    states: tuple[State, ...] = ()


@dataclass(frozen=True, slots=True)
class _Implementation:
    """One implementation of one kernel, as it was last measured."""

    name: str
    rows: tuple[Row, ...]
    headline: Headline

    @property
    def is_baseline(self) -> bool:
        return any(row.is_baseline for row in self.rows)

    @property
    def speed(self) -> float:
        """Orders implementations that share a column: the fastest has the largest."""
        return self.headline.speedup.value if self.headline.speedup else 0.0

    def column(self, by_backend: bool) -> str:
        """Key of its column; its name, too, where no record says its backend."""
        if not by_backend:
            return self.name
        return _BASELINES if self.is_baseline else self.rows[0].backend or self.name


_Kernels = dict[KernelKey, list[_Implementation]]
"""Implementations by name of each kernel."""


def build(history: History | None, site: Site) -> Overview:
    """The overview of one setup; without a history, of nothing measured yet."""
    if history is None:
        return _empty(site)
    kernels = _kernels(history, site)
    rows = [row for now in site.current(history).values() for row in now.cases.values()]
    mean, counts = _best_mean(kernels), count(rows)
    slower, faster = _largest_changes(history, site)
    return Overview(
        title="Overview",
        navigation=site.navigation(history.setup),
        verdict=_verdict(kernels, history, mean),
        details=_details(mean, len(rows), counts_in_words(counts)),
        speedup=mean,
        counts=counts,
        commit=commit_label(history.latest),
        machine=machine_panel(history, site),
        matrix=_matrix(kernels, history, site),
        regressions=slower,
        improvements=faster,
        changes_note=history_length(len(history.commits)),
        reasons=reason_views(rows),
        setups=tuple(_setup_row(other, site) for other in site.histories),
        problems=site.table.problems,
        states=tuple(_states(history)),
    )


def _empty(site: Site) -> Overview:
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


def _states(history: History) -> Iterator[State]:
    if len(history.commits) == 1:
        yield ONE_COMMIT
    dropped = sorted({name for snapshot in history.snapshots for name in snapshot.superseded})
    if dropped:
        yield State(
            "Older values are left out",
            f"What {text.join(dropped)} measures has changed since; its older values belong to "
            "another history.",
            "asv run --skip-existing HEAD~10..HEAD",
        )


def _verdict(kernels: Collection[KernelKey], history: History, mean: Ratio | None) -> str:
    where = f"at {commit_label(history.latest).short} on {history.setup.machine}"
    suites = text.plural(len({suite for suite, _ in kernels}), "suite")
    scope = f"{text.plural(len(kernels), 'kernel')} of {suites}"
    if mean is None:
        return f"No speedup can be stated for {scope} {where}."
    unclear = f": unclear, the interval allows {text.ratio(1)} or is not known"
    return (
        f"Over {scope} {where}, the fastest implementations reach {text.speedup(mean)} "
        f"({text.interval(mean)}) the speed of the baseline"
        f"{unclear if mean.verdict == 'unclear' else ''}."
    )


def _details(mean: Ratio | None, cases: int, counts: str) -> str:
    measured = f"Of {text.plural(cases, 'case')}, {counts}." if counts else ""
    if mean is None:
        return measured
    return (
        "Geometric mean over the kernels, each at its largest size with its fastest "
        f"implementation. {measured}"
    )


def _largest_changes(
    history: History, site: Site
) -> tuple[tuple[ChangeView, ...], tuple[ChangeView, ...]]:
    """Slower and faster: the newest change of each case, of which each kernel's implementation
    shows its largest."""
    largest: dict[tuple[str, str, str, bool], tuple[CaseName, Change]] = {}
    for name, changes in site.changes(history).items():
        for change in changes[-1:]:
            key = (name.suite, name.kernel, name.implementation, change.slower)
            if key not in largest or change.size > largest[key][1].size:
                largest[key] = name, change
    ordered = sorted(largest.values(), key=lambda item: -item[1].size)

    def views(slower: bool) -> tuple[ChangeView, ...]:
        shown = [item for item in ordered if item[1].slower == slower][:_MOST_CHANGES]
        return tuple(change_view(history, name, change) for name, change in shown)

    return views(True), views(False)


def _setup_row(history: History, site: Site) -> SetupRow:
    rows = (row for now in site.current(history).values() for row in now.cases.values())
    return SetupRow(
        setup=Link(setup_label(history.setup), site.address(history.setup)),
        commit=commit_label(history.latest),
        speedup=_best_mean(_kernels(history, site)),
        counts=counts_in_words(count(rows)),
    )


def _kernels(history: History, site: Site) -> _Kernels:
    kernels = {}
    for key, now in site.current(history).items():
        rows: dict[str, list[Row]] = defaultdict(list)
        for row in now.cases.values():
            rows[row.name.implementation].append(row)
        kernels[key] = [
            _Implementation(name, tuple(rows[name]), headline(rows[name], name))
            for name in sorted(rows)
        ]
    return kernels


def _best_mean(kernels: _Kernels) -> Ratio | None:
    """Geometric mean of the kernels' fastest implementations."""
    best = [max(kernel, key=lambda i: i.speed).headline.speedup for kernel in kernels.values()]
    return geometric_mean([speedup for speedup in best if speedup])


def _matrix(kernels: _Kernels, history: History, site: Site) -> Matrix:
    by_backend = len({i.name for kernel in kernels.values() for i in kernel}) > MOST_COLUMNS
    columns = _columns(kernels, by_backend)
    rows = []
    for key, kernel in kernels.items():
        size = _common_size(kernel)
        cells = []
        for column_key, column in columns.items():
            shared = [i for i in kernel if i.column(by_backend) == column_key]
            cells.append(_cell(shared, column, size) if shared else MatrixCell(None, None, ""))
        commit = site.current(history)[key].commit
        rows.append(
            MatrixRow(
                kernel=Link(kernel_label(key), site.address(history.setup, key)),
                commit=commit_label(commit) if commit != history.latest else None,
                size=size,
                baseline_seconds=_baseline_seconds(kernel),
                cells=tuple(cells),
            )
        )
    return Matrix(tuple(columns.values()), by_backend, tuple(rows))


def _columns(kernels: _Kernels, by_backend: bool) -> dict[str, MatrixColumn]:
    """Each column by its key: baselines first, then those with a speedup, each by name."""
    members: dict[str, list[_Implementation]] = defaultdict(list)
    for kernel in kernels.values():
        for implementation in kernel:
            members[implementation.column(by_backend)].append(implementation)
    columns = {}
    for key, shared in members.items():
        name = Counter(i.name for i in shared).most_common(1)[0][0]
        columns[key] = MatrixColumn(name, any(i.is_baseline for i in shared))

    def place(key: str) -> tuple[bool, bool, str]:
        has_speedup = any(i.headline.speedup for i in members[key])
        return not columns[key].is_baseline, not has_speedup, columns[key].name

    return {key: columns[key] for key in sorted(columns, key=place)}


def _common_size(kernel: Iterable[_Implementation]) -> str:
    """The size that most implementations are shown at."""
    sizes = Counter(text.sizes(i.headline.cases[0].sizes) for i in kernel if i.headline.cases)
    return sizes.most_common(1)[0][0] if sizes else ""


def _baseline_seconds(kernel: Iterable[_Implementation]) -> float | None:
    shown = [row for i in kernel for row in i.headline.cases]
    times = [row.baseline_seconds for row in shown]
    times += [row.seconds for row in shown if row.is_baseline]
    return next((seconds for seconds in times if seconds is not None), None)


def _cell(shared: Sequence[_Implementation], column: MatrixColumn, size: str) -> MatrixCell:
    """What stands for implementations that share a column: the fastest."""
    best = max(shared, key=lambda i: i.speed)
    name = best.name if best.name != column.name else ""
    speedup, shown = best.headline.speedup, best.headline.cases
    counts = count(best.rows)
    flaws: dict[str, int] = {status: n for status, n in counts.items() if status in STATUSES}
    if best.is_baseline and any(row.seconds is not None for row in shown):
        return MatrixCell(None, "ok", _note(name, counts_in_words(flaws)), is_baseline=True)
    if speedup:
        words = text.sizes(shown[0].sizes)
        other_size = words if words != size else ""
        return MatrixCell(speedup, "ok", _note(name, other_size, counts_in_words(flaws)))
    worst = worst_status(best.rows)
    if worst == "ok":
        missing = next((row.missing for row in best.rows if row.missing), None)
        return MatrixCell(None, None, _note(name, missing or "its kernel time was not measured"))
    if set(flaws) == {worst}:  # which the cell says already
        cases = flaws[worst]
        return MatrixCell(None, worst, _note(name, text.plural(cases, "case") if cases > 1 else ""))
    return MatrixCell(None, worst, _note(name, counts_in_words(flaws)))


def _note(*parts: str) -> str:
    return "; ".join(filter(None, parts))
