"""Results under names that things had before appear under the names that they have now.

A suite says ``was: old`` of itself, a kernel, an implementation or an axis. asv's files and the
records keep the old names; what is read of them is renamed before anything is made of it, so that
nothing else knows of old names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np

from gpubench.names import parse_benchmark_name
from gpubench.record import CaseRecord, CountsRecord
from gpubench.results.asv_files import ResultFile, StoredBenchmark
from gpubench.results.model import Renames
from gpubench.results.ratio import Rounds
from gpubench.results.records import CaseStory, RecordFile

CaseKey = tuple[str, str]
"""asv's name of a benchmark and the identity of a case, as they are now."""


@dataclass(eq=False)
class Renamer:
    """Renames what is read of files; what files have in common stays one object."""

    renames: Renames
    _names: dict[str, str] = field(default_factory=dict)
    """Names of benchmarks now, by those in files."""
    _cases: dict[tuple[str, str], str] = field(default_factory=dict)
    """Identities now, by benchmark and identity in files."""
    _stories: dict[CaseStory, CaseStory] = field(default_factory=dict)

    def apply(
        self, result: ResultFile | None, record: RecordFile
    ) -> tuple[ResultFile | None, RecordFile]:
        """Rename a result file and its record.

        Where they have a case under several names, what was measured last counts, and of a
        benchmark only what was measured in its last version.
        """
        if not self.renames:
            return result, record
        stored = result.benchmarks if result else ()
        names = dict.fromkeys(
            (*(each.asv_name for each in stored), *record.stories, *record.counted)
        )
        if not any(map(self._is_renamed, names)):
            return result, record
        sources = self._sources(stored, record)
        source_of: dict[CaseKey, str] = {}
        if result is not None:
            result = self._renamed_result(result, record, sources, source_of)
        return result, self._renamed_record(record, sources, source_of)

    def name(self, asv_name: str) -> str:
        """Return asv's name of a benchmark now."""
        if asv_name not in self._names:
            name = parse_benchmark_name(asv_name)
            renamed = self.renames.benchmark(name) if name else None
            is_same = renamed is None or renamed == name
            self._names[asv_name] = asv_name if is_same or renamed is None else renamed.asv_name
        return self._names[asv_name]

    def case(self, asv_name: str, identity: str) -> str:
        """Return the identity of a case now; ``asv_name`` is its benchmark's in the files."""
        key = asv_name, identity
        if key not in self._cases:
            name = parse_benchmark_name(asv_name)
            self._cases[key] = self.renames.identity(name, identity) if name else identity
        return self._cases[key]

    def _is_renamed(self, asv_name: str) -> bool:
        name = parse_benchmark_name(asv_name)
        return name is not None and self.renames.concern(name)

    def _sources(
        self, stored: Sequence[StoredBenchmark], record: RecordFile
    ) -> dict[str, list[str]]:
        """Return the names that a benchmark has in the two files, by its name now: what ran last
        first.

        Those under which asv stored another version than the last one are left out.
        """
        of_asv = {each.asv_name: each for each in stored}
        of_name: dict[str, list[str]] = defaultdict(list)
        for asv_name in dict.fromkeys((*of_asv, *record.stories, *record.counted)):
            of_name[self.name(asv_name)].append(asv_name)
        for name, sources in of_name.items():
            if len(sources) > 1:
                moments = {}
                for source in sources:
                    started_at = of_asv[source].started_at if source in of_asv else -1.0
                    runs = [story.run for story in record.stories.get(source, {}).values()]
                    moments[source] = started_at, max(runs, default=-1), source == name
                sources.sort(key=moments.__getitem__, reverse=True)
                version = next((of_asv[s].version for s in sources if s in of_asv), None)
                of_name[name] = [
                    s for s in sources if s not in of_asv or of_asv[s].version == version
                ]
        return of_name

    def _renamed_result(
        self,
        result: ResultFile,
        record: RecordFile,
        sources: Mapping[str, Sequence[str]],
        source_of: dict[CaseKey, str],
    ) -> ResultFile:
        """Return the result with each case once; ``source_of`` gets the name that it is stored
        under."""
        ends = accumulate((len(each.cases) for each in result.benchmarks), initial=0)
        at = {
            each.asv_name: (each, end) for each, end in zip(result.benchmarks, ends, strict=False)
        }
        is_told = result.missing | ~np.isnan(result.values[0])
        benchmarks: list[StoredBenchmark] = []
        columns: list[int] = []
        for name, of_name in sources.items():
            stored = [at[source] for source in of_name if source in at]
            chosen: dict[str, int] = {}
            # asv has n/a for cases that a run was not asked for.
            for asks_for_told in (True, False):
                for benchmark, start in stored:
                    source = benchmark.asv_name
                    stories = record.stories.get(source, {})
                    for index, case in enumerate(benchmark.cases, start):
                        now = self.case(source, case)
                        if now not in chosen and (
                            not asks_for_told or is_told[index] or case in stories
                        ):
                            chosen[now] = index
                            source_of[name, now] = source
            for benchmark, _ in stored[:1]:
                is_same = benchmark.asv_name == name
                parsed = None if is_same else parse_benchmark_name(name)
                benchmarks.append(
                    benchmark._replace(
                        name=parsed or benchmark.name, asv_name=name, cases=(*chosen,)
                    )
                )
                columns += chosen.values()
        values, missing = result.values[:, columns], result.missing[columns]
        return replace(result, benchmarks=tuple(benchmarks), values=values, missing=missing)

    def _renamed_record(
        self,
        record: RecordFile,
        sources: Mapping[str, Sequence[str]],
        source_of: Mapping[CaseKey, str],
    ) -> RecordFile:
        """Return the record with one story for each case, under the name that its time is stored
        under."""
        stories: dict[str, dict[str, CaseStory]] = defaultdict(dict)
        rounds: dict[str, dict[str, Rounds]] = defaultdict(dict)
        disturbed: dict[str, dict[str, float]] = defaultdict(dict)
        counted: dict[str, dict[str, CountsRecord]] = defaultdict(dict)
        for name, of_name in sources.items():
            for source in of_name:
                for case, counts in record.counted.get(source, {}).items():
                    counted[name].setdefault(self.case(source, case), counts)
                medians, shares = record.rounds.get(source, {}), record.disturbed.get(source, {})
                for case, story in record.stories.get(source, {}).items():
                    now = self.case(source, case)
                    if now in stories[name] or source_of.get((name, now), source) != source:
                        continue
                    stories[name][now] = self._story(story)
                    if case in medians:
                        rounds[name][now] = medians[case]
                    if case in shares:
                        disturbed[name][now] = shares[case]
        return replace(record, stories=stories, rounds=rounds, disturbed=disturbed, counted=counted)

    def _story(self, story: CaseStory) -> CaseStory:
        if story not in self._stories:
            outcome = story.outcome and self._record(story.outcome)
            pending = story.pending and self._record(story.pending)
            self._stories[story] = replace(story, outcome=outcome, pending=pending)
        return self._stories[story]

    def _record(self, record: CaseRecord) -> CaseRecord:
        against, case = record.baseline_benchmark, record.baseline_case
        name = parse_benchmark_name(record.benchmark)
        axes = self.renames.axes_of(name) if name else {}
        values = {axes.get(axis, axis): value for axis, value in record.values.items()}
        return replace(
            record,
            benchmark=self.name(record.benchmark),
            case=self.case(record.benchmark, record.case),
            values=dict(sorted(values.items())),
            sizes=tuple(sorted(axes.get(axis, axis) for axis in record.sizes)),
            baseline_benchmark=against and self.name(against),
            baseline_case=case if against is None or case is None else self.case(against, case),
        )
