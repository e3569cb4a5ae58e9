"""View model of the overview: the verdict, the machine, kernel by implementation, what changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubench.analysis.changes import Change, Regression, slower_than_best
from gpubench.analysis.headline import Headline, KernelKey, does_nothing, headline
from gpubench.analysis.renamed import find_renames
from gpubench.analysis.tally import count
from gpubench.report import text, work_changes
from gpubench.report.findings import (
    ONE_COMMIT,
    ChangeView,
    ReasonView,
    change_view,
    counts_in_words,
    disturbed_states,
    not_judged_words,
    processor_states,
    reason_views,
    regression_view,
    running_states,
)
from gpubench.report.lists import listed
from gpubench.report.machines import MachinePanel, machine_panel
from gpubench.report.matrix import HeadlinesOfKernels, Matrix, build_matrix
from gpubench.report.navigation import (
    CommitLabel,
    Link,
    Navigation,
    State,
    commit_label,
    kernel_label,
    setup_label,
    snapshot_label,
)
from gpubench.report.site import Site
from gpubench.results import CaseName, History, Problem, Ratio, Row, geometric_mean

_MAX_CHANGES = 8
"""Listed in either direction; the page of changes has all."""


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
    matrix: Matrix = field(default_factory=Matrix)
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
        matrix=build_matrix(kernels, best, newest, regressed, history, site),
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


def _kernels(history: History, site: Site) -> HeadlinesOfKernels:
    kernels = {}
    for key, now in site.current(history).items():
        names = sorted({name.implementation for name in now.cases})
        kernels[key] = [headline(now.cases.values(), name) for name in names]
    return kernels


def _is_empty(kernel: Sequence[Headline]) -> bool:
    """Return how fast a kernel does nothing is no speedup of a computation."""
    return does_nothing(row for shown in kernel for row in shown.rows)


def _best(kernels: HeadlinesOfKernels) -> dict[KernelKey, Ratio]:
    """Speedup of the fastest implementation of each kernel that computes. One without an interval
    would leave the mean without one, so that such count only where there is no other."""
    best = {
        key: speedup
        for key, kernel in kernels.items()
        if not _is_empty(kernel) and (speedup := max(kernel, key=lambda shown: shown.speed).speedup)
    }
    return {key: speedup for key, speedup in best.items() if speedup.has_interval} or best


def _verdict(
    kernels: HeadlinesOfKernels,
    best: Mapping[KernelKey, Ratio],
    mean: Ratio | None,
    history: History,
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


def _details(
    kernels: HeadlinesOfKernels, best: Mapping[KernelKey, Ratio], rows: Sequence[Row]
) -> str:
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
