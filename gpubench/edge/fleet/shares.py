"""Who measures what: by what is missing, by device, and the longest first."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpubench.backends.devices import is_cuda
from gpubench.names import Value
from gpubench.plan.expansion import Expansion
from gpubench.plan.version import benchmark_version

SECONDS_OF_A_CASE = 1.0
"""Where nothing has been measured before. It only orders: a suite of more cases comes first."""

_PER_MACHINE = {"host", "memory_bytes", "run"}
"""Facts that differ between machines of one kind. Memory is compared in whole GiB: what a system
keeps for itself differs by some KiB."""


@dataclass(frozen=True)
class Machine:
    """One measuring worker, as it describes itself."""

    name: str
    """Of the machine, as asv keeps its results."""
    address: str
    """Of the worker, as Dask has it."""
    facts: Mapping[str, Value | None]
    """As of the record (``gpubench.measure.recorder.run_facts``)."""
    gpus: tuple[str, ...]
    """Names of the CUDA devices, in their order."""
    environments: tuple[str, ...]
    """asv's names of the environments that a share measures in."""

    @property
    def kind(self) -> tuple[object, ...]:
        """What has to be the same of two machines that may be equal."""
        facts = {name: fact for name, fact in self.facts.items() if name not in _PER_MACHINE}
        memory = round(float(self.facts.get("memory_bytes") or 0) / 2**30)
        return memory, self.gpus, self.environments, tuple(sorted(facts.items(), key=str))


def resources(gpus: int) -> dict[str, float]:
    """Return what a task asks Dask for: one processor, and each CUDA device."""
    return dict.fromkeys(["cpu", *(f"cuda:{ordinal}" for ordinal in range(gpus))], 1.0)


@dataclass(frozen=True)
class Offer:
    """One implementation that can be measured: one class of asv's."""

    suite: str
    class_name: str
    needs_cuda: bool
    """Whether all of its cases run on CUDA devices."""
    cases: int
    versions: Mapping[str, str]
    """asv's benchmarks and the version of each."""


@dataclass(frozen=True)
class Share:
    """What one ``asv run`` measures: of one commit, implementations of one suite."""

    commit: str
    suite: str
    classes: tuple[str, ...]
    keeper: str
    """Name of the machine under which the results are kept."""
    seconds: float
    """How long it may take, to order by."""
    skip_existing: bool = False
    was_measured: bool = True
    """Whether all of it took a known time before; else ``seconds`` only orders."""

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.commit[:8]} {self.suite}"

    @property
    def pattern(self) -> str:
        """For asv's ``--bench``."""
        return rf"^suites\.({'|'.join(map(re.escape, self.classes))})\."


def class_of(benchmark: str) -> str:
    """``vector_add__numpy`` of the benchmark ``suites.vector_add__numpy.time_kernel``."""
    return benchmark.removeprefix("suites.").partition(".")[0]


def offer_of(expansion: Expansion) -> Offer:
    """Return what a group of the plan offers."""
    group, cases = expansion.group, expansion.cases
    kernel, name = group.kernel, group.implementation_name
    return Offer(
        group.loaded.suite.suite,
        group.class_name,
        all(is_cuda(case.device) for case in cases),
        len(cases),
        {group.benchmark(t).asv_name: benchmark_version(kernel, name, t) for t in group.times},
    )


def divide(
    keeper: str,
    offers: Iterable[Offer],
    commits: Sequence[str],
    there: Mapping[str, Sequence[Mapping[str, str]]],
    durations: Mapping[str, float],
) -> list[Share]:
    """Shares of one keeper, the longest first, so that none is left for the end; of equal ones
    those of the first commit.

    ``there``: of a commit, the benchmarks and versions that have results in each environment; what
    all have is left out. ``durations``: seconds that asv's benchmarks took before.
    """
    shares = []
    for commit in commits:
        suites: dict[str, list[Offer]] = defaultdict(list)
        for offer in offers:
            if not all(offer.versions.items() <= has.items() for has in there.get(commit, [{}])):
                suites[offer.suite].append(offer)
        for suite, of_suite in suites.items():
            seconds = sum(
                durations.get(name, offer.cases * SECONDS_OF_A_CASE)
                for offer in of_suite
                for name in offer.versions
            )
            classes = tuple(offer.class_name for offer in of_suite)
            known = all(name in durations for offer in of_suite for name in offer.versions)
            shares.append(Share(commit, suite, classes, keeper, seconds, commit in there, known))
    return sorted(shares, key=lambda share: -share.seconds)


def next_share(waiting: Iterable[Share], keeper: str, installed: str | None) -> Share | None:
    """Return what a machine does next: of the commit that it has ``installed``, so that it installs
    each once, else the first."""
    own = [share for share in waiting if share.keeper == keeper]
    return min(own, key=lambda share: share.commit != installed, default=None)
