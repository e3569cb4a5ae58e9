"""How good `gpubench advise` is: error, coverage and regret, from stored results.

For each kernel with sizes that can be predicted: of those measured afresh by `gpubench advise
--verify`, and of each size left out of the stored results in turn, the median error of the
estimates, the same against the times that were stored of these sizes (lines: what the estimates
themselves are wrong by), by how much the times measured afresh differ from those (change, the
median, a factor), the share within their intervals, how many of these have ends and how wide they
are (a factor to each side), and the regret, the time of the chosen way over that of the best.
Beside it stands the regret of an adviser that always says what was the fastest at the largest size
(naive). A second table is of the same estimates once some other sizes were measured again, as with
--refresh. Estimates between sizes at most 4x apart count, with --wide all between sizes. A last
table is of compile and start, which are predicted to be as they were stored. Nothing is measured
here.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean, median

from rich.console import Console

from gpubench.analysis.advice_checks import (
    Prediction,
    anew,
    drifts_of,
    left_out,
    regrets_of,
    verification_path,
    verifications,
)
from gpubench.analysis.estimates import CURVES, MOST_APART, ONCE, WORKERS, axes_of, ways_of
from gpubench.report.site import Site, kernel_label
from gpubench.results import open_table
from gpubench.tables.table import table

COLUMNS = (
    "kernel", "estimates", "error", "lines", "change", "coverage", "with ends", "width", "choices",
    "regret", "mean", "naive", "mean of naive",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, nargs="+", help="asv's folders of results")
    parser.add_argument("--wide", action="store_true", help="count sizes farther apart too")
    given = parser.parse_args()
    afresh: list[Prediction] = []
    stored: list[Prediction] = []
    for folder in given.results:
        with closing(open_table(folder)) as results:
            site = Site(results)
            for history in site.histories:
                kept = verifications(verification_path(folder, history.setup), folder)
                for key, now in site.current(history).items():
                    rows = [row for row in now.cases.values() if row.seconds]
                    axes = axes_of(row for row in rows if row.name.time in CURVES)
                    drift = drifts_of(kept.values()).stored
                    stored += left_out(key, ways_of(rows, axes, drift=drift))
                    afresh += kept.get(key, [])
    console = Console(width=200)
    kinds = ("predicted", "wide") if given.wide else ("predicted",)
    inside = f"between sizes{'' if given.wide else f' at most {MOST_APART:g}x apart'}"
    between = [one for one in afresh if one.kind in kinds]
    of_table = {
        f"measured afresh, {inside}": between,
        f"the same, with some sizes measured again first, {inside}": anew(between),
        f"left out of stored results, {inside}": [one for one in stored if one.kind in kinds],
        "compile and start, measured afresh": [one for one in afresh if one.time in ONCE],
    }
    for title, counted in of_table.items():
        if not counted:
            print(f"{title}: none")
            continue
        naive = naive_choices(stored)
        kernels: dict[str, list[Prediction]] = defaultdict(list)
        for one in counted:
            kernels[kernel_label((one.suite, one.kernel))].append(one)
        lines = [line(label, its, naive) for label, its in sorted(kernels.items())]
        lines.append(line("all", counted, naive))
        console.print(table(COLUMNS, lines, set(COLUMNS[1:]), title=title, title_justify="left"))


Way = tuple[str, str, float | None]


def way_of(one: Prediction) -> Way:
    return one.implementation, one.device, one.place.get(WORKERS)


def naive_choices(stored: Iterable[Prediction]) -> dict[tuple[str, ...], Way]:
    """The fastest at the largest size that all ways were measured at, by what it is chosen for."""
    largest: dict[tuple[str, ...], tuple[float, float, Way]] = {}
    for one in stored:
        size = math.prod(value for name, value in one.place.items() if name != WORKERS)
        candidate = (size, -one.measured, way_of(one))
        key = (one.suite, one.kernel, one.parameters, one.time)
        if key not in largest or candidate[:2] > largest[key][:2]:
            largest[key] = candidate
    return {key: way for key, (*_, way) in largest.items()}


def line(
    label: str, its: Sequence[Prediction], naive: dict[tuple[str, ...], Way]
) -> tuple[str, ...]:
    regrets = regrets_of(its)
    widths = [math.sqrt(one.high / one.low) for one in its if one.high and one.low]
    groups: dict[tuple[object, ...], list[Prediction]] = defaultdict(list)
    for one in its:
        groups[one.problem].append(one)
    of_naive = []
    for group in groups.values():
        key = group[0].suite, group[0].kernel, group[0].parameters, group[0].time
        way = naive.get(key)
        chosen = [one for one in group if way_of(one) == way]
        if len(group) > 1 and chosen:
            of_naive.append(chosen[0].measured / min(one.fastest for one in group) - 1)
    return (
        label,
        str(len(its)),
        f"{median(one.error for one in its):.1%}",
        f"{median(one.line_error for one in its):.1%}",
        f"{math.exp(median(one.change for one in its)):.2f}x",
        f"{fmean(one.holds for one in its):.0%}",
        str(len(widths)),
        f"{median(widths):.2f}x" if widths else "",
        str(len(regrets)),
        *(f"{value:.1%}" for value in stats(regrets)),
        *(f"{value:.1%}" for value in stats(of_naive)),
    )


def stats(values: Sequence[float]) -> tuple[float, float]:
    """Median and mean; 0 of none."""
    return median(values or [0.0]), fmean(values or [0.0])


if __name__ == "__main__":
    main()
