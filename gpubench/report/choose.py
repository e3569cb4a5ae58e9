"""View model of the page that says which implementation to use at which size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.analysis.choice import Alternative, Choice, Repayment, Stretch, choices
from gpubench.analysis.headline import KernelKey, KernelNow
from gpubench.errors import ResultsError
from gpubench.report import text
from gpubench.report.findings import (
    ReasonView,
    disturbed_states,
    reason_views,
    running_states,
    size_words,
    unfinished,
    wins,
)
from gpubench.report.lists import listed
from gpubench.report.navigation import (
    CommitLabel,
    Link,
    Navigation,
    State,
    commit_label,
    kernel_label,
    setup_label,
)
from gpubench.report.page import Page
from gpubench.report.site import Site
from gpubench.results import CaseName, History, Ratio, Row, Table
from gpubench.suite.naming import find_kernels

NOT_MEASURED = "not measured"
"""Of copies or compilation; a note under the implementations says what to do about it."""


CAPABILITIES = {
    "gpu": "GPU",
    "cluster": "Cluster",
    "out_of_core": "Out of core",
    "in_place": "In place",
    "compiles": "Compiles",
}
"""Words for ``gpubench.backends.protocol.Capability``."""


NOT_MEASURED_WELL = "not measured well enough"
"""Said where an interval is missing: nothing is known of a difference."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to use over some sizes."""

    what: str
    """The fastest implementation, or several without a clear difference."""
    clear: bool
    span: str
    border: str
    """Largest measured size at which another is the fastest; empty for the smallest sizes."""
    equals: str = ""
    """Why several are named: no difference is clear, or times have no interval to tell; empty
    where one is named."""

    @property
    def words(self) -> str:
        """Return one sentence without its full stop."""
        border = f"; the border lies above {self.border}" if self.border else ""
        equals = f" ({self.equals})" if self.equals else ""
        return f"{self.what}{equals} {self.span}{border}".strip()


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """One implementation on one device against the baseline."""

    label: str
    device: str
    """Empty where no record tells."""
    wins: str
    """From which size on it is faster than the baseline, with the crossover's interval."""
    largest: str
    """The largest size, in words; ``speedup`` and ``end_to_end`` are of it."""
    speedup: Ratio | None
    end_to_end: Ratio | None
    transfers: str
    calls: int | None
    """Calls that repay compilation; ``None``: never, or unknown."""
    compilation: str
    """The same in words with the interval, or why it is not known."""
    start: float | None
    """Seconds until a fresh process has its first result; ``None``: not measured."""


@dataclass(frozen=True, slots=True)
class ChoiceView:
    """One kernel for one combination of its parameters."""

    parameters: str
    resident: tuple[Recommendation, ...]
    """What to use from which size on, by the kernel's time alone; smallest sizes first."""
    host: tuple[Recommendation, ...]
    """The same for arrays in host memory; empty where nothing that copies was measured so."""
    rows: tuple[ChoiceRow, ...]
    copies: bool
    """Whether any row copies between host and device; else there is nothing to say of copies."""
    starts: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KernelChoice:
    suite: str
    kernel: Link
    commit: CommitLabel
    choices: tuple[ChoiceView, ...]
    reasons: tuple[ReasonView, ...]
    elsewhere: tuple[str, ...]
    """Implementations with a time on other machines or in other environments only."""

    @property
    def listed(self) -> dict[str, Any]:
        last = [choice.resident[-1] for choice in self.choices if choice.resident]
        speedups = [row.speedup for choice in self.choices for row in choice.rows if row.speedup]
        only = [fastest.equals for fastest in last if fastest.equals]
        only += [ratio.verdict for ratio in speedups]
        only += [text.status_label(reason.status) for reason in self.reasons]
        return listed(
            suite=[self.suite],
            fastest=[fastest.what for fastest in last if fastest.clear],
            only=only,
            speedup=max((ratio.value for ratio in speedups), default=None),
        )


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What backends can do, as their records say."""

    columns: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]]
    """``yes`` or ``no`` for each column, by backend; empty where no record tells."""


@dataclass(frozen=True, slots=True)
class ChoosePage:
    title: str
    navigation: Navigation
    verdict: str
    details: str
    kernels: tuple[KernelChoice, ...]
    capabilities: Capabilities
    states: tuple[State, ...]


def build(
    history: History,
    site: Site,
    only: Collection[KernelKey] | None = None,
    cases: Collection[CaseName] | None = None,
) -> ChoosePage:
    """Return the choices on one setup, each kernel as it was last measured there.

    ``only`` are the kernels that are shown, ``cases`` those that are chosen from; ``None``: all.
    """

    def rows_of(now: KernelNow) -> list[Row]:
        return [row for name, row in now.cases.items() if cases is None or name in cases]

    kernels = tuple(
        KernelChoice(
            suite=key[0],
            kernel=Link(kernel_label(key), site.address(history.setup, key)),
            commit=commit_label(now.commit),
            choices=tuple(map(_choice, choices(rows_of(now)))),
            reasons=reason_views(rows_of(now)),
            elsewhere=elsewhere(key, history, site),
        )
        for key, now in site.current(history).items()
        if (only is None or key in only) and not all(row.is_alone for row in rows_of(now))
    )
    rows = site.rows_now(history)
    running = [*running_states(history.snapshots)]
    states = [*running, *disturbed_states(rows, history.latest)]
    if not kernels:
        states.append(
            State(
                "Nothing to compare",
                "The benchmarks of this project are reported one by one.",
                "gpubench report --pair 'BASELINE=CANDIDATE'",
            )
        )
    elif not running and not any(choice.rows for kernel in kernels for choice in kernel.choices):
        states.append(
            State(
                "Nothing to compare",
                "No implementation has a speedup here; the reasons are listed with each kernel.",
                "asv run --quick --show-stderr",
            )
        )
    if words := unfinished(rows):
        states.append(State("Unfinished run", f"There are {words}.", "asv run --skip-existing"))
    return ChoosePage(
        title="Choose",
        navigation=site.navigation(history.setup, page="choose"),
        verdict=_verdict(kernels),
        details=(
            f"Measured on {setup_label(history.setup)}. An implementation is named alone where the "
            "intervals of the times are apart. Between two measured sizes nothing is claimed."
        ),
        kernels=kernels,
        capabilities=_capabilities(rows),
        states=tuple(states),
    )


def _capabilities(rows: Iterable[Row]) -> Capabilities:
    """Return those of the backends that have a time in these rows, by name."""
    known = {row.backend: row.capabilities for row in rows if row.seconds is not None}
    answers = {
        backend: tuple("yes" if one in its else "no" for one in CAPABILITIES)
        for backend, its in sorted(known.items())
        if its is not None
    }
    return Capabilities(tuple(CAPABILITIES.values()), answers)


def chosen_pages(
    table: Table,
    names: Sequence[str],
    machine: str | None,
    environment: str | None,
    cases: Collection[CaseName] | None = None,
) -> tuple[ChoosePage, ...]:
    """Return the pages of the setups that are asked for, with the kernels that are named, all where
    none is, chosen from these ``cases``, from all by default.

    Raises ``GpubenchError`` with what there is, where nothing fits.
    """
    site = Site(table)
    there = site.histories_of_first_branch
    histories = [one for one in there if one.setup.fits(machine, environment)]
    if not histories:
        setups = text.join(setup_label(history.setup) for history in there)
        if not setups:
            raise ResultsError("there are no results yet; measure with `asv run`")
        raise ResultsError(f"no results of that machine and environment: there are {setups}")
    keys = dict.fromkeys(key for history in histories for key in site.current(history))
    only = find_kernels(names, keys) if names else None
    pages = tuple(page for h in histories if (page := build(h, site, only, cases)).kernels)
    if not pages:
        of = f" of {text.join(names)}" if names else ""
        raise ResultsError(f"nothing to choose from{of}: name `pairs` of benchmarks in a suite")
    return pages


def _verdict(kernels: Sequence[KernelChoice]) -> str:
    """Return which implementation is the fastest at the largest sizes, and how often."""
    last = [choice.resident[-1] for k in kernels for choice in k.choices if choice.resident]
    if not kernels:
        return "Nothing to choose from: no benchmark is in a pair."
    if not last:
        return "Nothing to choose from: no case has a time here."
    one = all(len(kernel.choices) < 2 for kernel in kernels)
    noun = "kernels" if one else "combinations of kernel and parameters"
    clear = Counter(fastest.what for fastest in last if fastest.clear)
    unclear = len(last) - clear.total()
    every = "both" if len(last) == 2 else f"all {len(last):,}"
    scope = f" in {every} {noun}" if len(last) > 1 else ""
    if len(clear) == 1 and not unclear:
        return f"At the largest size {last[0].what} is the fastest{scope}."
    if not clear:
        return f"At the largest size none is clearly the fastest{scope or f': {last[0].what}'}."
    named = clear.most_common(None if len(clear) <= text.MAX_NAMED + 1 else text.MAX_NAMED)
    others = clear.total() - sum(count for _, count in named)
    counts = [*named, ("another", others), ("none clearly", unclear)]
    parts = [f"{label} in {count:,}" for label, count in counts if count]
    return f"At the largest size, of {len(last):,} {noun}, the fastest is {text.join(parts)}."


def _choice(choice: Choice) -> ChoiceView:
    return ChoiceView(
        parameters=choice.parameters,
        resident=_recommendations(choice.resident),
        host=_recommendations(choice.host),
        rows=tuple(map(_row, choice.alternatives)),
        copies=any(alternative.copies for alternative in choice.alternatives),
        starts=any(alternative.start for alternative in choice.alternatives),
        notes=tuple(_notes(choice.alternatives)),
    )


def _recommendations(stretches: Sequence[Stretch]) -> tuple[Recommendation, ...]:
    recommendations = []
    for stretch in stretches:
        first, last = size_words(stretch.first), size_words(stretch.last)
        is_one = stretch.first is stretch.last
        if len(stretches) == 1:
            only = f"at {first}, the only size" if first else ""
            span = only if is_one else "at every size measured"
        elif stretch.after is None:
            span = f"up to {last}"
        elif stretch is stretches[-1]:
            span = f"from {first} on"
        else:
            span = f"at {first}" if is_one else f"from {first} to {last}"
        what, clear = text.join(stretch.labels, "or"), len(stretch.labels) == 1
        border = size_words(stretch.after) if stretch.after else ""
        unclear = NOT_MEASURED_WELL if stretch.unknown else "no clear difference"
        equals = "" if clear else unclear
        recommendations.append(Recommendation(what, clear, span, border, equals))
    return tuple(recommendations)


def _row(alternative: Alternative) -> ChoiceRow:
    largest, end_to_end = alternative.largest, alternative.end_to_end
    repayment = alternative.repayment
    return ChoiceRow(
        label=alternative.label,
        device=largest.device,
        wins=wins(alternative.crossover, alternative.points),
        largest=size_words(largest),
        speedup=largest.speedup,
        end_to_end=end_to_end.speedup if end_to_end else None,
        transfers=_transfers(alternative),
        calls=repayment.calls if repayment else None,
        compilation=_compilation(largest, repayment),
        start=alternative.start.seconds if alternative.start else None,
    )


def _transfers(alternative: Alternative) -> str:
    resident, end_to_end = alternative.largest.speedup, alternative.end_to_end
    if not alternative.copies:
        return "nothing is copied" if alternative.largest.device else ""
    if end_to_end is None or end_to_end.speedup is None:
        return NOT_MEASURED
    if end_to_end.speedup.verdict == "faster":
        return "the gain outlasts the copies"
    if resident is None or resident.verdict != "faster":
        return "no gain to begin with"
    if end_to_end.speedup.verdict == "slower":
        return "the copies eat the gain: slower than the baseline"
    if not end_to_end.speedup.has_interval:
        return f"the copies were {NOT_MEASURED_WELL}"
    return "the copies eat the gain: no clear difference is left"


def _compilation(row: Row, repayment: Repayment | None) -> str:
    if row.compiled is False:
        return "nothing is compiled"
    if row.bench:
        return "not known of a pair"
    if repayment is None:
        return NOT_MEASURED
    cost = text.seconds(repayment.seconds)
    if repayment.calls is None:
        return f"{cost}, never repaid: a call is not clearly faster than the baseline's"
    span = "no interval"
    if repayment.low is not None and repayment.high is not None:
        span = f"{repayment.low:,}\N{EN DASH}{repayment.high:,}"
    return f"{cost}, repaid after {text.plural(repayment.calls, 'call')} ({span})"


def _notes(alternatives: Sequence[Alternative]) -> Iterator[str]:
    """Next steps for what is missing; the benchmarks of a pair are not declared in a suite."""
    declared = [alternative for alternative in alternatives if not alternative.largest.bench]
    compiled = [a.label for a in declared if not a.repayment and a.largest.compiled is not False]
    copied = [a.label for a in declared if a.copies and not a.end_to_end]
    missing = (
        (compiled, "compile", f"The compile time of {text.join(compiled)}"),
        (copied, "end_to_end", f"The time of {text.join(copied)} with copies"),
    )
    for labels, time, words in missing:
        if labels:
            yield f"{words} was not measured: add {time} to the suite's measure."


def elsewhere(key: KernelKey, history: History, site: Site) -> tuple[str, ...]:
    """Return implementations of a kernel that have times, but not on this setup."""
    here, setup = site.timed(history)[key], history.setup
    others = (
        other
        for other in site.histories
        if other.setup.place != setup.place and other.setup.branch == setup.branch
    )
    return tuple(
        f"{text.join(sorted(names))}: measured on {setup_label(other.setup)}"
        for other in others
        if (names := site.timed(other).get(key, frozenset()) - here)
    )


def digest(history: History, site: Site) -> str:
    """Return a text that changes with what the page shows."""
    return f"{history.digest_now}{[elsewhere(key, history, site) for key in site.kernels(history)]}"


def has_choices(history: History, site: Site) -> bool:
    """Return whether any kernel of a setup has implementations to choose from."""
    return site.has_choices(history)


CHOOSE_PAGE = Page("choose", "Choose", build, digest, is_there=has_choices)
