"""View model of the overview: the verdict, the machine, kernel by implementation, what changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpubench.analysis.baseline import Compared
from gpubench.analysis.headline import Headline, KernelKey, KernelNow, headline, sizes_of
from gpubench.analysis.history import SetupHistory
from gpubench.analysis.speedup import Speedup, geometric_mean
from gpubench.analysis.tally import count, worst_status
from gpubench.report import text
from gpubench.report.findings import (
    ChangeView,
    ReasonView,
    change_view,
    counts_in_words,
    history_length,
    reason_views,
)
from gpubench.report.machine import MachinePanel, machine_panel
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
from gpubench.results import Problem, Results, Status

_MOST_CHANGES = 8


@dataclass(frozen=True, slots=True)
class Cell:
    """One implementation of one kernel."""

    speedup: Speedup | None
    status: Status | None
    """What stands there where there is no speedup; ``None``: not measured."""
    note: str
    """At which size, what is missing, how many cases are wrong."""
    is_baseline: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel."""

    kernel: Link
    commit: CommitLabel | None
    """Where it was last measured, if not at the page's commit."""
    baseline_seconds: float | None
    """Time of the baseline at the headline size."""
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class SetupRow:
    """One machine and environment, for the comparison side by side."""

    setup: Link
    commit: CommitLabel
    speedup: Speedup | None
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
    speedup: Speedup | None
    counts: dict[str, int]
    commit: CommitLabel | None
    machine: MachinePanel | None
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    regressions: tuple[ChangeView, ...]
    improvements: tuple[ChangeView, ...]
    changes_note: str | None
    reasons: tuple[ReasonView, ...]
    setups: tuple[SetupRow, ...]
    problems: tuple[Problem, ...]
    states: tuple[State, ...]


def build(results: Results, history: SetupHistory | None, site: Site) -> Overview:
    """The overview of one setup; without a history, of nothing measured yet."""
    if history is None:
        return _empty(results, site)
    kernels = site.current(history)
    columns = _columns(kernels.values())
    slower, faster = _changes(history)
    cases = [compared for now in kernels.values() for compared in now.cases.values()]
    mean = _best_mean(kernels.values())
    return Overview(
        title="Overview",
        navigation=site.navigation(history.setup),
        verdict=_verdict(kernels, history, mean),
        details=_details(mean, cases),
        speedup=mean,
        counts=count(cases),
        commit=commit_label(history.latest),
        machine=machine_panel(results, history),
        columns=columns,
        rows=tuple(_row(now, columns, history, site) for now in kernels.values()),
        regressions=slower,
        improvements=faster,
        changes_note=history_length(len(history.commits)),
        reasons=reason_views(cases),
        setups=tuple(_setup_row(other, site) for other in site.histories),
        problems=results.problems,
        states=tuple(_states(history)),
    )


def _empty(results: Results, site: Site) -> Overview:
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
        speedup=None,
        counts={},
        commit=None,
        machine=None,
        columns=(),
        rows=(),
        regressions=(),
        improvements=(),
        changes_note=None,
        reasons=(),
        setups=(),
        problems=results.problems,
        states=(state,),
    )


def _states(history: SetupHistory) -> Iterable[State]:
    if len(history.commits) == 1:
        yield State(
            "One commit so far",
            "Changes over commits show from the second on.",
            "asv run HEAD~10..HEAD --skip-existing",
        )
    dropped = sorted({name for snapshot in history.snapshots for name in snapshot.superseded})
    if dropped:
        yield State(
            "Older values are left out",
            f"What {text.join(dropped)} measures has changed since; its older values belong to "
            "another history.",
            "asv run --skip-existing HEAD~10..HEAD",
        )


def _columns(kernels: Iterable[KernelNow]) -> tuple[str, ...]:
    """Implementations, baselines first, then by name."""
    found: dict[str, bool] = {}
    for now in kernels:
        for compared in now.cases.values():
            name = compared.outcome.name.implementation
            found[name] = found.get(name, False) or compared.is_baseline
    return tuple(sorted(found, key=lambda name: (not found[name], name)))


def _headlines(now: KernelNow) -> dict[str, Headline]:
    names = {compared.outcome.name.implementation for compared in now.cases.values()}
    return {name: headline(now.cases.values(), name) for name in sorted(names)}


def _best_mean(kernels: Iterable[KernelNow]) -> Speedup | None:
    best = []
    for now in kernels:
        speedups = [h.speedup for h in _headlines(now).values() if h.speedup]
        if speedups:
            best.append(max(speedups, key=lambda speedup: speedup.value))
    return geometric_mean(best)


def _verdict(
    kernels: Mapping[KernelKey, KernelNow], history: SetupHistory, mean: Speedup | None
) -> str:
    commit = commit_label(history.latest)
    where = f"at {commit.short} on {history.setup.machine}"
    suites = text.plural(len({suite for suite, _ in kernels}), "suite")
    scope = f"{text.plural(len(kernels), 'kernel')} of {suites}"
    if mean is None:
        return f"No speedup can be stated for {scope} {where}."
    interval = f" ({text.interval(mean)})"
    if mean.verdict == "unclear":
        return (
            f"Over {scope} {where}, the fastest implementations reach {text.speedup(mean)}"
            f"{interval} the speed of the baseline: unclear, the interval allows "
            f"{text.ratio(1)} or is not known."
        )
    return (
        f"Over {scope} {where}, the fastest implementations reach {text.speedup(mean)}"
        f"{interval} the speed of the baseline."
    )


def _details(mean: Speedup | None, cases: Sequence[Compared]) -> str:
    counts = counts_in_words(count(cases))
    measured = f"Of {text.plural(len(cases), 'case')}, {counts}." if counts else ""
    if mean is None:
        return measured
    return (
        "Geometric mean over the kernels, each at its largest size with its fastest "
        f"implementation. {measured}"
    )


def _row(now: KernelNow, columns: Sequence[str], history: SetupHistory, site: Site) -> Row:
    headlines = _headlines(now)
    baselines = [c.baseline for h in headlines.values() for c in h.cases if c.baseline]
    times = [b.timing.median for b in baselines if b.timing]
    return Row(
        kernel=Link(kernel_label(now.key), site.address(history.setup, now.key)),
        commit=commit_label(now.commit) if now.commit != history.latest else None,
        baseline_seconds=times[0] if times else None,
        cells=tuple(_cell(now, column, headlines.get(column)) for column in columns),
    )


def _cell(now: KernelNow, implementation: str, found: Headline | None) -> Cell:
    cases = [c for c in now.cases.values() if c.outcome.name.implementation == implementation]
    if found is None or not cases:
        return Cell(None, None, "")
    worst = worst_status(cases)
    if any(compared.is_baseline for compared in cases):
        return Cell(None, worst, _flaws(cases), is_baseline=worst == "ok")
    if found.speedup:
        notes = [_size_words(found.cases[0]), _flaws(cases)]
        return Cell(found.speedup, "ok", "; ".join(filter(None, notes)))
    if worst == "ok":
        missing = next((compared.missing for compared in cases if compared.missing), None)
        return Cell(None, None, missing or "its kernel time was not measured")
    return Cell(None, worst, _flaws(cases))


def _size_words(compared: Compared) -> str:
    sizes = sizes_of(compared)
    return ", ".join(f"{name} = {text.whole(value)}" for name, value in sizes.items())


def _flaws(cases: Sequence[Compared]) -> str:
    flaws = {k: v for k, v in count(cases).items() if k in text.STATUS_LABELS}
    return counts_in_words(flaws)


def _changes(
    history: SetupHistory,
) -> tuple[tuple[ChangeView, ...], tuple[ChangeView, ...]]:
    """The newest change of each case, of which each kernel's implementation shows its largest."""
    largest: dict[tuple[str, str, str, bool], ChangeView] = {}
    for name, points in history.cases.items():
        for change in history.changes(name)[-1:]:
            view = change_view(name, points, change)
            key = (name.suite, name.kernel, name.implementation, view.slower)
            if key not in largest or view.factor > largest[key].factor:
                largest[key] = view
    ordered = sorted(largest.values(), key=lambda view: -view.factor)
    slower = tuple(view for view in ordered if view.slower)
    faster = tuple(view for view in ordered if not view.slower)
    return slower[:_MOST_CHANGES], faster[:_MOST_CHANGES]


def _setup_row(history: SetupHistory, site: Site) -> SetupRow:
    kernels = site.current(history)
    cases = [compared for now in kernels.values() for compared in now.cases.values()]
    return SetupRow(
        setup=Link(setup_label(history.setup), site.address(history.setup)),
        commit=commit_label(history.latest),
        speedup=_best_mean(kernels.values()),
        counts=counts_in_words(count(cases)),
    )
