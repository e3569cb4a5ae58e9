"""What ``gpubench advise`` shows of an advice, in lines."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gpubench.analysis.advice import Advice, Ask, Crossing, Total, apart
from gpubench.report import text
from gpubench.report.advise import KIND_WORDS


def advice_lines(one: Advice, ask: Ask, label: str, currency: str, several: bool) -> Iterator[str]:
    """One advice for the kernel of that label; ``several``: the ways are of several setups."""
    words = [label, one.parameters, text.sizes(ask.sizes), text.plural(ask.calls, "call")]
    words += [f"arrays on the {'host' if ask.from_host else 'device'}"]
    words += {"fresh": ["a fresh process"], "cached": ["a fresh process, compiled before"]}.get(
        ask.process, ["a running process"]
    )
    yield ", ".join(filter(None, words)) + ":"
    width = max(len(_name(total, several)) for total in one.totals)
    for place, total in enumerate(one.totals, 1):
        known = total.high < math.inf
        interval = text.seconds_interval(total.low, total.high) if known else "no interval"
        name = f"{_name(total, several):{width}}"
        line = f"  {place:>2} {name}  {text.seconds(total.seconds)} ({interval})"
        if total.price is not None:
            line += f", {text.digits(total.price)} {currency}".rstrip()
        if KIND_WORDS[total.kind]:
            line += f", {KIND_WORDS[total.kind]}"
        if total in one.equals:
            line += ", no clear difference"
        yield line
        if len(total.parts) > 1 or total.variant:
            parts = (f"{p.name} {text.seconds(p.estimate.seconds)}" for p in total.parts)
            launch = f"; {total.variant}" if total.variant else ""
            yield f"     {' ' * width}  = {' + '.join(parts)}{launch}"
    for crossings, unit in ((one.over_size, "size"), (one.over_calls, "calls")):
        name = next(iter(ask.sizes), "") if unit == "size" else "calls"
        at = f" at {text.plural(ask.calls, 'call')}" if unit == "size" else " at this size"
        yield from (f"  {crossing_words(c, name)}{at}" for c in crossings)
    yield from (f"  {words}" for words in together_words(one))
    for time in ("compile", "start"):
        without = [total.label for total in one.totals if time in total.missing]
        if without and len(without) < len(one.totals):
            yield f"  without {time}, which was not measured: {text.join(without)}"
        elif without:
            yield f"  {time} was not measured of any, and is left out: add it to measure"
    yield from (f"  left out: {words}" for words in one.left_out)


def together_words(one: Advice) -> Iterator[str]:
    """What devices at once could take, and what dividing the work took where it was measured."""
    divided, alone = one.divided, one.alone
    if one.together:
        unknown = "" if divided else "; dividing the work was not measured"
        yield (
            f"{text.join(one.together.labels)} at once: {text.seconds(one.together.seconds)} at "
            f"best, a bound from their speeds{unknown}"
        )
    if divided is None or alone is None:
        return
    words = f"dividing the work was measured: {divided.label} takes {text.seconds(divided.seconds)}"
    if divided.missing:
        yield f"{words} without {text.join(divided.missing)}"
        return
    ratio = divided.seconds / alone.seconds
    verdict = "it gains" if ratio < 1 else "it loses"
    yield (
        f"{words}, {text.digits(ratio)}x the time of {alone.label} alone: "
        f"{verdict if apart(divided, alone) else 'no clear difference'}"
    )


def _name(total: Total, several: bool) -> str:
    return f"{total.label} ({total.place})" if several else total.label


def crossing_words(crossing: Crossing, name: str) -> str:
    """``from n = 3,100,000 (2,600,000 to 3,700,000) on numba_cuda, before numba_parallel``."""

    def rounded(value: float) -> str:
        if name == "calls":
            return text.whole(math.ceil(value * (1 - 1e-9)))
        return text.whole(round(value, 2 - math.floor(math.log10(value))))

    ends = crossing.low, crossing.high
    low, high = ("?" if end is None else rounded(end) for end in ends)
    span = "" if ends == (None, None) else f" ({low} to {high})"
    value = f"{name} = {rounded(crossing.value)}"
    return f"from {value}{span} on {crossing.after}, before it {crossing.before}"
