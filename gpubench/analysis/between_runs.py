"""The one rule between two stored runs: which cases became slower or faster.

1. A process of a case gives one value, the logarithm of the median of its rounds: what holds for
   all of a process (where pages lie, on which core it runs) is in all of its rounds alike.
2. A case's scatter comes only from processes of one commit within one run, so that no change of the
   code can inflate it; all runs of the setup count. It is shrunk towards that of its kind
   (``moderated``).
3. What a kind shares between the two runs (the clock, another processor, neighbours) is taken out,
   whatever its size. Beyond ``MAX_SHARED`` a case of that kind is called only where it is slower or
   faster with and without what is taken out, and it is never *sure*.
4. The quieter cases say what runs add to each case beside what processes show, ``tau``.
5. A case is called slower or faster where its p-value is below ``MAX_P_FEW`` or ``MAX_P_MANY``, by
   how many processes a side has; *sure* by Benjamini and Hochberg at ``SURE_RATE``. With one
   process on a side none is called: those below ``SUSPECT_P`` are suspects.

The design was judged on stored processes of one commit: ``scripts/detection_power.py`` prints how
many changes of which size it finds, and how many it calls that are none.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpubench.analysis.moderated import (
    Floats,
    Prior,
    estimate_tau,
    find_discoveries,
    fit_prior,
    moderate,
    p_values,
    standard_errors,
    t_quantile,
)

Call = Literal["slower", "faster", "suspect", "unchanged"]

MAX_P_MANY = 0.005
"""Largest p-value of a case called slower or faster, from ``MANY_PROCESSES`` on each side on."""

MAX_P_FEW = 0.0003
"""Largest p-value of a case called with two or three processes on a side: their tails are heavier
than the rule knows. With 0.1 % there, 1.3 % of the unchanged cases were called on a quiet machine.
"""

MANY_PROCESSES = 4

SUSPECT_P = 0.05
"""Largest p-value of a suspect, with one process on a side."""

SURE_RATE = 0.01
"""Share of the cases called sure that may be unchanged, on average."""

INTERVAL_ERROR = 0.01
"""Chance that the interval of a ratio misses it: the usual 99 %."""

MIN_SHARED_CASES = 5
"""Cases of a kind from which it is estimated what they share."""

MIN_SHARE_NEARER = 2 / 3
"""Share of the cases that have to be nearer to what they share than to no difference."""

MIN_SHARE_NEARER_LARGE = 0.9
"""Share of the cases that have to be nearer where they share more than ``MAX_SHARED``: a slower
processor moves nearly all cases of a kind. With 2/3, half of all cases changed would often pass for
one, in kinds of few cases."""

MAX_SHARED = math.log(1.3)
"""Logarithm of the factor beyond which what a kind shares may be its code: in runs of one commit on
one machine it was at most 1.1; on shared runners 1.38."""

MAX_TAU = 0.1
"""Standard deviation that runs add to a case, at most: more is what processes have to show."""

MIN_CHANGE = math.log(1.02)
"""Least change that is called: two builds of the same code may differ by a few per mille, in where
code lies, and nobody looks for so little."""

MIN_TAU_CASES = 20
"""Cases from which ``tau`` is estimated."""

PRIOR_CASES = 5.0
"""Cases of a kind as which ``KNOWN_SCATTER`` counts."""

_FREEDOM = 3.0
"""Degrees of freedom of what other machines showed: tails as of Student's t with 2 to 3."""

KNOWN_SCATTER: Mapping[str, Prior] = {
    kind: Prior(scatter**2, _FREEDOM)
    for kind, scatter in (
        ("one thread, below 10 µs", 0.07),
        ("one thread, up to 128 KiB", 0.05),
        ("one thread, up to 2 MiB", 0.08),
        ("one thread, up to 32 MiB", 0.05),
        ("one thread, over memory", 0.05),
        ("several threads, below 10 µs", 0.15),
        ("several threads, up to 128 KiB", 0.1),
        ("several threads, up to 2 MiB", 0.1),
        ("several threads, up to 32 MiB", 0.08),
        ("several threads, over memory", 0.1),
    )
}
"""What machines have shown so far of each kind: the standard deviation of the logarithm of a time
from process to process, between those of a quiet and of a restless day of one virtual machine
(``scripts/detection_power.py`` prints both)."""

IN_TURN = "speedups measured in turn"
"""Group of all speedups whose samples were taken in turn, whatever their kind."""

SPEEDUPS = ", speedups"
"""After the kind in the group of other speedups."""

UNKNOWN_SCATTER = Prior(0.1**2, _FREEDOM)
"""Prior of a kind of which no run was repeated yet: as wide as the widest of the others."""

SCATTER_IN_TURN = Prior(0.03**2, _FREEDOM)
"""Prior of speedups whose samples were taken in turn."""


@dataclass(frozen=True, slots=True)
class CaseRuns:
    """One case on two sides."""

    group: str
    """Its kind: cases that scatter alike and share what a run adds."""
    old: Sequence[float]
    """Logarithm of each process's value."""
    new: Sequence[float]
    squares: float = 0.0
    """Sum of squared deviations of processes from the mean of their run, of all other runs."""
    freedom: int = 0
    """Degrees of freedom of ``squares``."""
    is_disturbed: bool = False
    """Whether other work disturbed a side: its difference is stated, and never called."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all cases of a kind became slower or faster by."""

    group: str
    log: float
    """Logarithm of new over old; above 0 slower."""
    cases: int

    @property
    def is_large(self) -> bool:
        """Whether it may be more than the machine: nothing of its kind is sure."""
        return abs(self.log) > MAX_SHARED


@dataclass(frozen=True, slots=True)
class Judged:
    """What two runs tell of one case."""

    call: Call
    is_sure: bool
    log: float
    """Logarithm of new over old, without what its kind shares."""
    half_width: float
    """Of the 99 % interval of ``log``."""
    detectable: float
    """Least \\|``log``\\| that would have been called, or a suspect."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What two runs tell of all cases."""

    cases: tuple[Judged, ...]
    shared: tuple[Shared, ...]
    """Of the kinds that share something."""


def judge(cases: Sequence[CaseRuns]) -> Judgement:
    """Judge cases together."""
    if not cases:
        return Judgement((), ())
    differences = np.array([np.mean(case.new) - np.mean(case.old) for case in cases])
    groups: dict[str, list[int]] = defaultdict(list)
    for place, case in enumerate(cases):
        groups[case.group].append(place)
    variances, freedoms = _variances(cases, groups)
    taken = np.zeros(len(cases))
    shared = []
    for group, places in groups.items():
        log = _shared_log(differences[places])
        if log:
            taken[places] = log
            shared.append(Shared(group, log, len(places)))
    return Judgement(_call(cases, differences, taken, variances, freedoms), tuple(shared))


def known_scatter(group: str) -> Prior:
    """Return what other machines showed of a kind, or of its speedups."""
    if group == IN_TURN:
        return SCATTER_IN_TURN
    kind = group.removesuffix(SPEEDUPS)
    known = KNOWN_SCATTER.get(kind, UNKNOWN_SCATTER)
    # A speedup has the scatter of two times.
    return known if kind == group else Prior(2 * known.variance, known.freedom)


def _variances(
    cases: Sequence[CaseRuns], groups: Mapping[str, Sequence[int]]
) -> tuple[Floats, Floats]:
    """Return the variance of a process of each case, and its degrees of freedom."""
    squares = np.array([case.squares + _squares(case.old) + _squares(case.new) for case in cases])
    freedom = np.array(
        [case.freedom + len(case.old) - 1 + len(case.new) - 1 for case in cases], np.float64
    )
    raw = squares / np.maximum(freedom, 1)
    variances = np.zeros(len(cases))
    total = np.zeros(len(cases))
    for group, places in groups.items():
        prior = fit_prior(raw[places], freedom[places], known_scatter(group), PRIOR_CASES)
        variances[places], total[places] = moderate(raw[places], freedom[places], prior)
    return variances, total


def _squares(logs: Sequence[float]) -> float:
    return float(np.var(logs) * len(logs))


def find_shift(differences: Floats) -> tuple[float, NDArray[np.bool_]]:
    """Return the median difference of cases, and which are nearer to it than to no difference.

    ``differences``: logarithms, shape (cases,).
    """
    shift = float(np.median(differences))
    return shift, np.abs(differences - shift) < np.abs(differences)


def _shared_log(differences: Floats) -> float:
    """Return what cases share: their median difference, where most are nearer to it than to 0."""
    if len(differences) < MIN_SHARED_CASES:
        return 0.0
    shift, is_nearer = find_shift(differences)
    least = MIN_SHARE_NEARER_LARGE if abs(shift) > MAX_SHARED else MIN_SHARE_NEARER
    return shift if is_nearer.mean() >= least else 0.0


def _call(
    cases: Sequence[CaseRuns],
    differences: Floats,
    taken: Floats,
    variances: Floats,
    freedoms: Floats,
) -> tuple[Judged, ...]:
    """Call cases by their ``differences``, of which what their kinds share is ``taken`` out."""
    old = np.array([len(case.old) for case in cases])
    new = np.array([len(case.new) for case in cases])
    is_disturbed = np.array([case.is_disturbed for case in cases])
    logs = differences - taken
    errors = standard_errors(variances, old, new)
    fewest = np.minimum(old, new)
    is_single = fewest < 2
    tau = 0.0
    if len(logs) >= MIN_TAU_CASES:
        if is_single.all():  # all that is known of their scatter is what other machines showed
            tau = estimate_tau(logs, errors, freedoms, 1.0, share=0.5)
        else:
            tau = estimate_tau(logs, errors, freedoms, MAX_TAU)
    errors = np.hypot(errors, tau)
    limits = np.select([is_single, fewest < MANY_PROCESSES], [SUSPECT_P, MAX_P_FEW], MAX_P_MANY)
    p = p_values(logs, errors, freedoms)
    is_large = np.abs(taken) > MAX_SHARED
    both = np.maximum(p, p_values(differences, errors, freedoms))
    p = np.where(is_large, np.where(logs * differences > 0, both, 1.0), p)
    is_called = (p <= limits) & (np.abs(logs) >= MIN_CHANGE) & ~is_disturbed
    sure = np.array(find_discoveries([*np.where(is_called & ~is_single, p, 1.0)], SURE_RATE))
    sure &= ~is_large
    widths = t_quantile(INTERVAL_ERROR, freedoms) * errors
    detectable = np.maximum(t_quantile(limits, freedoms) * errors, MIN_CHANGE)
    return tuple(
        Judged(
            "unchanged" if not call else "suspect" if one else "slower" if log > 0 else "faster",
            bool(certain),
            float(log),
            float(width),
            float(least),
        )
        for call, one, log, certain, width, least in zip(
            is_called, is_single, logs, sure, widths, detectable, strict=True
        )
    )
