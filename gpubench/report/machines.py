"""View model of the page on machines and data: conditions, noise, files, what was left out.

And facts in words, wherever they are shown: ``fact_words``, ``machine_panel``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpubench.analysis.noise import Noise
from gpubench.names import Value
from gpubench.record import APPENDED, UNCOMMITTED
from gpubench.report import exports, text
from gpubench.report.exports import ExportFile
from gpubench.report.findings import disturbed_states, running_states
from gpubench.report.navigation import (
    CommitLabel,
    Link,
    Navigation,
    State,
    commit_label,
    setup_label,
    snapshot_label,
)
from gpubench.report.page import Page
from gpubench.report.site import Site
from gpubench.results import Commit, History, Problem, Row
from gpubench.results.commits import is_known

_FACT_LABELS = {
    "cpu": "Processor",
    "cpu_threads": "Threads available",
    "num_cpu": "Processors",
    "memory_bytes": "Memory",
    "ram": "Memory",
    "os": "System",
    "arch": "Architecture",
    "gpu": "GPU",
    "driver": "GPU driver",
    "no_gpu": "GPU",
    "cuda_runtime": "CUDA runtime",
    "python": "Python",
    "numpy": "NumPy",
    "numba": "Numba",
    "numba_cuda": "numba-cuda",
    "llvmlite": "llvmlite",
    "numpy_blas": "NumPy's BLAS",
    "numpy_blas_threads": "Threads of NumPy's BLAS",
    "scipy_blas": "SciPy's BLAS",
    "scipy_blas_threads": "Threads of SciPy's BLAS",
    "gpubench": "gpubench",
    UNCOMMITTED: "Uncommitted changes",
    "asv_runner": "asv_runner",
    "copy_bytes_per_second": "Copy bandwidth",
    "triad_bytes_per_second": "Triad bandwidth",
    "peak_bytes_per_second": "Datasheet bandwidth",
    "floor_seconds": "Floor: an empty kernel",
    "compile_seconds": "Compiling, without `cache=True`",
    "l2_bytes": "L2 cache",
    "gpu_clock_mhz": "GPU clock",
    "gpu_memory_clock_mhz": "GPU memory clock",
    "gpu_temperature_c": "GPU temperature",
    "gpu_power_w": "GPU power",
    "gpu_throttling": "GPU throttling",
}
"""Facts of a snapshot and conditions of a case, in the order of the panel; others are shown by
their own names."""

_FACT_UNITS = {
    "_bytes_per_second": (1e9, "GB/s"),
    "_per_second": (1e9, "billion a second"),
    "_bytes": (2**20, "MiB"),
    "_mhz": (1, "MHz"),
    "_c": (1, "\N{DEGREE SIGN}C"),
    "_w": (1, "W"),
}
"""How a reading is shown, by how its name ends."""

_REPLACED = {"num_cpu": "cpu_threads", "ram": "memory_bytes"}
"""What asv's ``machine.json`` says and the record says better."""

_HIDDEN_FACTS = {"host", "machine", "run", APPENDED, "interleaved_processes", "version"}

_MAX_VALUES = 4


@dataclass(frozen=True, slots=True)
class MachinePanel:
    name: str
    environment: str
    facts: tuple[tuple[str, str], ...]
    """Label and value, the most telling first."""
    devices: tuple[str, ...]
    """Devices that cases were measured on or planned for."""
    measured_at: str
    """Time in words; empty when unknown."""


@dataclass(frozen=True, slots=True)
class DeviceConditions:
    """What the cases on one device tell of it, at the newest commit."""

    device: str
    cases: int
    facts: tuple[tuple[str, str], ...]
    """Label and value; readings that differ from case to case as their range."""


@dataclass(frozen=True, slots=True)
class SetupFacts:
    """One machine and environment."""

    setup: Link
    panel: MachinePanel
    commits: int
    first: CommitLabel
    last: CommitLabel
    uncommitted: tuple[CommitLabel, ...]
    """Commits that were measured with uncommitted changes, the newest first."""
    times: int
    """At the newest commit."""
    threads: str
    """Thread counts that implementations were given; empty when none is recorded."""
    noise: tuple[str, ...]
    machines: tuple[str, ...]
    """Where several machines are one, each with its processor and its commits."""
    requirements: tuple[tuple[str, str], ...]
    """The environment as asv describes it."""
    devices: tuple[DeviceConditions, ...]


@dataclass(frozen=True, slots=True)
class OutsideCommit:
    """A commit with results that no history has."""

    commit: CommitLabel
    where: str
    """A branch that contains it, or why there is none."""
    setups: str
    """Machines and environments with its results."""


@dataclass(frozen=True, slots=True)
class MachinesPage:
    title: str
    navigation: Navigation
    verdict: str
    setups: tuple[SetupFacts, ...]
    files: tuple[ExportFile, ...]
    problems: tuple[Problem, ...]
    states: tuple[State, ...]
    history: str
    """Which commits are in the histories; empty where no repository tells."""
    outside: tuple[OutsideCommit, ...]
    """The newest first."""


def build(site: Site) -> MachinesPage:
    """Return the page of all setups; there is at least one."""
    histories, problems = site.histories, site.table.problems
    counts = (
        text.plural(len({history.setup.machine for history in histories}), "machine"),
        text.plural(len({history.setup.place for history in histories}), "environment"),
        text.plural(len(site.table.commits), "commit"),
    )
    measured = site.measured.values()
    files = text.plural(sum(len(history.snapshots) for history in measured), "result file")
    left_out = f"{text.plural(len(problems), 'part')} left out" if problems else "nothing left out"
    silent = {h.setup.machine for h in histories if not any(s.facts for s in h.snapshots)}
    state = State(
        "No facts recorded",
        f"Only asv's own description is known of {text.join(sorted(silent))}: the conditions of a "
        "run are recorded by gpubench's suites, not by other benchmarks.",
    )
    return MachinesPage(
        title="Machines and data",
        navigation=site.navigation(histories[0].setup, page="machines"),
        verdict=f"{', '.join(counts)}: {files}, {left_out}.",
        setups=tuple(_setup(history, site) for history in histories),
        files=exports.FILES,
        problems=problems,
        states=(*_running(site), *((state,) if silent else ())),
        history=_history_words(site),
        outside=tuple(_outside(site)),
    )


def _running(site: Site) -> Iterator[State]:
    for history in site.measured.values():
        yield from running_states(history.snapshots)


def _history_words(site: Site) -> str:
    if not site.table.branches:
        return ""
    names = [f"`{name}`" for name in site.table.branches]
    each = f"the branch {names[0]}" if len(names) == 1 else f"each of {text.join(names)}"
    notes = "".join(f" Note: {note}." for note in site.table.order.notes)
    return (
        f"A history has the commits that {each} contains, in the repository's order. "
        f"`branches` in asv.conf.json names others.{notes}"
    )


def _outside(site: Site) -> Iterator[OutsideCommit]:
    setups: dict[str, list[str]] = defaultdict(list)
    for setup, history in site.measured.items():
        for commit in history.commits:
            setups[commit.hash].append(setup_label(setup))
    branches = site.table.branches_outside
    for commit in reversed(site.table.outside):
        where = branches.get(commit.hash) or "on no branch"
        if not is_known(commit):
            where = "git does not know it: it was rewritten, or is not fetched yet"
        yield OutsideCommit(commit_label(commit), where, "; ".join(setups[commit.hash]))


def machine_panel(history: History, site: Site) -> MachinePanel:
    """Facts of the newest snapshot that has any, over asv's description of the machine."""
    newest = ([s for s in history.snapshots if s.facts] or history.snapshots)[-1]
    facts = {**site.table.machines.get(newest.measured_on, {}), **newest.facts}
    shown = [
        name
        for name in (*_FACT_LABELS, *sorted(facts.keys() - _FACT_LABELS.keys()))
        if facts.get(name) not in (None, "", "unknown")
        and name not in _HIDDEN_FACTS
        and not facts.get(_REPLACED.get(name, ""))
    ]
    rows = site.rows(history.snapshots[-1]).values()
    minute = len("2026-01-31T12:00")
    return MachinePanel(
        name=history.setup.machine,
        environment=history.setup.environment,
        facts=tuple(fact_words(name, facts[name]) for name in shown),
        devices=tuple(sorted({row.device for row in rows if row.recorded} - {""})),
        measured_at=(newest.measured_at or "")[:minute].replace("T", " "),
    )


def fact_words(name: str, value: Value | None) -> tuple[str, str]:
    label = _FACT_LABELS.get(name, name.replace("_", " "))
    if value in (None, ""):
        return label, "none"
    if isinstance(value, bool):
        return label, "yes" if value else "no"
    is_number = isinstance(value, int | float)
    if (name.endswith("_bytes") and is_number) or (name == "ram" and str(value).isdigit()):
        return label, f"{text.digits(float(value or 0) / 2**30)} GiB"
    return label, str(value)


def _setup(history: History, site: Site) -> SetupFacts:
    latest = history.snapshots[-1]
    rows = site.rows(latest).values()
    panel = machine_panel(history, site)
    threads = {row.threads for row in rows if row.threads}
    params = sorted((name, value) for name, value in latest.params.items() if name != "machine")
    return SetupFacts(
        setup=Link(
            ", ".join(filter(None, (panel.name, history.setup.branch))),
            site.address(history.setup),
        ),
        panel=panel,
        commits=len(history.commits),
        first=snapshot_label(history.snapshots[0]),
        last=snapshot_label(latest),
        uncommitted=tuple(label for label in reversed(site.labels(history)) if label.uncommitted),
        times=sum(row.seconds is not None for row in rows),
        threads=text.join(map(str, sorted(threads))),
        noise=(
            *_disturbed(rows, latest.commit),
            *_noise(site.noise(history), history.by_speedup),
        ),
        machines=tuple(_machines(history)),
        requirements=tuple(fact_words(name, value) for name, value in params),
        devices=tuple(_devices(rows)),
    )


def _machines(history: History) -> Iterator[str]:
    measured: dict[tuple[str, str], int] = defaultdict(int)
    for snapshot in history.snapshots:
        measured[snapshot.measured_on, snapshot.processor] += 1
    if {name for name, _ in measured} != {history.setup.machine}:
        for (name, processor), count in sorted(measured.items()):
            yield ", ".join(filter(None, (name, processor, text.plural(count, "commit"))))


def _disturbed(rows: Iterable[Row], commit: Commit) -> Iterator[str]:
    for state in disturbed_states(rows, commit):
        yield state.why


def _noise(noise: Noise, by_speedup: bool) -> tuple[str, str]:
    within = (
        "No time at the newest commit has an interval: that takes five rounds that other work did "
        "not disturb, or without a record more of asv's samples (repeat)."
    )
    if noise.within is not None:
        within = (
            f"Half of the intervals are narrower than \N{PLUS-MINUS SIGN}"
            f"{text.digits(100 * noise.within, 2)} % "
            f"({text.plural(noise.times, 'time')} at the newest commit)."
        )
    between = "Scatter from commit to commit shows from the second commit on."
    if by_speedup:
        between = "Scatter from commit to commit is not known: their processors differ."
    elif noise.between is not None:
        between = (
            "From one commit to the next a time typically differs by "
            f"{text.digits(100 * noise.between, 2)} % "
            f"({text.plural(noise.neighbours, 'pair')} of neighbours)."
        )
    return within, between


def _devices(rows: Iterable[Row]) -> Iterator[DeviceConditions]:
    by_device: dict[str, list[Mapping[str, Value]]] = defaultdict(list)
    for row in rows:
        if row.recorded and row.device and row.seconds is not None:
            by_device[row.device].append(row.conditions)
    for device, conditions in sorted(by_device.items()):
        values: dict[str, set[Value]] = defaultdict(set)
        for condition in conditions:
            for name, value in condition.items():
                values[name].add(value)
        facts = tuple(_reading(name, values[name]) for name in sorted(values))
        yield DeviceConditions(device, len(conditions), facts)


def _reading(name: str, values: set[Value]) -> tuple[str, str]:
    """Return a condition of all cases on a device: numbers as their range, words side by side."""
    label, _ = fact_words(name, None)
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        numbers = [_number(name, float(end)) for end in (min(values), max(values))]
        return label, " to ".join(numbers[: len(values)])
    distinct = sorted(values, key=lambda value: (isinstance(value, str), value))
    shown = [fact_words(name, value)[1] for value in distinct[:_MAX_VALUES]]
    more = len(distinct) - len(shown)
    return label, ", ".join(shown) + (f" and {more} more" if more else "")


def _number(name: str, value: float) -> str:
    if name.endswith("_seconds"):
        return text.seconds(value)
    for ending, (scale, unit) in _FACT_UNITS.items():
        if name.endswith(ending):
            shown = text.digits(value / scale) if scale > 1 else text.whole(value)
            return f"{shown}\N{NARROW NO-BREAK SPACE}{unit}"
    return text.whole(value)


def digest(site: Site) -> str:
    """Return a text that changes with what the page shows."""
    return site.digest


MACHINES_PAGE = Page("machines", "Machines and data", build, digest, is_shared=True)
