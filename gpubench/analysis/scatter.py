"""How much times differ from one run to the next: learned from history, for each case and its kind.

Rounds of one process do not show it. What is known stands in three places, and each weighs as much
as it tells: what other machines showed of the kind (``SEEN``), what ``gpubench calibrate`` measured
on this one, and the differences of neighbouring runs in its history.

The scatter of a case is the standard deviation of the logarithm of its time in one run. It has a
discrete prior for each kind: a share of the cases for each value of ``GRID``. History corrects the
shares by nonparametric maximum likelihood (Kiefer and Wolfowitz, Annals of Mathematical Statistics
27, 1956) with the EM algorithm, where ``SEEN`` counts as ``PRIOR_CASES`` cases; so a kind of which
one case in ten leaps to another level has a heavy tail. A case's own differences then give it a
posterior over the same values (empirical Bayes; Efron, *Large-Scale Inference*, 2010, chapter 1):
with few runs it is that of its kind, with many its own.

Commits change code. Of the differences of a case its largest, one in ten, may be such a change:
they count as censored, as no smaller than the largest that is left.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpubench.errors import GpubenchError
from gpubench.links import leads_out
from gpubench.results import CaseName, Row, Setup, Table
from gpubench.results.calibration import CALIBRATION_FORMAT
from gpubench.results.kinds import CASE_KINDS, Kind, kind_of, uses_threads

Floats = NDArray[np.float64]

Limits = tuple[float, ...]
"""Differences of logarithms of two runs of unchanged code that are exceeded with the chances
``LEVELS``, ascending."""

LEVELS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)

GRID: Floats = np.exp(np.linspace(math.log(0.001), math.log(1.0), 28))
"""Scatters that a case can have: 0.1 % to 2.7 times, each 1.29 times the one before."""

RECENT_RUNS = 40
"""Newest runs that count: older ones may be another machine in all but name."""

CHANGES_IN = 10
"""Neighbouring commits of which one may have changed a case."""

PRIOR_CASES = 20.0
"""Cases that ``SEEN`` counts for; as many of a kind are in the runs that it comes from."""

TAILS = (4, 10, 60)
"""Degrees of freedom of the t distributions that a case's differences can have, even numbers: 60 is
as good as normal. History decides for the machine."""

MIN_DIFFERENCES_FOR_TAIL = 500
"""Fewer do not tell how heavy tails are."""

EM_STEPS = 50
"""From a prior that history corrects, fifty more change shares by less than a hundredth."""

MIN_UNKNOWN_SHARE = 1e-3
"""Share of cases that history may put where the prior has none."""

MIN_CASES_FOR_SHARED = 10
"""One-thread cases from which it is estimated what a whole run shares; of fewer, one changed case
could pass for it."""

MIN_SHARE_OF_SHARED = 2 / 3
"""Share of the cases that have to be nearer to what they share than to 0. Of fewer the others would
be called changed in their place."""

MAX_SHARED = math.log(1.3)
"""Logarithm of the largest factor that a whole run is taken to share. In the runs of ``SEEN`` it
was at most 1.05; most cases that are further off have been changed."""

CALIBRATION = "calibration.gpubench"
"""In the folder of a machine, by ``gpubench calibrate``."""

CALIBRATION_PRIOR_RUNS = 5
"""Runs of control kernels as which ``SEEN`` counts against them."""

MAX_CALIBRATION_FACTOR = 4.0
"""How far control kernels may move what other machines showed: they are few."""

MAX_CASES_FOR_TAIL = 500
"""Cases of a kind that tell how heavy tails are; more would take longer and tell the same."""

SHARED_SEEN = 0.02
"""Standard deviation of what two runs share, as a logarithm: in the runs of ``SEEN`` it was between
0.1 and 5 %."""

SHARED_PRIOR_RUNS = 5
"""Pairs of runs as which ``SHARED_SEEN`` counts."""

NORMAL_99 = 2.576
"""Standard deviations that hold 99 % of a normal distribution."""

NORMAL_95 = 1.96
"""Standard deviations that hold 95 % of a normal distribution."""

NORMAL_90 = 1.645
"""Standard deviations that hold 90 % of a normal distribution."""

SHARED_STEPS = 50
"""Of an iteration that then stands to many digits."""

Atoms = tuple[tuple[float, float], ...]
"""Shares of cases, and their scatter."""


def _mixed(*parts: Atoms) -> Atoms:
    return tuple((share / len(parts), scatter) for part in parts for share, scatter in part)


RESTLESS_SHARE = 0.05
"""Weight of what a restless machine showed beside the quiet one: the largest with which 1.5 times
is still found in half of the cases where three runs of the quiet one are known."""


def _with_restless(quiet: Atoms, restless: Atoms) -> Atoms:
    return (
        *((share * (1 - RESTLESS_SHARE), scatter) for share, scatter in quiet),
        *((share * RESTLESS_SHARE, scatter) for share, scatter in restless),
    )


_ONE_BRIEF = _with_restless(
    ((0.25, 0.01), (0.5, 0.036), (0.08, 0.077), (0.17, 0.13)), ((0.12, 0.215), (0.88, 0.278))
)
_ONE_SMALL = _with_restless(
    ((0.5, 0.007), (0.35, 0.017), (0.15, 0.036)), ((0.59, 0.129), (0.05, 0.278), (0.36, 0.359))
)
_ONE_PAGES = _with_restless(
    ((0.2, 0.006), (0.35, 0.015), (0.2, 0.07), (0.06, 0.13), (0.19, 0.46)),
    ((0.16, 0.036), (0.15, 0.077), (0.56, 0.1), (0.13, 0.215)),
)
_RESTLESS_ONE: Atoms = ((0.54, 0.1), (0.46, 0.129))
_ONE_CACHE = _with_restless(((0.25, 0.01), (0.33, 0.025), (0.42, 0.06)), _RESTLESS_ONE)
_ONE_MEMORY = _with_restless(((0.2, 0.01), (0.7, 0.036), (0.1, 0.13)), _RESTLESS_ONE)
_MANY_BRIEF = _with_restless(((0.9, 0.215), (0.1, 0.28)), ((1.0, 0.215),))
_MANY_SMALL = _with_restless(
    ((0.25, 0.015), (0.6, 0.046), (0.15, 0.28)), ((0.03, 0.077), (0.14, 0.1), (0.83, 0.129))
)
_MANY_PAGES = _with_restless(
    ((0.25, 0.02), (0.5, 0.077), (0.2, 0.24), (0.05, 0.6)),
    ((0.03, 0.06), (0.25, 0.077), (0.49, 0.1), (0.23, 0.129)),
)
_RESTLESS_MANY: Atoms = ((0.45, 0.06), (0.07, 0.077), (0.19, 0.1), (0.29, 0.129))
_MANY_CACHE = _with_restless(((0.3, 0.03), (0.5, 0.07), (0.2, 0.167)), _RESTLESS_MANY)
_MANY_MEMORY = _with_restless(((0.35, 0.02), (0.3, 0.05), (0.35, 0.215)), _RESTLESS_MANY)

SEEN: Mapping[Kind, Atoms] = {
    "one thread, below 10 µs": _ONE_BRIEF,
    "one thread, up to 128 KiB": _ONE_SMALL,
    "one thread, up to 2 MiB": _ONE_PAGES,
    "one thread, up to 32 MiB": _ONE_CACHE,
    "one thread, over memory": _ONE_MEMORY,
    "one thread, bytes not known": _mixed(
        _ONE_BRIEF, _ONE_SMALL, _ONE_PAGES, _ONE_CACHE, _ONE_MEMORY
    ),
    "several threads, below 10 µs": _MANY_BRIEF,
    "several threads, up to 128 KiB": _MANY_SMALL,
    "several threads, up to 2 MiB": _MANY_PAGES,
    "several threads, up to 32 MiB": _MANY_CACHE,
    "several threads, over memory": _MANY_MEMORY,
    "several threads, bytes not known": _mixed(
        _MANY_BRIEF, _MANY_SMALL, _MANY_PAGES, _MANY_CACHE, _MANY_MEMORY
    ),
    # Of these no run was repeated yet. They begin with the widest of the others.
    "GPU, below 10 µs": _MANY_BRIEF,
    "GPU, from 10 µs on": _MANY_BRIEF,
    "other processes": _MANY_BRIEF,
    "once in a process": _MANY_BRIEF,
}
"""What machines have shown so far: whole runs of one commit and of the one before it, which differs
in comments, one after the other on two cores of a virtual machine (AMD EPYC): four of all suites in
the preset smoke, four of two to five suites in the default preset; 546 differences of 214 cases.
And of a restless machine of the same kind, on which times of one thread lay at two levels, 1.8
times apart: seven runs of ten suites in smoke, 450 differences of 75 cases.
``scripts/same_commit.py`` prints these figures of other runs."""

SEEN_RATIOS: Atoms = ((0.4, 0.01), (0.6, 0.036))
"""The same of speedups whose samples were taken in turn: 12 cases in those runs."""


def chance_beyond(ratios: Floats, freedom: int) -> Floats:
    """Return the chance that Student's t with so many degrees of freedom, an even number, is beyond
    these values on either side (Abramowitz and Stegun, 26.7.4)."""
    squares = ratios**2
    cosines = freedom / (freedom + squares)
    term = total = np.ones_like(squares)
    for k in range(1, freedom // 2):
        term = term * ((2 * k - 1) / (2 * k)) * cosines
        total = total + term
    chances: Floats = np.maximum(1 - np.sqrt(1 - cosines) * total, 0.0)
    return chances


def log_density(ratios: Floats, freedom: int) -> Floats:
    """Return the logarithm of the density of Student's t."""
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom) / 2
    density: Floats = scale - (freedom + 1) / 2 * np.log1p(ratios**2 / freedom)
    return density


def log_likelihoods(differences: Floats, freedom: int) -> Floats:
    """Return the log-likelihood of each scatter of ``GRID`` by the differences of cases, shape
    (cases, runs - 1) with NaN where there is none; the largest ones of a case are censored.

    Neighbouring differences share a run: ``n`` of them tell as much as ``2 n**2 / (3 n - 1)`` that
    share none (the variance of von Neumann's estimator, Annals of Mathematical Statistics 12,
    1941).
    """
    ordered = np.sort(np.abs(differences), axis=1)  # NaN come last
    counts = np.sum(~np.isnan(ordered), axis=1)
    dropped = -(-counts // CHANGES_IN)
    places = np.arange(ordered.shape[1])
    is_kept = places < (counts - dropped)[:, None]
    kept = np.where(is_kept, ordered, 0.0)
    largest = kept.max(axis=1, initial=0.0)
    logs = np.empty((len(ordered), len(GRID)))
    for place, scatter in enumerate(math.sqrt(2) * GRID):
        each = np.where(is_kept, log_density(kept / scatter, freedom) - math.log(scatter), 0.0)
        beyond = np.maximum(chance_beyond(largest / scatter, freedom), 1e-300)
        logs[:, place] = each.sum(axis=1) + dropped * np.log(beyond)
    left = np.maximum(counts - dropped, 1)
    logs *= (2 * left / (3 * left - 1))[:, None]
    return logs


def on_grid(atoms: Atoms) -> Floats:
    """Return the share of each scatter of ``GRID``."""
    shares = np.zeros(len(GRID))
    for share, scatter in atoms:
        shares[np.abs(np.log(GRID / scatter)).argmin()] += share
    return shares


def fit_shares(prior: Floats, cases: float, logs: Floats) -> tuple[Floats, float]:
    """Return the shares of a kind by the likelihoods of its cases, where the prior counts for so
    many cases, and the log-likelihood that they reach."""
    if not len(logs):
        return prior, 0.0
    largest = logs.max(axis=1, keepdims=True)
    likelihoods = np.exp(logs - largest)
    shares = (1 - MIN_UNKNOWN_SHARE) * prior + MIN_UNKNOWN_SHARE / len(GRID)
    for _ in range(EM_STEPS):
        weights = shares * likelihoods
        weights /= weights.sum(axis=1, keepdims=True)
        shares = (cases * prior + weights.sum(axis=0)) / (cases + len(logs))
    reached = np.log((shares * likelihoods).sum(axis=1)) + largest[:, 0]
    return shares, float(reached.sum())


_REACH: Floats = np.exp(np.linspace(math.log(1e-4), math.log(40.0), 400))
"""Differences among which limits are sought."""


def limits_of_weights(weights: Floats, freedom: int) -> Floats:
    """Return limits, shape (cases, levels), from the weights of ``GRID`` of each case."""
    tails = chance_beyond(_REACH[None, :] / (math.sqrt(2) * GRID[:, None]), freedom)
    # Not with @: threads of OpenBLAS wait for the next product by spinning, on all processors. Of a
    # store with twelve setups that was a seventh of the report.
    chances = np.einsum("ij,jk->ik", weights, tails)
    return np.stack(
        [_REACH[np.minimum((chances > level).sum(axis=1), len(_REACH) - 1)] for level in LEVELS],
        axis=1,
    )


@dataclass(frozen=True, slots=True)
class KindScatter:
    """What is known of the cases of one kind on a setup."""

    kind: Kind
    limits: Limits
    cases: int
    """That have differences of neighbouring runs."""
    differences: int


@dataclass(frozen=True, slots=True)
class RunScatter:
    """How much times of a setup differ from run to run."""

    times: Mapping[CaseName, Limits] = field(default_factory=dict)
    ratios: Mapping[CaseName, Limits] = field(default_factory=dict)
    """Of speedups."""
    kinds: tuple[KindScatter, ...] = ()
    """Of times, in the order of ``CASE_KINDS``; those that the setup has."""
    shared: float = SHARED_SEEN
    """Standard deviation of what two runs share against each other, as a logarithm: the clock, the
    machine."""
    runs: int = 0
    """Whose neighbours were compared."""
    calibrated: bool = False
    """Whether control kernels were measured on the machine."""
    notes: tuple[str, ...] = ()
    """What could not be read."""

    def limits_of(self, row: Row, of_ratio: bool) -> Limits:
        """Return the limits of a case's time, or of its speedup; where the setup has no results of
        it, what other machines showed."""
        known = (self.ratios if of_ratio else self.times).get(row.name)
        return known or _seen_limits(_RATIO_GROUP if of_ratio and row.pairs else kind_of(row))

    def next_run(self, row: Row) -> tuple[float, float] | None:
        """Return where the next run's median of a case lies with a chance of 99 %, in the row's
        unit, as long as code and machine stay; ``None`` without a time.

        What the case differs by and what its whole run shares have nothing in common, so that their
        limits are added as squares.
        """
        if row.seconds is None:
            return None
        limit = math.hypot(self.limits_of(row, False)[1], NORMAL_99 * self.shared)
        return row.seconds * math.exp(-limit), row.seconds * math.exp(limit)


NOTHING_KNOWN = RunScatter()

_RATIO_GROUP: Literal["ratio"] = "ratio"
_Group = Kind | Literal["ratio"]
"""Cases that share a prior: those of a kind, and all ratios of samples taken in turn."""


def prior_of(group: _Group) -> Atoms:
    """Return what other machines showed."""
    return SEEN_RATIOS if group == _RATIO_GROUP else SEEN[group]


@lru_cache(maxsize=len(CASE_KINDS) + 1)
def _seen_limits(group: _Group) -> Limits:
    shares = on_grid(prior_of(group))
    return tuple(limits_of_weights(shares[None], TAILS[-1])[0].tolist())


def chance_of(difference: float, limits: Limits) -> float:
    """Return the chance that two runs of unchanged code differ by so much, between ``LEVELS`` by
    its logarithm; never less than the last of them."""
    low, chance_low = 0.0, 1.0
    for limit, chance in zip(limits, LEVELS, strict=True):
        if difference < limit:
            part = max((difference - low) / (limit - low), 0.0)
            return math.exp((1 - part) * math.log(chance_low) + part * math.log(chance))
        low, chance_low = limit, chance
    return LEVELS[-1]


@dataclass(frozen=True, slots=True)
class Shared:
    """What all one-thread times of a run share against those of another: the clock, the machine."""

    log: float = 0.0
    """Logarithm of old over new."""
    error: float = 0.0
    """Standard deviation of ``log``."""
    cases: int = 0
    """0 where there are too few."""

    @property
    def is_seen(self) -> bool:
        """Whether it is more than chance."""
        return abs(self.log) > NORMAL_95 * self.error

    @property
    def taken(self) -> float:
        """What is taken out of every difference: ``log``, or 0 of what may be chance, and of more
        than runs share."""
        return self.log if self.is_seen and abs(self.log) <= MAX_SHARED else 0.0


def shared_difference(differences: Sequence[tuple[float, float]]) -> Shared:
    """Estimate what cases share from the logarithms of their ratios, each with its limit of 90 %.

    It is the location of Cauchy distributions with these scales, by a maximum of its likelihood:
    cases far off have next to no weight. Of the maximum next to 0 and the one next to the median
    the latter counts where most cases are nearer to it (``MIN_SHARE_OF_SHARED``). The error is by
    Fisher's information, which is half of that of normal values.
    """
    if len(differences) < MIN_CASES_FOR_SHARED:
        return Shared()
    logs = [log for log, _ in differences]
    squares = [(limit / NORMAL_90) ** 2 for _, limit in differences]
    near, common = (_location(start, logs, squares) for start in (0.0, median(logs)))
    nearer = sum(abs(log - common) < abs(log - near) for log in logs)
    location = common if nearer >= MIN_SHARE_OF_SHARED * len(logs) else near
    return Shared(location, math.sqrt(2 / sum(1 / s for s in squares)), len(logs))


def _location(start: float, logs: Sequence[float], squares: Sequence[float]) -> float:
    """Climb the likelihood of Cauchy distributions with these squared scales."""
    location = start
    for _ in range(SHARED_STEPS):
        weights = [1 / (s + (log - location) ** 2) for log, s in zip(logs, squares, strict=True)]
        location = sum(w * log for w, log in zip(weights, logs, strict=True)) / sum(weights)
    return location


def learn_scatter(places: Iterable[tuple[Table, Setup]]) -> RunScatter:
    """Learn how much times differ between runs from all that tables hold of one setup.

    Of several tables, such as of two results folders, a run that both hold counts once.
    """
    history = _Runs()
    for table, setup in places:
        history.add(table, setup)
    return history.learn()


def scatter_sources(table: Table, setup: Setup) -> str:
    """Return what changes with anything that ``learn_scatter`` reads of a setup."""
    snapshots = table.snapshots(setup.everywhere)[-RECENT_RUNS:]
    machines = dict.fromkeys(snapshot.measured_on for snapshot in snapshots)
    files = (table.folder / machine / CALIBRATION for machine in machines)
    stamps = [(s.st_size, s.st_mtime_ns) for file in files if file.is_file() and (s := file.stat())]
    return repr(([snapshot.digest for snapshot in snapshots], stamps))


class _Runs:
    """Times and speedups of cases over the runs of a setup."""

    def __init__(self) -> None:
        self._names: dict[CaseName, int] = {}
        self._rows: list[Row] = []
        """Of each case that of its newest run."""
        self._columns: list[tuple[Floats, Floats, list[int]]] = []
        """Of each run the logarithms of times and speedups of these cases."""
        self._places: dict[tuple[str, str | None], str] = {}
        """Which runs there are, and on which machine and processor."""
        self._prior: dict[Kind, Atoms] = dict(SEEN)
        self._calibrated = False
        self._notes: list[str] = []

    def add(self, table: Table, setup: Setup) -> None:
        """Add the newest runs of a table."""
        everywhere = setup.everywhere
        snapshots = table.snapshots(everywhere)[-RECENT_RUNS:]
        if not snapshots:
            return
        for machine in dict.fromkeys(snapshot.measured_on for snapshot in snapshots):
            self._calibrate(table.folder, machine)
        history = table.history(everywhere, snapshots=snapshots)
        rows = table.newest_rows(everywhere)
        ids = []
        for name in history.names:
            if name not in self._names:
                self._names[name] = len(self._rows)
                self._rows.append(rows[name])
            ids.append(self._names[name])
        with np.errstate(invalid="ignore", divide="ignore"):
            times = np.log(history.undisturbed[0])
            ratios = np.log(np.where(history.disturbed, np.nan, history.speedups[0]))
        for place, snapshot in enumerate(snapshots):
            run = snapshot.commit.hash, snapshot.measured_at
            if run not in self._places:
                self._places[run] = f"{snapshot.measured_on} {snapshot.processor}"
                self._columns.append((times[:, place], ratios[:, place], ids))

    def _calibrate(self, folder: Path, machine: str) -> None:
        try:
            measured = read_calibration(folder, machine)
        except GpubenchError as error:
            self._notes.append(str(error))
            return
        for kind, (scatter, runs) in measured.items():
            self._prior[kind] = _calibrated(SEEN[kind], scatter, runs)
        self._calibrated = self._calibrated or bool(measured)

    def learn(self) -> RunScatter:
        count = len(self._rows)
        kinds = [kind_of(row) for row in self._rows]
        alone = np.array([is_one_thread(row) for row in self._rows], np.bool_)
        times, ratios = self._differences(0), self._differences(1)
        shared: list[float] = []
        for column in times.T:
            known = column[alone & ~np.isnan(column)]
            if len(known) >= MIN_CASES_FOR_SHARED:
                shared.append(float(np.median(known)))
                column -= shared[-1]
        groups: dict[Kind, list[int]] = defaultdict(list)
        for place, kind in enumerate(kinds):
            groups[kind].append(place)
        priors = {kind: on_grid(self._prior[kind]) for kind in groups}
        freedom = _tail(times, groups, priors)
        limits = np.zeros((count, len(LEVELS)))
        found = []
        for kind in (kind for kind in CASE_KINDS if kind in groups):
            cases = groups[kind]
            of_kind, shares = _limits(times[cases], priors[kind], freedom)
            limits[cases] = of_kind
            counts = np.sum(~np.isnan(times[cases]), axis=1)
            overall = limits_of_weights(shares[None], freedom)[0]
            found.append(
                KindScatter(
                    kind, tuple(overall.tolist()), int(np.sum(counts > 0)), int(counts.sum())
                )
            )
        of_ratios = np.zeros((count, len(LEVELS)))
        in_turn = [place for place, row in enumerate(self._rows) if row.pairs]
        if in_turn:
            of_ratios[in_turn], _ = _limits(ratios[in_turn], on_grid(SEEN_RATIOS), freedom)
        for kind, cases in groups.items():
            others = [place for place in cases if not self._rows[place].pairs]
            if others:
                of_ratios[others], _ = _limits(ratios[others], priors[kind], freedom)
        every = [*self._names]
        return RunScatter(
            times=dict(zip(every, map(tuple, limits.tolist()), strict=True)),
            ratios=dict(zip(every, map(tuple, of_ratios.tolist()), strict=True)),
            kinds=tuple(found),
            shared=_shared_scatter(shared),
            runs=len(self._columns),
            calibrated=self._calibrated,
            notes=tuple(self._notes),
        )

    def _differences(self, which: Literal[0, 1]) -> Floats:
        """Logarithms of neighbouring runs' ratios, shape (cases, runs - 1), NaN without."""
        values = np.full((len(self._rows), len(self._columns)), np.nan)
        for place, column in enumerate(self._columns):
            values[column[2], place] = column[which]
        differences: Floats = np.diff(values, axis=1)
        # The same to the last digit: one measurement, which two commits or folders share.
        differences[differences == 0] = np.nan
        places = [*self._places.values()]
        elsewhere = [one != other for one, other in pairwise(places)]
        differences[:, elsewhere] = np.nan
        return differences


def _shared_scatter(shared: Sequence[float]) -> float:
    """Return the standard deviation of what neighbouring runs share. More than ``MAX_SHARED`` is a
    change of all cases."""
    squares = [value**2 for value in shared if abs(value) <= MAX_SHARED]
    total = SHARED_PRIOR_RUNS * SHARED_SEEN**2 + sum(squares)
    return math.sqrt(total / (SHARED_PRIOR_RUNS + len(squares)))


def is_one_thread(row: Row) -> bool:
    """Return whether a case tells of what a whole run shares: one thread on the processor."""
    return kind_of(row).startswith("one thread") and not uses_threads(row)


def _limits(differences: Floats, prior: Floats, freedom: int) -> tuple[Floats, Floats]:
    """Limits of cases of one kind, shape (cases, levels), and the shares of the kind."""
    logs = log_likelihoods(differences, freedom)
    has_any = ~np.isnan(differences).all(axis=1) if differences.size else np.zeros(len(logs), bool)
    shares, _ = fit_shares(prior, PRIOR_CASES, logs[has_any])
    weights = shares * np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return limits_of_weights(weights, freedom), shares


def _tail(
    times: Floats, groups: Mapping[Kind, Sequence[int]], priors: Mapping[Kind, Floats]
) -> int:
    """Degrees of freedom under which the differences of all kinds are likeliest."""
    if np.sum(~np.isnan(times)) < MIN_DIFFERENCES_FOR_TAIL:
        return TAILS[-1]

    def reached(freedom: int) -> float:
        return sum(
            fit_shares(priors[kind], PRIOR_CASES, log_likelihoods(times[chosen], freedom))[1]
            for kind, cases in groups.items()
            if (chosen := [*cases][:MAX_CASES_FOR_TAIL])
        )

    return max(TAILS, key=reached)


def _calibrated(seen: Atoms, scatter: float, runs: int) -> Atoms:
    """Return what other machines showed, moved to what control kernels showed on this one, by as
    much as their runs count."""
    middle = math.exp(sum(share * math.log(value) for share, value in seen))
    factor = min(max(scatter / middle, 1 / MAX_CALIBRATION_FACTOR), MAX_CALIBRATION_FACTOR)
    part = runs / (runs + CALIBRATION_PRIOR_RUNS)
    moved = tuple((share * part, value * factor) for share, value in seen)
    return (*moved, *((share * (1 - part), value) for share, value in seen))


def read_calibration(folder: Path, machine: str) -> dict[Kind, tuple[float, int]]:
    """Return the scatter of each kind that control kernels showed, and in how many runs; empty
    where they were not measured. Raises ``GpubenchError`` for a damaged file."""
    file = folder / machine / CALIBRATION
    if not file.is_file() or leads_out(file, folder):
        return {}
    again = "run `gpubench calibrate` again"
    try:
        content = json.loads(file.read_bytes())
        if content["format"] != CALIBRATION_FORMAT:
            raise GpubenchError(
                f"{machine}/{CALIBRATION}: format {content['format']}, and this release reads "
                f"{CALIBRATION_FORMAT}; {again}"
            )
        measured = {
            kind: (float(each["scatter"]), int(each["runs"]))
            for kind in CASE_KINDS
            if (each := content["kinds"].get(kind))
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise GpubenchError(f"{machine}/{CALIBRATION} cannot be read: {error}; {again}") from error
    for kind, (scatter, runs) in measured.items():
        if not (0 < scatter < math.inf and runs > 1):
            raise GpubenchError(
                f"{machine}/{CALIBRATION}: {kind} has a scatter of {scatter:g} in {runs} runs; a "
                f"scatter is above 0 and needs two runs; {again}"
            )
    return measured


def find_changes(chances: Sequence[float], rate: float, most: float = 1.0) -> list[bool]:
    """Return which of these are changes, so that of those at most a share of ``rate`` is none, and
    no chance is above ``most``.

    Benjamini and Hochberg (Journal of the Royal Statistical Society B 57, 1995). They assume
    independent cases or such that are alike in what chance does to them (Benjamini and Yekutieli,
    Annals of Statistics 29, 2001), as cases of one run are. Where nothing has changed, ``rate`` is
    the chance of any alarm.
    """
    order = sorted(range(len(chances)), key=chances.__getitem__)
    last = max(
        (n for n, place in enumerate(order, 1) if chances[place] <= rate * n / len(order)),
        default=0,
    )
    changed = {place for place in order[:last] if chances[place] <= most}
    return [place in changed for place in range(len(chances))]
