"""View model of a kernel's page: over commits, over sizes, over launches, and every case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpubench.analysis.baseline import Compared
from gpubench.analysis.headline import Headline, KernelKey, KernelNow, headline, size_of
from gpubench.analysis.history import SetupHistory
from gpubench.analysis.tally import count
from gpubench.report import text
from gpubench.report.case_table import CaseRow, TimesTable, case_rows, times_table
from gpubench.report.findings import (
    ReasonView,
    case_words,
    counts_in_words,
    history_length,
    reason_views,
)
from gpubench.report.history_chart import HistoryChart, history_chart
from gpubench.report.launch_map import LaunchMap, launch_maps
from gpubench.report.measured_source import MeasuredSource, measured_source
from gpubench.report.roofline import Rooflines, rooflines
from gpubench.report.site import (
    CommitLabel,
    Navigation,
    Site,
    State,
    commit_label,
    kernel_label,
)
from gpubench.report.size_chart import SizeChart, size_charts
from gpubench.report.time_split import SplitRow, time_split
from gpubench.results import CaseName


@dataclass(frozen=True, slots=True)
class Legend:
    """One implementation as the page's charts draw it."""

    implementation: str
    title: str
    """The suite's words for it; empty without."""
    rank: int
    is_baseline: bool


@dataclass(frozen=True, slots=True)
class KernelPage:
    """One kernel on one setup."""

    title: str
    navigation: Navigation
    verdict: str
    details: str
    commit: CommitLabel
    legend: tuple[Legend, ...]
    history: HistoryChart | None
    sizes: tuple[SizeChart, ...]
    launches: tuple[LaunchMap, ...]
    times: TimesTable | None
    split: tuple[SplitRow, ...]
    rooflines: Rooflines
    measured: MeasuredSource | None
    cases: tuple[CaseRow, ...]
    reasons: tuple[ReasonView, ...]
    states: tuple[State, ...]


def build(history: SetupHistory, key: KernelKey, site: Site) -> KernelPage:
    """The page of one kernel, as it was last measured on that setup."""
    now = site.current(history)[key]
    legend = _legend(now)
    order = [entry.implementation for entry in legend]
    ranks = {entry.implementation: entry.rank for entry in legend}
    headlines = [headline(now.cases.values(), implementation) for implementation in order]
    roofs, attainable = rooflines(now, history, site.current(history).values(), ranks)
    own = [name for name in history.cases if (name.suite, name.kernel) == key]
    commits = len(history.places_of(own))
    return KernelPage(
        title=kernel_label(key),
        navigation=site.navigation(history.setup, key),
        verdict=_verdict(headlines),
        details=f"Of {text.plural(len(now.cases), 'case')}, {_counts(now)}.",
        commit=commit_label(now.commit),
        legend=legend,
        history=_history(site, history, now, headlines, ranks, history_length(commits)),
        sizes=size_charts(now.cases.values(), ranks),
        launches=launch_maps(now.cases.values(), order),
        times=times_table(now.cases.values(), order),
        split=time_split(now.cases.values(), order),
        rooflines=roofs,
        measured=measured_source(key, order, site.results.sources),
        cases=case_rows(now.cases, history, order, attainable),
        reasons=reason_views(now.cases.values()),
        states=tuple(_states(history, now, commits)),
    )


def sources(history: SetupHistory, key: KernelKey, site: Site) -> bytes:
    """Changes with anything that the page is made from."""
    own = sorted(
        (n.asv_name, s) for n, s in site.results.sources.items() if (n.suite, n.kernel) == key
    )
    told = repr((site.navigation(history.setup, key), own))
    return history.digest + told.encode()


def _legend(now: KernelNow) -> tuple[Legend, ...]:
    """Implementations, the baseline first; ranks follow the names so that colours stay."""
    titles: dict[str, str] = {}
    baselines = set()
    for compared in now.cases.values():
        outcome = compared.outcome
        name = outcome.name.implementation
        titles[name] = titles.get(name) or (outcome.record and outcome.record.title) or ""
        baselines |= {name} if compared.is_baseline else set()
    names = sorted(titles, key=lambda name: (name not in baselines, name))
    return tuple(Legend(n, titles[n], i, n in baselines) for i, n in enumerate(names))


def _verdict(headlines: Iterable[Headline]) -> str:
    found = [(h.speedup, h) for h in headlines if h.speedup]
    if not found:
        return "No speedup can be stated at this commit."
    speedup, best = max(found, key=lambda pair: pair[0].value)
    first = best.cases[0]
    others = len(best.cases) - 1
    more = f" and {text.plural(others, 'more case')}" if others else ""
    baseline = first.baseline.name.implementation if first.baseline else "the baseline"
    unclear = ": unclear" if speedup.verdict == "unclear" else ""
    return (
        f"{best.implementation} reaches {text.speedup(speedup)} ({text.interval(speedup)}) the "
        f"speed of {baseline} at {first.outcome.name.case or 'its only case'}{more}{unclear}."
    )


def _counts(now: KernelNow) -> str:
    return counts_in_words(count(now.cases.values())) or "none is compared"


def _history(
    site: Site,
    history: SetupHistory,
    now: KernelNow,
    headlines: Iterable[Headline],
    ranks: Mapping[str, int],
    note: str | None,
) -> HistoryChart | None:
    chosen: list[CaseName] = []
    baselines: list[CaseName] = []
    for entry in headlines:
        shown = entry.cases[:1] or _last_timed(history, now, entry.implementation)
        for compared in shown:
            if compared.is_baseline:
                continue
            chosen.append(compared.outcome.name)
            if compared.baseline and compared.baseline.name not in baselines:
                baselines.append(compared.baseline.name)
    if not chosen:
        baselines = [c.outcome.name for h in headlines for c in h.cases[:1] if c.is_baseline]
    names = [name for name in baselines if name in history.cases]
    if not chosen and not names:
        return None
    return history_chart(history, site.labels(history), chosen, names, ranks, note)


def _last_timed(history: SetupHistory, now: KernelNow, implementation: str) -> tuple[Compared, ...]:
    """The largest case that has a time at some commit, though none at the newest."""
    timed = [
        compared
        for name, compared in now.cases.items()
        if (name.implementation, name.time) == (implementation, "kernel")
        and history.cases[name].has_time
    ]
    return tuple(sorted(timed, key=size_of)[-1:])


def _states(history: SetupHistory, now: KernelNow, commits: int) -> Iterable[State]:
    bench = next((c.outcome.bench for c in now.cases.values() if c.outcome.bench), now.key[1])
    if now.commit != history.latest:
        yield State(
            "Not measured at the newest commit",
            f"These are the values of {now.commit.hash[:8]}; the newest commit measured here is "
            f"{history.latest.hash[:8]}.",
            f"asv run --bench {bench} {history.latest.hash[:8]}^!",
        )
    if commits == 1:
        yield State(
            "One commit so far",
            "Changes over commits show from the second on.",
            "asv run HEAD~10..HEAD --skip-existing",
        )
    missing = [compared for compared in now.cases.values() if compared.missing]
    if missing:
        first = missing[0]
        cases = text.plural(
            len(missing), "case has a time and no speedup", "cases have a time and no speedup"
        )
        yield State(
            "No baseline",
            f"{cases}. {case_words(first.outcome.name)}: {first.missing}.",
            f"asv run --bench {bench}",
        )
    if all(not compared.outcome.timing for compared in now.cases.values()):
        yield State(
            "No times",
            "No case of this kernel has a time at this commit; the reasons are below.",
            f"asv run --quick --show-stderr --bench {bench}",
        )
