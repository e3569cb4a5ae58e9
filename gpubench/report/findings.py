"""Parts of a view model that several pages show: times, changes, cases without a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.changes import MIN_POINTS, Change
from gpubench.analysis.choice import Crossover
from gpubench.analysis.steps import MIN_LEVEL
from gpubench.analysis.tally import by_reason
from gpubench.names import SECONDS, kernel_title, verify_command
from gpubench.report import text
from gpubench.report.lists import listed
from gpubench.report.site import CommitLabel, State, setup_label, snapshot_label
from gpubench.report.sparkline import Sparkline, sparkline
from gpubench.results import ABSENT, CaseHistories, CaseName, History, Row, Snapshot
from gpubench.results.unfinished import UNFINISHED
from gpubench.statuses import Status

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
    """``slower``, ``faster``, ``more`` or ``less``."""
    by_speedup: bool
    """Whether both are times over the baseline's instead: of several processors."""
    basis: Literal["time", "speedup"]
    """Which series decided."""
    spark: Sparkline | None
    """``None`` where it is not drawn."""
    points: int
    """Commits that it rests on (``rests_on``)."""


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


def direction_word(name: CaseName, slower: bool) -> str:
    """Return ``slower`` or ``faster`` of a time, ``more`` or ``less`` of anything else."""
    words = ("slower", "faster") if name.is_time else ("more", "less")
    return words[0 if slower else 1]


def decided_by(name: CaseName, change: Change) -> str:
    """Return which series decided that there is a change; empty of what has but one."""
    if not name.is_time:
        return ""
    return "by speedup" if change.basis == "speedup" else "by times alone"


def claim(change: Change, name: CaseName) -> str:
    direction = direction_word(name, change.slower)
    if change.kind == "step":
        return f"step: {direction} by {text.ratio(change.ratio.factor)}"
    return f"{direction} than the previous commit: intervals do not overlap"


def basis(points: int) -> str:
    """On how few commits a change rests; empty where they are enough for a level that lasts."""
    return f"rests on {text.plural(points, 'commit')}" if points < MIN_LEVEL else ""


def rests_on(history: CaseHistories, name: CaseName, change: Change) -> int:
    """Return how many measured commits a change rests on: of a step those of its shorter level, of
    a difference those since, in a row, whose time is nearer to the new one."""
    if change.commits:
        return change.commits
    times = history.judged[0, history.rows_of[name]]
    return _in_a_row(times[change.after :], change.new, change.old)


def _in_a_row(times: NDArray[np.float64], near: float, far: float) -> int:
    times = times[~np.isnan(times)]
    is_far = np.abs(np.log(times / far)) < np.abs(np.log(times / near))
    return max(int(is_far.argmax()), 1) if is_far.any() else len(times)


def change_view(
    history: CaseHistories,
    name: CaseName,
    change: Change,
    *,
    unit: str = SECONDS,
    is_drawn: bool = True,
) -> ChangeView:
    """Return one change in words and with its case's history, drawn where that is asked for."""
    points = rests_on(history, name, change)
    return ChangeView(
        slower=change.slower,
        factor=change.ratio.factor,
        claim="; ".join(
            filter(None, (claim(change, name), decided_by(name, change), basis(points)))
        ),
        before=snapshot_label(history.snapshots[change.before]),
        after=snapshot_label(history.snapshots[change.after]),
        name=name,
        old=change.old,
        new=change.new,
        unit=unit,
        direction=direction_word(name, change.slower),
        by_speedup=history.by_speedup,
        basis=change.basis,
        spark=history_spark(history, name, (change,), unit) if is_drawn else None,
        points=points,
    )


def history_spark(
    history: CaseHistories, name: CaseName, changes: Sequence[Change], unit: str = SECONDS
) -> Sparkline:
    """Sparkline of a case's values at the commits that know it; changes are marked."""
    row = history.rows_of[name]
    places = np.flatnonzero(history.statuses[row] != ABSENT)
    medians = (history.judged if history.by_speedup else history.times)[0, row, places]
    present = medians[~np.isnan(medians)]
    what = "time" if name.is_time else "value"
    label = f"{text.plural(len(present), 'commit')} with a {what}"
    if present.size and not history.by_speedup:
        first, last = (text.quantity(value, unit) for value in (present[0], present[-1]))
        label += f", first {first}, last {last}"
    marked = np.searchsorted(places, [change.after for change in changes]).tolist()
    return sparkline(medians, f"{label}; {text.plural(len(marked), 'change')}", marked)


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


def disturbed_states(rows: Iterable[Row | None]) -> Iterator[State]:
    """Say of how many of these times other work on the machine took a part."""
    timed = [row for row in rows if row and row.seconds is not None]
    if count := sum(row.is_disturbed for row in timed):
        yield State(
            "Disturbed times",
            f"{count:,} of {text.plural(len(timed), 'time')} here were disturbed: most of their "
            "samples waited for other work on the machine or ran beside it. They were not measured "
            "well enough for a verdict, unless in pairs that differ by 10 %.",
            "asv run --skip-existing-successful",
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
    return f"{kernel} {name.implementation} {name.case}".strip() + time


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


def history_length(commits: int) -> str | None:
    """Return what a short history can and cannot show; ``None`` for a long one."""
    if commits >= MIN_POINTS:
        return None
    return (
        f"{text.plural(commits, 'commit')} measured. Steps are claimed from {MIN_POINTS} on; "
        "until then each commit is held against the one before it by their intervals."
    )
