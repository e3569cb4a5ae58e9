"""What pages, the terminal and Markdown say, as text: units, plurals, statuses, launches.

What comes in is a number, a row or a ratio, and what leaves is text of a few words. Digits,
times and percentages are written by ``gpubench/numbers.py``, which rooms below this one use too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from gpubench.names import SECONDS, format_shape
from gpubench.numbers import DASH as DASH
from gpubench.numbers import SPACE as SPACE
from gpubench.numbers import digits as digits
from gpubench.numbers import percent as percent
from gpubench.numbers import seconds as seconds
from gpubench.numbers import seconds_interval as seconds_interval
from gpubench.statuses import DECLARED_STATUSES

if TYPE_CHECKING:  # which loads DuckDB; what only plans shows text too
    from markupsafe import Markup

    from gpubench.results import Ratio, Row, Running

TIMES_SIGN = "\N{MULTIPLICATION SIGN}"
MAX_NAMED = 3
"""Of many names, those that a sentence has room for beside what it says."""
_BINARY = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


@lru_cache(maxsize=2**12)
def broken(name: str) -> Markup:
    """Return a name that may go on in the next line after an underscore or a point. Every page of a
    setup has those of its kernels."""
    from markupsafe import Markup, escape  # only pages need it

    return Markup(str(escape(name)).replace("_", "_<wbr>").replace(".", ".<wbr>"))


def duration(seconds: float) -> str:
    """Return whole seconds, minutes or hours and minutes, for people."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def quantity(value: float | None, unit: str) -> str:
    """Return a value with its unit: times and bytes with a prefix, others with the unit as it
    is."""
    if unit == SECONDS or value is None:
        return seconds(value)
    if unit == "bytes":
        return memory(value)
    return f"{digits(value)}{SPACE}{unit}" if unit else digits(value)


def measured(row: Row) -> str:
    """Return what was measured of a case, with its unit; empty where it has no value."""
    return "" if row.value is None else quantity(row.value, row.unit)


def ratio(value: float) -> str:
    """Return a factor: ``2.35x`` with the multiplication sign."""
    return f"{digits(value)}{TIMES_SIGN}"


def speedup(value: Ratio | None) -> str:
    return ratio(value.value) if value else ""


def interval(value: Ratio | None) -> str:
    if value is None or not value.has_interval:
        return "no interval"
    return f"{digits(value.low)}{DASH}{digits(value.high)}{TIMES_SIGN}"


def factor(value: Ratio | None) -> str:
    """Return how much a time changed, in words: ``1.70x slower``; the ratio is old over new."""
    if value is None or value.value <= 0:
        return ""
    direction = "faster" if value.value >= 1 else "slower"
    return f"{ratio(value.factor)} {direction}"


def factor_interval(value: Ratio | None) -> str:
    """Interval of what ``factor`` says, upside down for slower, so that it reads the same way."""
    if value is None or not value.has_interval or value.value >= 1:
        return interval(value)
    return interval(type(value)(1 / value.value, 1 / value.high, 1 / value.low))


def level(value: Ratio | None) -> int:
    """Step of the diverging scale, log2-spaced: -5 (over 16x slower) to 5 (over 16x faster)."""
    if value is None or value.value <= 0:
        return 0
    distance = abs(math.log2(value.value))
    # The scale under the tables names 2x, 4x and 16x; under 3.5 % is neutral, nobody would notice.
    step = sum(distance >= bound for bound in (0.05, 0.5, 1, 2, 4))
    return step if value.value > 1 else -step


def rate(value: float | None) -> str:
    """Billions of something in a second, ``""`` where it is not known."""
    return "" if value is None else digits(value / 1e9)


def share(value: float) -> str:
    """``62 %`` of what is attainable, or what more than 100 % means."""
    return "cache-resident or undercounted" if value > 1 else f"{digits(100 * value, 2)} %"


def error(value: float | None) -> str:
    """Return an error against the baseline, two significant digits."""
    if value is None:
        return ""
    return "0" if value == 0 else f"{value:.1e}"


def score(value: float | None) -> str:
    """Return what outputs are worth, four significant digits: two accuracies may differ in the
    third."""
    return "" if value is None else digits(value, 4)


def sectors(value: float | None) -> str:
    """Return sectors of a request with one decimal, of 1 to 32; empty where there is no request."""
    return "" if value is None else f"{value:.1f}"


def vectorized(share: float | None) -> str:
    """Return the share of operations in vectors. Empty without operations."""
    return "" if share is None else percent(share)


def lanes_on(inactive: float | None) -> str:
    """Return the share of lanes that are on, from the share that is off; empty where nothing
    ran."""
    return "" if inactive is None else percent(1 - inactive)


def memory(nbytes: float | None) -> str:
    """Bytes that a run holds, in the unit that gives one to four digits before the point: MiB are
    2**20 bytes."""
    if nbytes is None:
        return ""
    scale, unit = next(each for each in _BINARY if abs(nbytes) >= each[0] or each[0] == 1)
    return f"{digits(nbytes / scale) if scale > 1 else format(nbytes, '.0f')}{SPACE}{unit}"


def whole(value: float) -> str:
    """Return a size: whole numbers grouped by thousands."""
    return f"{value:,.0f}" if float(value).is_integer() else digits(value)


def sizes(values: Mapping[str, float]) -> str:
    """Array sizes by name: ``n = 1,024, m = 3``."""
    return ", ".join(f"{name} = {whole(value)}" for name, value in values.items())


def date(value: float) -> str:
    """Day in UTC, ISO 8601; ``unknown date`` for 0, and for what no calendar has."""
    try:
        return datetime.fromtimestamp(value, UTC).date().isoformat() if value else "unknown date"
    except (ValueError, OverflowError, OSError):  # a commit may say any year
        return "unknown date"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """``1 case``, ``3 cases``."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def running(run: Running) -> str:
    """Return ``running since 2026-01-31 10:32 UTC: 40 of 120 cases so far``."""
    since = datetime.fromtimestamp(run.since, UTC).strftime("%Y-%m-%d %H:%M")
    count = plural(run.finished, "case")
    if run.planned is not None:
        count = f"{run.finished:,} of {plural(run.planned, 'case')}"
    return f"running since {since} UTC: {count} so far"


def join(parts: Iterable[str], last: str = "and") -> str:
    """Return ``a, b and c``."""
    items = list(parts)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def some(names: Sequence[str]) -> str:
    """Return ``a, b, c and 28 others``: of many, a sentence names the first few."""
    if len(names) > MAX_NAMED + 1:
        return join([*names[:MAX_NAMED], f"{len(names) - MAX_NAMED} others"])
    return join(names)


def time_label(time: str) -> str:
    """Words for one of the labelled times: ``end to end``."""
    return time.replace("_", " ")


_STATUS_WORDS: Mapping[str, str] = {status.name: status.words for status in DECLARED_STATUSES}


def status_label(status: str) -> str:
    """Words for a status, as ``timed out``; ``right`` and ``interrupted`` are such already."""
    return _STATUS_WORDS.get(status, status)


def disturbed(row: Row) -> str:
    """Return why a case has a time and hardly a verdict, where other work was in its samples; else
    ``""``. The rule is that of ``gpubench.results.ratio``: pairs alone can decide."""
    if not row.is_disturbed:
        return ""
    if row.speedup is None:
        so = "so that it is no good time"
    elif not row.pairs:
        so = "so that its ratio has no interval and no verdict"
    elif row.speedup.verdict == "unclear":
        so = "and its pairs differ by less than the 10 % of a verdict"
    else:
        so = "and its pairs differ by more than 10 %, which decides"
    return (
        f"disturbed: most of its samples waited for or ran beside other work, {so}; measure it "
        "again on a quiet machine"
    )


def layouts(row: Row) -> str:
    """Arrays that are not in C order, ``a in F, b in strides (1024, 16)``; empty without any."""
    return ", ".join(f"{name} in {layout}" for name, layout in row.layouts.items())


def launch(row: Row) -> str:
    """Grid and block of a case, or its threads; empty without a launch."""
    if row.block and row.grid:
        shape = f"{format_shape(row.grid)} blocks of {format_shape(row.block)}"
        return f"{shape}, {row.shared_bytes} B shared" if row.shared_bytes else shape
    return plural(row.threads, "thread") if row.threads else ""
