"""Two commits that were measured in turn, as a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpubench.analysis.causes import changed_facts
from gpubench.analysis.comparison import (
    CHANGED,
    REPLACED,
    UNTIMED,
    ComparisonVerdict,
    Difference,
    SetupDifference,
    SnapshotComparison,
    order_of_difference,
)
from gpubench.analysis.sequential import verdict_in_turn
from gpubench.results import CaseName, Row, Snapshot

UNSURE = "the time was over before its verdict was sure; give more with --time"


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
    differences.sort(key=order_of_difference)
    facts = changed_facts(old, new)
    return SnapshotComparison(
        old,
        new,
        tuple(differences),
        tuple(only_old),
        tuple(only_new),
        facts,
        SetupDifference.between(old, new, facts),
        factor=factor,
        method=method,
    )
