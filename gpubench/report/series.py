"""Scripts with the values of every case of a kernel over commits, which its page loads on request.

Values stand in a script of their own, one for each kernel and setup, so that a page stays small:
those of the chart that the page shows at first, with their intervals, and those of every other
case. Commits of a setup stand in one script that its kernels share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpubench.analysis.headline import KernelKey
from gpubench.names import parse_identity
from gpubench.report.data_scripts import SCRIPTS_FOLDER, data_script, pack_floats
from gpubench.report.site import Site
from gpubench.results import CaseName, History

MAX_SUBJECT_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class SeriesSource:
    """Where a page gets the values of a kernel: ``gpubenchLists.sources`` makes addresses of both
    parts, and of the links to the kernel on other setups."""

    kernel: str
    """Name of the kernel's page without its slug."""
    slug: str
    """End of the file names of the page's setup."""


def commits_address(history: History, site: Site) -> str:
    """Return the address of the script with a setup's commits."""
    return f"{SCRIPTS_FOLDER}/commits{_slug(history, site)}.js"


def series_address(history: History, key: KernelKey, site: Site) -> str:
    """Return the address of the script with a kernel's values on a setup."""
    return f"{SCRIPTS_FOLDER}/series-{_stem(key, site)}{_slug(history, site)}.js"


def _slug(history: History, site: Site) -> str:
    return site.address(history.setup).removeprefix("index").removesuffix(".html")


def _stem(key: KernelKey, site: Site) -> str:
    return site.address(None, key).removesuffix(".html")


def source(history: History, key: KernelKey, site: Site) -> SeriesSource:
    """Return where the values of a kernel are on a setup."""
    return SeriesSource(_stem(key, site), _slug(history, site))


def commits_script(history: History, site: Site) -> str:
    """Return the commits of a setup, oldest first: short hash, seconds since 1970, subject, and of
    those that have some, their tags."""
    tags = site.table.tags
    commits = [
        [label.short, int(commit.date), label.subject[:MAX_SUBJECT_CHARACTERS]]
        + ([list(tags[commit.hash])] if commit.hash in tags else [])
        for label, commit in zip(site.labels(history), history.commits, strict=True)
    ]
    return data_script(commits_address(history, site), commits)


def commits_stamp(history: History, site: Site) -> str:
    """Return a text that changes with what ``commits_script`` is made from."""
    tags = {
        one.hash: site.table.tags[one.hash]
        for one in history.commits
        if one.hash in site.table.tags
    }
    return f"{history.digest}{tags}"


def series_script(history: History, key: KernelKey, charted: Sequence[CaseName], site: Site) -> str:
    """Return every case of a kernel with its values over the setup's commits.

    ``charted`` has the cases of the page's first chart in its order: six numbers for each commit,
    the value, both ends of its interval, the speedup and both ends of its interval, one kind after
    the other. ``cases`` has each case of the kernel: its ``values``, or the index of its numbers in
    ``charted``, and in ``failed`` the indices of commits at which it has a status and no value.
    Numbers are packed (``pack_floats``), NaN where there is none.
    """
    every = site.of_kernel(history, key)
    newest = site.units(history)
    numbers = np.concatenate([every.times, every.speedups])
    cases = []
    for row, name in enumerate(every.names):
        if (name.suite, name.kernel) != key:
            continue
        values = every.times[0, row]
        is_failed = np.isnan(values) & (every.statuses[row] > 0)
        is_charted = name in charted
        cases.append(
            {
                "implementation": name.implementation,
                "time": name.time,
                "case": name.case,
                "parameters": {k: str(v) for k, v in parse_identity(name.case).items()},
                "unit": newest.get(name, "seconds"),
                "charted": charted.index(name) if is_charted else None,
                "values": None if is_charted else pack_floats(values),
                "failed": np.flatnonzero(is_failed).tolist(),
            }
        )
    of_chart = [pack_floats(numbers[:, every.rows_of[name]]) for name in charted]
    content = {"commits": len(history.commits), "charted": of_chart, "cases": cases}
    return data_script(series_address(history, key, site), content)
