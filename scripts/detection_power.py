"""What `gpubench compare` finds and invents between two stored runs, by stored processes.

``python scripts/detection_power.py FOLDER FOLDER ...`` reads results folders that hold several runs
of one commit on one machine, also where a record has several runs. Of each case it takes all
processes, without what its kind shares in a run. Then it draws two sides of so many processes of
each case, makes a share of the cases slower by a factor, and judges them: *found* of the changed
cases, *false* of the others. A drawn process is widened by ``sqrt(n / (n - 1))``, because ``n``
processes differ from their own mean by less than from the true one.

``--neighbours STORE ...`` asks stores of other projects instead: of the last pairs of neighbouring
commits, how many cases are called *sure*, and how many of those the ten commits on each side
contradict, whose medians then differ by less than half as much.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from statistics import median

import numpy as np
from figures import add_option, record, recording
from numpy.typing import NDArray

from gpubench.analysis.between_runs import CaseRuns, judge
from gpubench.analysis.comparison import compare_rows, read_earlier_runs
from gpubench.record import SUFFIX
from gpubench.results import Table, open_table
from gpubench.results.appended import recorded_processes
from gpubench.results.kinds import kind_of

FACTORS = (1.1, 1.3, 1.5, 2.0, 3.0)
SHARES = (0.05, 0.1, 0.3, 0.5)

Floats = NDArray[np.float64]
CaseKey = tuple[str, str]


@dataclass(frozen=True)
class Pool:
    """Deviations of the processes of one case, as logarithms of seconds."""

    kind: str
    logs: Floats


def read_pools(folders: Sequence[Path], left_out: Sequence[str], least: int) -> list[Pool]:
    """Return the cases with so many processes at least, without those of benchmarks left out."""
    kinds: dict[CaseKey, str] = {}
    runs: dict[CaseKey, dict[tuple[object, int], float]] = defaultdict(dict)
    for folder in folders:
        table = open_table(folder)
        for setup in table.measured:
            for name, row in table.newest_rows(setup).items():
                if name.is_time and row.seconds:
                    kinds[name.benchmark.asv_name, name.case] = kind_of(row)
        for path in sorted(folder.glob(f"*/*{SUFFIX}")):
            for key, logs in _processes(path):
                if not any(part in key[0] for part in left_out):
                    runs[key] |= logs
    cases = [key for key, logs in runs.items() if key in kinds and len(logs) >= least]
    columns = {
        place: index
        for index, place in enumerate(sorted({p for c in cases for p in runs[c]}, key=repr))
    }
    table_of_logs = np.full((len(cases), len(columns)), np.nan)
    for row, key in enumerate(cases):
        for place, log in runs[key].items():
            table_of_logs[row, columns[place]] = log
    _take_out_shared(table_of_logs, [kinds[key] for key in cases])
    return [
        Pool(kinds[key], row[~np.isnan(row)]) for key, row in zip(cases, table_of_logs, strict=True)
    ]


def _processes(path: Path) -> Iterator[tuple[CaseKey, dict[tuple[object, int], float]]]:
    for key, processes in recorded_processes(path).items():
        logs: dict[tuple[object, int], float] = {}
        for process in processes:
            rounds = process.finished.rounds
            if rounds and rounds.rounds:
                run = process.run.facts.get("run")
                place = sum(known == run for known, _ in logs)
                logs[run, place] = math.log(median(rounds.rounds))
        yield key, logs


def _take_out_shared(logs: Floats, kinds: Sequence[str]) -> None:
    """Subtract each case's mean and what its kind shares in a run, in place."""
    names = np.array(kinds)
    for _ in range(3):
        logs -= np.nanmean(logs, axis=1, keepdims=True)
        for kind in set(kinds):
            of_kind = logs[names == kind]
            known = np.sum(~np.isnan(of_kind), axis=0) >= 5
            of_kind[:, known] -= np.nanmedian(of_kind[:, known], axis=0)
            logs[names == kind] = of_kind
    logs -= np.nanmean(logs, axis=1, keepdims=True)


@dataclass
class Tally:
    """Verdicts of drawn comparisons."""

    changed: int = 0
    found: int = 0
    unchanged: int = 0
    false: int = 0


def draw(
    pools: Sequence[Pool], processes: int, share: float, factor: float, random: np.random.Generator
) -> Tally:
    """Draw one comparison of all cases, and judge it."""
    is_changed = random.random(len(pools)) < share
    cases = []
    for pool, changes in zip(pools, is_changed.tolist(), strict=True):
        widened = pool.logs * math.sqrt(len(pool.logs) / (len(pool.logs) - 1))
        drawn = random.choice(widened, 2 * processes)
        added = math.log(factor) if changes else 0.0
        cases.append(CaseRuns(pool.kind, drawn[:processes], drawn[processes:] + added))
    tally = Tally()
    for judged, changes in zip(judge(cases).cases, is_changed.tolist(), strict=True):
        is_called = judged.call != "unchanged"
        tally.changed += changes
        tally.unchanged += not changes
        tally.found += changes and is_called and judged.log > 0
        tally.false += not changes and is_called
    return tally


def print_power(
    pools: Sequence[Pool],
    title: str,
    processes: Sequence[int],
    shares: Sequence[float],
    draws: int,
) -> None:
    """Print and record found and false of each cell."""
    random = np.random.default_rng(1)
    print(f"{title}: {len(pools)} cases")
    for count, share in product(processes, shares):
        figures: dict[str, str] = {}
        false: Tally = Tally()
        worst = 0.0
        for factor in FACTORS:
            cell = Tally()
            for _ in range(draws):
                one = draw(pools, count, share, factor, random)
                for name in ("changed", "found", "unchanged", "false"):
                    setattr(cell, name, getattr(cell, name) + getattr(one, name))
            figures[f"{factor:g}x"] = f"{100 * cell.found / max(cell.changed, 1):.0f} %"
            worst = max(worst, 100 * cell.false / max(cell.unchanged, 1))
            false.false += cell.false
            false.unchanged += cell.unchanged
        figures["false"] = (
            f"{100 * false.false / max(false.unchanged, 1):.2f} % (worst {worst:.2f})"
        )
        what = f"{title}, processes a side: {count}, cases changed: {100 * share:.0f} %"
        print(what, figures, flush=True)
        record("power", what, figures)


def neighbours(store: Path, pairs: int, around: int) -> Mapping[str, int]:
    """Count cases that are called between the last neighbouring commits of each setup."""
    table = open_table(store)
    counts = {"compared": 0, "sure": 0, "contradicted": 0, "suspects": 0}
    for setup in table.setups:
        snapshots = table.snapshots(setup)
        places = range(len(snapshots))
        for old, new in [*pairwise(places)][-pairs:]:
            pair = snapshots[old], snapshots[new]
            earlier = read_earlier_runs(table, pair)
            compared = compare_rows(*pair, *map(table.rows, pair), earlier=earlier)
            counts["compared"] += sum(one.ratio is not None for one in compared.differences)
            counts["suspects"] += compared.counts.get("suspect", 0)
            for one in compared.differences:
                if one.is_sure and one.ratio:
                    counts["sure"] += 1
                    sides = (snapshots[max(new - around, 0) : new], snapshots[new : new + around])
                    lasting = _lasting(table, one.name, sides)
                    counts["contradicted"] += lasting < abs(math.log(one.ratio.value)) / 2
    return counts


def _lasting(table: Table, name: object, sides: Sequence[Sequence[object]]) -> float:
    medians = []
    for side in sides:
        seconds = [row.seconds for s in side if (row := table.rows(s).get(name)) and row.seconds]  # type: ignore[arg-type, call-overload]
        medians.append(median(seconds) if seconds else math.nan)
    return abs(math.log(medians[1] / medians[0]))


def main() -> None:
    """Read, draw and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--title", default="runs of one commit", help="in the figures' names")
    parser.add_argument("--left-out", action="append", default=[], help="part of benchmarks' names")
    parser.add_argument("--least", type=int, default=4, help="processes of a case")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES, help="of cases changed")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--neighbours", type=int, metavar="PAIRS", help="last pairs of each setup")
    add_option(parser)
    given = parser.parse_args()
    with recording(given, "numpy"):
        if given.neighbours:
            for folder in given.folders:
                counts = neighbours(folder, given.neighbours, 10)
                print(folder.name, counts, flush=True)
                figures = {name: str(count) for name, count in counts.items()}
                record("neighbours", f"{folder.name}, last {given.neighbours} pairs", figures)
        else:
            pools = read_pools(given.folders, given.left_out, given.least)
            print_power(pools, given.title, given.processes, given.shares, given.draws)


if __name__ == "__main__":
    main()
