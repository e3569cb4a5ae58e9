"""Two commits that were measured in turn, as a comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpubench.analysis.causes import changed_facts
from gpubench.analysis.comparison import (
    CHANGED,
    COMPARISON_VERDICTS,
    REPLACED,
    UNTIMED,
    ComparisonVerdict,
    Difference,
    SetupDifference,
    SnapshotComparison,
)
from gpubench.analysis.scatter import Shared
from gpubench.analysis.sequential import ERROR, plan_looks, verdict_in_turn
from gpubench.record import INTERLEAVED
from gpubench.results import CaseName, Row, Snapshot
from gpubench.results.records import RUN

UNSURE = "the time was over before its verdict was sure; give more with --time"


INTERLEAVED_METHOD = (
    "In turn: {count} of these cases by pairs of the processes that asv took with "
    "--interleave-rounds. Their slower and faster hold at 99 % for all of them together, their "
    "same at 99 % for each."
)


def judge_interleaved(comparison: SnapshotComparison) -> SnapshotComparison:
    """Return a comparison of two stored commits in which the cases whose processes asv took in turn
    (``asv continuous --interleave-rounds -a rounds=10``) are judged by pairs of them.

    Both are of one run of asv then, and each process counts once in both; see ``INTERLEAVED``.
    """
    old, new = comparison.old, comparison.new
    processes = old.facts.get(INTERLEAVED)
    is_one_run = old.facts.get(RUN) is not None and old.facts.get(RUN) == new.facts.get(RUN)
    fewest, _ = next(plan_looks(ERROR))
    if not (is_one_run and old.setup == new.setup and old.commit != new.commit):
        return comparison
    if not isinstance(processes, int) or processes < fewest:
        return comparison
    logs = {
        one.name: [math.log(a / b) for a, b in zip(one.old.rounds, one.new.rounds, strict=True)]
        for one in comparison.differences
        if one.ratio and one.old and one.new
        if len(one.old.rounds) == len(one.new.rounds) == processes
    }
    if not logs:
        return comparison
    differences = []
    for one in comparison.differences:
        if one.name in logs:
            pairs = logs[one.name]
            verdict, ratio = verdict_in_turn(pairs, len(logs), comparison.factor)
            one = replace(
                one,
                verdict=verdict,
                is_sure=verdict in CHANGED,
                ratio=ratio,
                note="",
                basis="in turn",
                pairs=len(pairs),
            )
        differences.append(one)
    differences.sort(key=_order)
    method = INTERLEAVED_METHOD.format(count=f"{len(logs):,}")
    return replace(comparison, differences=tuple(differences), method=method)


def _order(one: Difference) -> tuple[int, float]:
    """By verdict, then the largest first."""
    return COMPARISON_VERDICTS.index(one.verdict), -(one.ratio.factor if one.ratio else 1.0)


def compare_in_turn(
    old: Snapshot,
    new: Snapshot,
    rows: Mapping[CaseName, tuple[Row, Row]],
    logs: Mapping[CaseName, Sequence[float]],
    *,
    cases: int,
    replaced: Sequence[CaseName] = (),
    only_old: Sequence[CaseName] = (),
    only_new: Sequence[CaseName] = (),
    factor: float = 1.0,
    method: str = "",
) -> SnapshotComparison:
    """Compare two sides by their pairs of processes.

    ``logs`` are the logarithms of each case's ratios, old over new; of one that had no turn before
    the time was over there are none, and its rows say so. ``cases`` is how many were to be
    measured, over which the error is divided. What ``replaced`` measure differs between the two
    sides.
    """
    differences = []
    for name, (old_row, new_row) in rows.items():
        ratio = None
        note = ""
        verdict: ComparisonVerdict
        if old_row.status == new_row.status == "ok":
            verdict, ratio = verdict_in_turn(logs[name], cases, factor)
            note = UNSURE if verdict == "unclear" else ""
        elif old_row.reason == new_row.reason == UNSURE:
            verdict, note = "unclear", UNSURE
        else:
            verdict, note = UNTIMED[old_row.status, new_row.status]
            note = note.format(old=old_row.reason or "", new=new_row.reason or "")
        differences.append(
            Difference(
                name,
                verdict,
                verdict in CHANGED,
                old_row,
                new_row,
                ratio,
                baseline=None,
                note=note,
                basis="in turn" if ratio else None,
                pairs=len(logs[name]),
            )
        )
    differences += [
        Difference(
            name,
            "not comparable",
            is_sure=False,
            old=None,
            new=None,
            ratio=None,
            baseline=None,
            note=REPLACED,
            basis=None,
        )
        for name in replaced
    ]
    differences.sort(key=_order)
    facts = changed_facts(old, new)
    return SnapshotComparison(
        old,
        new,
        tuple(differences),
        tuple(only_old),
        tuple(only_new),
        facts,
        SetupDifference.between(old, new, facts),
        scatter=None,
        shared=Shared(),
        factor=factor,
        method=method,
    )
