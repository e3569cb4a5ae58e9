"""How wrong estimates were: sizes that were hidden, predicted, and then measured.

What ``gpubench advise --verify`` found is kept beside the results, one line for each time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean, median
from typing import TypeGuard

import msgspec

from gpubench.edge.advise.estimates import (
    MAX_FACTOR,
    MIN_DRIFT,
    Conditions,
    Curve,
    Estimate,
    Kind,
    Place,
    Way,
    WayKey,
    build_ways,
    find_axes,
    get_variant,
    group_by_way,
)
from gpubench.errors import ResultsError
from gpubench.files import MAX_BYTES, TooLarge, append_lines, read_regular
from gpubench.links import leads_out
from gpubench.names import CURVE_TIMES
from gpubench.record import SUFFIX, record_name
from gpubench.results import Row, Setup
from gpubench.results.asv_files import LONGEST, SHORTEST

MIN_COVERAGE = 0.9
"""Share of the times measured afresh that the intervals of a kernel have to hold for a ranking."""

MAX_REGRET_FACTOR = 2.0
"""Most by which a way that was chosen may take longer than the best for a ranking."""

LEVEL = 0.95
"""Share of the times measured afresh by which the drift between two hours is told."""

MAX_LEFT_OUT = 64
"""Stored sizes of a curve that are hidden in turn: each time all others are put together again."""

MIN_HIDDEN = 9
"""Times measured afresh from which the drift is told: of fewer not even the largest holds nine of
ten."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One hidden time: what was said of it, and what it was. Seconds."""

    suite: str
    kernel: str
    implementation: str
    device: str
    parameters: str
    place: dict[str, float]
    """Values of the axes."""
    time: str
    kind: Kind
    seconds: float
    low: float
    high: float
    stored: float
    """What results have, and was hidden."""
    measured: float
    """With the launch that was advised; ``stored`` where it was not measured afresh."""
    fastest: float
    """With the launch that was the fastest."""
    at: str
    """When it was measured, UTC, ISO 8601; the same for all that were hidden together. Empty:
    not afresh."""
    threads: int | None = None

    @property
    def error(self) -> float:
        """Relative: 0.1 is 10 %."""
        return abs(self.seconds / self.measured - 1)

    @property
    def factor(self) -> float:
        """By which it was wrong, at least 1."""
        return max(self.seconds / self.measured, self.measured / self.seconds)

    @property
    def holds(self) -> bool:
        return self.low <= self.measured <= self.high

    @property
    def problem(self) -> tuple[object, ...]:
        """All ways to the same result share it."""
        return (self.suite, self.kernel, self.parameters, self.time, *sorted(self.place.items()))


@dataclass(frozen=True, slots=True)
class Checked:
    """How good predictions were."""

    count: int
    error: float
    """Median, relative."""
    worst: float
    """Largest factor between a prediction and its time; at least 1."""
    coverage: float
    """Share within their intervals, 0 to 1."""
    choices: int
    """Results for which there were two ways at least."""
    regret: float
    """Median over these: time of the way that was chosen over that of the best, less 1."""
    worst_regret: float
    at: str
    """As of ``Prediction``."""

    @property
    def holds(self) -> bool:
        """Whether there may be a ranking."""
        return self.coverage >= MIN_COVERAGE and self.worst_regret < MAX_REGRET_FACTOR - 1


def check(predictions: Iterable[Prediction]) -> Checked | None:
    """Return what predictions came to; ``None`` without any."""
    every = [*predictions]
    if not every:
        return None
    regrets = get_regrets(every)
    return Checked(
        len(every),
        median(one.error for one in every),
        max(one.factor for one in every),
        fmean(one.holds for one in every),
        len(regrets),
        median(regrets or [0.0]),
        max(regrets, default=0.0),
        max(one.at for one in every),
    )


def get_regrets(predictions: Iterable[Prediction]) -> list[float]:
    """Return, of each result with two ways, the time of the chosen way over the best, less 1."""
    problems: dict[tuple[object, ...], list[Prediction]] = defaultdict(list)
    for one in predictions:
        problems[one.problem].append(one)
    return [
        min(group, key=lambda one: one.seconds).measured / min(one.fastest for one in group) - 1
        for group in problems.values()
        if len(group) > 1
    ]


def get_drift(verified: Iterable[Iterable[Prediction]]) -> float:
    """Return the logarithm of the factor by which times of the same sizes differ at another hour:
    it holds ``LEVEL`` of all that were measured afresh on a setup."""
    logs = sorted(
        abs(math.log(one.measured / one.stored)) for one in chain.from_iterable(verified) if one.at
    )
    if len(logs) < MIN_HIDDEN:
        return MIN_DRIFT
    return max(logs[min(math.ceil(LEVEL * (len(logs) + 1)), len(logs)) - 1], MIN_DRIFT)


def leave_out(key: tuple[str, str], axes: Sequence[str], ways: Iterable[Way]) -> list[Prediction]:
    """Predict each stored size from the others of the same run: not measured afresh, and named
    so."""
    predictions = []
    for way in ways:
        for time, curve in way.curves.items():
            step = -(-len(curve.points) // MAX_LEFT_OUT)
            for point in curve.points[::step] if len(curve.points) > 1 else ():
                others = Curve.through(one for one in curve.points if one is not point)
                estimate = others.estimate(point.at)
                if is_known(estimate):
                    seconds = math.exp(point.log)
                    place = dict(zip(axes, point.at, strict=True))
                    predictions.append(_predict(key, way.key, place, time, estimate, seconds))
    return predictions


def is_known(estimate: object) -> TypeGuard[Estimate]:
    """Return whether there is an estimate that may be ranked."""
    return isinstance(estimate, Estimate) and estimate.high <= MAX_FACTOR * estimate.low


def _predict(
    key: tuple[str, str],
    way: WayKey,
    place: dict[str, float],
    time: str,
    estimate: Estimate,
    stored: float,
) -> Prediction:
    """Return what is said of a time that is not measured afresh."""
    implementation, device, threads, parameters = way
    return Prediction(
        *key,
        implementation,
        device,
        parameters,
        place,
        time,
        estimate.kind,
        estimate.seconds,
        estimate.low,
        estimate.high,
        stored,
        measured=stored,
        fastest=stored,
        at="",
        threads=threads,
    )


@dataclass(frozen=True, slots=True)
class Hidden:
    """A kernel with every second size hidden along the axis that has the most."""

    key: tuple[str, str]
    axes: tuple[str, ...]
    shown: tuple[Way, ...]
    """As they are known without these."""
    rows: tuple[Row, ...]
    """The hidden ones."""

    @property
    def cases(self) -> frozenset[tuple[str, str, str]]:
        """What has to be measured: implementation, labelled time and identity."""
        return frozenset((r.name.implementation, r.name.time, r.name.case) for r in self.rows)


def hide(key: tuple[str, str], rows: Sequence[Row], conditions: Conditions) -> Hidden:
    """Hide sizes of a kernel with these rows on one setup."""
    timed = [
        row for row in rows if row.seconds and not row.is_disturbed and row.name.time in CURVE_TIMES
    ]
    axes = find_axes(timed)
    values = [sorted({row.sizes.get(axis, 0.0) for row in timed}) for axis in axes]
    if not values:
        return Hidden(key, axes, (), ())
    longest = max(range(len(axes)), key=lambda place: len(values[place]))
    taken = {*values[longest][1::2]}
    hidden = tuple(row for row in timed if row.sizes.get(axes[longest], 0.0) in taken)
    shown = [row for row in timed if row.sizes.get(axes[longest], 0.0) not in taken]
    return Hidden(key, axes, build_ways(shown, axes, conditions), hidden)


def predict(hidden: Hidden, fresh: Iterable[Row], when: str) -> list[Prediction]:
    """Return what is said of the hidden times, beside ``fresh`` rows that were measured there
    ``when``; those without one are left out, and those that would not be ranked."""
    ways = {way.key: way for way in hidden.shown}
    stored: dict[tuple[WayKey, str, Place], float] = {}
    for key, group in group_by_way(hidden.rows, hidden.axes).items():
        for at, row in group:
            name = key, row.name.time, at
            stored[name] = min(row.seconds or math.inf, stored.get(name, math.inf))
    launches: dict[tuple[WayKey, str, Place], dict[str, float]] = defaultdict(dict)
    for key, group in group_by_way(fresh, hidden.axes).items():
        for at, row in group:
            launches[key, row.name.time, at][get_variant(row)] = row.seconds or math.inf
    predictions = []
    for (key, time, at), seconds in stored.items():
        curve = ways[key].curves.get(time) if key in ways else None
        measured = launches.get((key, time, at))
        estimate = curve and curve.estimate(at)
        if curve and measured and is_known(estimate):
            place = dict(zip(hidden.axes, at, strict=True))
            one = _predict(hidden.key, key, place, time, estimate, seconds)
            best = min(measured.values())
            advised = measured.get(curve.get_variant(at), best)
            predictions.append(replace(one, measured=advised, fastest=best, at=when))
    return predictions


def verification_path(results: Path, setup: Setup) -> Path:
    """Return where predictions for a setup are kept, of all commits: beside its results, under a
    name that asv does not read (``.json``), nor gpubench as a record."""
    name = record_name("advice", setup.environment).removesuffix(SUFFIX)
    return results / setup.machine / f"{name}.jsonl"


MOST_KEPT = 2**16
"""Predictions that are read of a file: some hundred verifications of a large suite."""


def verifications(path: Path, results: Path) -> dict[tuple[str, str], list[Prediction]]:
    """Return the newest verification of each kernel; none where there is no file that can be read.
    Lines that are no predictions, and of what is no time, are left out."""
    if leads_out(path, results):
        return {}
    try:
        lines = read_regular(path, MAX_BYTES).splitlines()[-MOST_KEPT:]
    except (OSError, ValueError, TooLarge):  # a NUL in its name: there is no such file
        return {}
    decoder = msgspec.json.Decoder(Prediction)
    kept: dict[tuple[str, str], list[Prediction]] = {}
    for line in lines:
        try:
            one = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue
        times = (one.seconds, one.stored, one.measured, one.fastest)
        if not SHORTEST <= min(times) <= max(times) <= LONGEST:
            continue
        of_kernel = kept.setdefault((one.suite, one.kernel), [])
        if of_kernel and of_kernel[-1].at != one.at:
            of_kernel.clear()
        of_kernel.append(one)
    return kept


def keep(predictions: Iterable[Prediction], path: Path, results: Path) -> None:
    """Append predictions to a file; raises ``ResultsError`` where that cannot be."""
    content = b"".join(msgspec.json.encode(one) + b"\n" for one in predictions)
    if leads_out(path, results):
        raise ResultsError(f"{path} is a symbolic link out of {results}; remove it")
    try:
        path.parent.mkdir(exist_ok=True)  # there is none of a name that stands for several machines
        append_lines(path, content)
    except OSError as error:
        raise ResultsError(f"what was found cannot be kept: {error}") from error
