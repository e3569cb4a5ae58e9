"""Which outcome a case's speedup is measured against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpubench.analysis.paired import paired_speedup
from gpubench.analysis.speedup import Speedup, speedup
from gpubench.names import parse_benchmark_name, parse_identity
from gpubench.results import CaseName, Outcome

DEFAULT = "numpy"
"""Baseline where no record names one."""

COMPARED_TIMES = ("kernel", "end_to_end", "cold")
"""Times that a speedup is stated for; a transfer or a compilation has no counterpart."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One case beside its baseline."""

    outcome: Outcome
    is_baseline: bool
    baseline: Outcome | None
    """``None`` for the baseline itself and where it is missing."""
    speedup: Speedup | None
    """Present where both have a time and the time is one of ``COMPARED_TIMES``."""
    problem: str
    """The problem solved, which all its candidates share: identity of the baseline's case."""
    missing: str | None = None
    """Why a case with a time has no speedup, with the next step."""


def compare(outcomes: Mapping[CaseName, Outcome]) -> dict[CaseName, Compared]:
    """Put every outcome of one snapshot beside its baseline."""
    found = _Baselines(outcomes)
    return {name: _compare(outcome, found) for name, outcome in outcomes.items()}


class _Baselines:
    """Finds baselines by the record, else the default one at the projection of the identity."""

    def __init__(self, outcomes: Mapping[CaseName, Outcome]) -> None:
        self.outcomes = outcomes
        self._named = set(_named_baselines(outcomes.values()))
        self._default: dict[tuple[str, str], list[tuple[dict[str, object], CaseName]]]
        self._default = defaultdict(list)
        for name in outcomes:
            if (name.implementation, name.time) == (DEFAULT, "kernel"):
                values: dict[str, object] = dict(parse_identity(name.case))
                self._default[name.suite, name.kernel].append((values, name))

    def name(self, outcome: Outcome) -> CaseName | None:
        """The baseline's case; ``None`` for a baseline itself."""
        record = outcome.record
        if record and record.baseline_benchmark and record.baseline_case is not None:
            benchmark = parse_benchmark_name(record.baseline_benchmark)
            return CaseName.of(benchmark, record.baseline_case) if benchmark else None
        if self.is_baseline(outcome):
            return None
        return self._projected(outcome.name)

    def is_baseline(self, outcome: Outcome) -> bool:
        """Whether others are measured against this implementation."""
        name = outcome.name
        if outcome.record and outcome.record.baseline_benchmark:
            return False
        if outcome.bench:  # of a pair, whose candidate always knows its baseline
            return True
        named = (name.suite, name.kernel, name.implementation) in self._named
        return named or name.implementation == DEFAULT

    def _projected(self, name: CaseName) -> CaseName | None:
        values = parse_identity(name.case).items()
        fitting = [
            (len(own), candidate)
            for own, candidate in self._default[name.suite, name.kernel]
            if own.items() <= values
        ]
        return max(fitting)[1] if fitting else None


def _named_baselines(outcomes: Iterable[Outcome]) -> Iterable[tuple[str, str, str]]:
    for outcome in outcomes:
        if outcome.record and outcome.record.baseline_benchmark:
            benchmark = parse_benchmark_name(outcome.record.baseline_benchmark)
            if benchmark:
                yield benchmark.suite, benchmark.kernel, benchmark.implementation


def _compare(outcome: Outcome, found: _Baselines) -> Compared:
    if found.is_baseline(outcome):
        return Compared(outcome, True, None, None, outcome.name.case)
    name = found.name(outcome)
    baseline = found.outcomes.get(name) if name else None
    problem = name.case if name else outcome.name.case
    if outcome.timing is None or outcome.name.time not in COMPARED_TIMES:
        return Compared(outcome, False, baseline, None, problem)
    if baseline is None or baseline.timing is None:
        return Compared(outcome, False, baseline, None, problem, _missing(name, outcome, baseline))
    ratio = _paired(outcome) or speedup(baseline.timing, outcome.timing)
    return Compared(outcome, False, baseline, ratio, problem)


def _paired(outcome: Outcome) -> Speedup | None:
    record = outcome.record
    return paired_speedup(record.pair_ratios, record.pair_rounds) if record else None


def _missing(name: CaseName | None, outcome: Outcome, baseline: Outcome | None) -> str:
    if name is None:
        return f"no baseline: `{DEFAULT}` has no case for these sizes; name one with `baseline:`"
    place = f"{name.implementation} {name.case}".strip()
    if baseline is None:
        command = f"asv run --bench {outcome.bench or name.benchmark.class_name}"
        return f"the baseline {place} was not measured at this commit; run `{command}`"
    return f"the baseline {place} has no time: {baseline.status.replace('_', ' ')}"
