"""Times of several processes, of one run of asv's or of several.

asv takes several processes for one time (``rounds``), and with ``--append-samples`` it adds the
samples of a run to those it has stored. A stored time has the rounds, pairs and disturbance of all
processes whose samples asv has stored, in their order. ``RecordReader`` gives those of the last
run, which nearly always are all. Where asv has another number of samples, the whole record is
searched for them. Nothing is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.errors import GpubenchError
from gpubench.names import Value
from gpubench.record import (
    UNCOMMITTED,
    CaseRecord,
    FinishedProcess,
    Line,
    RunRecord,
    finished_runs,
    parse_line,
)
from gpubench.results.asv_files import LONGEST, SHORTEST, ResultFile, values_of
from gpubench.results.asv_json import UnreadableFile, read_limited
from gpubench.results.facts import concerns_case, explains
from gpubench.results.ratio import NO_ROUNDS, Rounds, rounds_of
from gpubench.results.records import RUN, CaseStory, RecordFile, share_disturbed, with_pairs

CaseKey = tuple[str, str]
"""asv's benchmark and the identity of a case."""

MAX_ROUNDING = 1e-6
"""Relative: asv's timer adds samples up, so that asv stores a sample with a rounding error."""

MAX_COMPARISONS = 10**8
"""Samples of one case times its processes; beyond, no user has measured and no record is searched.
A thousand processes of twenty thousand samples each are fewer."""


@dataclass(frozen=True, slots=True)
class RecordedProcess:
    """A process that finished a case, and the facts of its run."""

    run: RunRecord
    finished: FinishedProcess

    @property
    def samples(self) -> tuple[float, ...]:
        """Seconds of one run of the kernel; none where it has no time."""
        return self.finished.samples


@dataclass(frozen=True, slots=True)
class JoinedCase:
    """What the record says of the processes of one time."""

    outcome: CaseRecord
    """Of the last process, with the pairs and the warnings of all."""
    rounds: Rounds
    """None where samples of other processes are in the time too."""
    disturbed: float | None
    """Share of the samples on record, 0 to 1."""
    samples: tuple[float, ...] | None
    """Samples that the time is of, in seconds; ``None`` where it is of all that asv has."""


def with_all_processes(
    result: ResultFile | None, record: RecordFile, path: Path | None
) -> tuple[ResultFile | None, RecordFile]:
    """Both with the rounds, pairs and disturbance of all processes whose samples asv has stored, by
    the record in the file ``path``; as they are where asv has as many samples as the last run."""
    places = _other_counts(result, record) if result and path else {}
    if result is None or path is None or not places:
        return result, record
    stories = {name: dict(of_name) for name, of_name in record.stories.items()}
    rounds = {name: dict(of_name) for name, of_name in record.rounds.items()}
    disturbed = {name: dict(of_name) for name, of_name in record.disturbed.items()}
    versions = {benchmark.asv_name: benchmark.version for benchmark in result.benchmarks}
    values = result.values.copy()
    on_record = recorded_processes(path)
    for (name, case), index in places.items():
        processes = of_version(on_record.get((name, case), ()), versions[name])
        number, count = int(values[5, index]), int(values[6, index])
        kept = kept_samples(result, index)
        if kept is not None:
            found = find_processes(kept, number, processes)
        else:
            found = _newest(processes, number * count)
        if not processes or (kept is None and not found):
            continue
        last = found[-1].finished.outcome if found else stories[name][case].outcome
        if last is None:
            continue
        joined = join_processes(last, found, number, count)
        stories[name][case] = CaseStory(joined.outcome, run=stories[name][case].run)
        rounds.setdefault(name, {})[case] = joined.rounds
        disturbed.setdefault(name, {}).pop(case, None)
        if joined.disturbed is not None:
            disturbed[name][case] = joined.disturbed
        if joined.samples is not None:
            values[:, index] = values_of(joined.samples)
    return (
        replace(result, values=values),
        replace(record, stories=stories, rounds=rounds, disturbed=disturbed),
    )


def _other_counts(result: ResultFile, record: RecordFile) -> dict[CaseKey, int]:
    """Cases with a time whose last run has not as many samples on record as asv has stored; of
    each its index in the file's values.

    Without asv's samples only what several runs measured can be told apart.
    """
    counts: list[int | None] = []
    for benchmark in result.benchmarks:
        of_benchmark = record.counts.get(benchmark.asv_name)
        counts += (
            map(of_benchmark.get, benchmark.cases)
            if of_benchmark
            else [None] * len(benchmark.cases)
        )
    recorded, stored = np.array(counts, np.float64), result.values[5] * result.values[6]
    differ = (recorded != stored) & ~np.isnan(recorded) & (stored > 0)
    if not differ.any():  # as nearly always
        return {}
    keys = case_keys(result)
    return {
        keys[index]: index
        for index in np.flatnonzero(differ).tolist()
        if (keys[index][0] in result.samples or keys[index] in record.repeated)
        and _is_right(record.stories.get(keys[index][0], {}).get(keys[index][1]))
    }


def case_keys(result: ResultFile) -> list[CaseKey]:
    """Benchmark and case of each column of the file's values."""
    return [(each.asv_name, case) for each in result.benchmarks for case in each.cases]


def _is_right(story: CaseStory | None) -> bool:
    """Return whether the record does not say of a case that it has no time."""
    return story is not None and (story.outcome is None or story.outcome.status == "ok")


def recorded_processes(path: Path) -> dict[CaseKey, list[RecordedProcess]]:
    """Return the processes that finished a case, in their order, and the cases in the order of
    their last runs; none where the file cannot be read, which the record's faults tell of."""
    processes: dict[CaseKey, list[RecordedProcess]] = {}
    with suppress(OSError, UnreadableFile):
        lines = [*_parsed(read_limited(path).split(b"\n"))]
        runs = {line.facts.get(RUN): line for line in lines if isinstance(line, RunRecord)}
        for run, cases in finished_runs(lines).items():
            for place, finished in cases.items():
                new = [RecordedProcess(runs[run], process) for process in finished]
                processes[place] = [*processes.pop(place, ()), *new]
    return processes


def count_finished(path: Path, run: Value | None) -> int:
    """Return how many cases a run has finished by a record, with or without a time."""
    processes = recorded_processes(path).values()
    return sum(any(one.run.facts.get(RUN) == run for one in of_case) for of_case in processes)


def _parsed(lines: Sequence[bytes]) -> Iterator[Line]:
    for line in lines:
        with suppress(GpubenchError):
            yield parse_line(line)


def of_version(processes: Sequence[RecordedProcess], version: str | None) -> list[RecordedProcess]:
    """Return the processes with a time, of the benchmark as it is in that version: asv adds to no
    other."""
    return [
        process
        for process in processes
        if process.finished.outcome.version in (None, version) and has_times(process.finished)
    ]


def has_times(process: FinishedProcess) -> bool:
    """Return whether a process has samples, and they and its rounds can be times."""
    seconds = [*process.samples, *(process.rounds.rounds if process.rounds else ())]
    return bool(process.samples) and SHORTEST <= min(seconds) <= max(seconds) <= LONGEST


def kept_samples(result: ResultFile, index: int) -> NDArray[np.float64] | None:
    """Return the samples that asv has stored of the case at that place of the file's values, in
    seconds of one run; ``None`` where it has none."""
    for benchmark in result.benchmarks:
        if index < len(benchmark.cases):
            break
        index -= len(benchmark.cases)
    of_benchmark = result.samples.get(benchmark.asv_name)
    kept: Any = of_benchmark[index] if of_benchmark else None
    with suppress(TypeError, ValueError, OverflowError):
        samples = np.array(kept or math.nan, np.float64)
        are_times = ((samples >= SHORTEST) & (samples <= LONGEST)).all()
        return samples if samples.ndim == 1 and are_times else None
    return None


def find_processes(
    kept: NDArray[np.float64], number: int, processes: Sequence[RecordedProcess]
) -> list[RecordedProcess]:
    """Return the processes whose samples asv kept. ``kept`` are asv's samples in the order of
    measuring, each the mean of ``number`` runs."""
    found: list[RecordedProcess] = []
    end = len(kept)
    if end * len(processes) > MAX_COMPARISONS:
        return found
    for process in reversed(processes):
        samples = np.array(by_sample(process.samples, number))
        starts = np.flatnonzero(
            np.isclose(kept[: end - len(samples) + 1], samples[0], MAX_ROUNDING, 0)
        )
        for start in reversed(starts.tolist() if len(samples) <= end else []):
            if np.allclose(kept[start : start + len(samples)], samples, MAX_ROUNDING, 0):
                found.insert(0, process)
                end = start
                break
    return found


def _newest(processes: Sequence[RecordedProcess], runs: int) -> list[RecordedProcess]:
    """Return the newest processes that together have so many runs of the kernel; none where no
    number of them has."""
    for first in reversed(range(len(processes))):
        runs -= len(processes[first].samples)
        if runs <= 0:
            return [*processes[first:]] if runs == 0 else []
    return []


def by_sample(runs: Sequence[float], number: int) -> list[float]:
    """Means of ``number`` runs of the kernel each, as asv's samples are."""
    return [math.fsum(runs[i : i + number]) / number for i in range(0, len(runs), number)]


def join_processes(
    outcome: CaseRecord, processes: Sequence[RecordedProcess], number: int, count: int
) -> JoinedCase:
    """Join the processes of one time of ``count`` samples, each the mean of ``number`` runs;
    ``outcome`` is that of the last one.

    Runs under other conditions than the last one's are left out, and said.
    """
    alike, changed = [], dict[str, None]()
    for process in processes:
        facts = _changed_facts(process.run, processes[-1].run, outcome)
        changed |= dict.fromkeys(facts)
        alike += [] if facts else [process]
    finished = [process.finished for process in alike]
    warnings = [*chain.from_iterable(process.outcome.warnings for process in finished)]
    recorded = sum(len(process.samples) for process in finished) // number
    samples = None
    if changed:
        samples = tuple(by_sample([*chain.from_iterable(p.samples for p in finished)], number))
        warnings.append(
            f"asv's median is over runs under different conditions: {'; '.join(changed)}. "
            f"The time is of the last conditions alone, {recorded} of {count} samples"
        )
    elif recorded != count:
        warnings.append(
            f"asv's time is of {count} samples, and {recorded or 'none'} of them are on record. "
            "The interval is asv's; pairs and disturbance are of those on record"
        )
    of_rounds = [process.rounds for process in finished if process.rounds]
    is_whole = samples is not None or recorded == count
    joined = with_pairs(outcome, [process.outcome for process in finished])
    return JoinedCase(
        replace(joined, warnings=tuple(dict.fromkeys(warnings or outcome.warnings))),
        rounds_of(each.rounds for each in of_rounds) if is_whole else NO_ROUNDS,
        share_disturbed(each.disturbance for each in of_rounds),
        samples,
    )


def _changed_facts(old: RunRecord, new: RunRecord, outcome: CaseRecord) -> list[str]:
    """Facts that differ between two runs and can change a time of this case, with both values."""
    listed = [*old.concerns.items(), *new.concerns.items()]
    return [
        f"{name} {old.facts[name]} → {new.facts[name]}"
        for name in sorted(old.facts.keys() & new.facts.keys())
        if old.facts[name] != new.facts[name]
        and (name == UNCOMMITTED or explains(name))
        and concerns_case(name, outcome.backend, outcome.conditions, listed)
    ]
