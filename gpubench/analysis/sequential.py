"""Judge cases while they are still measured: an e-value for each, looked at after every pair.

Two commits are measured in turn, a process each, and a *pair* of processes gives ``x``, the
logarithm of the old time over the new one: ``x = theta + s * noise``. ``theta`` is the change,
``s`` the scatter of the case's pairs, and the noise is Student's t with ``NU`` degrees of freedom,
because pairs have heavy tails.

**Slower, faster.** The e-value ``E`` of a case is the likelihood of its pairs under ``CHANGES``
over that under no change. Both are averaged over one prior of the scatter. Under no change the mean
of ``E`` is at most 1 after any number of pairs, so that it ever exceeds ``1 / a`` with a chance of
at most ``a`` (Ville's inequality). Looking after every pair costs nothing. See Ramdas, Grunwald,
Vovk and Shafer, *Game-theoretic statistics and safe anytime-valid inference*, Statistical Science
38, 2023. A case is called at ``CALLED_AT``. Of many cases the e-Benjamini-Hochberg procedure says
which are *sure* (Wang and Ramdas, JRSS B 84, 2022). It needs no independence of the cases.

**Same.** A second e-value: the likelihood under changes within 3 % over the largest likelihood of
any change beyond ``SAME_FACTOR``.

**Interval.** It has every change that the e-value against this one change does not exclude at
``CALLED_AT``: a confidence sequence of the same likelihood, which leaves 1x out exactly where
the case is called.

**Scatter.** Its prior is ``default_prior()``, and as soon as each case has ``FIRST_PAIRS`` pairs,
what the first pairs of the other cases of its kind show. A case's own pairs are left out, so that
its e-value stays one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpubench.analysis.between_runs import SURE_RATE
from gpubench.analysis.differences import ComparisonVerdict
from gpubench.analysis.moderated import Floats, bisect, find_discoveries
from gpubench.results.ratio import Ratio

NU = 4.0
"""Degrees of freedom of the noise. Processes of one commit have tails as of 2 to 3 (runs of one
commit on a quiet and a restless day); differences of two of them have lighter ones."""

SCATTERS: Floats = np.geomspace(0.005, 1.5, 20)
"""Scatters of a pair's logarithm that are thought of, as scales of the t distribution."""

PRIOR_SCATTER = 0.05
"""Median of the default prior. Times of one commit scatter between processes by 1 to 8 % on a quiet
virtual machine, and by 6 to 24 % beside other work, by kind of case (``docs/measurements.md``)."""

PRIOR_SPREAD = 1.0
"""Standard deviation of the prior's logarithm: 0.7 to 37 % hold 95 %, which is both days."""

CHANGES: Floats = np.concatenate([sign * np.geomspace(0.03, 1.5, 40) for sign in (1, -1)])
"""Logarithms of the changes that are looked for: +-3 % to 4.5x, evenly by the log of their size."""

CALLED_AT = 300.0
"""E-value at which a case is slower or faster: false for an unchanged case with a chance of 0.33 %
at most."""

SAME_AT = 100.0
"""E-value at which a case is the same: false with a chance of 1 % at most."""

SAME_FACTOR = 1.08
"""Least change that the same excludes."""

NEAR_CHANGES = 9
"""Changes near none that the same is averaged over."""

NEAR_SHARE = 3 / 8
"""Part of ``SAME_FACTOR`` that counts as near: 3 % of 8 %."""

NEAR_SHARE_ASKED = 0.9
"""The part of a factor that the user asked for: what lies within it is the same, also far from
none."""

FIRST_PAIRS = 3
"""Pairs of each case before the likeliest come first, and before any verdict: three tell how much a
kind scatters."""

MIN_CALLED_PAIRS = 5
"""Pairs below which no case is slower or faster. Times of many cases have two levels, one for each
process. Where every second process is a fifth slower, three pairs of unchanged code are alike, and
called, in 3 of 100 cases, four in 2, five in 0.7 (simulated: ``scripts/in_turn_power.py``)."""

LEARNING_STEPS = 30
"""Steps of expectation and maximisation, of which the last hardly changes the prior."""

CHANGED_SHARE = 0.1
"""Share of changed cases that learning the scatter assumes."""

PRIOR_WORTH_CASES = 4.0
"""Cases that the default prior counts for beside the cases of a kind."""

_DETECTABLE_HALVINGS = 12
"""Halvings of the largest of ``CHANGES``, which then stands to 0.04 %."""

_LOG_CONSTANT = math.lgamma((NU + 1) / 2) - math.lgamma(NU / 2) - math.log(NU * math.pi) / 2

_LEARNED_FROM: Floats = np.concatenate([[0.0], CHANGES])

_PARTS = (1, 1 + CHANGES.size, 1 + CHANGES.size + NEAR_CHANGES)
"""Where the changes that a case is weighed by begin: ``CHANGES``, near ones, the limits."""


def log_likelihood(logs: Sequence[float], changes: Floats) -> Floats:
    """Return the log density of pairs for each change and scatter, shape (changes, SCATTERS)."""
    pairs = np.asarray(logs, np.float64)
    z = (pairs[:, None, None] - changes[None, :, None]) / SCATTERS
    density = _LOG_CONSTANT - (NU + 1) / 2 * np.log1p(z * z / NU) - np.log(SCATTERS)
    return np.asarray(density.sum(0))


def default_prior() -> Floats:
    """Return the logarithm of each scatter's weight where nothing is known, shape (SCATTERS,)."""
    deviations = (np.log(SCATTERS) - math.log(PRIOR_SCATTER)) / PRIOR_SPREAD
    weights = np.exp(-0.5 * deviations**2)
    return np.asarray(np.log(weights / weights.sum()))


def learn_priors(firsts: Sequence[Floats], kinds: Sequence[str]) -> list[Floats]:
    """Return the log prior of the scatter of each case from the first pairs of the other cases of
    its kind.

    ``firsts``: log likelihood of each case under ``_LEARNED_FROM``. A case is changed or not, so
    that a change does not pass for scatter.
    """
    base = np.exp(default_prior())
    priors = [default_prior() for _ in kinds]
    for kind in {*kinds}:
        places = [place for place, its in enumerate(kinds) if its == kind]
        sums = np.stack([firsts[place] for place in places])
        sums = np.exp(sums - sums.max((1, 2), keepdims=True))
        evidence = (1 - CHANGED_SHARE) * sums[:, 0] + CHANGED_SHARE * sums[:, 1:].mean(1)
        weights = base
        for _ in range(LEARNING_STEPS):
            shares = weights * evidence
            shares /= shares.sum(1, keepdims=True)
            total = PRIOR_WORTH_CASES * base + shares.sum(0)
            weights = total / total.sum()
        for place, share in zip(places, shares, strict=True):
            others = total - share
            priors[place] = np.log(others / others.sum() + 1e-12)
    return priors


def log_mean_exp(logs: Floats) -> float:
    """Return the logarithm of the mean of numbers by their logarithms."""
    return float(np.logaddexp.reduce(logs)) - math.log(logs.size)


def average_scatters(likelihood: Floats, prior: Floats) -> Floats:
    """Average a log likelihood over the scatter, shape (changes,)."""
    return np.asarray(np.logaddexp.reduce(likelihood + prior, axis=1))


@dataclass(slots=True)
class CaseEvidence:
    """What the pairs of one case say."""

    factor: float = 1.0
    """Least factor of a change that the user asked for."""
    kind: str = ""
    logs: list[float] = field(default_factory=list)
    prior: Floats = field(default_factory=default_prior)
    """Logarithms, shape (SCATTERS,)."""
    log_e: float = 0.0
    """Of a change against none."""
    log_e_same: float = -math.inf
    """Of no change against one beyond ``same_factor``."""
    _changes: Floats = field(init=False, repr=False)
    """No change, ``CHANGES``, ``NEAR_CHANGES`` near ones and the least that the same excludes."""
    _likelihood: Floats = field(init=False, repr=False)
    """Of all pairs, shape (_changes, SCATTERS)."""

    def __post_init__(self) -> None:
        """Begin with the pairs that are given."""
        limit = math.log(self.same_factor)
        share = NEAR_SHARE if self.same_factor == SAME_FACTOR else NEAR_SHARE_ASKED
        near = np.linspace(-limit, limit, NEAR_CHANGES) * share
        self._changes = np.concatenate([_LEARNED_FROM, near, [limit, -limit]])
        self._likelihood = log_likelihood(self.logs, self._changes)
        self.weigh()

    @property
    def same_factor(self) -> float:
        """Least factor that the same excludes."""
        return max(SAME_FACTOR, self.factor)

    @property
    def ratio(self) -> Ratio | None:
        """The likeliest ratio, old time over new time, with its interval; ``None`` without pairs.

        It is computed anew each time.
        """
        return ratio_of(self.logs, self.prior) if self.logs else None

    @property
    def is_called(self) -> bool:
        """Whether a change is shown, by more than ``factor``."""
        if len(self.logs) < MIN_CALLED_PAIRS or self.log_e < math.log(CALLED_AT):
            return False
        return self.factor == 1 or likeliest_factor(self.logs, self.prior) > self.factor

    @property
    def is_same(self) -> bool:
        """Whether a change beyond ``same_factor`` is excluded, and nothing speaks for a smaller."""
        speaks_for_change = self.factor == 1 and self.log_e > 0
        if len(self.logs) < FIRST_PAIRS or speaks_for_change:
            return False
        return self.log_e_same >= math.log(SAME_AT)

    @property
    def verdict(self) -> ComparisonVerdict:
        """``slower``, ``faster``, ``same``, or ``unclear``."""
        if self.is_called:
            return "faster" if likeliest_change(self.logs, self.prior) > 0 else "slower"
        return "same" if self.is_same else "unclear"

    def add(self, log: float) -> None:
        """Add the logarithm of a pair's ratio, old time over new time."""
        self.logs.append(log)
        self._likelihood = self._likelihood + log_likelihood([log], self._changes)
        self.weigh()

    def weigh(self) -> None:
        """Compute both e-values of all pairs by the prior."""
        averaged = average_scatters(self._likelihood, self.prior)
        none, changed, near, limits = np.split(averaged, _PARTS)
        self.log_e = log_mean_exp(changed) - float(none[0])
        beyond = np.abs(CHANGES) >= math.log(self.same_factor)
        largest = max(float(limits.max()), *changed[beyond])
        self.log_e_same = log_mean_exp(near) - largest

    def shifted(self, change: float) -> CaseEvidence:
        """Return what the same pairs would say without their own change and with this one."""
        middle = likeliest_change(self.logs, self.prior)
        moved = [log - middle + change for log in self.logs]
        return CaseEvidence(self.factor, self.kind, moved, self.prior)


def likeliest_change(logs: Sequence[float], prior: Floats) -> float:
    """Return the change of the largest likelihood, a logarithm."""
    low, high = min(logs), max(logs)
    for _ in range(3):  # each time 40 times as fine
        changes = np.linspace(low, high, 81)
        best = int(average_scatters(log_likelihood(logs, changes), prior).argmax())
        low, high = changes[max(best - 1, 0)], changes[min(best + 1, 80)]
    return float(changes[best])


def likeliest_factor(logs: Sequence[float], prior: Floats) -> float:
    """Return the likeliest change as a factor of 1 or more."""
    return math.exp(abs(likeliest_change(logs, prior)))


def ratio_of(logs: Sequence[float], prior: Floats) -> Ratio:
    """Return the likeliest ratio with the confidence sequence at ``CALLED_AT``.

    A change ``c`` is in it where ``M / L(c)`` is below the limit: ``L`` is the likelihood of the
    pairs, and ``M`` its mean, half at no change and half over ``CHANGES``. For ``c = 0`` that is
    ``(1 + E) / 2``.
    """
    averaged = average_scatters(log_likelihood(logs, _LEARNED_FROM), prior)
    mixed = np.array([averaged[0], log_mean_exp(averaged[1:])])
    least = log_mean_exp(mixed) - math.log((1 + CALLED_AT) / 2)

    def is_inside(change: float) -> bool:
        likelihood = log_likelihood(logs, np.array([change]))
        return float(average_scatters(likelihood, prior)[0]) > least

    middle = likeliest_change(logs, prior)
    low, high = (middle + side * _reach(is_inside, middle, side) for side in (-1, 1))
    return Ratio(math.exp(middle), math.exp(low), math.exp(high), least=1.0)


def _reach(is_inside: Callable[[float], bool], middle: float, side: int) -> float:
    """Return how far from the middle a set reaches on one side."""
    inside, outside = 0.0, 0.01
    while is_inside(middle + side * outside):
        inside, outside = outside, 2 * outside
    while outside - inside > 1e-4 * outside:
        half = (inside + outside) / 2
        inside, outside = (half, outside) if is_inside(middle + side * half) else (inside, half)
    return outside


def select_sure(log_e: Sequence[float]) -> set[int]:
    """Return the places of e-values that are sure at ``SURE_RATE``: e-BH is the procedure of
    Benjamini and Hochberg with ``1 / E`` in place of p-values."""
    inverses = [math.exp(-max(one, 0.0)) for one in log_e]  # an e-value below 1 is never sure
    sure = find_discoveries(inverses, SURE_RATE)
    return {place for place, is_sure in enumerate(sure) if is_sure}


def find_detectable_factor(evidence: CaseEvidence) -> float | None:
    """Return the least factor that pairs with this scatter would have shown, slower and faster;
    ``None`` where these pairs would not even have shown the largest of ``CHANGES``."""

    def is_hidden(change: float) -> bool:
        both = (evidence.shifted(sign * change) for sign in (1, -1))
        return any(other.log_e < math.log(CALLED_AT) for other in both)

    largest = float(CHANGES.max())
    if len(evidence.logs) < MIN_CALLED_PAIRS or is_hidden(largest):
        return None
    return math.exp(bisect(is_hidden, 0.0, largest, _DETECTABLE_HALVINGS))


def estimate_pairs_needed(evidence: CaseEvidence) -> int | None:
    """Return about how many pairs in all would decide an unclear case; ``None`` without pairs.

    A change by ``c`` needs ``2 s**2 (log(CALLED_AT) + 3) / c**2`` pairs that scatter by ``s``: the
    mean of the log likelihood ratio grows by ``c**2 / (2 s**2)`` a pair, and 3 are lost to not
    knowing ``c``. The same needs as many by its distance from ``same_factor``.
    """
    if not evidence.logs:
        return None
    change = abs(likeliest_change(evidence.logs, evidence.prior))
    scatter = likeliest_scatter(evidence)
    from_same = max(math.log(evidence.same_factor) - change, 0.0)
    ways = ((change, math.log(CALLED_AT) + 3), (from_same, math.log(SAME_AT)))
    least = max(len(evidence.logs) + 1, MIN_CALLED_PAIRS)
    needed = [2 * scatter**2 * nats / size**2 for size, nats in ways if size > 0.01]
    return max(math.ceil(min(needed)), least) if needed else None


def likeliest_scatter(evidence: CaseEvidence) -> float:
    """Return the scatter of a case's pairs: the posterior's mean of its logarithm."""
    likelihood = log_likelihood(evidence.logs, _LEARNED_FROM) + evidence.prior
    weights = np.exp(likelihood - likelihood.max()).sum(0)
    return math.exp(float(np.log(SCATTERS) @ weights / weights.sum()))


class Evidence:
    """The evidence of all cases of a comparison; says which is measured next."""

    def __init__(self, cases: int, factor: float = 1.0) -> None:
        """Begin without pairs."""
        self.factor = factor
        self.cases = [CaseEvidence(factor) for _ in range(cases)]
        self._closed: set[int] = set()
        self._has_learned = False

    def add(self, place: int, log: float, kind: str = "") -> None:
        """Add a pair of a case."""
        self.cases[place].kind = kind
        self.cases[place].add(log)
        self._learn_once()

    def close(self, place: int) -> None:
        """Say that a case has no time on a side, and gets no pairs."""
        self._closed.add(place)
        self._learn_once()

    def is_decided(self, place: int) -> bool:
        """Return whether a case needs no more pairs: it is called and sure, the same, or closed."""
        case = self.cases[place]
        if place in self._closed or case.is_same:
            return True
        return case.is_called and place in self.sure

    @property
    def sure(self) -> set[int]:
        """Places of the cases that are called and sure."""
        return {
            place
            for place in select_sure([case.log_e for case in self.cases])
            if self.cases[place].is_called
        }

    def likelihood(self, place: int) -> float:
        """Return by what cases are ordered, the likeliest to be decided as changed first."""
        return self.cases[place].log_e

    @property
    def has_first_pairs(self) -> bool:
        """Whether every case has its first pairs, or has no time."""
        return all(
            len(case.logs) >= FIRST_PAIRS or place in self._closed
            for place, case in enumerate(self.cases)
        )

    def _learn_once(self) -> None:
        """Learn the priors as soon as all cases have their first pairs."""
        there = [case for place, case in enumerate(self.cases) if place not in self._closed]
        if self._has_learned or not self.has_first_pairs:
            return
        self._has_learned = True
        firsts = [log_likelihood(case.logs[:FIRST_PAIRS], _LEARNED_FROM) for case in there]
        priors = learn_priors(firsts, [case.kind for case in there])
        for case, prior in zip(there, priors, strict=True):
            case.prior = prior
            case.weigh()
