"""How good `gpubench advise` is: error, coverage and regret, from stored results.

For each kernel: of the sizes measured afresh by `gpubench advise --verify`, and of each size left
out of the stored results in turn, those that would be ranked. Nothing is measured here. The
regret is the time of the chosen way over that of the best, less 1.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean

from rich.console import Console

from gpubench.edge.advise.checks import (
    Prediction,
    check,
    get_regrets,
    leave_out,
    verification_path,
    verifications,
)
from gpubench.edge.advise.page import know
from gpubench.report.navigation import kernel_label
from gpubench.report.site import Site
from gpubench.results import open_table
from gpubench.tables.table import table

COLUMNS = (
    "kernel", "estimates", "error", "at most", "coverage", "choices", "regret", "mean", "at most",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, nargs="+", help="asv's folders of results")
    given = parser.parse_args()
    afresh: list[Prediction] = []
    stored: list[Prediction] = []
    for folder in given.results:
        with closing(open_table(folder)) as results:
            site = Site(results)
            for history in site.histories:
                kept = verifications(verification_path(folder, history.setup), folder)
                for key in site.current(history):
                    known = know(history, key, site)
                    stored += leave_out(key, known.axes, known.ways)
                    afresh += kept.get(key, [])
    console = Console(width=200)
    for title, counted in {"measured afresh": afresh, "left out of stored results": stored}.items():
        kernels: dict[str, list[Prediction]] = defaultdict(list)
        for one in counted:
            kernels[kernel_label((one.suite, one.kernel))].append(one)
        lines = [line(label, its) for label, its in sorted(kernels.items())]
        if lines:
            lines.append(line("all", counted))
        console.print(table(COLUMNS, lines, set(COLUMNS[1:]), title=title, title_justify="left"))


def line(label: str, its: Sequence[Prediction]) -> tuple[str, ...]:
    found = check(its)
    assert found is not None
    return (
        label,
        str(found.count),
        f"{found.error:.1%}",
        f"{found.worst:.2f}x",
        f"{found.coverage:.0%}",
        str(found.choices),
        f"{found.regret:.1%}",
        f"{fmean(get_regrets(its) or [0.0]):.1%}",
        f"{found.worst_regret:.1%}",
    )


if __name__ == "__main__":
    main()
