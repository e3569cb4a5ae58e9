"""What a stopped ``asv run`` had finished and asv never stored is taken from the record.

asv stores times when all benchmarks of a commit are done. Where a run ends before, it starts them
again, ``--skip-existing`` or not: there is nothing that it could skip. With ``--skip-existing`` a
process then gives asv the samples that another has put on record, and measures nothing. To write
them into asv's own file would lose cases: asv skips whole benchmarks, and one of them may have
cases that the run did not come to.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.measure.asv_settings import AsvSettings
from gpubench.measure.recorder import Recorder
from gpubench.record import FinishedProcess, finished_runs

OTHER_SAMPLES = {"number", "repeat", "warmup_time"}
"""Attributes of asv's command line that make it call a benchmark another number of times."""


class RecordedSamples:
    """Samples of an earlier process in the place of a run."""

    def __init__(self, samples: Sequence[float]) -> None:
        """Give these ``samples``, seconds of one run."""
        self._samples = iter(samples)
        self._elapsed = 0.0

    def sample(self) -> None:
        """Go on to the next one."""
        self._elapsed += next(self._samples)

    def elapsed(self) -> float:
        """Return asv's timer, as ``CaseSampler.elapsed`` does."""
        return self._elapsed


def finished_before(
    recorder: Recorder, settings: AsvSettings, benchmark: str, case: str, version: str | None
) -> FinishedProcess | None:
    """Return what this process need not measure: the same process of the last run that finished the
    case.

    ``None`` where asv was not asked to skip what exists, where nothing is on record, and where the
    benchmark measured something else then. asv counts n/a among what was successful.

    Nor is anything taken where asv adds samples to those that it has: they may be the same.
    """
    asked = settings.skip_successful or settings.skip_failed
    if not asked or settings.append_samples or OTHER_SAMPLES & settings.attributes.keys():
        return None
    runs = finished_runs(recorder.lines())
    done = len(runs.pop(settings.run, {}).get((benchmark, case), ()))
    of_case = (run.get((benchmark, case)) for run in reversed(runs.values()))
    before = next(filter(None, of_case), [])
    if done >= len(before) or before[done].outcome.version != version:
        return None
    has_failed = before[done].outcome.status in ("failed", "wrong")
    skipped = settings.skip_failed if has_failed else settings.skip_successful
    return before[done] if skipped else None
