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
    held = [found for its in site.verified(history).values() if (found := checked(its))]
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
    found = checked(verified.get(key, ()))
    refused = found is not None and not found.holds
    data = {
        "axes": [
            {"name": axis, "low": min(values), "high": max(values)}
            for axis in axes
            if (values := [row.sizes[axis] for row in timed if axis in row.sizes])
        ],
        "ways": list(map(_way, ways)),
        "refused": refused,
        "verified": refusal(found)
        if found and refused
        else verified_words(found, checked(left_out(key, ways)), "::".join(key)),
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


def verified_words(found: Checked | None, stored: Checked | None, target: str) -> str:
    """What verification found, or that there was none, and what stands in for it."""
    if found:
        return f"verified {found.at[:16].replace('T', ' ')}: {checked_words(found)}"
    words = f"not verified: run `gpubench advise --verify {target}`"
    if stored:
        words += f"; each size left out of the stored results in turn: {checked_words(stored)}"
    return words


def checked_words(found: Checked) -> str:
    """``of 24 estimates between sizes the median error was 4.1 %, and 96 % were within ...``."""
    once = f", of {found.once} of compile and start {found.once_error:.1%}" if found.once else ""
    words = (
        f"of {text.plural(found.count, 'estimate')} between sizes the median error was "
        f"{found.error:.1%}{once}, and {found.coverage:.0%} were within their intervals"
    )
    if found.at:
        words += (
            f"; the times themselves had changed by {found.change:.2f}x since they were stored, "
            f"and against the stored ones the error was {found.line_error:.1%}"
        )
    if found.choices:
        words += (
            f"; the chosen way took {found.regret:.1%} longer than the best (median of "
            f"{found.choices}; mean {found.mean_regret:.1%})"
        )
    if found.extrapolated:
        words += (
            f"; {found.extrapolated} extrapolated: wrong by {found.extrapolated_error:.0%} "
            f"(median), {found.extrapolated_worst:.0%} at most"
        )
    if later := found.refreshed:
        words += (
            f"; with some sizes measured again first (--refresh) the error was {later.error:.1%}, "
            f"{later.coverage:.0%} were within, and the chosen way took {later.regret:.1%} longer "
            f"(mean {later.mean_regret:.1%})"
        )
    return words


def refusal(found: Checked) -> str:
    """Why there is no advice, and what mends it."""
    words = (
        f"no advice: verified {found.at[:10]}, its intervals held {found.coverage:.0%} of "
        f"{text.plural(found.count, 'time')}, and {LEAST_COVERAGE:.0%} are needed; measure more "
        "sizes, closer to each other, with `asv run`, and verify again, which also widens "
        "intervals where times differ from hour to hour"
    )
    if found.refreshed and found.refreshed.holds:
        words += f"; with --refresh they held {found.refreshed.coverage:.0%}: ask with it"
    return words
