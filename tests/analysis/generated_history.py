"""Results with a known truth: many commits, kernels and machines, with planted changes and noise.

Each kernel has a story, which says what was planted into the times of its implementations. The
times are medians with the noise of commits, some of it with outliers or with a memory, and with
gaps where a case failed.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from gpubench.names import Value, parse_identity
from gpubench.record import CaseRecord, RunRecord, record_name, to_line
from gpubench.results import CaseName, Commit, Ratio, Row, Setup, Snapshot

Cause = Literal["kernel", "baseline", "environment", "shared"]
Story = Literal[
    "noise", "outliers", "memory", "gaps", "drift", "kernel", "baseline", "environment", "shared",
    "recovered",
]  # fmt: skip

STORIES: tuple[Story, ...] = (
    "noise", "kernel", "outliers", "baseline", "gaps", "environment", "memory", "shared",
    "drift", "recovered",
)  # fmt: skip
QUIET: tuple[Story, ...] = ("noise", "outliers", "memory", "gaps")
"""Stories in which nothing is planted: every step in them is false."""

IMPLEMENTATIONS = ("numpy", "numba")
MeasuredSnapshot = tuple[Snapshot, Mapping[CaseName, Row]]
"""A snapshot with its rows."""

Ends = tuple[float, float, float]
"""A time in seconds and both ends of its interval."""

DAY = 86_400
LEAST = 1.08
"""Smallest planted factor."""

ABOVE_NOISE = 6.0
"""Size of a step, in standard deviations of one commit, from which it must be found.

asv's detector itself misses some of 4 or 5 that last a few commits; those are planted as well.
"""

EDGE = 6
"""Commits before the first and after the last planted step."""


@dataclass(frozen=True)
class Planted:
    """One step of one case's time."""

    setup: Setup
    name: CaseName
    after: int
    """Index of the first commit at the new level."""
    factor: float
    """New time over old time."""
    cause: Cause
    sigmas: float
    """Its size in standard deviations of the noise of one commit."""

    @property
    def above_noise(self) -> bool:
        return self.sigmas >= ABOVE_NOISE


@dataclass(frozen=True)
class GeneratedHistory:
    """Results and what was planted into them."""

    commits: tuple[Commit, ...]
    measured: tuple[MeasuredSnapshot, ...]
    """Snapshots with their rows, oldest commit first."""
    planted: tuple[Planted, ...]
    stories: Mapping[tuple[Setup, CaseName], Story] = field(default_factory=dict)


@dataclass
class _Series:
    """One case over the commits, while it is made."""

    levels: list[float]
    sigma: float
    story: Story


def generate(
    seed: int, *, commits: int = 60, kernels: int = 20, machines: int = 1, sizes: int = 1
) -> GeneratedHistory:
    """A history of ``machines * kernels * sizes * 2`` series; the same for the same arguments."""
    chance = random.Random(seed)
    made: list[MeasuredSnapshot] = []
    planted: list[Planted] = []
    stories: dict[tuple[Setup, CaseName], Story] = {}
    for number in range(machines):
        setup = Setup(f"machine-{number}", "virtualenv-py3.11")
        update = chance.randrange(EDGE, commits - EDGE)
        series: dict[CaseName, _Series] = {}
        for kernel in range(kernels):
            story = STORIES[(kernel + number) % len(STORIES)]
            for size in range(sizes):
                own, steps = _kernel(chance, setup, kernel, size, story, commits, update)
                series |= own
                planted += steps
        stories |= {(setup, name): each.story for name, each in series.items()}
        made += _snapshots(chance, setup, series, commits, update)
    made.sort(key=lambda item: (item[0].commit.date, item[0].setup))
    return GeneratedHistory(
        tuple(map(commit, range(commits))), tuple(made), tuple(planted), stories
    )


def commit(index: int) -> Commit:
    return Commit(commit_hash(index), float(index * DAY + DAY))


def commit_hash(index: int) -> str:
    return hashlib.sha1(f"generated {index}".encode()).hexdigest()


def _kernel(
    chance: random.Random, setup: Setup, kernel: int, size: int, story: Story, commits: int,
    update: int,
) -> tuple[dict[CaseName, _Series], list[Planted]]:  # fmt: skip
    """The series of one kernel at one size, and what is planted into them."""
    series: dict[CaseName, _Series] = {}
    for implementation in IMPLEMENTATIONS:
        name = CaseName(
            f"kernel_{kernel}",
            f"kernel_{kernel}",
            implementation,
            "kernel",
            f"n={2 ** (10 + size)}",
        )
        base = 10 ** chance.uniform(-6, -2)
        sigma = math.exp(chance.uniform(math.log(0.003), math.log(0.03)))
        series[name] = _Series([base] * commits, sigma, story)
    steps = list(_plant(chance, setup, series, story, commits, update))
    for step in steps:
        levels = series[step.name].levels
        levels[step.after :] = [level * step.factor for level in levels[step.after :]]
    if story == "drift":
        for each in series.values():
            total = chance.uniform(-0.2, 0.2)
            each.levels = [v * math.exp(total * i / commits) for i, v in enumerate(each.levels)]
    return series, steps


def _plant(
    chance: random.Random, setup: Setup, series: Mapping[CaseName, _Series], story: Story,
    commits: int, update: int,
) -> Iterator[Planted]:  # fmt: skip
    baseline, candidate = series
    at = _away_from(chance, commits, update)
    if story in ("environment", "shared"):
        noise = max(each.sigma for each in series.values())
        factor = _factor(chance, noise)
        place = update if story == "environment" else at
        for name in series:
            sigmas = abs(math.log(factor)) / noise
            yield Planted(setup, name, place, factor, story, sigmas)
    elif story in ("baseline", "kernel", "recovered"):
        name, cause = (baseline, story) if story == "baseline" else (candidate, "kernel")
        factor = _factor(chance, series[name].sigma)
        sigmas = abs(math.log(factor)) / series[name].sigma
        yield Planted(setup, name, at, factor, cause, sigmas)
        if story == "recovered" and at + EDGE < commits - EDGE:
            back = chance.randrange(at + EDGE, commits - EDGE)
            if abs(back - update) > 2:
                yield Planted(setup, candidate, back, 1 / factor, "kernel", sigmas)


def _away_from(chance: random.Random, commits: int, update: int) -> int:
    """A commit that has nothing to do with the change of the environment."""
    places = [i for i in range(EDGE, commits - EDGE) if abs(i - update) > 2]
    return chance.choice(places)


def _factor(chance: random.Random, sigma: float) -> float:
    size = math.exp(chance.uniform(max(math.log(LEAST), 4 * sigma), math.log(2.5)))
    return size if chance.random() < 0.5 else 1 / size


def _snapshots(
    chance: random.Random, setup: Setup, series: Mapping[CaseName, _Series], commits: int,
    update: int,
) -> list[MeasuredSnapshot]:  # fmt: skip
    noise = {name: _noise(chance, each, commits) for name, each in series.items()}
    made: list[MeasuredSnapshot] = []
    for index in range(commits):
        times = {
            name: _time(chance, each, each.levels[index] * math.exp(noise[name][index]))
            for name, each in series.items()
        }
        snapshot = Snapshot(index, setup, commit(index), facts(index, update))
        made.append((snapshot, {name: _row(name, times) for name in times}))
    return made


def facts(index: int, update: int) -> dict[str, Value | None]:
    """NumPy and Numba are updated at one commit; a number that explains nothing always changes."""
    new = index >= update
    return {
        "run": index,
        "python": "3.11.9",
        "numpy": "2.4.6" if new else "2.3.0",
        "numba": "0.68.1" if new else "0.65.0",
    }


def _noise(chance: random.Random, series: _Series, commits: int) -> list[float]:
    """Logarithms; ``memory`` is AR(1) with 0.3, ``outliers`` are one in fifty and 30 % slow."""
    found: list[float] = []
    last = 0.0
    for _ in range(commits):
        fresh = chance.gauss(0, series.sigma)
        last = 0.3 * last + fresh * math.sqrt(1 - 0.09) if series.story == "memory" else fresh
        slow = series.story == "outliers" and chance.random() < 0.02
        found.append(last + (math.log(1.3) if slow else 0))
    return found


def _time(chance: random.Random, series: _Series, median: float) -> Ends | None:
    if series.story == "gaps" and chance.random() < 0.2:
        return None
    width = 1 + 2 * series.sigma
    return median, median / width, median * width


def _row(name: CaseName, times: Mapping[CaseName, Ends | None]) -> Row:
    """One case with its speedup over the baseline of the same snapshot."""
    ends, first = times[name], IMPLEMENTATIONS[0]
    is_baseline = name.implementation == first
    baseline = None if is_baseline else replace(name, implementation=first)
    other, ratio = times[baseline] if baseline else None, None
    if ends and other:
        ratio = Ratio(other[0] / ends[0], other[1] / ends[2], other[2] / ends[1])
    seconds, low, high = ends or (None, None, None)
    return Row(
        name,
        status="ok" if ends else "failed",
        reason=None if ends else "it ran out of memory",
        seconds=seconds,
        low=low,
        high=high,
        is_baseline=is_baseline,
        baseline=baseline,
        baseline_status=("ok" if other else "failed") if baseline else None,
        speedup=ratio,
        backend=name.implementation,
        device="cpu",
    )


def write_files(history: GeneratedHistory, directory: Path, *, records: bool = False) -> int:
    """Write the results as asv's files, with gpubench's records if asked; returns how many."""
    for snapshot, rows in history.measured:
        write_snapshot(snapshot, rows, directory, records=records)
    return len(history.measured)


def write_snapshot(
    snapshot: Snapshot, rows: Mapping[CaseName, Row], directory: Path, *, records: bool = False
) -> None:
    """The files of one commit on one machine."""
    setup, commit_hash = snapshot.setup, snapshot.commit.hash
    folder = directory / setup.machine
    folder.mkdir(parents=True, exist_ok=True)
    machine = {"machine": setup.machine, "version": 1}
    (folder / "machine.json").write_text(json.dumps(machine), encoding="utf-8")
    path = folder / f"{commit_hash[:8]}-{setup.environment}.json"
    path.write_text(json.dumps(_file(snapshot, rows)), encoding="utf-8")
    if records:
        record = folder / record_name(commit_hash, setup.environment)
        record.write_text("".join(map(to_line, _lines(snapshot, rows))), encoding="utf-8")


def _lines(snapshot: Snapshot, rows: Mapping[CaseName, Row]) -> Iterator[RunRecord | CaseRecord]:
    """What a run on the CPU records: for each case that it started, and what became of it."""
    at = "2026-03-01T10:00:00+00:00"
    yield RunRecord(at, snapshot.facts)
    for name, row in rows.items():
        asv_name, size = name.benchmark.asv_name, parse_identity(name.case)["n"]
        baseline = asv_name.replace(name.implementation, IMPLEMENTATIONS[0])
        started = CaseRecord(
            asv_name, name.case, "started", at, backend=row.backend, device=row.device, timeout=60.0
        )
        yield started
        yield replace(
            started,
            timeout=None,
            status="ok" if row.status == "ok" else "failed",
            values={"n": size},
            sizes=("n",),
            baseline_benchmark=None if row.is_baseline else baseline,
            baseline_case=None if row.is_baseline else name.case,
            reason=row.reason,
            bytes=12 * int(size),
            flops=int(size),
            max_abs_error=None if row.is_baseline else 1.2e-7,
            max_rel_error=None if row.is_baseline else 3.1e-6,
            method="host loop",
            runs_per_sample=100,
            conditions={"threads": 1},
        )


COLUMNS = (
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b",
    "stats_q_25", "stats_q_75", "stats_number", "stats_repeat",
)  # fmt: skip


def _file(snapshot: Snapshot, rows: Mapping[CaseName, Row]) -> dict[str, object]:
    """One result file of asv, format 2."""
    benchmarks: dict[str, list[Row]] = {}
    for name, row in rows.items():
        benchmarks.setdefault(name.benchmark.asv_name, []).append(row)
    setup, commit = snapshot.setup, snapshot.commit
    return {
        "version": 2,
        "commit_hash": commit.hash,
        "env_name": setup.environment,
        "date": int(commit.date * 1000),
        "params": {"machine": setup.machine, "python": "3.11"},
        "python": "3.11",
        "requirements": {},
        "env_vars": {},
        "result_columns": list(COLUMNS),
        "results": {name: _columns(cases, commit) for name, cases in benchmarks.items()},
        "durations": {},
    }


def _columns(rows: list[Row], commit: Commit) -> list[object]:
    medians, lows, highs = (
        [getattr(row, end) for row in rows] for end in ("seconds", "low", "high")
    )
    params = [[repr(row.name.case) for row in rows]]
    started = int(commit.date * 1000)
    ones = [1 if row.status == "ok" else None for row in rows]
    return [medians, params, "v1", started, 1.0, lows, highs, lows, highs, ones, ones]
