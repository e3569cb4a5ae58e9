"""The page that says what gets a result fastest, for sizes that may not have been measured.

Anything may be asked, so that the page calculates: ``advise.js`` has the arithmetic of
``estimates`` and ``advice`` of this folder, and a test holds the two together.
What it calculates from is one script for each kernel, added when the kernel is chosen, as a page
that was opened from disk may not fetch files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from gpubench.analysis.headline import KernelKey
from gpubench.analysis.roofline import STREAMS, memory_ceiling
from gpubench.edge.advise import advice
from gpubench.edge.advise.checks import (
    MAX_REGRET_FACTOR,
    MIN_COVERAGE,
    Checked,
    Prediction,
    check,
    get_drift,
    leave_out,
    verification_path,
    verifications,
)
from gpubench.edge.advise.estimates import (
    AND,
    BEND_BEYOND,
    ESTIMATE_KINDS,
    GAP_WORDS,
    MAX_FACTOR,
    ONCE,
    Conditions,
    Curve,
    Way,
    build_ways,
    find_axes,
)
from gpubench.names import CURVE_TIMES, BenchmarkName, is_gpu
from gpubench.report import text
from gpubench.report.choose import has_choices
from gpubench.report.compare import setup_key
from gpubench.report.data_scripts import SCRIPTS_FOLDER
from gpubench.report.findings import disturbed_states
from gpubench.report.navigation import Navigation, State, kernel_label, setup_label
from gpubench.report.page import Page, ReportFile
from gpubench.report.site import Site, kept
from gpubench.results import History, Row

KIND_WORDS = {
    "measured": "",
    "predicted": "",
    "extrapolated": "beyond the measured sizes",
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


@kept
def verified(site: Site, history: History) -> Mapping[KernelKey, Sequence[Prediction]]:
    """Return what the verification of a setup's advice found, by kernel."""
    folder = site.table.folder
    return verifications(verification_path(folder, history.setup), folder)


def build(history: History, site: Site) -> AdvisePage:
    kernels = tuple(
        KernelAsked(kernel_label(key), address) for address, key in scripts(history, site).items()
    )
    held = [outcome for its in verified(site, history).values() if (outcome := check(its))]
    said = "No kernel was verified: gpubench advise --verify SUITE::KERNEL does it."
    if held:
        said = (
            f"{text.plural(len(held), 'kernel')} of {len(kernels):,} "
            f"{'was' if len(held) == 1 else 'were'} verified: sizes were hidden, predicted and "
            f"measured afresh; {sum(one.holds for one in held):,} may be ranked."
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
        details=f"Measured on {setup_label(history.setup)}. {said}",
        kernels=kernels,
        rules={
            "kinds": ESTIMATE_KINDS,
            "kind_words": KIND_WORDS,
            "gap_words": GAP_WORDS,
            "curves": CURVE_TIMES,
            "once": ONCE,
            "max_factor": MAX_FACTOR,
            "bend_beyond": BEND_BEYOND,
            "steps": advice.PLACES_A_DECADE,
            "max_calls": advice.MAX_CALLS,
            "wide": advice.WIDE,
            "memory": advice.MEMORY,
            "copies": advice.COPIES,
        },
        states=(
            *disturbed_states(site.rows_now(history), history.latest),
            *(() if kernels else (state,)),
        ),
    )


def stamp(history: History, site: Site) -> str:
    """Return a text that changes with what verifications found."""
    try:
        status = verification_path(site.table.folder, history.setup).stat()
    except (OSError, ValueError):
        return ""
    return f"{status.st_size}-{status.st_mtime_ns}"


def scripts(history: History, site: Site) -> dict[str, KernelKey]:
    """Kernels with something to choose from, by the address of what the page calculates from."""
    start = f"{SCRIPTS_FOLDER}/advice-{setup_key(history.setup)}-"
    timed = site.timed(history)
    return {
        start + site.address(None, key).removeprefix("kernel-").removesuffix(".html") + ".js": key
        for key in site.kernels(history)
        if len(timed[key]) > 1
    }


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a kernel on a setup."""

    axes: tuple[str, ...]
    rows: tuple[Row, ...]
    """Cases with an undisturbed time."""
    ways: tuple[Way, ...]
    disturbed: int
    """How many times are left out, because other work on the machine disturbed them."""
    verified: Checked | None
    """What the newest verification found; ``None`` without one."""
    stored: Checked | None
    """What hiding each of the stored sizes in turn comes to."""
    command: str
    """What measures the kernel, to be stored."""

    @property
    def is_refused(self) -> bool:
        """Whether verification forbids a ranking."""
        return self.verified is not None and not self.verified.holds


def know(history: History, key: KernelKey, site: Site, asked: Iterable[str] = ()) -> Known:
    """Collect what is known of a kernel; axes that are asked for come first."""
    of_kernel = site.current(history)[key].cases.values() if key in site.current(history) else ()
    every = [row for row in of_kernel if row.seconds]
    rows = [row for row in every if not row.is_disturbed]
    axes = find_axes((row for row in rows if row.name.time in CURVE_TIMES), asked)
    ways = build_ways(rows, axes, find_conditions(history, key, site))
    named = next((row.bench for row in every if row.bench), None)
    return Known(
        axes,
        tuple(rows),
        ways,
        len(every) - len(rows),
        check(verified(site, history).get(key, ())),
        check(leave_out(key, axes, ways)),
        f"`asv run --bench {named or BenchmarkName(*key, '', '').class_name}`",
    )


def find_conditions(history: History, key: KernelKey, site: Site) -> Conditions:
    """Find what is known of a setup beside the times of a kernel."""
    current = site.current(history)
    rows = [*current[key].cases.values()] if key in current else []
    streams = [
        row for (_, name), now in current.items() if name in STREAMS for row in now.cases.values()
    ]
    facts = next((one.facts for one in reversed(history.snapshots) if one.facts), {})

    @cache
    def bandwidth(device: str) -> float | None:
        if AND in device:  # their memories move bytes at once
            return None
        ceiling = memory_ceiling(device, rows, facts, streams)
        return ceiling.bytes_per_second if ceiling else None

    def memory(device: str) -> float | None:
        if AND in device or "://" in device:  # several devices, each with a part; or another host
            return None
        name = "gpu_memory_bytes" if is_gpu(device) else "memory_bytes"
        values = [row.conditions.get(name) for row in rows if row.device == device]
        known = [one for one in (*values, facts.get(name)) if isinstance(one, int) and one > 0]
        return float(known[0]) if known else None

    return Conditions(get_drift(verified(site, history).values()), bandwidth, memory)


def script(history: History, key: KernelKey, site: Site) -> str:
    """Build the script of what the page calculates from: the curves of every way to a kernel's
    result; numbers that are not known are ``null``."""
    known = know(history, key, site)
    data = {
        "axes": [
            {"name": axis, "low": min(values), "high": max(values)}
            for axis in known.axes
            if (values := [row.sizes[axis] for row in known.rows if axis in row.sizes])
        ],
        "ways": list(map(_way, known.ways)),
        "refused": known.is_refused,
        "verified": "; ".join(verified_lines(known, "::".join(key))),
        "disturbed": disturbed_words(known),
    }
    return f"gpubenchAdvice.kernel({msgspec.json.encode(data).decode()});\n"


def _way(way: Way) -> dict[str, Any]:
    return {
        "label": way.label,
        "implementation": way.implementation,
        "device": way.device,
        "parameters": way.parameters,
        "workers": way.workers,
        "compiles": way.compiles,
        "copies": way.copies,
        "memory": way.memory,
        "once": way.once,
        "times": {time: _curve(curve) for time, curve in way.curves.items()},
    }


def _curve(curve: Curve) -> dict[str, Any]:
    places = [point.at for point in curve.points]
    return {
        "at": places,
        "axes": curve.grid.axes,
        "variant": [point.variant for point in curve.points],
        "log": [curve.logs[at] for at in places],
        "half": [curve.halves[at] for at in places],
        "slopes": curve.slopes,
        "bound": [curve.bounds[at] for at in places] if curve.bounds else None,
        "bound_slopes": curve.bound_slopes,
        "cached": curve.cached,
        "held": [curve.held[at] for at in places] if curve.held else None,
        "held_slopes": curve.held_slopes,
    }


def verified_lines(known: Known, target: str) -> tuple[str, ...]:
    """Return what verification found, or that there was none, and what stands in for it."""
    outcome, stored = known.verified, known.stored
    command = f"`gpubench advise --verify {target}`"
    if outcome is None:
        hidden = f"hiding each stored size in turn, {wrong_words(stored)}" if stored else ""
        return tuple(filter(None, (f"not verified: run {command}", hidden)))
    first = f"{wrong_words(outcome)}, on {_day(outcome.at)}"
    if outcome.holds:
        return first, *within_lines(outcome)
    return (
        f"no ranking: {first}",
        *within_lines(outcome),
        f"{MIN_COVERAGE:.0%} within are needed, and less than {MAX_REGRET_FACTOR:g}x of the best",
        "measure more sizes, closer to each other, with `asv run`",
        f"then verify again: {command}",
    )


def wrong_words(outcome: Checked) -> str:
    """``wrong by 9% at the median, 2.4x at most``."""
    return f"wrong by {outcome.error:.0%} at the median, {text.digits(outcome.worst, 2)}x at most"


def within_lines(outcome: Checked) -> tuple[str, ...]:
    """Return how many times intervals held, and how the chosen ways compare with the best."""
    times = text.plural(outcome.count, "time")
    within = f"{outcome.coverage:.0%} of {times} were within their intervals"
    if not outcome.choices:
        return (within,)
    usual, worst = (text.digits(1 + each) for each in (outcome.regret, outcome.worst_regret))
    chosen = f"the chosen way took {usual}x the time of the best at the median, {worst}x at most"
    return within, chosen


def disturbed_words(known: Known) -> str:
    """Return how many times are left out since other work disturbed them; empty for none."""
    if not known.disturbed:
        return ""
    times = text.plural(known.disturbed, "stored time")
    which = "it" if known.disturbed == 1 else "them"
    words = f"{times} left out, because other work disturbed {which}"
    return f"{words}: {known.command} on a quiet machine"


def _day(at: str) -> str:
    """``16 October 2026``; what is no date as it stands."""
    try:
        day = date.fromisoformat(at[:10])
    except ValueError:
        return at[:10]
    return f"{day.day} {day:%B %Y}"


def digest(history: History, site: Site) -> str:
    """Return a text that changes with what the page shows."""
    return f"{history.digest_now}{stamp(history, site)}"


def files(history: History, site: Site) -> Iterator[ReportFile]:
    """Yield the script of each kernel that can be asked for."""
    for address, asked in scripts(history, site).items():
        view = partial(script, history, asked, site)
        yield ReportFile(address, digest(history, site), view)


ADVISE_PAGE = Page(
    "advise",
    "Advise",
    build,
    digest,
    is_there=has_choices,
    files=files,
    folder=Path(__file__).parent,
    assets=("advise.js",),
)
