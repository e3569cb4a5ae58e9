"""The page that says what gets a result fastest, for sizes that may not have been measured.

Anything may be asked, so that the page calculates: ``advise.js`` has the arithmetic of
``gpubench.analysis.estimates`` and ``gpubench.analysis.advice``, and a test holds the two together.
What it calculates from is one script for each kernel, added when the kernel is chosen, as a page
that was opened from disk may not fetch files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from gpubench.analysis import advice
from gpubench.analysis.advice_checks import (
    LEAST_COVERAGE,
    Checked,
    checked,
    drifts_of,
    left_out,
    verification_path,
)
from gpubench.analysis.estimates import (
    CURVES,
    KINDS,
    LARGEST,
    MOST_APART,
    WORKERS,
    Way,
    axes_of,
    ways_of,
)
from gpubench.analysis.headline import KernelKey
from gpubench.report import text
from gpubench.report.compare import FOLDER, setup_key
from gpubench.report.site import Navigation, Site, State, kernel_label, setup_label
from gpubench.results import History

KIND_WORDS = {
    "measured": "",
    "predicted": "",
    "wide": "between sizes more than 4x apart: no prediction",
    "extrapolated": "extrapolated",
}


@dataclass(frozen=True, slots=True)
class KernelAsked:
    label: str
    script: str


@dataclass(frozen=True, slots=True)
class AdvisePage:
    title: str
    navigation: Navigation
    verdict: str
    details: str
    kernels: tuple[KernelAsked, ...]
    rules: Mapping[str, Any]
    states: tuple[State, ...]


def build(history: History, site: Site) -> AdvisePage:
    kernels = tuple(
        KernelAsked(kernel_label(key), address) for address, key in scripts(history, site).items()
    )
    held = [outcome for its in site.verified(history).values() if (outcome := checked(its))]
    verified = "No kernel was verified: gpubench advise --verify SUITE::KERNEL does it."
    if held:
        verified = (
            f"{text.plural(len(held), 'kernel')} of {len(kernels):,} "
            f"{'was' if len(held) == 1 else 'were'} verified: sizes were hidden, predicted and "
            f"measured afresh; the intervals of {sum(one.holds for one in held):,} held "
            f"{LEAST_COVERAGE:.0%} of the times or more."
        )
    state = State(
        "Nothing to ask for", "No kernel has two implementations with a time here.", "asv run"
    )
    return AdvisePage(
        title="Advise",
        navigation=site.navigation(history.setup, page="advise"),
        verdict="Ask what gets a result fastest, for a size that may not have been measured."
        if kernels
        else "Nothing to ask for: no kernel has two implementations with a time here.",
        details=f"Measured on {setup_label(history.setup)}. {verified}",
        kernels=kernels,
        rules={
            "kinds": KINDS,
            "most_apart": MOST_APART,
            "largest": LARGEST,
            "workers": WORKERS,
            "steps": advice.STEPS,
            "halvings": advice.HALVINGS,
            "most_calls": advice.MOST_CALLS,
            "kind_words": KIND_WORDS,
        },
        states=() if kernels else (state,),
    )


def stamp(history: History, site: Site) -> str:
    """Changes with what verifications found."""
    try:
        status = verification_path(site.table.folder, history.setup).stat()
    except (OSError, ValueError):
        return ""
    return f"{status.st_size}-{status.st_mtime_ns}"


def scripts(history: History, site: Site) -> dict[str, KernelKey]:
    """Kernels with something to choose from, by the address of what the page calculates from."""
    start = f"{FOLDER}/advice-{setup_key(history.setup)}-"
    timed = site.timed(history)
    return {
        start + site.address(None, key).removeprefix("kernel-").removesuffix(".html") + ".js": key
        for key in site.kernels(history)
        if len(timed[key]) > 1
    }


def script(history: History, key: KernelKey, site: Site) -> str:
    """Points of every way to a kernel's result, and how wrong estimates between them were; numbers
    that are not known are ``null``."""
    rows = [row for row in site.current(history)[key].cases.values() if row.seconds]
    timed = [row for row in rows if row.name.time in CURVES]
    axes = axes_of(timed)
    verified = site.verified(history)
    ways = ways_of(rows, axes, drift=drifts_of(verified.values()).stored)
    outcome = checked(verified.get(key, ()))
    refused = outcome is not None and not outcome.holds
    data = {
        "axes": [
            {"name": axis, "low": min(values), "high": max(values)}
            for axis in axes
            if (values := [row.sizes[axis] for row in timed if axis in row.sizes])
        ],
        "ways": list(map(_way, ways)),
        "refused": refused,
        "verified": refusal(outcome)
        if outcome and refused
        else verified_words(outcome, checked(left_out(key, ways)), "::".join(key)),
    }
    return f"gpubenchAdvice.kernel({msgspec.json.encode(data).decode()});\n"


def _way(way: Way) -> dict[str, Any]:
    return {
        "implementation": way.implementation,
        "device": way.device,
        "parameters": way.parameters,
        "place": way.place,
        "axes": way.axes,
        "compiles": way.compiles,
        "divides": way.divides,
        "copies": way.copies,
        "once": way.once,
        "times": {
            time: {
                "at": [point.at for point in curve.points],
                "log": [point.guess.log for point in curve.points],
                "half": [point.guess.half for point in curve.points],
                "variant": [point.variant for point in curve.points],
                "inside": curve.inside,
                "beyond": curve.beyond,
            }
            for time, curve in way.curves.items()
        },
    }


def verified_words(outcome: Checked | None, stored: Checked | None, target: str) -> str:
    """What verification found, or that there was none, and what stands in for it."""
    if outcome:
        return f"verified {outcome.at[:16].replace('T', ' ')}: {checked_words(outcome)}"
    words = f"not verified: run `gpubench advise --verify {target}`"
    if stored:
        words += f"; each size left out of the stored results in turn: {checked_words(stored)}"
    return words


def checked_words(outcome: Checked) -> str:
    """``of 24 estimates between sizes the median error was 4.1 %, and 96 % were within ...``."""
    once = (
        f", of {outcome.once} of compile and start {outcome.once_error:.1%}" if outcome.once else ""
    )
    words = (
        f"of {text.plural(outcome.count, 'estimate')} between sizes the median error was "
        f"{outcome.error:.1%}{once}, and {outcome.coverage:.0%} were within their intervals"
    )
    if outcome.at:
        words += (
            f"; the times themselves had changed by {outcome.change:.2f}x since they were stored, "
            f"and against the stored ones the error was {outcome.line_error:.1%}"
        )
    if outcome.choices:
        words += (
            f"; the chosen way took {outcome.regret:.1%} longer than the best (median of "
            f"{outcome.choices}; mean {outcome.mean_regret:.1%})"
        )
    if outcome.extrapolated:
        words += (
            f"; {outcome.extrapolated} extrapolated: wrong by {outcome.extrapolated_error:.0%} "
            f"(median), {outcome.extrapolated_worst:.0%} at most"
        )
    if later := outcome.refreshed:
        words += (
            f"; with some sizes measured again first (--refresh) the error was {later.error:.1%}, "
            f"{later.coverage:.0%} were within, and the chosen way took {later.regret:.1%} longer "
            f"(mean {later.mean_regret:.1%})"
        )
    return words


def refusal(outcome: Checked) -> str:
    """Why there is no advice, and what mends it."""
    words = (
        f"no advice: verified {outcome.at[:10]}, its intervals held {outcome.coverage:.0%} of "
        f"{text.plural(outcome.count, 'time')}, and {LEAST_COVERAGE:.0%} are needed; measure more "
        "sizes, closer to each other, with `asv run`, and verify again, which also widens "
        "intervals where times differ from hour to hour"
    )
    if outcome.refreshed and outcome.refreshed.holds:
        words += f"; with --refresh they held {outcome.refreshed.coverage:.0%}: ask with it"
    return words
