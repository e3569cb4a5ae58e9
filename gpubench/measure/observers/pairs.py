"""Samples in turn with the baseline's, whose ratios go on record (``measure/paired.py``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpubench.measure.observers.protocol import Observer
from gpubench.measure.paired import opponent_of, take_pairs

if TYPE_CHECKING:
    from gpubench.measure.case_run import CaseRun


class PairsObserver(Observer):
    """Pair a case with its opponent, where the suite asks for that or where it costs little."""

    def on_size(self, run: CaseRun) -> None:
        """Put the ratios on record, or why there are none."""
        opponent = run.opponent or opponent_of(run.case, run.time)
        if opponent is None:
            return
        pairs = take_pairs(
            run.sampler,
            run.case,
            opponent,
            run.inputs,
            run.plan,
            run.sampling,
            run.verify_outputs,
        )
        run.put(warnings=pairs.warnings, pair_ratios=pairs.ratios, pair_rounds=pairs.rounds)
