"""Numbers as text for people: significant digits, times with their unit, percentages.

Every room may write a number by these functions; ``reports/text.js`` has the same rules in the
browser. What a text says beside its number is in ``gpubench/report/text.py``.
"""

from __future__ import annotations

import math

SPACE = "\N{NARROW NO-BREAK SPACE}"
"""Between a number and its unit."""

DASH = "\N{EN DASH}"
"""Between both ends of an interval."""

_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def digits(value: float, significant: int = 3) -> str:
    """Return a number with so many significant digits, thousands grouped, no exponent between 1e-4,
    1e9.

    >>> digits(0.012345), digits(1.5), digits(1234.5)
    ('0.0123', '1.50', '1,234')
    """
    if not math.isfinite(value):
        return "unknown"
    if value == 0:
        return "0"
    rounded = f"{value:.{significant - 1}e}"
    magnitude = int(rounded[rounded.index("e") + 1 :])
    if magnitude < -4 or magnitude >= 9:
        return rounded
    return f"{value:,.{max(significant - 1 - magnitude, 0)}f}"


def seconds(value: float | None, significant: int = 3) -> str:
    """Return a time with the unit that gives it one to three digits before the point."""
    if value is None or not math.isfinite(value):
        return "unknown"
    scale, unit = time_unit(value)
    return f"{digits(value / scale, significant)}{SPACE}{unit}"


def time_unit(value: float) -> tuple[float, str]:
    """Return the largest unit of which there is one, or as good as one in three digits."""
    for scale, unit in _TIME_UNITS:
        if abs(value) >= 0.9995 * scale:
            return scale, unit
    return _TIME_UNITS[-1]


def seconds_interval(low: float | None, high: float | None) -> str:
    """Return both ends in the unit of the upper; say so where one is unknown."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return "no interval"
    scale, unit = time_unit(high)
    return f"{digits(low / scale)}{DASH}{digits(high / scale)}{SPACE}{unit}"


def percent(share: float) -> str:
    """Return a share of something counted with one decimal, and 100 % of all alone.

    >>> percent(0.5), percent(0.99999), percent(1)
    ('50.0 %', '99.9 %', '100 %')
    """
    return "100 %" if share >= 1 else f"{min(100 * share, 99.9):.1f} %"
