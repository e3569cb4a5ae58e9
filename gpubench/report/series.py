"""Scripts with the values of every case of a kernel over commits, which its page loads on request.

A page shows one case of each implementation at first. The others stand in a script of their own,
one for each kernel and setup, so that a page stays small. Commits of a setup stand in one script
that its kernels share.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from gpubench.analysis.headline import KernelKey
from gpubench.names import parse_identity
from gpubench.report.compare import FOLDER
from gpubench.report.site import Site, setup_label
from gpubench.results import History

MAX_SUBJECT_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class SeriesSource:
    """Where a page gets the values of a kernel on one setup."""

    setup: str
    """In words."""
    commits: str
    """Address of the script with the setup's commits."""
    series: str
    """Address of the script with the values."""
    is_here: bool
    """Whether it is the setup of the page."""


def commits_address(history: History, site: Site) -> str:
    """Return the address of the script with a setup's commits."""
    return f"{FOLDER}/commits-{site.address(history.setup).removesuffix('.html')}.js"


def series_address(history: History, key: KernelKey, site: Site) -> str:
    """Return the address of the script with a kernel's values on a setup."""
    return f"{FOLDER}/series-{site.address(history.setup, key).removesuffix('.html')}.js"


def sources(history: History, key: KernelKey, site: Site) -> tuple[SeriesSource, ...]:
    """Return where the values of a kernel are on every setup that has it, this one first."""
    having = [one for one in site.histories if key in site.kernels(one)]
    having.sort(key=lambda one: one.setup != history.setup)
    return tuple(
        SeriesSource(
            setup_label(one.setup),
            commits_address(one, site),
            series_address(one, key, site),
            one.setup == history.setup,
        )
        for one in having
    )


def commits_script(history: History, site: Site) -> str:
    """Return the commits of a setup, oldest first: short hash, seconds since 1970, subject."""
    commits = [
        [label.short, int(commit.date), label.subject[:MAX_SUBJECT_CHARACTERS]]
        for label, commit in zip(site.labels(history), history.commits, strict=True)
    ]
    return _script(commits_address(history, site), commits)


def series_script(history: History, key: KernelKey, site: Site) -> str:
    """Return every case of a kernel with its values over the setup's commits: 32-bit floats in
    base64, whose seven digits are more than a value has, NaN where there is none. ``failed`` has
    the indices of commits at which a case has a status and no value."""
    every = site.of_kernel(history, key)
    newest = site.units(history)
    cases = []
    for row, name in enumerate(every.names):
        if (name.suite, name.kernel) != key:
            continue
        values = every.times[0, row]
        is_failed = np.isnan(values) & (every.statuses[row] > 0)
        cases.append(
            {
                "implementation": name.implementation,
                "time": name.time,
                "case": name.case,
                "parameters": {k: str(v) for k, v in parse_identity(name.case).items()},
                "unit": newest.get(name, "seconds"),
                "values": b64encode(values.astype("<f4").tobytes()).decode("ascii"),
                "failed": np.flatnonzero(is_failed).tolist(),
            }
        )
    return _script(series_address(history, key, site), cases)


def _script(address: str, content: Any) -> str:
    # A line separator ends a statement in old browsers; "<" may not end the script.
    data = msgspec.json.encode(content).decode().replace("<", "\\u003c")
    return f'gpubenchSeries["{address}"] = {data};\n'
