"""Whole runs of one commit: how often a later run falls into an interval, and what is told falsely.

``python scripts/same_commit.py FOLDER FOLDER ...`` reads results folders, each of one run of the
same commit on the same machine, in the order in which they were measured. It prints for each kind
of case: how many medians of later runs lie in the interval of an earlier one; how much times differ
between rounds and between runs; the shares of ``gpubench.analysis.scatter.SEEN`` as these runs show
them. And for each pair of runs, how many cases `gpubench compare` calls slower or faster, and how
many it finds that were made ``--planted`` times slower in copies of their rows.

``--runs N --into FOLDER`` measures first: N whole ``asv run`` of the commit that is checked out,
one after the other, each copied into a folder of its own. What follows ``--`` is given to ``asv
run``. The project's own results are as they were afterwards.
"""

from __future__ import annotations

import argparse
import math
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpubench.analysis.comparison import (
    ComparisonSide,
    SnapshotComparison,
    compare_rows,
    known_scatters,
    paired,
    side_of,
)
from gpubench.analysis.scatter import (
    GRID,
    TAILS,
    RunScatter,
    fit_shares,
    learn_scatter,
    log_density,
    on_grid,
)
from gpubench.errors import GpubenchError, ResultsError
from gpubench.results import CaseName, Row, Table, open_table
from gpubench.results.kinds import CASE_KINDS, Kind, kind_of
from gpubench.results.ratio import Ratio

RESULTS = Path(".asv/results")

MIN_PRINTED_SHARE = 0.02
"""Smaller shares of cases are left out."""

Rows = dict[CaseName, Row]


class Run(NamedTuple):
    """One run of the commit."""

    side: ComparisonSide
    table: Table
    rows: Rows


def measure_runs(count: int, into: Path, arguments: Sequence[str]) -> list[Path]:
    """Measure the commit that is checked out again and again; return a folder for each run."""
    if not RESULTS.is_dir():
        raise GpubenchError(f"{RESULTS} is no folder; run this where asv.conf.json is")
    if into.exists():
        raise GpubenchError(f"{into} exists; name a new folder")
    into.mkdir(parents=True)
    before = into / "before"
    shutil.copytree(RESULTS, before)
    folders = []
    try:
        for number in range(1, count + 1):
            subprocess.run(["asv", "run", "HEAD^!", *arguments], check=True)
            folder = into / f"run-{number}"
            shutil.copytree(RESULTS, folder)
            folders.append(folder)
            _replace(RESULTS, before)
    finally:
        _replace(RESULTS, before)
    return folders


def _replace(folder: Path, by: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(by, folder)


def read_run(folder: Path) -> Run:
    """Read the newest commit of a results folder that has one machine and environment."""
    table = open_table(folder)
    side = side_of(str(folder), table)
    if len(side.snapshots) != 1:
        raise ResultsError(
            f"{folder} has results of {len(side.snapshots)} machines and environments; it takes one"
        )
    return Run(side, table, table.rows(side.snapshots[0]))


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read runs, two at least, all of one commit."""
    runs = [read_run(folder) for folder in folders]
    commits = {run.side.snapshots[0].commit.hash[:8] for run in runs}
    if len(runs) < 2 or len(commits) != 1:
        found = ", ".join(sorted(commits)) or "none"
        raise ResultsError(f"it takes two runs of one commit; {len(runs)} folders of {found}")
    return runs


def known_after(runs: Sequence[Run]) -> RunScatter:
    """Return what is known of scatter once these runs are measured, as a history of commits has
    it."""
    return learn_scatter([(run.table, run.side.snapshots[0].setup.place) for run in runs])


def compare_runs(one: Run, other: Run, known: RunScatter | None = None) -> SnapshotComparison:
    """Compare two runs as `gpubench compare` does: with what is ``known`` of the machine, without
    it with what their two folders tell."""
    ((old, new),) = paired(one.side, other.side)
    scatters = (known, known) if known else known_scatters(one.table, other.table, (old, new))
    return compare_rows(old, new, one.rows, other.rows, scatters=scatters)


def planted(run: Run, chosen: Collection[CaseName], factor: float) -> Run:
    """Return a run in which these cases take so many times as long."""
    rows = {
        name: _slower(row, factor) if name in chosen and row.seconds else row
        for name, row in run.rows.items()
    }
    return run._replace(rows=rows)


def _slower(row: Row, factor: float) -> Row:
    speedup = row.speedup
    if speedup is not None:
        speedup = Ratio(speedup.value / factor, speedup.low / factor, speedup.high / factor)
    return replace(
        row,
        seconds=(row.seconds or 0.0) * factor,
        low=row.low and row.low * factor,
        high=row.high and row.high * factor,
        rounds=tuple(seconds * factor for seconds in row.rounds),
        speedup=speedup,
    )


def same_measurement(one: Row, other: Row) -> bool:
    """Return whether two runs hold one and the same measurement of a case."""
    return (one.seconds, one.rounds) == (other.seconds, other.rounds)


def timed_twice(one: Run, other: Run) -> Iterator[tuple[Row, Row]]:
    """Cases that both runs have timed, with their rows."""
    for name, row in one.rows.items():
        later = other.rows.get(name)
        if row.seconds and later and later.seconds and not same_measurement(row, later):
            yield row, later


def print_coverage(runs: Sequence[Run]) -> None:
    """Print how many medians of later runs lie in intervals of earlier ones, by kind: in that of
    the rounds, and in the one for the next run, with what was known when the earlier one ended."""
    rounds, inside, total = Counter[Kind](), Counter[Kind](), Counter[Kind]()
    widths = defaultdict[Kind, list[float]](list)
    for number, one in enumerate(runs[:-1]):
        known = known_after(runs[: number + 1])
        for other in runs[number + 1 :]:
            for row, later in timed_twice(one, other):
                interval, kind = known.next_run(row), kind_of(row)
                if interval is None or not row.low or not row.high:
                    continue
                total[kind] += 1
                rounds[kind] += row.low <= (later.seconds or 0.0) <= row.high
                inside[kind] += interval[0] <= (later.seconds or 0.0) <= interval[1]
                widths[kind].append(interval[1] / (row.seconds or 1.0) - 1)
    print("medians of later runs in an interval of an earlier one: rounds, next run (its half)")
    for kind in (kind for kind in CASE_KINDS if total[kind]):
        print(
            f"  {kind:34} {rounds[kind] / total[kind]:6.1%} {inside[kind] / total[kind]:6.1%} "
            f"(+{np.median(widths[kind]):.1%}) of {total[kind]}"
        )
    if total.total():
        of = total.total()
        print(f"  {'all':34} {rounds.total() / of:6.1%} {inside.total() / of:6.1%} of {of}")


def print_scatter(runs: Sequence[Run]) -> None:
    """Print by kind how much times differ between rounds and between runs: the square root of the
    mean variance of their logarithms, and the median over cases; and the shares of scatters."""
    of_rounds = defaultdict[Kind, list[float]](list)
    differences = defaultdict[Kind, dict[CaseName, list[float]]](dict)
    for run in runs:
        for row in run.rows.values():
            if row.seconds and len(row.rounds) > 1:
                of_rounds[kind_of(row)].append(float(np.var(np.log(row.rounds), ddof=1)))
    for one, other in pairwise(runs):
        for row, later in timed_twice(one, other):
            log = math.log((later.seconds or 1.0) / (row.seconds or 1.0))
            differences[kind_of(row)].setdefault(row.name, []).append(log)
    print("scatter of times: mean (median) between rounds, and between runs; its shares")
    for kind in (kind for kind in CASE_KINDS if differences[kind]):
        of_runs = [np.mean(np.square(logs)) / 2 for logs in differences[kind].values()]
        sides = " ".join(
            f"{math.sqrt(np.mean(each)):7.1%} ({math.sqrt(np.median(each)):.1%})"
            for each in (of_rounds[kind] or [math.nan], of_runs)
        )
        shares = ", ".join(f"{s:.0%} {v:.1%}" for s, v in _shares([*differences[kind].values()]))
        print(f"  {kind:34} {len(of_runs):4} cases {sides}; {shares}")


def _shares(cases: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    """Shares of cases and their scatter by the nonparametric maximum likelihood of these alone."""
    widths = math.sqrt(2) * GRID
    logs = np.array(
        [
            sum(log_density(log / widths, TAILS[-1]) - np.log(widths) for log in np.abs(case))
            for case in cases
        ]
    )
    flat = on_grid(tuple((1 / len(GRID), float(value)) for value in GRID))
    shares, _ = fit_shares(flat, 1e-3, logs)
    pairs = zip(shares.tolist(), GRID.tolist(), strict=True)
    return [(share, value) for share, value in pairs if share > MIN_PRINTED_SHARE]


def print_verdicts(runs: Sequence[Run]) -> None:
    """Print for each pair of runs how many cases are called slower or faster, each of them falsely,
    and their share of all that were judged: with what the runs up to the later one tell."""
    told, judged = Counter[Kind](), Counter[Kind]()
    worst = 0.0
    print("slower and faster, of unchanged cases, with all runs up to the later one known")
    known = [known_after(runs[: number + 1]) for number in range(len(runs))]
    for first, second in combinations(range(len(runs)), 2):
        one, other = runs[first], runs[second]
        compared = compare_runs(one, other, known[second]).differences
        items = [item for item in compared if item.ratio and item.new]
        false = [item for item in items if item.verdict in ("slower", "faster")]
        judged.update(kind_of(item.new) for item in items if item.new)
        told.update(kind_of(item.new) for item in false if item.new)
        sure = sum(item.is_sure for item in false)
        worst = max(worst, len(false) / max(len(items), 1))
        print(f"  {one.side.label} {other.side.label}: {len(false)} of {len(items)}, {sure} sure")
    for kind in (kind for kind in CASE_KINDS if judged[kind]):
        print(f"  {kind:34} {told[kind] / judged[kind]:6.2%} of {judged[kind]}")
    share = told.total() / max(judged.total(), 1)
    print(f"  {'all':34} {share:6.2%} of {judged.total()}; the worst pair {worst:.2%}")


def print_planted(runs: Sequence[Run], factor: float) -> None:
    """Print how many cases are found that take ``factor`` times as long in the later of two
    neighbouring runs: one in ten, another tenth in each turn."""
    found, total = Counter[Kind](), Counter[Kind]()
    for number, (one, other) in enumerate(pairwise(runs)):
        known = known_after(runs[: number + 2])
        names = sorted(name for name in one.rows.keys() & other.rows.keys())
        for turn in range(10):
            chosen = {*names[turn::10]}
            compared = compare_runs(one, planted(other, chosen, factor), known)
            for item in compared.differences:
                if item.name in chosen and item.ratio and item.new:
                    total[kind_of(other.rows[item.name])] += 1
                    found[kind_of(other.rows[item.name])] += item.verdict == "slower"
    print(f"{factor:g} times as long in one of ten cases, found between neighbouring runs")
    for kind in (kind for kind in CASE_KINDS if total[kind]):
        print(f"  {kind:34} {found[kind] / total[kind]:6.1%} of {total[kind]}")
    print(f"  {'all':34} {found.total() / max(total.total(), 1):6.1%} of {total.total()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--planted", type=float, default=1.5)
    parser.add_argument("--into", type=Path, default=Path("same-commit"))
    own, given = _divide(sys.argv[1:])
    options = parser.parse_args(own)
    try:
        folders = [*options.folders]
        if options.runs:
            folders += measure_runs(options.runs, options.into, given)
        runs = read_runs(folders)
    except GpubenchError as error:
        sys.exit(f"same_commit: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"same_commit: asv run ended with {error.returncode}")
    print_coverage(runs)
    print_scatter(runs)
    print_verdicts(runs)
    print_planted(runs, options.planted)


def _divide(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Divide what is meant for this script from what is for ``asv run``."""
    if "--" not in arguments:
        return arguments, []
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


if __name__ == "__main__":
    main()
