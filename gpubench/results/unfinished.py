"""Times of a run that was stopped: asv has not stored them, the record has.

asv writes a commit's file when all of its benchmarks are done. What a run had finished before it
was stopped is read from the record, by the same rules as what asv stores, and says so in its
``warnings``. Nothing is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from gpubench.errors import GpubenchError
from gpubench.names import Value, parse_benchmark_name
from gpubench.record import FinishedProcess, Line, finished_runs, parse_line
from gpubench.results.asv_files import (
    LONGEST,
    NEWEST,
    NO_RESULT,
    SHORTEST,
    ResultFile,
    StoredBenchmark,
    UnreadableFile,
    read_limited,
    values_of,
)
from gpubench.results.ratio import counted_rounds
from gpubench.results.records import CaseStory, RecordFile, share_disturbed

UNFINISHED = (
    "unfinished run: asv has not stored this time yet; if it was stopped, "
    "`asv run --skip-existing` measures the rest"
)
"""Among the warnings of each such case."""

RUNNING = "the run is at work: asv stores this time at its end"
"""In place of it while the run is at work."""

CaseKey = tuple[str, str]
"""asv's benchmark and the identity of a case."""


def with_unfinished(
    result: ResultFile | None, record: RecordFile, path: Path | None
) -> tuple[ResultFile | None, RecordFile]:
    """Both with what asv has not stored of the cases that are on record in the file ``path``; as
    they are where asv has stored all.

    Of a benchmark of which asv has stored another version nothing is added: one file has one.
    """
    if path is None or not record.stories:
        return result, record
    stored = {each.asv_name: each for each in (result.benchmarks if result else ())}
    skipped = _not_applicable(result) if result else set()
    places = _not_stored(stored, skipped, record)
    if not places:
        return result, record
    times: dict[str, dict[str, Sequence[float]]] = defaultdict(dict)
    stories = {name: dict(of_name) for name, of_name in record.stories.items()}
    rounds = {name: dict(of_name) for name, of_name in record.rounds.items()}
    disturbed = {name: dict(of_name) for name, of_name in record.disturbed.items()}
    finished = {place: of for place, of in _finished(path).items() if place in places}
    versions = {name: of[1][-1].outcome.version for (name, _), of in finished.items()}
    versions |= {name: benchmark.version for name, benchmark in stored.items()}
    for (name, case), (run, processes) in finished.items():
        outcome, story = processes[-1].outcome, stories[name][case]
        is_new = (name, case) in skipped or _is_newer(begun(run), stored.get(name))
        if not is_new or outcome.version != versions[name]:
            continue
        if story.outcome and record.runs[story.run] == run:
            outcome = story.outcome  # which has the pairs of all processes
        outcome = replace(outcome, warnings=(UNFINISHED, *outcome.warnings))
        stories[name][case] = CaseStory(outcome, run=story.run)
        times[name][case] = [*chain.from_iterable(process.samples for process in processes)]
        of_rounds = [process.rounds for process in processes if process.rounds]
        rounds.setdefault(name, {})[case] = tuple(
            counted_rounds([each.rounds for each in of_rounds])
        )
        share = share_disturbed(each.disturbance for each in of_rounds)
        if share is not None:
            disturbed.setdefault(name, {})[case] = share
    if not times:
        return result, record
    completed = replace(record, stories=stories, rounds=rounds, disturbed=disturbed)
    new = [
        StoredBenchmark(parsed, name, versions[name], begun(record.runs[-1]), ())
        for name in times
        if (parsed := parse_benchmark_name(name))
    ]
    return _with_times(result or NO_RESULT, new, times), completed


def _not_stored(
    stored: Mapping[str, StoredBenchmark], skipped: set[CaseKey], record: RecordFile
) -> set[CaseKey]:
    """Cases that were begun in a run of which asv has stored nothing for them."""
    moments = [*map(begun, record.runs)]
    newer = {
        (name, case)
        for name, stories in record.stories.items()
        if _is_newer(max(moments), stored.get(name))  # hardly ever
        for case, story in stories.items()
        if _is_newer(moments[story.run], stored.get(name))
    }
    return {
        (name, case)
        for name, case in skipped | newer
        if (story := record.stories.get(name, {}).get(case))
        and (story.outcome is None or story.outcome.status == "ok")
    }


def _is_newer(moment: float, benchmark: StoredBenchmark | None) -> bool:
    """Whether a run that began then did so after what asv has stored of a benchmark; its moment is
    rounded."""
    return benchmark is None or 0 < benchmark.started_at < moment - 1


def begun(run: Value | None) -> float:
    """When a run of asv's began, in seconds since 1970; 0 where that is not known: see
    ``gpubench.asv_plugin``."""
    with suppress(ValueError):
        moment = float(str(run).partition("-")[2])
        return moment if 0 <= moment < NEWEST else 0.0
    return 0.0


def _not_applicable(result: ResultFile) -> set[CaseKey]:
    """Where asv has n/a: for what was skipped, and for what nobody asked for beside other cases."""
    indices = np.flatnonzero(np.isnan(result.values[0]) & ~result.missing)
    if not len(indices):
        return set()
    places = [(each.asv_name, case) for each in result.benchmarks for case in each.cases]
    return {places[index] for index in indices.tolist()}


def _finished(path: Path) -> dict[CaseKey, tuple[Value, list[FinishedProcess]]]:
    """Of each case that has a time, the last run that finished it and its processes; in the order
    of the runs."""
    last: dict[CaseKey, tuple[Value, list[FinishedProcess]]] = {}
    with suppress(OSError, UnreadableFile):  # which the record's faults tell of
        for run, cases in finished_runs(_parsed(read_limited(path).split(b"\n"))).items():
            for place, processes in cases.items():
                last.pop(place, None)
                last[place] = run, processes
    return {
        place: (run, processes)
        for place, (run, processes) in last.items()
        if all(_is_timed(process) for process in processes)
    }


def count_finished(path: Path, run: Value | None) -> int:
    """Return how many cases a run has finished by a record, with or without a time."""
    with suppress(OSError, UnreadableFile):
        finished = finished_runs(_parsed(read_limited(path).split(b"\n")))
        return len(finished.get(run, ())) if run is not None else 0
    return 0


def _is_timed(process: FinishedProcess) -> bool:
    samples = process.samples
    return bool(samples) and SHORTEST <= min(samples) <= max(samples) <= LONGEST


def _parsed(lines: Sequence[bytes]) -> Iterator[Line]:
    for line in lines:
        with suppress(GpubenchError):
            yield parse_line(line)


def _with_times(
    result: ResultFile,
    new: Sequence[StoredBenchmark],
    times: dict[str, dict[str, Sequence[float]]],
) -> ResultFile:
    """The result with these samples of cases, by benchmark, in seconds of one run; ``new`` are
    benchmarks that it may lack."""
    benchmarks, values, missing = [], [], []
    names, end = {each.asv_name for each in result.benchmarks}, 0
    for benchmark in (*result.benchmarks, *(each for each in new if each.asv_name not in names)):
        start, end = end, end + len(benchmark.cases)
        of_benchmark = times.get(benchmark.asv_name, {})
        added = tuple(case for case in of_benchmark if case not in benchmark.cases)
        cases = (*benchmark.cases, *added)
        lacking = np.full((len(result.values), len(added)), np.nan)
        columns = np.concatenate([result.values[:, start:end], lacking], axis=1)
        is_missing = np.concatenate([result.missing[start:end], np.zeros(len(added), np.bool_)])
        for index, case in enumerate(cases):
            if case in of_benchmark:
                columns[:, index], is_missing[index] = values_of(of_benchmark[case], 1), False
        benchmarks.append(benchmark._replace(cases=cases))
        values.append(columns)
        missing.append(is_missing)
    return replace(
        result,
        benchmarks=tuple(benchmarks),
        values=np.concatenate(values, axis=1),
        missing=np.concatenate(missing),
    )
