"""View model of the overview: the verdict, the machine, kernel by implementation, what changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubench.analysis.changes import Change
from gpubench.analysis.headline import Headline, KernelKey, does_nothing, headline
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
)
from gpubench.results import (
    STATUSES,
    CaseName,
    History,
    Problem,
    Ratio,
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

    speedup: Ratio | None = None
    status: Status | None = None
    """What stands there where there is no speedup; ``None``: not measured."""
    note: str = ""
    """What is not as the column and the row say: name, size, what is missing, how many flaws."""
    is_baseline: bool = False
    """Whether the row's ``baseline_seconds`` stand there."""


@dataclass(frozen=True, slots=True)
class KernelChange:
    """The largest among the newest changes of a kernel's cases."""

    ratio: Ratio
    """Old time over new time."""
    at: CommitLabel


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One kernel."""

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
    backends: tuple[str, ...]
    """Of its implementations, as far as a record says."""
    tags: tuple[str, ...]
    """Of its suite, as far as a record says."""

    @property
    def listed(self) -> dict[str, Any]:
        """For a long list."""
        speedups = [cell.speedup for cell in self.cells if cell.speedup]
        flaws = [cell.status for cell in self.cells if cell.status not in (None, "ok")]
        only = [
            *(ratio.verdict for ratio in speedups),
            *map(text.status_label, filter(None, flaws)),
        ]
        changed = self.change.ratio.value if self.change else None
        return listed(
            {
                "suite": [self.suite],
                "tag": self.tags,
                "backend": self.backends,
                "only": [*only, "changed" if changed else ""],
            },
            speedup=max((ratio.value for ratio in speedups), default=None),
            change=max(changed, 1 / changed) if changed else None,
        )


@dataclass(frozen=True, slots=True)
class Matrix:
    """Kernels and what stands for each of their implementations."""

    columns: tuple[MatrixColumn, ...] = ()
    by_backend: bool = False
    """Whether implementations share columns."""
    rows: tuple[MatrixRow, ...] = ()
    suites: dict[str, Ratio | None] = field(default_factory=dict)
    """Geometric mean over the kernels of each suite, as that of all of them."""
    over_commits: bool = True
    """Whether there is more than one commit, so that something may have changed."""


@dataclass(frozen=True, slots=True)
class SetupRow:
    """One machine and environment, for the comparison side by side."""

    setup: Link
    commit: CommitLabel
    speedup: Ratio | None
    counts: str

    @property
    def listed(self) -> dict[str, Any]:
        """For a long list."""
        return listed({}, speedup=self.speedup.value if self.speedup else None)


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
    """On the first page of the report alone."""
    problems: tuple[Problem, ...] = ()
    states: tuple[State, ...] = ()


_Kernels = dict[KernelKey, list[Headline]]
"""Implementations by name of each kernel, as they were last measured."""


def build(history: History | None, site: Site) -> Overview:
    """The overview of one setup; without a history, of nothing measured yet."""
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
    # Its own is the last, whose rows other pages need as well.
    setups = [_setup_row(other, site) for other in reversed(_side_by_side(history, site))]
    kernels, rows = _kernels(history, site), site.rows_now(history)
    computing, counts = _computing(kernels), count(rows)
    best = _best(computing)
    mean = geometric_mean([*best.values()])
    details = f"Of {text.plural(len(rows), 'case')}, {counts_in_words(counts)}." if counts else ""
    if mean:
        empty = [kernel_label(key) for key in kernels if key not in computing]
        does = "which does" if len(empty) == 1 else "which do"
        without = f"; without {text.some(empty)}, {does} nothing (work: 0)" if empty else ""
        if uncertain := [
            kernel_label(key)
            for key, kernel in computing.items()
            if key not in best and any(shown.speedup for shown in kernel)
        ]:
            without += f"; without {text.some(uncertain)}, whose speedup has no interval"
        details = (
            "Geometric mean over the kernels, each at its largest size with its fastest "
            f"implementation{without}. {details}"
        )
    slower, faster = _largest_changes(history, site)
    return Overview(
        title="Overview",
        navigation=site.navigation(history.setup),
        verdict=_alone(kernels, history)
        if all(row.is_alone for row in rows)
        else _verdict(best or computing or kernels, history, mean),
        details=details,
        speedup=mean,
        counts=counts,
        commit=commit_label(history.latest),
        machine=machine_panel(history, site),
        matrix=_matrix(kernels, best, history, site),
        regressions=slower,
        improvements=faster,
        changes_note=history_length(len(history.commits)),
        reasons=reason_views(rows),
        setups=tuple(reversed(setups)),
        problems=site.table.problems,
        states=tuple(_states(history, site)),
    )


def stamp(history: History, site: Site) -> str:
    """Changes with what an overview shows beside the history of its setup."""
    machine = site.table.machines.get(history.setup.machine)
    others = [other.digest_now for other in _side_by_side(history, site)]
    return repr((site.table.problems, machine, others))


def _side_by_side(history: History, site: Site) -> Sequence[History]:
    """All setups on the first page: on every one, each new commit would change all of them."""
    return site.histories if history is site.histories[0] else ()


def _setup_row(history: History, site: Site) -> SetupRow:
    return SetupRow(
        setup=Link(setup_label(history.setup), site.address(history.setup)),
        commit=commit_label(history.latest),
        speedup=geometric_mean([*_best(_computing(_kernels(history, site))).values()]),
        counts=counts_in_words(count(site.rows_now(history))),
    )


def _states(history: History, site: Site) -> Iterator[State]:
    if len(history.commits) == 1:
        yield ONE_COMMIT
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


def _best(kernels: _Kernels) -> dict[KernelKey, Ratio]:
    """Speedup of each kernel's fastest implementation. One without an interval would leave the
    mean without one, so that such count only where there is no other."""
    best = {
        key: speedup
        for key, kernel in kernels.items()
        if (speedup := max(kernel, key=lambda shown: shown.speed).speedup)
    }
    return {key: speedup for key, speedup in best.items() if speedup.has_interval} or best


def _alone(kernels: Collection[KernelKey], history: History) -> str:
    benchmarks = text.plural(len(kernels), "benchmark")
    where = f"at {commit_label(history.latest).short} on {history.setup.machine}"
    if not kernels:
        return f"Nothing is known {where} of what is measured today."
    return f"Times of {benchmarks} {where}; none is compared with another (--pair names pairs)."


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


def _largest_changes(history: History, site: Site) -> list[tuple[ChangeView, ...]]:
    """Slower and faster: the newest change of each case, of which each kernel's implementation
    shows its largest."""
    newest = [(name, changes[-1]) for name, changes in site.changes(history).items() if changes]
    largest: dict[tuple[str, str, str, bool], tuple[CaseName, Change]] = {}
    for name, change in sorted(newest, key=lambda item: -item[1].size):
        key = (name.suite, name.kernel, name.implementation, change.slower)
        largest.setdefault(key, (name, change))
    shown = [
        [item for item in largest.values() if item[1].slower == slower][:_MOST_CHANGES]
        for slower in (True, False)
    ]
    cases = site.of_cases(history, [name for items in shown for name, _ in items])
    return [tuple(change_view(cases, *item) for item in items) for items in shown]


def _kernels(history: History, site: Site) -> _Kernels:
    kernels = {}
    for key, now in site.current(history).items():
        names = sorted({name.implementation for name in now.cases})
        kernels[key] = [headline(now.cases.values(), name) for name in names]
    return kernels


def _computing(kernels: _Kernels) -> _Kernels:
    """Those that do some work; how fast the others do nothing is no speedup of a computation."""
    return {
        key: kernel
        for key, kernel in kernels.items()
        if not does_nothing(row for shown in kernel for row in shown.rows)
    }


def _kernel_changes(history: History, site: Site) -> dict[KernelKey, KernelChange]:
    """The largest among the newest changes of each kernel's cases."""
    newest = [(name, changes[-1]) for name, changes in site.changes(history).items() if changes]
    return {
        (name.suite, name.kernel): KernelChange(change.ratio, site.labels(history)[change.after])
        for name, change in sorted(newest, key=lambda item: item[1].size)
    }


def _matrix(
    kernels: _Kernels, best: Mapping[KernelKey, Ratio], history: History, site: Site
) -> Matrix:
    names = {shown.implementation for kernel in kernels.values() for shown in kernel}
    by_backend = len(names) > MOST_COLUMNS
    members: dict[str, list[Headline]] = defaultdict(list)
    for shown in (shown for kernel in kernels.values() for shown in kernel):
        members[_column(shown, by_backend)].append(shown)
    columns = {}
    for key, shared in members.items():
        name = Counter(shown.implementation for shown in shared).most_common(1)[0][0]
        columns[key] = MatrixColumn(name, any(shown.is_baseline for shown in shared))

    def place(key: str) -> tuple[bool, bool, str]:
        """Baselines first, then those with a speedup, each by name."""
        has_speedup = any(shown.speedup for shown in members[key])
        return not columns[key].is_baseline, not has_speedup, columns[key].name

    ordered = sorted(columns, key=place)
    rows, changes = [], _kernel_changes(history, site)
    for kernel_key, kernel in kernels.items():
        cases = [row for shown in kernel for row in shown.cases]
        # The size that most implementations are shown at.
        sizes = Counter(text.sizes(shown.cases[0].sizes) for shown in kernel if shown.cases)
        size = sizes.most_common(1)[0][0] if sizes else ""
        baselines = [row.baseline_seconds for row in cases]
        baselines += [row.seconds for row in cases if row.is_baseline]
        cells = []
        for column in ordered:
            shared = [shown for shown in kernel if _column(shown, by_backend) == column]
            cells.append(_cell(shared, columns[column], size) if shared else MatrixCell())
        commit = site.current(history)[kernel_key].commit
        rows.append(
            MatrixRow(
                suite=kernel_key[0],
                kernel=Link(kernel_label(kernel_key), site.address(history.setup, kernel_key)),
                commit=commit_label(commit) if commit != history.latest else None,
                size=size,
                baseline_seconds=next((s for s in baselines if s is not None), None),
                cells=tuple(cells),
                change=changes.get(kernel_key),
                backends=tuple(sorted({shown.rows[0].backend for shown in kernel} - {""})),
                tags=tuple(sorted({tag for shown in kernel for tag in shown.rows[0].tags})),
            )
        )
    suites = {
        suite: geometric_mean([ratio for key, ratio in best.items() if key[0] == suite])
        for suite in dict.fromkeys(suite for suite, _ in kernels)
    }
    named = tuple(columns[key] for key in ordered)
    return Matrix(named, by_backend, tuple(rows), suites, len(history.commits) > 1)


def _column(shown: Headline, by_backend: bool) -> str:
    """Key of its column; its name, too, where no record says its backend."""
    if not by_backend:
        return shown.implementation
    return _BASELINES if shown.is_baseline else shown.rows[0].backend or shown.implementation


def _cell(shared: Sequence[Headline], column: MatrixColumn, size: str) -> MatrixCell:
    """What stands for implementations that share a column: the fastest."""
    best = max(shared, key=lambda shown: shown.speed)
    name = best.implementation if best.implementation != column.name else ""
    flaws: dict[str, int] = {key: n for key, n in count(best.rows).items() if key in STATUSES}
    counts = counts_in_words(flaws)

    def cell(status: Status | None, *words: str, **shown: Any) -> MatrixCell:
        return MatrixCell(status=status, note="; ".join(filter(None, (name, *words))), **shown)

    cases, speedup = best.cases, best.speedup
    if best.is_baseline and any(row.seconds is not None for row in cases):
        return cell("ok", counts, is_baseline=True)
    if speedup:
        words = text.sizes(cases[0].sizes)
        return cell("ok", words if words != size else "", counts, speedup=speedup)
    worst = worst_status(best.rows)
    if worst == "ok":
        missing = next((row.missing for row in best.rows if row.missing), None)
        return cell(None, missing or "its kernel time was not measured")
    if set(flaws) == {worst}:  # which the cell says already
        return cell(worst, text.plural(flaws[worst], "case") if flaws[worst] > 1 else "")
    return cell(worst, counts)
