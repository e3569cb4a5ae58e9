"""View model of the page that says which implementation to use at which size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpubench.analysis.choice import Alternative, Choice, Repayment, Stretch, choices
from gpubench.analysis.headline import KernelNow
from gpubench.errors import ResultsError
from gpubench.report import text
from gpubench.report.findings import ReasonView, reason_views
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
from gpubench.results import History, Ratio, Row, Table

MOST_NAMED = 3
"""Implementations that the verdict names; the others are counted together."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to use over some sizes."""

    what: str
    """The fastest implementation, or several without a clear difference."""
    clear: bool
    """False where several are named."""
    span: str
    """The sizes, in words."""
    border: str
    """Largest measured size at which another is the fastest; empty for the smallest sizes."""

    @property
    def words(self) -> str:
        """One sentence without its full stop."""
        border = f"; the border lies above {self.border}" if self.border else ""
        equals = "" if self.clear else " (no clear difference)"
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
    """Whether the copies eat the gain."""
    calls: int | None
    """Calls that repay compilation; ``None``: never, or unknown."""
    compilation: str
    """The same in words with the interval, or why it is not known."""


@dataclass(frozen=True, slots=True)
class ChoiceView:
    """One kernel for one combination of its parameters."""

    parameters: str
    """Identity of the combination; empty without parameters."""
    resident: tuple[Recommendation, ...]
    """What to use from which size on, by the kernel's time alone; smallest sizes first."""
    host: tuple[Recommendation, ...]
    """The same for arrays in host memory; empty where nothing that copies was measured so."""
    rows: tuple[ChoiceRow, ...]
    copies: bool
    """Whether any row copies between host and device; else there is nothing to say of copies."""
    notes: tuple[str, ...]
    """What was not measured of all rows, with the next step."""


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """One kernel."""

    kernel: Link
    commit: CommitLabel
    choices: tuple[ChoiceView, ...]
    reasons: tuple[ReasonView, ...]
    """What has no time here, and why."""
    elsewhere: tuple[str, ...]
    """Implementations with a time on other machines or in other environments only."""


@dataclass(frozen=True, slots=True)
class ChoosePage:
    """What to use, on one setup."""

    title: str
    navigation: Navigation
    verdict: str
    details: str
    kernels: tuple[KernelChoice, ...]
    states: tuple[State, ...]


def build(history: History, site: Site, only: str | None = None) -> ChoosePage:
    """The choices on one setup, each kernel as it was last measured there.

    ``only`` names one kernel: ``matmul``, or with its suite ``examples.matmul``.
    """
    kernels = [
        (now, choices(now.cases.values()))
        for key, now in site.current(history).items()
        if only in (None, key[1], ".".join(key))
    ]
    state = State(
        "Nothing to compare",
        "No implementation has a speedup here; the reasons are listed with each kernel.",
        "asv run --quick --show-stderr",
    )
    compared = any(choice.alternatives for _, of_kernel in kernels for choice in of_kernel)
    return ChoosePage(
        title="Choose",
        navigation=site.navigation(history.setup, page="choose"),
        verdict=_verdict([of_kernel for _, of_kernel in kernels]),
        details=(
            f"Measured on {setup_label(history.setup)}. An implementation is named alone where the "
            "intervals of the times are apart. Between two measured sizes nothing is claimed."
        ),
        kernels=tuple(
            KernelChoice(
                kernel=Link(kernel_label(now.key), site.address(history.setup, now.key)),
                commit=commit_label(now.commit),
                choices=tuple(map(_choice, of_kernel)),
                reasons=reason_views(now.cases.values()),
                elsewhere=tuple(elsewhere(now, history, site)),
            )
            for now, of_kernel in kernels
        ),
        states=() if compared else (state,),
    )


def chosen_pages(
    table: Table, kernel: str | None, machine: str | None, environment: str | None
) -> tuple[ChoosePage, ...]:
    """Pages of the setups that are asked for, with one kernel alone where one is named.

    Raises ``ResultsError`` with what there is, where nothing fits.
    """
    site = Site(table)
    histories = [
        history
        for history in site.histories
        if machine in (None, history.setup.machine)
        and environment in (None, history.setup.environment)
    ]
    if not histories:
        setups = text.join(setup_label(history.setup) for history in site.histories)
        there = f"there are {setups}" if setups else "there are none; run `asv run`"
        raise ResultsError(f"no results of that machine and environment: {there}")
    pages = tuple(page for h in histories if (page := build(h, site, kernel)).kernels)
    if not pages:
        labels = sorted({kernel_label(key) for h in histories for key in site.current(h)})
        raise ResultsError(f"no results of the kernel {kernel!r}: there are {text.join(labels)}")
    return pages


def _verdict(kernels: Sequence[Sequence[Choice]]) -> str:
    """Which implementation is the fastest at the largest sizes, and how often."""
    last = [choice.resident[-1] for kernel in kernels for choice in kernel if choice.resident]
    if not last:
        return "Nothing to choose from: no case has a time here."
    one = all(len(kernel) < 2 for kernel in kernels)
    noun = "kernels" if one else "combinations of kernel and parameters"
    wins = Counter(stretch.labels[0] for stretch in last if len(stretch.labels) == 1)
    unclear = len(last) - wins.total()
    if len(wins) == 1 and not unclear:
        every = "both" if len(last) == 2 else f"all {len(last):,}"
        scope = f" in {every} {noun}" if len(last) > 1 else ""
        return f"At the largest size {next(iter(wins))} is the fastest{scope}."
    named = wins.most_common() if len(wins) <= MOST_NAMED + 1 else wins.most_common(MOST_NAMED)
    others = wins.total() - sum(count for _, count in named)
    parts = [f"{label} in {count:,}" for label, count in named]
    parts += [f"another in {others:,}"] if others else []
    parts += [f"none clearly in {unclear:,}"] if unclear else []
    return f"At the largest size, of {len(last):,} {noun}, the fastest is {text.join(parts)}."


def _choice(choice: Choice) -> ChoiceView:
    return ChoiceView(
        parameters=choice.parameters,
        resident=_recommendations(choice.resident),
        host=_recommendations(choice.host),
        rows=tuple(map(_row, choice.alternatives)),
        copies=any(alternative.copies for alternative in choice.alternatives),
        notes=tuple(_notes(choice.alternatives)),
    )


def _recommendations(stretches: Sequence[Stretch]) -> tuple[Recommendation, ...]:
    return tuple(
        Recommendation(
            what=text.join(stretch.labels, "or"),
            clear=len(stretch.labels) == 1,
            span=_span(stretch, is_largest=stretch is stretches[-1]),
            border=_size_words(stretch.after.row) if stretch.after else "",
        )
        for stretch in stretches
    )


def _span(stretch: Stretch, *, is_largest: bool) -> str:
    """The sizes of a stretch, of which ``is_largest`` is the last."""
    first, last = _size_words(stretch.first.row), _size_words(stretch.last.row)
    is_one = stretch.first is stretch.last
    if stretch.after is None and is_largest:
        if not is_one:
            return "at every size measured"
        return f"at {first}, the only size" if first else ""
    if stretch.after is None:
        return f"up to {last}"
    if is_largest:
        return f"from {first} on"
    return f"at {first}" if is_one else f"from {first} to {last}"


def _size_words(row: Row) -> str:
    """``n = 1,024``; the case's own words where it has no sizes."""
    return text.sizes(row.sizes) or row.name.case


def _row(alternative: Alternative) -> ChoiceRow:
    end_to_end, repayment = alternative.end_to_end, alternative.repayment
    return ChoiceRow(
        label=alternative.label,
        device=alternative.device,
        wins=_wins(alternative),
        largest=_size_words(alternative.largest),
        speedup=alternative.largest.speedup,
        end_to_end=end_to_end.speedup if end_to_end else None,
        transfers=_transfers(alternative),
        calls=repayment.calls if repayment else None,
        compilation=_compilation(alternative),
    )


def _wins(alternative: Alternative) -> str:
    crossover = alternative.crossover
    words = {row.size: _size_words(row) for row in alternative.points}
    if crossover.size is None:
        if crossover.largest_win is None:
            return "at no size measured"
        return f"at {words[crossover.largest_win]}, but not up to the largest size"
    if crossover.above is None:
        return f"at every size measured, from {words[crossover.size]} on"
    if crossover.slower is None:
        return f"from {words[crossover.size]} on; unclear below"
    return f"from {words[crossover.size]} on; the crossover lies above {words[crossover.slower]}"


def _transfers(alternative: Alternative) -> str:
    ratio = alternative.end_to_end.speedup if alternative.end_to_end else None
    if not alternative.copies:
        return "nothing is copied" if alternative.device else ""
    if ratio is None:
        return "not measured"
    if ratio.verdict == "faster":
        return "the gain outlasts the copies"
    resident = alternative.largest.speedup
    if resident is None or resident.verdict != "faster":
        return "no gain to begin with"
    if ratio.verdict == "slower":
        return "the copies eat the gain: slower than the baseline"
    return "the copies eat the gain: no clear difference is left"


def _compilation(alternative: Alternative) -> str:
    if alternative.largest.compiled is False:
        return "nothing is compiled"
    if alternative.largest.bench:
        return "not known of a pair"
    return _repaid(alternative.repayment) if alternative.repayment else "not measured"


def _repaid(repayment: Repayment) -> str:
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
    if compiled:
        which = text.join(compiled)
        yield f"The compile time of {which} was not measured: add compile to the suite's measure."
    if copied:
        which = text.join(copied)
        yield (
            f"The time of {which} with copies was not measured: add end_to_end to the suite's "
            "measure."
        )


def elsewhere(now: KernelNow, history: History, site: Site) -> Iterator[str]:
    """Implementations that have times, but not on this setup."""
    here = _timed(now)
    for other in site.histories:
        kernel = site.current(other).get(now.key)
        if other.setup != history.setup and kernel and (names := sorted(_timed(kernel) - here)):
            yield f"{text.join(names)}: measured on {setup_label(other.setup)}"


def _timed(now: KernelNow) -> set[str]:
    return {name.implementation for name, row in now.cases.items() if row.seconds is not None}
