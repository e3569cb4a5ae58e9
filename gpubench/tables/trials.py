"""What ``gpubench count --try`` shows: counts and hints before and after. Nothing here prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from gpubench.analysis.costs import CostPair, cost_pairs
from gpubench.measure.verify_cases import Verified
from gpubench.plan.case import Case
from gpubench.plan.trying import Trial
from gpubench.record import CountsRecord, HintRecord
from gpubench.report.count_view import change_words
from gpubench.results.counts import profile_text, read_profile
from gpubench.tables.table import table

HEADINGS = ("count", "before", "after", "change")

PlacedHint = tuple[str, str, int, HintRecord]
"""Kernel, file, line, hint."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What a trial changed."""

    trial: Trial
    missing: str | None
    """Why nothing is compared; ``None`` where both are counted."""
    costs: tuple[CostPair, ...] = ()
    """Those that differ."""
    gone: tuple[PlacedHint, ...] = ()
    new: tuple[PlacedHint, ...] = ()
    left: tuple[PlacedHint, ...] = ()
    """Those of the case after that the case before has too, with whatever counts."""


def compare_trials(trials: Sequence[Trial], rows: Sequence[tuple[Case, Verified]]) -> list[Tried]:
    """Return what each trial changed, from what became of the cases."""
    outcomes = {_name(case): outcome for case, outcome in rows}
    return [_compare(trial, outcomes) for trial in trials]


def _compare(trial: Trial, outcomes: Mapping[tuple[str, str], Verified]) -> Tried:
    found: list[CountsRecord] = []
    for case in (trial.before, trial.after):
        outcome = outcomes[_name(case)]
        counts = outcome.counts
        if outcome.status != "right" or counts is None or counts.missing is not None:
            reason = (counts and counts.missing) or outcome.reason or "it has no counts"
            return Tried(trial, f"{case.identity}: {outcome.status}: {reason}")
        found.append(counts)
    costs = cost_pairs(*(read_profile(profile_text(one)) for one in found))
    old, new = (
        {(kernel, line.file, line.line, hint.rule): (kernel, line.file, line.line, hint)
         for kernel, line, hint in one.hints}
        for one in found
    )  # fmt: skip
    return Tried(
        trial,
        None,
        tuple(pair for pair in costs if pair.old != pair.new),
        tuple(old[place] for place in old if place not in new),
        tuple(new[place] for place in new if place not in old),
        tuple(new[place] for place in new if place in old),
    )


def _name(case: Case) -> tuple[str, str]:
    return case.group.title, case.identity


def report(tried: Sequence[Tried]) -> Iterator[RenderableType]:
    """Show each trial: the counts that differ, and hints that are gone, new or left."""
    for one in tried:
        yield Text(
            f"\n{one.trial.before.group.title} {one.trial.before.identity}: {one.trial.words}"
        )
        if one.missing is not None:
            yield Text(f"  not compared: {one.missing}")
            continue
        if one.costs:
            rows = [
                (pair.words, f"{pair.old:,}", f"{pair.new:,}", change_words(pair))
                for pair in one.costs
            ]
            yield table(HEADINGS, rows, HEADINGS[1:])
        else:
            yield Text("  all counts are the same")
        for word, hints in (("gone", one.gone), ("new", one.new), ("left", one.left)):
            for _, file, line, hint in hints:
                yield Text(f"  hint {word}: {file}:{line}: {hint.rule}: {hint.evidence}")


def trial_rows(tried: Sequence[Tried]) -> list[dict[str, Any]]:
    """Return the trials as JSON shows them; a count is by its name, before and after."""
    return [
        {
            "implementation": one.trial.before.group.title,
            "axis": one.trial.name,
            "before": one.trial.before.identity,
            "after": one.trial.after.identity,
            "missing": one.missing,
            "counts": [
                {
                    "count": pair.cost.name,
                    "kernel": pair.kernel,
                    "before": pair.old,
                    "after": pair.new,
                }
                for pair in one.costs
            ],
            **{
                f"hints_{word}": [
                    {"kernel": kernel, "file": file, "line": line, "rule": hint.rule}
                    for kernel, file, line, hint in hints
                ]
                for word, hints in (("gone", one.gone), ("new", one.new), ("left", one.left))
            },
        }
        for one in tried
    ]
