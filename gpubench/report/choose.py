"""View model of the page that says which implementation to use at which size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpubench.analysis.baseline import Compared
from gpubench.analysis.choice import Alternative, Choice, Repayment, Stretch, choices
from gpubench.analysis.crossover import Crossover
from gpubench.analysis.headline import KernelKey, KernelNow, size_of, sizes_of
from gpubench.analysis.history import SetupHistory
from gpubench.analysis.speedup import Speedup
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
from gpubench.results import Results

MOST_NAMED = 3
"""Implementations that the verdict names; the others are counted together."""


@dataclass(frozen=True, slots=True)
class Use:
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
    speedup: Speedup
    end_to_end: Speedup | None
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
    resident: tuple[Use, ...]
    """What to use from which size on, by the kernel's time alone; smallest sizes first."""
    host: tuple[Use, ...]
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


def build(history: SetupHistory, site: Site, only: str | None = None) -> ChoosePage:
    """The choices on one setup, each kernel as it was last measured there; ``only`` names one."""
    current = site.current(history)
    shown = [now for key, now in current.items() if only is None or only in _names(key)]
    found = [choices(now.cases.values()) for now in shown]
    kernels = tuple(_kernel(now, own, history, site) for now, own in zip(shown, found, strict=True))
    return ChoosePage(
        title="Choose",
        navigation=site.navigation(history.setup, page="choose"),
        verdict=_verdict(found),
        details=(
            f"Measured on {setup_label(history.setup)}. An implementation is named alone where the "
            "intervals of the times are apart. Between two measured sizes nothing is claimed."
        ),
        kernels=kernels,
        states=tuple(_states(kernels)),
    )


def sources(history: SetupHistory, site: Site) -> bytes:
    """Changes with anything that the page is made from."""
    kernels = site.current(history).values()
    elsewhere = [(now.key, *_elsewhere(now, history, site)) for now in kernels]
    told = repr((site.navigation(history.setup, page="choose"), elsewhere))
    return history.digest + told.encode()


def chosen_pages(
    results: Results, kernel: str | None, machine: str | None, environment: str | None
) -> tuple[ChoosePage, ...]:
    """Pages of the setups that are asked for, with one kernel alone where one is named.

    Raises ``ResultsError`` with what there is, where nothing fits.
    """
    site = Site(results)
    histories = [
        history
        for history in site.histories
        if machine in (None, history.setup.machine)
        and environment in (None, history.setup.environment)
    ]
    if not histories:
        known = [setup_label(history.setup) for history in site.histories]
        there = f"there are {text.join(known)}" if known else "there are none; run `asv run`"
        raise ResultsError(f"no results of that machine and environment: {there}")
    pages = [build(history, site, kernel) for history in histories]
    if not any(page.kernels for page in pages):
        labels = sorted({kernel_label(key) for h in histories for key in site.current(h)})
        raise ResultsError(f"no results of the kernel {kernel!r}: there are {text.join(labels)}")
    return tuple(page for page in pages if page.kernels)


def _names(key: KernelKey) -> tuple[str, ...]:
    """What a kernel may be called: ``matmul``, ``suite.kernel``."""
    return key[1], ".".join(key)


def _kernel(
    now: KernelNow, found: Sequence[Choice], history: SetupHistory, site: Site
) -> KernelChoice:
    return KernelChoice(
        kernel=Link(kernel_label(now.key), site.address(history.setup, now.key)),
        commit=commit_label(now.commit),
        choices=tuple(map(_choice, found)),
        reasons=reason_views(now.cases.values()),
        elsewhere=tuple(_elsewhere(now, history, site)),
    )


def _choice(choice: Choice) -> ChoiceView:
    return ChoiceView(
        parameters=choice.parameters,
        resident=_uses(choice.resident),
        host=_uses(choice.host),
        rows=tuple(map(_row, choice.alternatives)),
        copies=any(found.copies for found in choice.alternatives),
        notes=tuple(_notes(choice.alternatives)),
    )


def _verdict(found: Sequence[Sequence[Choice]]) -> str:
    """Which implementation is the fastest at the largest sizes, and how often."""
    last = [choice.resident[-1] for kernel in found for choice in kernel if choice.resident]
    if not last:
        return "Nothing to choose from: no case has a time here."
    one = all(len(kernel) < 2 for kernel in found)
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


def _uses(stretches: Sequence[Stretch]) -> tuple[Use, ...]:
    if len(stretches) == 1:
        return (_use(stretches[0], _only(stretches[0])),)
    return tuple(
        _use(stretch, _span(stretch, newest=stretch is stretches[-1])) for stretch in stretches
    )


def _use(stretch: Stretch, span: str) -> Use:
    return Use(
        what=text.join(stretch.labels, "or"),
        clear=len(stretch.labels) == 1,
        span=span,
        border=size_words(stretch.after.compared) if stretch.after else "",
    )


def _only(stretch: Stretch) -> str:
    if stretch.first is not stretch.last:
        return "at every size measured"
    words = size_words(stretch.first.compared)
    return f"at {words}, the only size" if words else ""


def _span(stretch: Stretch, *, newest: bool) -> str:
    first, last = size_words(stretch.first.compared), size_words(stretch.last.compared)
    if stretch.after is None:
        return f"up to {last}"
    if newest:
        return f"from {first} on"
    return f"at {first}" if stretch.first is stretch.last else f"from {first} to {last}"


def size_words(compared: Compared) -> str:
    """``n = 1,024``; the case's own words where it has no sizes."""
    sizes = sizes_of(compared)
    if not sizes:
        return compared.outcome.name.case
    return ", ".join(f"{name} = {text.whole(value)}" for name, value in sizes.items())


def _row(found: Alternative) -> ChoiceRow:
    return ChoiceRow(
        label=found.label,
        device=found.device,
        wins=_wins(found.crossover, found.points),
        largest=size_words(found.largest),
        speedup=found.largest.speedup or Speedup(1, 0, float("inf")),
        end_to_end=found.end_to_end.speedup if found.end_to_end else None,
        transfers=_transfers(found),
        calls=found.repayment.calls if found.repayment else None,
        compilation=_compilation(found),
    )


def _wins(found: Crossover, points: Iterable[Compared]) -> str:
    words = {size_of(compared): size_words(compared) for compared in points}
    if found.size is None:
        if found.largest_win is None:
            return "at no size measured"
        return f"at {words[found.largest_win]}, but not up to the largest size"
    if found.above is None:
        return f"at every size measured, from {words[found.size]} on"
    if found.slower is None:
        return f"from {words[found.size]} on; unclear below"
    return f"from {words[found.size]} on; the crossover lies above {words[found.slower]}"


def _transfers(found: Alternative) -> str:
    ratio = found.end_to_end.speedup if found.end_to_end else None
    if not found.copies or ratio is None:
        return "not measured" if found.copies else "nothing is copied" if found.device else ""
    if ratio.verdict == "faster":
        return "the gain outlasts the copies"
    if not (found.largest.speedup and found.largest.speedup.verdict == "faster"):
        return "no gain to begin with"
    if ratio.verdict == "slower":
        return "the copies eat the gain: slower than the baseline"
    return "the copies eat the gain: no clear difference is left"


def _compilation(alternative: Alternative) -> str:
    if _compiles_nothing(alternative):
        return "nothing is compiled"
    if alternative.largest.outcome.bench:
        return "not known of a pair"
    found = alternative.repayment
    return _repaid(found) if found else "not measured"


def _compiles_nothing(alternative: Alternative) -> bool:
    record = alternative.largest.outcome.record
    return record is not None and record.backend == "numpy"


def _notes(alternatives: Sequence[Alternative]) -> Iterator[str]:
    """Next steps for what is missing; the benchmarks of a pair are not declared in a suite."""
    own = [found for found in alternatives if not found.largest.outcome.bench]
    compiled = [f.label for f in own if not f.repayment and not _compiles_nothing(f)]
    if compiled:
        which = text.join(compiled)
        yield f"The compile time of {which} was not measured: add compile to the suite's measure."
    copied = [found.label for found in own if found.copies and not found.end_to_end]
    if copied:
        which = text.join(copied)
        yield (
            f"The time of {which} with copies was not measured: add end_to_end to the suite's "
            "measure."
        )


def _repaid(found: Repayment) -> str:
    cost = text.seconds(found.compile.median)
    if found.calls is None:
        return f"{cost}, never repaid: a call is not clearly faster than the baseline's"
    if found.low is None or found.high is None:
        return f"{cost}, repaid after {text.plural(found.calls, 'call')} (no interval)"
    span = f"{found.low:,}\N{EN DASH}{found.high:,}"
    return f"{cost}, repaid after {text.plural(found.calls, 'call')} ({span})"


def _elsewhere(now: KernelNow, history: SetupHistory, site: Site) -> Iterator[str]:
    """Implementations that have times, but not on this setup."""
    here = _timed(now)
    for other in site.histories:
        kernel = site.current(other).get(now.key)
        if other.setup == history.setup or kernel is None:
            continue
        names = sorted(_timed(kernel) - here)
        if names:
            yield f"{text.join(names)}: measured on {setup_label(other.setup)}"


def _timed(now: KernelNow) -> set[str]:
    return {name.implementation for name, compared in now.cases.items() if compared.outcome.timing}


def _states(kernels: Iterable[KernelChoice]) -> Iterator[State]:
    if not any(choice.rows for kernel in kernels for choice in kernel.choices):
        yield State(
            "Nothing to compare",
            "No implementation has a speedup here; the reasons are listed with each kernel.",
            "asv run --quick --show-stderr",
        )
