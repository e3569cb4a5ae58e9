"""Two commits that were measured in turn, as a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.analysis.causes import changed_facts
from gpubench.analysis.comparison import REPLACED, UNTIMED, order_of_difference
from gpubench.analysis.differences import (
    CHANGED,
    ComparisonVerdict,
    Difference,
    SetupDifference,
    SnapshotComparison,
)
from gpubench.analysis.sequential import (
    CaseEvidence,
    Evidence,
    estimate_pairs_needed,
    find_detectable_factor,
)
from gpubench.results import CaseName, Row, Snapshot

NO_TURN = "no turn before the time was over; give more with --time"
"""Of a case without a pair."""

NOT_SURE = "for so many cases it is not sure; give more with --time, or name it alone"


def compare_in_turn(
    old: Snapshot,
    new: Snapshot,
    rows: Sequence[tuple[Row, Row]],
    evidence: Evidence,
    seconds: Sequence[float],
    *,
    replaced: Sequence[CaseName] = (),
    only_old: Sequence[CaseName] = (),
    only_new: Sequence[CaseName] = (),
    method: str = "",
) -> SnapshotComparison:
    """Compare two sides by their pairs of processes.

    ``rows``: of each case of ``evidence``, in its order. A case without a turn before the time was
    over has ``NO_TURN`` as the reason of both rows. ``seconds``: of a pair of each case. What
    ``replaced`` measure differs between the two sides.
    """
    sure = evidence.sure
    factor = evidence.factor
    differences = [
        _difference(case, both, place in sure, of_pair)
        for place, (case, both, of_pair) in enumerate(
            zip(evidence.cases, rows, seconds, strict=True)
        )
    ]
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


def _difference(
    case: CaseEvidence, rows: tuple[Row, Row], is_sure: bool, seconds: float
) -> Difference:
    """Judge one case: by its pairs, or by what became of its sides."""
    old, new = rows
    ratio = detectable = needed = None
    note = ""
    verdict: ComparisonVerdict
    if old.status == new.status == "ok" and case.logs:
        verdict, ratio = case.verdict, case.ratio
        if verdict == "unclear":
            detectable = find_detectable_factor(case)
            needed = estimate_pairs_needed(case)
        elif verdict in CHANGED and not is_sure:
            note = NOT_SURE
    elif old.reason == new.reason == NO_TURN:
        verdict, note = "unclear", NO_TURN
    else:
        verdict, note = UNTIMED[old.status, new.status]
        note = note.format(old=old.reason or "", new=new.reason or "")
    return Difference(
        old.name,
        verdict,
        is_sure,
        old,
        new,
        ratio,
        baseline=None,
        note=note,
        basis="in turn" if ratio else None,
        pairs=len(case.logs),
        detectable=detectable,
        seconds_to_decide=(needed - len(case.logs)) * seconds if needed else None,
    )
