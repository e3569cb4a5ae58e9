"""Times of a run that was stopped: asv has not stored them, the record has.

asv writes a commit's file when all of its benchmarks are done. What a run had finished before it
was stopped is read from the record, by the same rules as what asv stores, and says so in its
``warnings``. Nothing is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from gpubench.names import Value, parse_benchmark_name
from gpubench.results.appended import (
    CaseKey,
    by_sample,
    case_keys,
    find_processes,
    has_times,
    join_processes,
    kept_samples,
    of_version,
    recorded_processes,
)
from gpubench.results.asv_files import (
    NEWEST,
    NO_RESULT,
    ResultFile,
    StoredBenchmark,
    values_of,
)
from gpubench.results.records import RUN, CaseStory, RecordFile

UNFINISHED = (
    "unfinished run: asv has not stored this time yet; if it was stopped, "
    "`asv run --skip-existing` measures the rest"
)
"""Among the warnings of each such case."""

RUNNING = "the run is at work: asv stores this time at its end"
"""In place of it while the run is at work."""


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
    finished = {place: of for place, of in recorded_processes(path).items() if place in places}
    versions = {name: of[-1].finished.outcome.version for (name, _), of in finished.items()}
    versions |= {name: benchmark.version for name, benchmark in stored.items()}
    places_of = {key: index for index, key in enumerate(case_keys(result) if result else ())}
    for (name, case), of_case in finished.items():
        run, story = of_case[-1].run.facts.get(RUN), stories[name][case]
        processes = [process for process in of_case if process.run is of_case[-1].run]
        outcome = processes[-1].finished.outcome
        is_new = (name, case) in skipped or _is_newer(begun(run), stored.get(name))
        is_timed = all(has_times(process.finished) for process in processes)
        if not is_new or not is_timed or outcome.version != versions[name]:
            continue
        samples, number = [*chain.from_iterable(process.samples for process in processes)], 1
        if (
            result
            and run in record.appending
            and (index := places_of.get((name, case))) is not None
        ):
            kept = kept_samples(result, index)
            if (
                kept is not None and result.values[5, index] > 0
            ):  # asv is to add the new ones to these
                number = int(result.values[5, index])
                earlier = of_version(of_case[: -len(processes)], versions[name])
                processes = [*find_processes(kept, number, earlier), *processes]
                samples = [*kept.tolist(), *by_sample(samples, number)]
        joined = join_processes(outcome, processes, number, len(samples))
        outcome = replace(joined.outcome, warnings=(UNFINISHED, *joined.outcome.warnings))
        stories[name][case] = CaseStory(outcome, run=story.run)
        times[name][case] = joined.samples or samples
        rounds.setdefault(name, {})[case] = joined.rounds
        disturbed.setdefault(name, {}).pop(case, None)
        if joined.disturbed is not None:
            disturbed[name][case] = joined.disturbed
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
    """Return whether a run that began then did so after what asv has stored of a benchmark; its
    moment is rounded."""
    return benchmark is None or 0 < benchmark.started_at < moment - 1


def begun(run: Value | None) -> float:
    """Return when a run of asv's began, in seconds since 1970; 0 where that is not known: see
    ``gpubench.asv_plugin``."""
    with suppress(ValueError):
        moment = float(str(run).partition("-")[2])
        return moment if 0 <= moment < NEWEST else 0.0
    return 0.0


def _not_applicable(result: ResultFile) -> set[CaseKey]:
    """Return where asv has n/a: for what was skipped, and for what nobody asked for beside other
    cases."""
    indices = np.flatnonzero(np.isnan(result.values[0]) & ~result.missing)
    if not len(indices):
        return set()
    places = [(each.asv_name, case) for each in result.benchmarks for case in each.cases]
    return {places[index] for index in indices.tolist()}


def _with_times(
    result: ResultFile,
    new: Sequence[StoredBenchmark],
    times: dict[str, dict[str, Sequence[float]]],
) -> ResultFile:
    """Return the result with these samples of cases, by benchmark, in seconds of one run; ``new``
    are benchmarks that it may lack."""
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
                columns[:, index], is_missing[index] = values_of(of_benchmark[case]), False
        benchmarks.append(benchmark._replace(cases=cases))
        values.append(columns)
        missing.append(is_missing)
    return replace(
        result,
        benchmarks=tuple(benchmarks),
        values=np.concatenate(values, axis=1),
        missing=np.concatenate(missing),
    )
