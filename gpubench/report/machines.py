"""View model of the page on machines and data: conditions, noise, files, what was left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpubench.analysis.history import SetupHistory
from gpubench.analysis.noise import Noise
from gpubench.names import Value
from gpubench.report import exports, text
from gpubench.report.exports import Export
from gpubench.report.machine import MachinePanel, fact_words, machine_panel
from gpubench.report.site import CommitLabel, Link, Navigation, Site, State, commit_label
from gpubench.results import Outcome, Problem

_UNITS = {"_mhz": "MHz", "_c": "\N{DEGREE SIGN}C", "_w": "W"}
_LABELS = {
    "copy_bytes_per_second": "Copy bandwidth",
    "triad_bytes_per_second": "Triad bandwidth",
    "peak_bytes_per_second": "Datasheet bandwidth",
    "floor_seconds": "Floor: an empty kernel",
    "l2_bytes": "L2 cache",
    "gpu_clock_mhz": "GPU clock",
    "gpu_memory_clock_mhz": "GPU memory clock",
    "gpu_temperature_c": "GPU temperature",
    "gpu_power_w": "GPU power",
    "gpu_throttling": "GPU throttling",
}
"""Readings by name; others are shown by the name that the record gives them."""
_MOST_VALUES = 4
"""Values of one fact that are listed."""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What the cases on one device tell of it, at the newest commit."""

    device: str
    cases: int
    facts: tuple[tuple[str, str], ...]
    """Label and value; readings that differ from case to case as their range."""


@dataclass(frozen=True, slots=True)
class SetupFacts:
    """One machine and environment."""

    setup: Link
    """To its overview."""
    panel: MachinePanel
    commits: int
    first: CommitLabel
    last: CommitLabel
    times: int
    """At the newest commit."""
    threads: str
    """Thread counts that implementations were given; empty when none is recorded."""
    noise: tuple[str, ...]
    requirements: tuple[tuple[str, str], ...]
    """The environment as asv describes it."""
    devices: tuple[DeviceFacts, ...]


@dataclass(frozen=True, slots=True)
class MachinesPage:
    """Where the numbers come from."""

    title: str
    navigation: Navigation
    verdict: str
    setups: tuple[SetupFacts, ...]
    files: tuple[Export, ...]
    problems: tuple[Problem, ...]
    states: tuple[State, ...]


def build(site: Site) -> MachinesPage:
    """The page of all setups; there is at least one."""
    problems = site.results.problems
    return MachinesPage(
        title="Machines and data",
        navigation=site.navigation(site.histories[0].setup, page="machines"),
        verdict=_verdict(site),
        setups=tuple(_setup(history, site) for history in site.histories),
        files=exports.FILES,
        problems=problems,
        states=tuple(_states(site)),
    )


def _verdict(site: Site) -> str:
    machines = len({history.setup.machine for history in site.histories})
    environments = text.plural(len(site.histories), "environment")
    commits = text.plural(len(site.results.commits), "commit")
    files = text.plural(len(site.results.snapshots), "result file")
    out = len(site.results.problems)
    problems = f"{text.plural(out, 'part')} left out" if out else "nothing left out"
    return f"{text.plural(machines, 'machine')}, {environments}, {commits}: {files}, {problems}."


def _setup(history: SetupHistory, site: Site) -> SetupFacts:
    latest = history.snapshots[-1]
    outcomes = list(latest.outcomes.values())
    panel = machine_panel(site.results, history)
    return SetupFacts(
        setup=Link(panel.name, site.address(history.setup)),
        panel=panel,
        commits=len(history.commits),
        first=commit_label(history.commits[0]),
        last=commit_label(history.latest),
        times=sum(outcome.timing is not None for outcome in outcomes),
        threads=_threads(outcomes),
        noise=tuple(_noise(site.noise(history))),
        requirements=tuple(_requirements(latest.params)),
        devices=tuple(_devices(outcomes)),
    )


def _threads(outcomes: Iterable[Outcome]) -> str:
    counts = {o.record.threads for o in outcomes if o.record and o.record.threads}
    return text.join(map(str, sorted(counts)))


def _noise(found: Noise) -> Iterator[str]:
    if found.within is None:
        yield "No time at the newest commit has an interval: asv needs more samples (repeat)."
    else:
        yield (
            f"Half of the intervals are narrower than \N{PLUS-MINUS SIGN}{_percent(found.within)} "
            f"({text.plural(found.times, 'time')} at the newest commit)."
        )
    if found.between is None:
        yield "Scatter from commit to commit shows from the second commit on."
    else:
        yield (
            f"From one commit to the next a time typically differs by {_percent(found.between)} "
            f"({text.plural(found.neighbours, 'pair')} of neighbours)."
        )


def _percent(share: float) -> str:
    return f"{text.digits(100 * share, 2)} %"


def _requirements(params: Mapping[str, Value | None]) -> Iterator[tuple[str, str]]:
    for name, value in sorted(params.items()):
        if name != "machine":
            yield fact_words(name, value)


def _devices(outcomes: Iterable[Outcome]) -> Iterator[DeviceFacts]:
    groups: dict[str, list[Mapping[str, Value]]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.record and outcome.record.device and outcome.timing:
            groups[outcome.record.device].append(outcome.record.conditions)
    for device, conditions in sorted(groups.items()):
        names = sorted({name for condition in conditions for name in condition})
        facts = (_reading(n, [c[n] for c in conditions if n in c]) for n in names)
        yield DeviceFacts(device, len(conditions), tuple(facts))


def _reading(name: str, values: Iterable[Value]) -> tuple[str, str]:
    """A fact of all cases on a device: numbers as their range, words side by side."""
    distinct = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    numbers = [v for v in distinct if isinstance(v, int | float) and not isinstance(v, bool)]
    label = _LABELS.get(name) or fact_words(name, "")[0]
    if len(numbers) == len(distinct) > 1:
        return label, f"{_number(name, numbers[0])} to {_number(name, numbers[-1])}"
    if numbers and len(distinct) == 1:
        return label, _number(name, numbers[0])
    shown = [fact_words(name, value)[1] for value in distinct[:_MOST_VALUES]]
    more = len(distinct) - len(shown)
    return label, ", ".join(shown) + (f" and {more} more" if more else "")


def _number(name: str, value: float) -> str:
    space = "\N{NARROW NO-BREAK SPACE}"
    if name.endswith("_bytes_per_second"):
        return f"{text.digits(value / 1e9)}{space}GB/s"
    if name.endswith("_per_second"):
        return f"{text.digits(value / 1e9)}{space}billion a second"
    if name.endswith("_seconds"):
        return text.seconds(value)
    if name.endswith("_bytes"):
        return f"{text.digits(value / 2**20)}{space}MiB"
    unit = next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "")
    return f"{text.whole(value)}{space}{unit}".rstrip(space)


def _states(site: Site) -> Iterator[State]:
    silent = [h.setup.machine for h in site.histories if not any(s.facts for s in h.snapshots)]
    if silent:
        yield State(
            "No facts recorded",
            f"Only asv's own description is known of {text.join(sorted(set(silent)))}: the "
            "conditions of a run are recorded by gpubench's suites, not by other benchmarks.",
        )
