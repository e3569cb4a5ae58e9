"""Two commits that were measured in turn, as a comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from gpubench.analysis.sequential import (
    FIRST_PAIRS,
    CaseEvidence,
    Evidence,
    estimate_pairs_needed,
    find_detectable_factor,
)
from gpubench.record import INTERLEAVED
from gpubench.results import CaseName, Row, Snapshot
from gpubench.results.records import RUN

NO_TURN = "no turn before the time was over; give more with --time"
"""Of a case without a pair."""

NOT_SURE = "for so many cases it is not sure; give more with --time, or name it alone"


INTERLEAVED_METHOD = (
    "In turn: {count} of these cases by pairs of the processes that asv took with "
    "--interleave-rounds, judged as `compare --measure` judges."
)


def judge_interleaved(comparison: SnapshotComparison) -> SnapshotComparison:
    """Return a comparison of two stored commits in which the cases whose processes asv took in turn
    (``asv continuous --interleave-rounds -a rounds=10``) are judged by pairs of them.

    Both are of one run of asv then, and each process counts once in both; see ``INTERLEAVED``.
    """
    old, new = comparison.old, comparison.new
    processes = old.facts.get(INTERLEAVED)
    is_one_run = old.facts.get(RUN) is not None and old.facts.get(RUN) == new.facts.get(RUN)
    if not (is_one_run and old.setup == new.setup and old.commit != new.commit):
        return comparison
    if not isinstance(processes, int) or processes < FIRST_PAIRS:
        return comparison
    logs = {
        one.name: [math.log(a / b) for a, b in zip(one.old.rounds, one.new.rounds, strict=True)]
        for one in comparison.differences
        if one.ratio and one.old and one.new
        if len(one.old.rounds) == len(one.new.rounds) == processes
    }
    if not logs:
        return comparison
    evidence = Evidence(len(logs), comparison.factor)
    for place, pairs in enumerate(logs.values()):
        for log in pairs:
            evidence.add(place, log)
    judged = {name: (place, evidence.cases[place]) for place, name in enumerate(logs)}
    differences = []
    for one in comparison.differences:
        if one.name in judged:
            place, case = judged[one.name]
            one = replace(
                one,
                verdict=case.verdict,
                is_sure=place in evidence.sure,
                ratio=case.ratio,
                note="",
                basis="in turn",
                pairs=len(case.logs),
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
