"""View model of the overview: the verdict, the machine, kernel by implementation, what changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpubench.analysis.baseline import Compared
from gpubench.analysis.changes import Change
from gpubench.analysis.headline import KernelKey, KernelNow
from gpubench.analysis.history import SetupHistory
from gpubench.analysis.speedup import Speedup, geometric_mean
from gpubench.analysis.tally import count
from gpubench.report import matrix, text
from gpubench.report.findings import (
    ChangeView,
    ReasonView,
    change_view,
    counts_in_words,
    history_length,
    reason_views,
)
from gpubench.report.machine import MachinePanel, machine_panel
from gpubench.report.matrix import Matrix, headlines
from gpubench.report.site import (
    CommitLabel,
    Link,
    Navigation,
    Site,
    State,
    commit_label,
    setup_label,
)
from gpubench.results import CaseName, Problem, Results

_MOST_CHANGES = 8


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
    matrix: Matrix
    """Kernels by implementations."""
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
        matrix=matrix.build(kernels.values(), history, site),
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
        matrix=Matrix(),
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


def _best_mean(kernels: Iterable[KernelNow]) -> Speedup | None:
    best = []
    for now in kernels:
        speedups = [found.speedup for found in headlines(now) if found.speedup]
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


def _changes(
    history: SetupHistory,
) -> tuple[tuple[ChangeView, ...], tuple[ChangeView, ...]]:
    """The newest change of each case, of which each kernel's implementation shows its largest."""
    largest: dict[tuple[str, str, str, bool], tuple[CaseName, Change]] = {}
    for name in history.cases:
        for change in history.changes(name)[-1:]:
            key = (name.suite, name.kernel, name.implementation, change.slower)
            if key not in largest or change.size > largest[key][1].size:
                largest[key] = name, change
    ordered = sorted(largest.values(), key=lambda found: -found[1].size)
    slower = [found for found in ordered if found[1].slower]
    faster = [found for found in ordered if not found[1].slower]
    return _views(history, slower), _views(history, faster)


def _views(
    history: SetupHistory, found: Sequence[tuple[CaseName, Change]]
) -> tuple[ChangeView, ...]:
    return tuple(change_view(n, history.cases[n], change) for n, change in found[:_MOST_CHANGES])


def _setup_row(history: SetupHistory, site: Site) -> SetupRow:
    kernels = site.current(history)
    cases = [compared for now in kernels.values() for compared in now.cases.values()]
    return SetupRow(
        setup=Link(setup_label(history.setup), site.address(history.setup)),
        commit=commit_label(history.latest),
        speedup=_best_mean(kernels.values()),
        counts=counts_in_words(count(cases)),
    )
