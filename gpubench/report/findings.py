"""Parts of a view model that several pages show: changes over commits, cases without a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gpubench.analysis.baseline import Compared
from gpubench.analysis.changes import FEWEST_POINTS, Change
from gpubench.analysis.history import Series
from gpubench.analysis.tally import ReasonGroup, by_reason
from gpubench.report import text
from gpubench.report.site import CommitLabel, commit_label
from gpubench.report.sparkline import Sparkline, sparkline
from gpubench.results import CaseName, Status

_SHOWN_CASES = 4
"""Cases named in one group; the kernel pages list all."""

_NEXT_STEPS: dict[Status, str] = {
    "wrong": "asv run --quick --show-stderr --bench {bench}",
    "failed": "asv run --quick --show-stderr --bench {bench}",
    "killed": "asv run --show-stderr --bench {bench}",
    "timed_out": "asv run --show-stderr --bench {bench}",
    "verified": "asv run --bench {bench}",
    "skipped": "gpubench devices",
}


@dataclass(frozen=True, slots=True)
class ChangeWords:
    """One change of one case's time."""

    slower: bool
    factor: float
    """How many times slower or faster; at least 1."""
    claim: str
    """What was found and how surely."""
    before: CommitLabel
    after: CommitLabel


@dataclass(frozen=True, slots=True)
class ChangeView(ChangeWords):
    """The same with its case's history."""

    name: CaseName
    old: float
    """Seconds."""
    new: float
    """Seconds."""
    spark: Sparkline


@dataclass(frozen=True, slots=True)
class ReasonView:
    """Cases that have no time for the same reason."""

    status: Status
    reason: str
    count: int
    examples: tuple[str, ...]
    """Some of the cases, named."""
    command: str


def change_words(points: Series, change: Change) -> ChangeWords:
    """Put one change into words."""
    direction = "slower" if change.slower else "faster"
    if change.kind == "step":
        claim = f"step: {direction} by {text.ratio(change.size)}"
    else:
        claim = f"{direction} than the previous commit: intervals do not overlap"
    return ChangeWords(
        slower=change.slower,
        factor=change.size,
        claim=claim,
        before=commit_label(points.commit(change.before)),
        after=commit_label(points.commit(change.after)),
    )


def change_view(name: CaseName, points: Series, change: Change) -> ChangeView:
    """One change in words and with its case's history."""
    words = change_words(points, change)
    return ChangeView(
        slower=words.slower,
        factor=words.factor,
        claim=words.claim,
        before=words.before,
        after=words.after,
        name=name,
        old=change.old,
        new=change.new,
        spark=history_spark(points, (change,)),
    )


def history_spark(points: Series, changes: tuple[Change, ...]) -> Sparkline:
    """Sparkline of a case's times; changes are marked."""
    medians = points.medians
    present = medians[~np.isnan(medians)]
    label = f"{text.plural(len(present), 'commit')} with a time"
    if present.size:
        label += f", first {text.seconds(present[0])}, last {text.seconds(present[-1])}"
    marked = [change.after for change in changes]
    return sparkline(medians, f"{label}; {text.plural(len(marked), 'change')}", marked)


def reason_views(cases: Iterable[Compared]) -> tuple[ReasonView, ...]:
    """Cases without a time, grouped by reason."""
    return tuple(map(_reason_view, by_reason(cases)))


def _reason_view(group: ReasonGroup) -> ReasonView:
    names = [compared.outcome.name for compared in group.cases]
    bench = group.cases[0].outcome.bench or names[0].benchmark.class_name
    return ReasonView(
        status=group.status,
        reason=group.reason,
        count=len(names),
        examples=tuple(case_words(name) for name in names[:_SHOWN_CASES]),
        command=_NEXT_STEPS.get(group.status, "asv run --bench {bench}").format(bench=bench),
    )


def case_words(name: CaseName) -> str:
    """``vector_add numba_cuda n=1024 block=256 (end to end)``; the usual time is not named."""
    kernel = name.kernel if name.suite == name.kernel else f"{name.suite}.{name.kernel}"
    time = "" if name.time == "kernel" else f" ({text.time_label(name.time)})"
    return f"{kernel} {name.implementation} {name.case}".strip() + time


def counts_in_words(counts: dict[str, int]) -> str:
    """``14 faster, 2 slower, 1 unclear and 3 skipped``."""
    return text.join(f"{number:,} {key.replace('_', ' ')}" for key, number in counts.items())


def history_length(commits: int) -> str | None:
    """What a short history can and cannot show; ``None`` for a long one."""
    if commits >= FEWEST_POINTS:
        return None
    return (
        f"{text.plural(commits, 'commit')} measured. Steps are claimed from {FEWEST_POINTS} on; "
        "until then each commit is held against the one before it by their intervals."
    )
