"""Moderated t: whether two means differ, where each case has few processes but has company.

Two or four processes of a case hardly tell its scatter. Cases of one kind scatter alike, so the
variance of a case is shrunk towards that of its kind (Smyth, *Linear models and empirical Bayes
methods for assessing differential expression*, Statistical Applications in Genetics and Molecular
Biology 3, 2004; the method of the R package limma). Variances of a kind are taken to be
``s0**2 * d0 / chi2(d0)``: ``s0**2`` is the prior variance, and ``d0``, the prior freedom, says as
how many further processes the prior counts. The difference of two means over its standard error is
then Student's t with ``d0`` more degrees of freedom than the case has itself.

The prior is fitted by median and median absolute deviation, so that a few cases that leap between
two levels leave it as it is (robust empirical Bayes: Phipson and others, Annals of Applied
Statistics 10, 2016).

All values are natural logarithms of times, so that a difference of 0.1 is a tenth whatever the
time. Nothing here knows of cases, commits or files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

MAX_PRIOR_FREEDOM = 8.0
"""A kind counts for no more than so many processes of a case. With more, a case that scatters more
than its kind would be called changed: of unchanged cases whose tails are Student's t with three
degrees of freedom, 8 keeps false verdicts under 1 % (``scripts/detection_power.py``)."""

MIN_VARIANCE = 1e-6
"""A scatter of 0.1 %: clocks and rounding make processes equal that are not."""

QUIET_SHARE = 0.3
"""Share of the cases by which ``estimate_tau`` goes, those with the smallest differences."""

_MAD_TO_SIGMA = 1.4826
"""Median absolute deviation to standard deviation of a normal distribution."""

_BISECTIONS = 60
"""Halvings of an interval that then stands to 15 digits and more."""


@dataclass(frozen=True, slots=True)
class Prior:
    """What is known of a case's scatter before it is measured, from cases of its kind."""

    variance: float
    """``s0**2``: of the logarithm of a time, from process to process."""
    freedom: float
    """``d0``: as how many degrees of freedom ``variance`` counts."""


def fit_prior(
    variances: ArrayLike, freedoms: ArrayLike, before: Prior | None = None, cases: float = 0.0
) -> Prior:
    """Fit the prior of one kind to the variances of its cases, shape (cases,).

    ``freedoms``: degrees of freedom of each variance; cases with 0 tell nothing. ``before``: what
    was known without these, which counts as so many ``cases``. Raises ``ValueError`` where there is
    neither.
    """
    values = np.asarray(variances, np.float64)
    freedom = np.asarray(freedoms, np.float64)
    has_any = freedom > 0
    values, freedom = values[has_any], freedom[has_any]
    if not values.size:
        if before is None:
            raise ValueError("no variance with a degree of freedom, and no prior before it")
        return before
    halves = freedom / 2
    # Logarithm of a variance, without the bias that its few degrees of freedom give it.
    logs = np.log(np.maximum(values, MIN_VARIANCE)) - digamma(halves) + np.log(halves)
    middle = float(np.median(logs))
    deviation = _MAD_TO_SIGMA * float(np.median(np.abs(logs - middle)))
    spread = deviation**2 - float(np.mean(trigamma(halves)))
    prior_freedom = _prior_freedom(spread)
    half = np.array([prior_freedom / 2])
    variance = middle + float(digamma(half)[0] - np.log(half)[0])
    if before is not None and cases > 0:
        part = values.size / (values.size + cases)
        variance = part * variance + (1 - part) * math.log(before.variance)
        prior_freedom = part * prior_freedom + (1 - part) * before.freedom
    return Prior(math.exp(variance), prior_freedom)


def _prior_freedom(spread: float) -> float:
    """Return ``d0`` by the variance of the logarithms of true variances, ``trigamma(d0 / 2)``."""

    def is_below(freedom: float) -> bool:
        return float(trigamma(np.array([freedom / 2]))[0]) > spread

    if is_below(MAX_PRIOR_FREEDOM):
        return MAX_PRIOR_FREEDOM
    return bisect(is_below, 0.05, MAX_PRIOR_FREEDOM)


def bisect(
    is_below: Callable[[float], bool], low: float, high: float, halvings: int = _BISECTIONS
) -> float:
    """Return where ``is_below`` ceases to hold between ``low`` and ``high``."""
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return high


def moderate(variances: ArrayLike, freedoms: ArrayLike, prior: Prior) -> tuple[Floats, Floats]:
    """Return the posterior variance of each case and its degrees of freedom, shape (cases,) each.

    ``variances`` of a case with 0 ``freedoms`` may be anything: it has those of the prior.
    """
    freedom = np.asarray(freedoms, np.float64)
    values = np.where(freedom > 0, np.asarray(variances, np.float64), 0.0)
    total = freedom + prior.freedom
    posterior = (prior.freedom * prior.variance + freedom * values) / total
    return np.maximum(posterior, MIN_VARIANCE), total


def standard_errors(variances: ArrayLike, old: ArrayLike, new: ArrayLike) -> Floats:
    """Return the standard error of the difference of two means of ``old`` and ``new`` values.

    ``variances``: of one value, as ``moderate`` returns them.
    """
    parts = 1 / np.asarray(old, np.float64) + 1 / np.asarray(new, np.float64)
    error: Floats = np.sqrt(np.asarray(variances) * parts)
    return error


def p_values(differences: ArrayLike, errors: ArrayLike, freedoms: ArrayLike) -> Floats:
    """Return the p-value of each difference: the chance that one so far from 0, or farther, has
    when nothing differs. ``errors`` as of ``standard_errors``, ``freedoms`` as of ``moderate``."""
    return two_sided_tail(np.asarray(differences) / np.asarray(errors), freedoms)


def estimate_tau(
    differences: ArrayLike,
    errors: ArrayLike,
    freedoms: ArrayLike,
    most: float,
    share: float = QUIET_SHARE,
) -> float:
    """Estimate the standard deviation of what runs add to a case beside what its processes show.

    With it the size over its error that a ``share`` of the cases do not exceed is that of
    Student's t. A quantile below the median bears that half of the cases have changed. It is at
    most ``most``.
    """
    sizes = np.abs(np.asarray(differences, np.float64))
    squares = np.asarray(errors, np.float64) ** 2
    expected = float(np.median(t_quantile(1 - share, freedoms)))

    def is_too_small(tau: float) -> bool:
        return float(np.quantile(sizes / np.sqrt(squares + tau**2), share)) > expected

    if not is_too_small(0.0):
        return 0.0
    return most if is_too_small(most) else bisect(is_too_small, 0.0, most)


def find_discoveries(chances: Sequence[float], rate: float) -> list[bool]:
    """Return which p-values are discoveries, of which a share of ``rate`` at most is false, on
    average.

    Benjamini and Hochberg (Journal of the Royal Statistical Society B 57, 1995). They assume
    independent cases or such that are alike in what chance does to them (Benjamini and Yekutieli,
    Annals of Statistics 29, 2001), as cases of one run are.
    """
    order = sorted(range(len(chances)), key=chances.__getitem__)
    last = max(
        (n for n, place in enumerate(order, 1) if chances[place] <= rate * n / len(order)),
        default=0,
    )
    kept = {*order[:last]}
    return [place in kept for place in range(len(chances))]


def two_sided_tail(values: ArrayLike, freedoms: ArrayLike) -> Floats:
    """Return the chance that Student's t is as far from 0 as these values, or farther.

    ``freedoms`` above 0, whole or not; both broadcast. It is the regularized incomplete beta
    function ``I(x; a, b)`` at ``x = f / (f + t**2)`` with ``a = f / 2`` and ``b = 1 / 2`` (NIST
    Digital Library of Mathematical Functions, 8.17), good to 13 digits.
    """
    t, freedom = np.broadcast_arrays(
        np.asarray(values, np.float64), np.asarray(freedoms, np.float64)
    )
    squares = t**2
    whole = freedom + squares
    a = freedom / 2
    b = np.full_like(a, 0.5)
    is_far = squares * (a + 1.0) > freedom * (b + 1.0)  # where the fraction converges soon
    x = np.where(is_far, freedom, squares) / whole
    first, second = np.where(is_far, a, b), np.where(is_far, b, a)
    scale = _lgamma(a + b) - _lgamma(a) - _lgamma(b)
    with np.errstate(divide="ignore"):
        front = np.exp(scale + first * np.log(x) + second * np.log1p(-x)) / first
    part = front * _beta_fraction(x, first, second)
    chances: Floats = np.clip(np.where(is_far, part, 1 - part), 0.0, 1.0)
    return np.where(squares == 0, 1.0, chances)


_lgamma = np.vectorize(math.lgamma, otypes=[np.float64])

_FRACTION_TERMS = 200
"""At ``x`` below ``(a + 1) / (a + b + 2)`` it needs some square root of the larger of a and b."""
_TINY = 1e-300


def _beta_fraction(x: Floats, a: Floats, b: Floats) -> Floats:
    """Return the continued fraction of the incomplete beta function (NIST DLMF 8.17.22), by the
    modified algorithm of Lentz."""
    c = np.ones_like(x)
    d = 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value: Floats = d.copy()
    for m in range(1, _FRACTION_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            value = value * d * c
        if np.abs(value - before).max(initial=0.0) <= 1e-14 * np.abs(value).max(initial=1.0):
            break
    return value


def _not_zero(values: Floats) -> Floats:
    return np.where(np.abs(values) < _TINY, _TINY, values)


def t_quantile(chance: ArrayLike, freedoms: ArrayLike) -> Floats:
    """Return the value beyond which Student's t is on either side with this chance: 4.604 for
    0.01 and 4 degrees of freedom."""
    chances, freedom = np.broadcast_arrays(
        np.asarray(chance, np.float64), np.asarray(freedoms, np.float64)
    )
    pairs, places = np.unique(
        np.stack([chances.ravel(), freedom.ravel()]), axis=1, return_inverse=True
    )
    low = np.full(pairs.shape[1], math.log(1e-6))
    high = np.full(pairs.shape[1], math.log(1e9))
    for _ in range(_BISECTIONS // 2):
        middle = (low + high) / 2
        is_beyond = two_sided_tail(np.exp(middle), pairs[1]) < pairs[0]
        low, high = np.where(is_beyond, low, middle), np.where(is_beyond, middle, high)
    quantiles: Floats = np.exp(high)[places.ravel()].reshape(chances.shape)
    return quantiles


_SHIFT = 8
"""From here on the asymptotic series stand to 12 digits."""


def digamma(values: ArrayLike) -> Floats:
    """Return the logarithmic derivative of the gamma function at values above 0 (Abramowitz and
    Stegun, 6.3.5 and 6.3.18)."""
    return _with_recurrence(
        values,
        lambda x: -1 / x,
        lambda x: np.log(x) - 1 / (2 * x) - x**-2 / 12 + x**-4 / 120 - x**-6 / 252 + x**-8 / 240,
    )


def trigamma(values: ArrayLike) -> Floats:
    """Return the derivative of ``digamma`` at values above 0 (Abramowitz and Stegun, 6.4.6 and
    6.4.12)."""
    return _with_recurrence(
        values,
        lambda x: x**-2,
        lambda x: 1 / x + x**-2 / 2 + x**-3 / 6 - x**-5 / 30 + x**-7 / 42 - x**-9 / 30,
    )


def _with_recurrence(
    values: ArrayLike, step: Callable[[Floats], Floats], series: Callable[[Floats], Floats]
) -> Floats:
    x = np.asarray(values, np.float64)
    total = np.zeros_like(x)
    for _ in range(_SHIFT):
        total = total + step(x)
        x = x + 1
    return total + series(x)
