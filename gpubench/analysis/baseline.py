"""Which outcome a case's speedup is measured against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpubench.analysis.paired import paired_speedup
from gpubench.analysis.speedup import Speedup, speedup
from gpubench.names import parse_benchmark_name, parse_identity
from gpubench.results import CaseName, Outcome
from gpubench.results.columns import Link, link_of

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
    found = Baselines(list(outcomes), [link_of(outcome) for outcome in outcomes.values()])
    return {
        name: _compare(outcome, found.of(row), outcomes)
        for row, (name, outcome) in enumerate(outcomes.items())
    }


@dataclass(frozen=True, slots=True)
class Standing:
    """What one case of a snapshot is measured against."""

    is_baseline: bool
    name: CaseName | None
    """The baseline's case, whether it was measured or not; ``None`` for a baseline itself, and
    where there is none."""


class Baselines:
    """Finds baselines by the record, else the default one at the projection of the identity."""

    def __init__(self, names: Sequence[CaseName], links: Sequence[Link]) -> None:
        self._names, self._links = names, links
        self._found: dict[int, Standing] = {}
        self._named = set(_named_baselines(links))
        self._default: dict[tuple[str, str], list[tuple[dict[str, object], CaseName]]]
        self._default = defaultdict(list)
        for name in names:
            if (name.implementation, name.time) == (DEFAULT, "kernel"):
                values: dict[str, object] = dict(parse_identity(name.case))
                self._default[name.suite, name.kernel].append((values, name))

    def of(self, row: int) -> Standing:
        """What the case in that row is measured against."""
        if row not in self._found:
            self._found[row] = self._find(row)
        return self._found[row]

    def _find(self, row: int) -> Standing:
        name, link = self._names[row], self._links[row]
        if self._is_baseline(name, link):
            return Standing(True, None)
        if link.benchmark and link.case is not None:
            benchmark = parse_benchmark_name(link.benchmark)
            return Standing(False, CaseName.of(benchmark, link.case) if benchmark else None)
        return Standing(False, self._projected(name))

    def _is_baseline(self, name: CaseName, link: Link) -> bool:
        """Whether others are measured against this implementation."""
        if link.benchmark:
            return False
        if link.paired:  # of a pair, whose candidate always knows its baseline
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


def _named_baselines(links: Iterable[Link]) -> Iterable[tuple[str, str, str]]:
    for asv_name in {link.benchmark for link in links if link.benchmark}:
        benchmark = parse_benchmark_name(asv_name)
        if benchmark:
            yield benchmark.suite, benchmark.kernel, benchmark.implementation


def _compare(
    outcome: Outcome, standing: Standing, outcomes: Mapping[CaseName, Outcome]
) -> Compared:
    if standing.is_baseline:
        return Compared(outcome, True, None, None, outcome.name.case)
    name = standing.name
    baseline = outcomes.get(name) if name else None
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
