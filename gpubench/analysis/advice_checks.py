"""How good estimates were: hidden times that were predicted, and then measured afresh.

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
from typing import NamedTuple

import msgspec

from gpubench.analysis.estimates import (
    CURVES,
    FEWEST,
    LEAST_DRIFT,
    ONCE,
    WORKERS,
    Curve,
    Estimate,
    Kind,
    Point,
    Way,
    as_stored,
    axes_of,
    calibrated,
    largest_of_level,
    of_ways,
    once_rows,
    references,
    refreshed,
    time_of_way,
    ways_of,
)
from gpubench.errors import ResultsError
from gpubench.files import MOST_BYTES, TooLarge, append_lines, read_regular
from gpubench.links import leads_out
from gpubench.record import SUFFIX, record_name
from gpubench.results import Row, Setup
from gpubench.results.asv_files import LONGEST, SHORTEST

LEAST_COVERAGE = 0.9
"""Share of the times measured afresh that the intervals of a kernel have to hold for an advice."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One hidden time: what was said of it, and what it was. Seconds."""

    suite: str
    kernel: str
    implementation: str
    device: str
    parameters: str
    place: dict[str, float]
    """Values of the axes, ``WORKERS`` among them where they are counted; of ``ONCE`` where it was
    measured."""
    time: str
    kind: Kind
    seconds: float
    low: float
    high: float | None
    """``None``: no interval is known."""
    stored: float
    """What results have, and was hidden."""
    measured: float
    """With the launch that was advised; ``stored`` where it was not measured afresh."""
    fastest: float
    """With the launch that was the fastest."""
    at: str
    """When it was measured, UTC, ISO 8601; the same for all that were hidden together. Empty:
    not afresh."""
    refreshed: tuple[float, float, float | None] | None = None
    """As ``seconds``, ``low`` and ``high`` once some other sizes of the way were measured again;
    ``None`` where they were not."""

    @property
    def error(self) -> float:
        """Relative: 0.1 is 10 %."""
        return abs(self.seconds / self.measured - 1)

    @property
    def line_error(self) -> float:
        """Against the time that was stored: what is wrong between sizes, at the same hour."""
        return abs(self.seconds / self.stored - 1)

    @property
    def change(self) -> float:
        """Logarithm of the factor by which the time itself has changed since it was stored."""
        return abs(math.log(self.fastest / self.stored))

    @property
    def holds(self) -> bool:
        return self.low <= self.measured <= (math.inf if self.high is None else self.high)

    @property
    def problem(self) -> tuple[object, ...]:
        """All ways to the same result share it."""
        sizes = ((name, value) for name, value in self.place.items() if name != WORKERS)
        return (self.suite, self.kernel, self.parameters, self.time, *sizes)


@dataclass(frozen=True, slots=True)
class Checked:
    """How good predictions were."""

    count: int
    """Between sizes; those beyond are counted apart."""
    error: float
    """Median, relative."""
    line_error: float
    """The same against the times that were stored: what the estimates themselves are wrong by."""
    change: float
    """Median factor by which the times themselves differ from those that were stored."""
    once: int
    """How many times of ``ONCE``."""
    once_error: float
    """Median of these, whose prediction is the time that was stored."""
    coverage: float
    """Share of both within their intervals, 0 to 1."""
    choices: int
    """Results for which there were two ways at least."""
    regret: float
    """Median over these: time of the way that was chosen over that of the best, less 1."""
    mean_regret: float
    extrapolated: int
    extrapolated_error: float
    """Median of those beyond the measured sizes or workers; 0 without any."""
    extrapolated_worst: float
    at: str
    """As of ``Prediction``."""
    refreshed: Checked | None
    """The same of what is said once other sizes were measured again."""

    @property
    def holds(self) -> bool:
        """Whether its intervals hold as many as they have to."""
        return self.coverage >= LEAST_COVERAGE


def checked(predictions: Iterable[Prediction]) -> Checked | None:
    """What predictions came to; ``None`` without one between sizes."""
    every = [*predictions]
    once = [one for one in every if one.time in ONCE]
    outside = [one.error for one in every if one.kind == "extrapolated"]
    inside = [one for one in every if one.time not in ONCE and one.kind != "extrapolated"]
    if not inside:
        return None
    regrets = regrets_of(every)
    return Checked(
        len(inside),
        median(one.error for one in inside),
        median(one.line_error for one in inside),
        math.exp(median(one.change for one in inside)),
        len(once),
        median([one.error for one in once] or [0.0]),
        fmean(one.holds for one in (*inside, *once)),
        len(regrets),
        median(regrets or [0.0]),
        fmean(regrets or [0.0]),
        len(outside),
        median(outside or [0.0]),
        max(outside, default=0.0),
        max(one.at for one in every),
        checked(anew(every)),
    )


def anew(predictions: Iterable[Prediction]) -> list[Prediction]:
    """Those that are known once other sizes were measured again."""
    later = []
    for one in predictions:
        if one.refreshed:
            seconds, low, high = one.refreshed
            later.append(replace(one, seconds=seconds, low=low, high=high, refreshed=None))
    return later


class Drifts(NamedTuple):
    """By how much times of the same sizes differ at another hour: logarithms of factors that hold
    ``LEVEL`` of all that were measured afresh on a setup; ``LEAST_DRIFT`` of few."""

    stored: float = LEAST_DRIFT
    refreshed: float = LEAST_DRIFT
    """Where some sizes of each way are measured again first."""


def drifts_of(verified: Iterable[Iterable[Prediction]]) -> Drifts:
    """What verifications found."""
    every = [*chain.from_iterable(verified)]
    return Drifts(
        _drift(one.measured / one.stored for one in every),
        _drift(
            one.measured / one.stored * one.seconds / one.refreshed[0]
            for one in every
            if one.refreshed
        ),
    )


def _drift(ratios: Iterable[float]) -> float:
    logs = [abs(math.log(ratio)) for ratio in ratios]
    return max(largest_of_level(logs), LEAST_DRIFT) if len(logs) >= FEWEST else LEAST_DRIFT


def regrets_of(predictions: Iterable[Prediction]) -> list[float]:
    """Of each result with two ways at least: time of the chosen way over the best, less 1."""
    problems: dict[tuple[object, ...], list[Prediction]] = defaultdict(list)
    for one in predictions:
        if one.time not in ONCE:  # nobody chooses by these alone
            problems[one.problem].append(one)
    return [
        min(group, key=lambda one: one.seconds).measured / min(one.fastest for one in group) - 1
        for group in problems.values()
        if len(group) > 1
    ]


def left_out(key: tuple[str, str], ways: Iterable[Way]) -> list[Prediction]:
    """Each size predicted from the others of the same run, by intervals that know of all: not
    measured afresh, and named so."""
    predictions = []
    for way in ways:
        for time, curve in way.curves.items():
            for place, point in enumerate(curve.points):
                others = replace(curve, points=curve.points[:place] + curve.points[place + 1 :])
                if others.points and (estimate := others.at(point.at)):
                    seconds = math.exp(point.guess.log)
                    predictions.append(_predicted(key, way, time, point.at, estimate, seconds))
    return predictions


def _predicted(
    key: tuple[str, str],
    way: Way,
    time: str,
    at: Sequence[float],
    estimate: Estimate,
    stored: float,
) -> Prediction:
    """What is said of a time that is not measured afresh."""
    seconds, low, high = _ends(estimate)
    return Prediction(
        *key,
        way.implementation,
        way.device,
        way.parameters,
        dict(zip(way.axes, at, strict=True)),
        time,
        estimate.kind,
        seconds,
        low,
        high,
        stored,
        measured=stored,
        fastest=stored,
        at="",
    )


def _ends(estimate: Estimate) -> tuple[float, float, float | None]:
    """Its seconds and its interval, as JSON can hold them."""
    high = None if estimate.high == math.inf else estimate.high
    return estimate.seconds, estimate.low, high


def without_hidden(
    ways: Sequence[Way],
) -> tuple[tuple[Way, ...], dict[tuple[int, str], list[Point]]]:
    """The ways as they are known without the hidden places, calibrated anew, and these by the way's
    place and the labelled time. Hidden are every second size along the axis that has the most, and
    the largest of three or more numbers of workers."""
    every = [point.at for way in ways for curve in way.curves.values() for point in curve.points]
    axes = len(ways[0].axes) - (WORKERS in ways[0].axes) if ways else 0
    columns = [sorted({at[axis] for at in every}) for axis in range(axes)]
    if not columns:
        return tuple(ways), {}
    axis = max(range(axes), key=lambda place: len(columns[place]))
    every_second = columns[axis][1::2]
    shown, taken = [], {}
    for place, way in enumerate(ways):
        curves, most = {}, way.counts[-1] if len(way.counts) > 2 else None
        for time, curve in way.curves.items():
            hidden = [p for p in curve.points if p.at[axis] in every_second or p.at[-1] == most]
            taken[place, time] = hidden
            if kept := tuple(point for point in curve.points if point not in hidden):
                curves[time] = Curve(kept)
        shown.append(replace(way, curves=curves))
    return calibrated(shown), taken


@dataclass(frozen=True, slots=True)
class Hidden:
    """A kernel some of whose places are hidden."""

    key: tuple[str, str]
    axes: tuple[str, ...]
    shown: tuple[Way, ...]
    """As they are known without these."""
    anew: tuple[Way, ...]
    """The same, once other sizes are measured again."""
    taken: dict[tuple[int, str], list[Point]]
    """By a way's place among them and the labelled time."""
    once: tuple[tuple[int, Row], ...]
    """Times of ``ONCE``, by a way's place: there is one of each, so that it is not hidden but
    measured again."""
    cases: frozenset[tuple[str, str, str]]
    """What has to be measured: implementation, labelled time and identity. Beside what is hidden
    that is what tells of another hour (``references``)."""
    drifts: Drifts


def hide(key: tuple[str, str], rows: Sequence[Row], drifts: Drifts) -> Hidden:
    """Hide places of a kernel with these rows on one setup."""
    sized = [row for row in rows if row.seconds and row.name.time in CURVES]
    axes = axes_of(sized)
    ways = ways_of(sized, axes, drift=drifts.stored)
    shown, taken = without_hidden(ways)
    later, _ = without_hidden(ways_of(sized, axes, drift=drifts.refreshed))
    places = {
        (ways[way].key, point.at, time) for (way, time), points in taken.items() for point in points
    }
    groups = of_ways(rows, axes)
    once = tuple(
        (place, row)
        for place, way in enumerate(ways)
        for row in once_rows([row for _, row in groups[way.key]])
    )
    telling = references(shown)
    measured = [row for _, row in once]
    for time, row in chain.from_iterable(groups.values()):
        if time[:3] in places or time in telling:
            measured.append(row)
    cases = frozenset((r.name.implementation, r.name.time, r.name.case) for r in measured)
    return Hidden(key, axes, shown, later, taken, once, cases, drifts)


def predictions_of(hidden: Hidden, fresh: Iterable[Row], when: str) -> list[Prediction]:
    """What is said of the hidden places, and of what a process pays once, beside ``fresh`` rows
    that were measured there ``when``; those without one are left out."""
    timed = ((time_of_way(row, hidden.axes), row.seconds) for row in fresh)
    measured = {time: seconds for time, seconds in timed if time and seconds}
    launches: dict[tuple[object, ...], dict[str, float]] = defaultdict(dict)
    for time, seconds in measured.items():
        launches[time[:3]][time.variant] = seconds
    predictions = []
    for (place, label), points in hidden.taken.items():
        way, later = hidden.shown[place], refreshed(hidden.anew[place], measured)
        curve = way.curves.get(label)
        for point in points:
            of_place = launches[way.key, point.at, label]
            estimate = curve and curve.at(point.at)
            if not (curve and estimate and of_place):
                continue
            stored, best = math.exp(point.guess.log), min(of_place.values())
            newer = later.curves[label].at(point.at)
            predictions.append(
                replace(
                    _predicted(hidden.key, way, label, point.at, estimate, stored),
                    measured=of_place.get(curve.variant(point.at), best),
                    fastest=best,
                    at=when,
                    refreshed=_ends(newer) if newer else None,
                )
            )
    for place, row in hidden.once:
        which = time_of_way(row, hidden.axes)
        if which and (again := measured.get(which)):
            estimate = as_stored(row, hidden.drifts.stored)
            one = _predicted(
                hidden.key, hidden.shown[place], which.time, which.at, estimate, estimate.seconds
            )
            predictions.append(replace(one, measured=again, fastest=again, at=when))
    return predictions


def verification_path(results: Path, setup: Setup) -> Path:
    """Where predictions for a setup are kept, of all commits: beside its results, under a name that
    asv does not read (``.json``), nor gpubench as a record."""
    name = record_name("advice", setup.environment).removesuffix(SUFFIX)
    return results / setup.machine / f"{name}.jsonl"


MOST_KEPT = 2**16
"""Predictions that are read of a file: some hundred verifications of a large suite."""


def verifications(path: Path, results: Path) -> dict[tuple[str, str], list[Prediction]]:
    """The newest verification of each kernel; none where there is no file that can be read. Lines
    that are no predictions, and of what is no time, are left out."""
    if leads_out(path, results):
        return {}
    try:
        lines = read_regular(path, MOST_BYTES).splitlines()[-MOST_KEPT:]
    except (OSError, ValueError, TooLarge):  # a NUL in its name: there is no such file
        return {}
    decoder = msgspec.json.Decoder(Prediction)
    kept: dict[tuple[str, str], list[Prediction]] = {}
    for line in lines:
        try:
            one = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue
        times = (one.seconds, one.stored, one.measured, one.fastest, *(one.refreshed or ())[:1])
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
