"""How often rows of a short history are false, and how often one commit of 5x is listed.

Run ``python scripts/few_commits.py STORE...``; a store is a folder of asv's result files. Windows
of 3 to 60 neighbouring commits of all of a setup's cases are judged as a report judges them:

- as they are: a row among *regressions* is false where the ten commits after it are not slower than
  the ten before it by a third of what it says (geometrically),
- with the commits of each case in another order, where every row among *regressions* is false,
- with one case in ten five times slower at the newest commit: listed as a step or to be checked.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from figures import add_option, record, recording

from gpubench.analysis.changes import Change
from gpubench.analysis.together import judge_times
from gpubench.results import CaseHistories, Times, open_table

AROUND = 10
"""Commits on each side of a row that confirm it or not."""

LENGTHS = (3, 4, 5, 7, 9, 12, 20, 60)
PLANTED = 5.0
MAX_SETUPS = 3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stores", nargs="+", type=Path, metavar="STORE")
    parser.add_argument("--windows", type=int, default=20, help="of each length and setup")
    add_option(parser)
    given = parser.parse_args()
    with recording(given):
        for store in given.stores:
            name = store.parent.name if store.name == "results" else store.name
            counts = {length: Counter[str]() for length in LENGTHS}
            for history in histories(store):
                for length in LENGTHS:
                    chance = np.random.default_rng(length)
                    counts[length] = counts[length] + judged(history, length, given.windows, chance)
            for length, count in counts.items():
                show(name, length, count)


def histories(store: Path) -> Iterator[CaseHistories]:
    """Yield the times of a store's first setups at the commits that measured most cases."""
    table = open_table(store)
    for setup in table.setups[:MAX_SETUPS]:
        history = table.history(setup)
        measured = (~np.isnan(history.judged[0])).sum(axis=0)
        kept = np.flatnonzero(2 * measured >= np.median(measured))
        if len(kept) >= 3 * AROUND:
            yield table.history(setup, None, [history.snapshots[place] for place in kept.tolist()])
    table.close()


def judged(
    history: CaseHistories, length: int, windows: int, chance: np.random.Generator
) -> Counter[str]:
    """Return counts of cases and rows over windows of so many commits."""
    counts = Counter[str]()
    if length > len(history.snapshots):
        return counts
    for _ in range(windows):
        start = int(chance.integers(0, len(history.snapshots) - length + 1))
        window = history.judged[:, :, start : start + length]
        counts["cases"] += len(history.names)
        for case, change in rows(history, window):
            is_step = change.kind == "step"
            counts["rows" if is_step else "to be checked"] += 1
            counts["false"] += is_step and not confirmed(history, case, start, change)
        orders = chance.permuted(np.tile(np.arange(length), (len(history.names), 1)), axis=1)
        mixed = np.take_along_axis(window, orders[None], axis=2)
        counts["shuffled"] += sum(change.kind == "step" for _, change in rows(history, mixed))
        planted = np.ones((len(history.names), length))
        known = ~np.isnan(window[0, :, -1]) & ((~np.isnan(window[0])).sum(axis=1) >= 3)
        chosen = np.flatnonzero((chance.random(len(known)) < 0.1) & known)
        planted[chosen, -1] = PLANTED
        found = {
            case for case, change in rows(history, window * planted) if change.after >= length - 2
        }
        counts["planted"] += len(chosen)
        counts["listed"] += len(found.intersection(chosen.tolist()))
    return counts


def rows(history: CaseHistories, window: Times) -> Iterator[tuple[int, Change]]:
    """Yield the slower changes of the cases over a window, with the index of the case."""
    for case, verdict in enumerate(judge_times(history.names, window)):
        yield from ((case, change) for change in verdict.changes if change.slower)


def confirmed(history: CaseHistories, case: int, start: int, change: Change) -> bool:
    place, times = start + change.after, history.judged[0, case]
    before, after = times[max(place - AROUND, 0) : place], times[place : place + AROUND]
    moved = math.log(np.nanmedian(after) / np.nanmedian(before))
    return moved >= math.log(change.ratio.factor) / 3


def show(store: str, length: int, count: Counter[str]) -> None:
    if not count["cases"]:
        return
    share = {
        key: f"{100 * count[key] / max(count[whole], 1):.2f}"
        for key, whole in (
            ("rows", "cases"), ("false", "cases"), ("to be checked", "cases"),
            ("shuffled", "cases"), ("listed", "planted"),
        )
    }  # fmt: skip
    print(f"{store}, {length} commits: {share} of {count['cases']:,} cases", flush=True)
    record(
        "few_commits",
        f"{store}, {length} commits",
        {
            "rows, % of cases": share["rows"],
            "false, %": share["false"],
            "to be checked, %": share["to be checked"],
            "false in another order, %": share["shuffled"],
            "5x at the newest commit listed, %": share["listed"],
        },
    )


if __name__ == "__main__":
    main()
