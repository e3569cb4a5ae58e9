"""Times of every snapshot as small scripts beside the pages, for comparisons that a reader chooses.

A page that was opened from disk may not fetch files, but it may add scripts. So each snapshot is
one script of a few kilobytes, read when it is chosen; the pages do not grow with the history.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from urllib.parse import quote

import msgspec
import numpy as np

from gpubench.analysis.comparison import DIFFERING, FAILURES, SAME
from gpubench.analysis.environment import explains
from gpubench.analysis.history import Setup, SetupHistory
from gpubench.analysis.setup_table import ABSENT
from gpubench.report import text
from gpubench.report.findings import case_words
from gpubench.report.machine import fact_words
from gpubench.report.site import DataFile, Site, commit_label, setup_label
from gpubench.results import CaseName, Snapshot, Status
from gpubench.results.columns import STATUSES

FOLDER = "compare-data"
"""Beside the pages; all of it belongs to the report."""

INDEX = f"{FOLDER}/index.js"

CODES: dict[Status, str] = {
    "ok": "o",
    "skipped": "s",
    "failed": "f",
    "wrong": "w",
    "timed_out": "t",
    "killed": "k",
    "verified": "m",
}
UNKNOWN, OTHER_VERSION = "-", "v"
_LETTERS = np.frombuffer("".join([*(CODES[s] for s in STATUSES), UNKNOWN]).encode(), np.uint8)
"""By index into ``STATUSES``; the last one is for ``ABSENT``, which is -1."""

_UNESCAPED = "!'()*"
"""As JavaScript's ``encodeURIComponent`` does, so that both write the same address."""


def setup_key(setup: Setup) -> str:
    """Short name of a setup in file names; it stays while others come and go."""
    named = f"{setup.machine}\0{setup.environment}"
    return hashlib.sha256(named.encode()).hexdigest()[:10]


def side_address(setup: Setup, commit: str) -> str:
    """One side in the part of an address after ``#``."""
    parts = (commit[:8], setup.machine, setup.environment)
    return ",".join(quote(part, safe=_UNESCAPED) for part in parts)


def pair_address(old: tuple[Setup, str], new: tuple[Setup, str]) -> str:
    """Two sides, setup and commit each, as the part of an address after ``#``."""
    return f"a={side_address(*old)}&b={side_address(*new)}"


def data_files(site: Site) -> Iterator[DataFile]:
    """Every script."""
    histories = site.histories
    yield DataFile(INDEX, lambda: _script("index", [_index(histories)]), site.all_sources)
    for history in histories:
        key, names = setup_key(history.setup), tuple(history.cases)
        listed = hashlib.sha256(repr(names).encode()).digest()
        cases = partial(_cases_script, history, key, names)
        yield DataFile(f"{FOLDER}/{key}.js", cases, history.digest)
        for place, snapshot in enumerate(history.snapshots):
            name = f"{key}-{snapshot.commit[:8]}"
            content = partial(_snapshot_script, history, place, name, names)
            sources = listed + history.digest_at(place)
            yield DataFile(f"{FOLDER}/{name}.js", content, sources)


def _cases_script(history: SetupHistory, key: str, names: Sequence[CaseName]) -> str:
    return _script("cases", [key, _cases(history, names)])


def _snapshot_script(
    history: SetupHistory, place: int, name: str, names: Sequence[CaseName]
) -> str:
    return _script("snapshot", [name, _snapshot(history, place, names)])


def _script(function: str, arguments: list[object]) -> str:
    return f"gpubench.{function}(...{msgspec.json.encode(arguments).decode()});\n"


def _index(histories: Sequence[SetupHistory]) -> dict[str, object]:
    """What the choices are, and the rules of ``analysis.comparison`` that the script follows."""
    return {
        "same": SAME,
        "differing": DIFFERING,
        "failures": [CODES[status] for status in FAILURES],
        "statuses": {code: text.status_label(status) for status, code in CODES.items()},
        "setups": [_setup(history) for history in histories],
    }


def _setup(history: SetupHistory) -> dict[str, object]:
    labels = [commit_label(commit) for commit in history.commits]
    return {
        "key": setup_key(history.setup),
        "machine": history.setup.machine,
        "environment": history.setup.environment,
        "label": setup_label(history.setup),
        "commits": [[label.short, label.date, label.subject] for label in labels],
    }


def _cases(history: SetupHistory, names: Sequence[CaseName]) -> dict[str, object]:
    place = {name: index for index, name in enumerate(names)}
    newest = (history.cases[name][-1] for name in names)
    return {
        "labels": [case_words(name) for name in names],
        "baselines": [place[p.baseline] if p.baseline else -1 for p in newest],
    }


def _snapshot(history: SetupHistory, place: int, names: Sequence[CaseName]) -> dict[str, object]:
    """Medians and both ends of the intervals, 32-bit floats in base64; statuses, one letter each.

    Seven digits are more than any time has. NaN where there is no time.
    """
    snapshot = history.snapshots[place]
    codes, times = history.at(place)
    letters = list(_LETTERS[codes].tobytes().decode("ascii"))
    for row in np.flatnonzero(codes == ABSENT).tolist() if snapshot.superseded else ():
        if names[row].benchmark.asv_name in snapshot.superseded:
            letters[row] = OTHER_VERSION
    return {
        "status": "".join(letters),
        "times": b64encode(times.T.astype("<f4").tobytes()).decode("ascii"),
        "facts": _facts(snapshot),
    }


def _facts(snapshot: Snapshot) -> Mapping[str, list[str]]:
    told = {**{f"asv {k}": v for k, v in snapshot.params.items()}, **snapshot.facts}
    found = {}
    for name, value in sorted(told.items(), key=lambda item: item[0].removeprefix("asv ")):
        plain = name.removeprefix("asv ")
        if explains(plain) and (plain == name or plain not in snapshot.facts):
            found[name] = list(fact_words(plain, value))
    return found
