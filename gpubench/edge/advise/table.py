"""What ``gpubench advise`` shows of an advice, in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpubench.edge.advise.advice import Advice, Ask, Stretch, Total
from gpubench.edge.advise.page import KIND_WORDS
from gpubench.report import text

MAX_NAMED_WAYS = 6
"""Ways without a place that a message names."""


def ask_words(ask: Ask, label: str, parameters: str) -> str:
    """``vector_add, n = 50,000,000, 20 calls, arrays on the host, a fresh process``."""
    process = {"fresh": "a fresh process", "cached": "a fresh process, compiled before"}
    words = [label, parameters, text.sizes(ask.sizes), text.plural(ask.calls, "call")]
    words += [f"arrays on the {'host' if ask.from_host else 'device'}"]
    words += [process.get(ask.process, "a running process")]
    return ", ".join(filter(None, words))


def advice_lines(one: Advice, ask: Ask, label: str, currency: str) -> Iterator[str]:
    """Yield the lines of one advice for the kernel of that label."""
    yield f"{ask_words(ask, label, one.parameters)}:"
    if not one.totals:
        yield "  no way is ranked"
    width = max((len(total.label) for total in one.totals), default=0)
    for number, total in enumerate(one.totals, 1):
        interval = text.seconds_interval(total.low, total.high)
        line = f"  {number:>2} {total.label:{width}}  {text.seconds(total.seconds)} ({interval})"
        if ask.prices:
            price = "no price" if total.price is None else text.digits(total.price)
            line += f", {price}{f' {currency}' if currency and total.price is not None else ''}"
        if KIND_WORDS[total.kind]:
            line += f", {KIND_WORDS[total.kind]}"
        if total in one.equals:
            line += ", no clear difference"
        yield line
        if len(total.parts) > 1 or total.variant:
            parts = (f"{p.name} {text.seconds(p.estimate.seconds)}" for p in total.parts)
            launch = f"; {total.variant}" if total.variant else ""
            yield f"     {' ' * width}  = {' + '.join(parts)}{launch}"
    name = next(iter(ask.sizes), "")
    yield from stretch_lines(one.over_size, name, f"at {text.plural(ask.calls, 'call')}")
    yield from stretch_lines(one.over_calls, "calls", "at this size")
    for part, labels in one.left_out.items():
        yield f"  {part} is added to no way: it was not measured of {text.some(labels)}"
    yield from unranked_lines(one)


def unranked_lines(one: Advice) -> Iterator[str]:
    """Ways without a place, those with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for each in one.unranked:
        reasons.setdefault(each.reason, []).append(each.label)
    for reason, labels in reasons.items():
        yield f"  not ranked: {text.some(labels)}: {reason}"


def stretch_lines(stretches: Sequence[Stretch], name: str, where: str) -> Iterator[str]:
    """``n from 1,024 to 12,000: numpy on cpu is the fastest, at 20 calls``."""
    for one in stretches:
        first, last = text.whole(one.first), text.whole(one.last)
        span = f"{name} = {first}" if first == last else f"{name} from {first} to {last}"
        yield f"  {span}: {one.label} is clearly the fastest, {where}"


def measured_lines(predicted: Advice | None, measured: Advice, disturbed: bool) -> Iterator[str]:
    """Prediction and truth side by side, fastest first as measured. Of disturbed times it is not
    said how good the choice was."""
    said: dict[str, Total] = {t.label: t for t in predicted.totals} if predicted else {}
    width = max((len(total.label) for total in measured.totals), default=0)
    yield "measured now:"
    for number, total in enumerate(measured.totals, 1):
        line = f"  {number:>2} {total.label:{width}}  {text.seconds(total.seconds)}"
        if total.label not in said:
            yield f"{line}, no prediction"
            continue
        one = said[total.label]
        factor = max(one.seconds / total.seconds, total.seconds / one.seconds)
        within = "within" if one.low <= total.seconds <= one.high else "outside"
        interval = text.seconds_interval(one.low, one.high)
        yield (
            f"{line}, predicted {text.seconds(one.seconds)} ({interval}): "
            f"{text.digits(factor)}x off, {within} its interval"
        )
    if predicted and predicted.totals and not disturbed:
        chosen = predicted.totals[0].label
        its = next((t for t in measured.totals if t.label == chosen), None)
        if its:
            ratio = its.seconds / measured.totals[0].seconds
            yield f"  the way that was chosen, {chosen}, took {text.digits(ratio)}x of the fastest"
