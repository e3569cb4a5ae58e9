"""Parts of a view model that several pages show: times, changes, cases without a time."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.changes import THRESHOLD, Change, Regression
from gpubench.analysis.choice import Crossover
from gpubench.analysis.direction import direction_word
from gpubench.analysis.pooled import MIN_SERIES
from gpubench.analysis.steps import MIN_LEVEL
from gpubench.analysis.tally import by_reason
from gpubench.names import SECONDS, kernel_title, measure_command, since_command, verify_command
from gpubench.report import text
from gpubench.report.lists import listed
from gpubench.report.navigation import CommitLabel, State, setup_label, snapshot_label
from gpubench.report.site import Site
from gpubench.report.sparkline import Sparkline, sparkline
from gpubench.results import (
    ABSENT,
    ALONE,
    CaseHistories,
    CaseName,
    Commit,
    History,
    Row,
    Snapshot,
    Table,
)
from gpubench.results.unfinished import UNFINISHED
from gpubench.statuses import Status

TO_BE_CHECKED = "one commit alone, to be checked"

_SHOWN_CASES = 4
"""Cases named for one reason; the kernels' pages list all."""

_NEXT_STEPS: dict[Status, str] = {
    "verified": "asv run --bench {bench}",
    "skipped": "gpubench devices",
}
"""Of what did not fail."""

ONE_COMMIT = State(
    "One commit so far",
    "Changes over commits show from the second on.",
    "asv run HEAD~10..HEAD --skip-existing",
)


@dataclass(frozen=True, slots=True)
class ChangeView:
    """One change of one case's time, with its history."""

    slower: bool
    factor: float
    """How many times slower or faster; at least 1."""
    claim: str
    before: CommitLabel
    after: CommitLabel
    name: CaseName
    old: float
    """In the unit."""
    new: float
    unit: str
    """``seconds`` of a time."""
    direction: str
    """``slower``, ``larger`` and their like (``gpubench.analysis.direction``)."""
    by_speedup: bool
    """Whether both are times over the baseline's instead: of several processors."""
    basis: Literal["time", "speedup"]
    """Which series decided."""
    spark: Sparkline | None
    """``None`` where it is not drawn."""
    points: int
    """Commits that it rests on (``rests_on``)."""
    address: str
    """Of the kernel's page."""
    command: str
    """What finds the commit of a step, and what decides of a commit that is to be checked."""
    level: float | None = None
    """Median of the newest level, in the unit, where the newest value is another."""
    chain: tuple[tuple[float, CommitLabel], ...] = ()
    """Factor and commit of each step that it is made of, where there are several."""

    @property
    def listed(self) -> dict[str, Any]:
        return listed(suite=[self.name.suite], what=[self.direction], change=self.factor)


@dataclass(frozen=True, slots=True)
class ReasonView:
    """Cases that have no time for the same reason."""

    status: Status
    reason: str
    count: int
    examples: tuple[str, ...]
    command: str

    @property
    def listed(self) -> dict[str, Any]:
        return listed(status=[text.status_label(self.status)], cases=self.count)


def decided_by(name: CaseName, change: Change) -> str:
    """Return which series decided that there is a change; empty of what has but one."""
    if not name.is_time:
        return ""
    return "by speedup" if change.basis == "speedup" else "by times alone"


def claim(change: Change, unit: str) -> str:
    direction = f"{direction_word(change, unit)} by {text.ratio(change.ratio.factor)}"
    return f"step: {direction}" if change.kind == "step" else f"{TO_BE_CHECKED}: {direction}"


def deciding_command(table: Table, history: CaseHistories, name: CaseName, change: Change) -> str:
    """Return the command that finds the commit of a step, or that decides of one commit that is to
    be checked: of gpubench for its own suites, else of asv."""
    ends = (history.snapshots[place].commit.hash[:8] for place in (change.before, change.after))
    old, new = ends
    case = (name.suite, name.kernel, name.implementation, name.case)
    if name.benchmark in table.asv_names:
        bench = table.asv_name(name)
        if change.kind == "step":
            return shlex.join(["asv", "find", f"{old}..{new}", bench])
        return shlex.join(["asv", "continuous", old, new, "--bench", f"^{re.escape(bench)}"])
    return (since_command if change.kind == "step" else measure_command)(*case, old, new)


def basis(points: int) -> str:
    """Return on how few commits a change rests; empty where they make a level."""
    return f"rests on {text.plural(points, 'commit')}" if points < MIN_LEVEL else ""


def change_view(
    history: CaseHistories, name: CaseName, change: Change, site: Site, *, is_drawn: bool = True
) -> ChangeView:
    """Return one change in words and with its case's history, drawn where that is asked for."""
    points, unit = change.commits, site.unit(history, name)
    return ChangeView(
        slower=change.slower,
        factor=change.ratio.factor,
        claim="; ".join(
            filter(None, (claim(change, unit), decided_by(name, change), basis(points)))
        ),
        before=snapshot_label(history.snapshots[change.before]),
        after=snapshot_label(history.snapshots[change.after]),
        name=name,
        old=change.old,
        new=change.new,
        unit=unit,
        direction=direction_word(change, unit),
        by_speedup=history.by_speedup,
        basis=change.basis,
        spark=history_spark(history, name, (change,), unit) if is_drawn else None,
        points=points,
        address=site.address(history.setup, (name.suite, name.kernel)),
        command=deciding_command(site.table, history, name, change),
    )


def regression_view(
    history: CaseHistories, name: CaseName, regression: Regression, site: Site
) -> ChangeView:
    """Return how much worse a case is than at its best level: on the row of its largest step, with
    the newest value that was measured."""
    view = change_view(history, name, regression.largest, site)
    chain = regression.chain if len(regression.chain) > 1 else ()
    return replace(
        view,
        factor=regression.ratio.factor,
        old=regression.chain[0].old,
        new=newest_value(history, name),
        level=level_beside_newest(history, name, regression),
        spark=history_spark(history, name, regression.chain, view.unit),
        chain=tuple(
            (one.ratio.factor, snapshot_label(history.snapshots[one.after])) for one in chain
        ),
    )


def level_beside_newest(
    history: CaseHistories, name: CaseName, regression: Regression
) -> float | None:
    """Return the median of the newest level where the newest value is another; else ``None``."""
    level = regression.chain[-1].new
    is_other = abs(math.log(newest_value(history, name) / level)) >= math.log(THRESHOLD)
    return level if is_other else None


def shown_values(history: CaseHistories, name: CaseName) -> NDArray[np.float64]:
    """Return the values of a case, shape (snapshots,), NaN without one: times over the baseline's
    where processors differ."""
    medians = history.judged if history.by_speedup else history.times
    values: NDArray[np.float64] = medians[0, history.rows_of[name]]
    return values


def newest_value(history: CaseHistories, name: CaseName) -> float:
    """Return the newest value of a case that has one, as ``shown_values`` has it."""
    values = shown_values(history, name)
    return float(values[~np.isnan(values)][-1])


def history_spark(
    history: CaseHistories, name: CaseName, changes: Sequence[Change], unit: str = SECONDS
) -> Sparkline:
    """Sparkline of a case's values at the commits of its setup; changes are marked."""
    places = np.flatnonzero(history.statuses[history.rows_of[name]] != ABSENT)
    medians = shown_values(history, name)[places]
    present = medians[~np.isnan(medians)]
    what = "time" if name.is_time else "value"
    label = f"{text.plural(len(present), 'commit')} with a {what}"
    if present.size and not history.by_speedup:
        first, last = (text.quantity(value, unit) for value in (present[0], present[-1]))
        label += f", first {first}, last {last}"
    marked = np.searchsorted(places, [change.after for change in changes]).tolist()
    return sparkline(
        medians,
        f"{label}; {text.plural(len(marked), 'change')}",
        marked,
        places,
        len(history.snapshots),
    )


def unfinished(rows: Iterable[Row | None]) -> str:
    """Return how many times are of a run that was stopped; empty where none is."""
    count = sum(UNFINISHED in row.warnings for row in rows if row)
    return f"{text.plural(count, 'time')} of a run that asv has not stored" if count else ""


def processor_states(history: History) -> Iterator[State]:
    """Say where a history is of several processors, so that times alone tell nothing."""
    if history.by_speedup:
        machines = {snapshot.measured_on for snapshot in history.snapshots}
        yield State(
            "Several processors",
            f"{history.setup.machine} stands for {text.plural(len(machines), 'machine')} with "
            f"{text.some(history.processors)}. Their times are not held against each other: "
            "changes are those of the speedup, and a case without one has none.",
        )


def measure_again(commit: Commit) -> str:
    """Return the command that measures a commit again, what has a time included."""
    return f"asv run {commit.hash[:8]}^!"


def disturbed_states(rows: Iterable[Row | None], commit: Commit) -> Iterator[State]:
    """Say of how many of these times of a commit other work on the machine took a part."""
    timed = [row for row in rows if row and row.seconds is not None]
    disturbed = [row for row in timed if row.is_disturbed]
    decided = sum(row.speedup is not None and row.speedup.verdict != "unclear" for row in disturbed)
    if count := len(disturbed):
        but = f", except {decided:,} whose pairs differ by more than 10 %" if decided else ""
        yield State(
            "Disturbed times",
            f"Other work on the machine disturbed {count:,} of {text.plural(len(timed), 'time')} "
            "here: most samples of such a time waited for it or ran beside it. These times get no "
            f"verdict{but}. Measure the commit again while the machine is quiet.",
            measure_again(commit),
        )


def running_states(snapshots: Iterable[Snapshot]) -> Iterator[State]:
    """Say which of these snapshots a run of asv measures now."""
    for snapshot in snapshots:
        if snapshot.running:
            yield State(
                "A run is at work",
                f"asv run measures {snapshot.commit.hash[:8]} on {setup_label(snapshot.setup)}: "
                f"{text.running(snapshot.running)}. Cases that it has not finished are not shown.",
            )


def reason_views(rows: Iterable[Row]) -> tuple[ReasonView, ...]:
    """Cases without a time, grouped by reason."""
    views = []
    for status, reason, cases in by_reason(rows):
        examples = tuple(case_words(row.name) for row in cases[:_SHOWN_CASES])
        command = _next_step(status, cases[0])
        views.append(ReasonView(status, reason, len(cases), examples, command))
    return tuple(views)


def _next_step(status: Status, row: Row) -> str:
    """Return the command that shows more of a case; benchmarks of another project are verified by
    none of ours."""
    name = row.name
    if status not in _NEXT_STEPS:
        if row.bench:
            return f"asv run --quick --show-stderr --bench {row.bench}"
        return verify_command(name.suite, name.kernel, name.implementation, name.case)
    return _NEXT_STEPS[status].format(bench=row.bench or name.benchmark.class_name)


def case_words(name: CaseName) -> str:
    """``vector_add numba_cuda n=1024 block=256 (end to end)``; the usual time is not named."""
    kernel = kernel_title(name.suite, name.kernel)
    time = "" if name.time == "kernel" else f" ({text.time_label(name.time)})"
    words = (kernel, "" if name.implementation == ALONE else name.implementation, name.case)
    return " ".join(filter(None, words)) + time


def size_words(row: Row) -> str:
    """``n = 1,024``; the case's own words where it has no sizes."""
    return text.sizes(row.sizes) or row.name.case


def wins(border: Crossover, points: Iterable[Row], unclear: str = "unclear below") -> str:
    """At which of these sizes a candidate is faster: ``from n = 64 on; unclear below``."""
    words = {row.size: size_words(row) for row in points}
    if border.size is None:
        if border.largest_win is None:
            return "at no size measured"
        return f"at {words[border.largest_win]}, but not up to the largest size"
    if border.above is None:
        return f"at every size measured, from {words[border.size]} on"
    if border.slower is None:
        return f"from {words[border.size]} on; {unclear}"
    return f"from {words[border.size]} on; the crossover lies above {words[border.slower]}"


def counts_in_words(counts: Mapping[str, int]) -> str:
    """``14 faster, 2 slower, 1 unclear and 3 skipped``."""
    return text.join(f"{number:,} {key.replace('_', ' ')}" for key, number in counts.items())


def not_judged_words(judged: int, not_judged: int) -> str | None:
    """Say how many of the cases with values have no verdict yet; ``None`` where all have one."""
    if not not_judged:
        return None
    cases = judged + not_judged
    which = f"{not_judged:,} of {cases:,} cases are not" if judged else "No case is"
    return (
        f"{which} judged yet: that needs undisturbed times of a case at three commits, or of "
        f"{text.plural(MIN_SERIES, 'case')} at two, which tell how much they scatter."
    )
