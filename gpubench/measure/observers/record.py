"""Writes a case's status and the medians of its rounds into the record."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from gpubench.measure.observers.protocol import Observer
from gpubench.measure.recorder import now
from gpubench.names import FRESH_TIMES
from gpubench.record import RoundsRecord

if TYPE_CHECKING:
    from gpubench.measure.case_run import CaseRun


class RecordObserver(Observer):
    """Append a line to the record for each change, which is nothing where no record is kept."""

    _has_facts = False

    def on_record_change(self, run: CaseRun) -> None:
        """Write the case's line, after the facts of the run and after what was counted."""
        if not self._has_facts:
            run.recorder.write_facts(run.asv_run, run.provenance.facts())
            self._has_facts = True
        if run.record.status == "verified" and run.counts is not None:
            run.recorder.write(run.counts)
        run.recorder.write(run.record)

    def on_finish(self, run: CaseRun) -> None:
        """Write the medians of the rounds; of fresh processes, which have none, the samples."""
        seconds = tuple(one for samples in run.rounds for one in samples)
        is_fresh = run.time in FRESH_TIMES
        medians = () if is_fresh else tuple(map(median, run.rounds))
        samples = () if len(medians) == len(seconds) else seconds
        record = run.record
        run.recorder.write(
            RoundsRecord(record.benchmark, record.case, now(), medians, run.disturbance, samples)
        )
