"""Writes the page systems-figures.md: speedups of other systems, from stored results.

Run it where the suites of ``gpubench/edge/systems/suites`` were measured with the presets
``survey`` and ``start``, as systems.md beside them says. It reads asv's results and their record,
the newest commit of the one machine and environment that is named or of the only one; nothing is
calculated here but how much the starts of one implementation differ.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import groupby
from pathlib import Path

from gpubench.report import text
from gpubench.results import Row, natural_order, open_table

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "gpubench/edge/systems/systems-figures.md"

HEAD = """\
# Other systems: figures

Made by `python scripts/systems_page.py` from results of `gpubench/edge/systems/suites`. What
follows from them stands in [systems.md](systems.md). Machine: {machine}. {facts}.

A line is one problem, with the time of the baseline. The other columns are speedups over it, of an
implementation and, where that is not `cpu`, its device; above 1 is faster. In brackets stands what
is not clearly apart from 1x. Where an estimator is fitted, its score follows the time or the
speedup; where memory was watched, the most that a run held. A dash: not measured. Under a
figures stand the cases that ended without a time, and why.
"""

LIBRARIES = ("python", "numpy", "numba")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, help="asv's folder of results")
    parser.add_argument("--suites", nargs="+", help="these alone")
    given = parser.parse_args()
    with closing(open_table(given.results)) as table:
        (setup,) = table.setups
        snapshot = table.snapshots(setup)[-1]
        rows = list(table.rows(snapshot).values())
    facts = ", ".join(f"{name} {snapshot.facts.get(name)}" for name in LIBRARIES)
    measured = [
        row
        for row in rows
        if row.status != "skipped" and row.name.suite in (given.suites or [row.name.suite])
    ]
    parts = [HEAD.format(machine=snapshot.facts.get("cpu"), facts=facts)]
    for suite, each in groupby(sorted(measured, key=_place), key=lambda row: row.name.suite):
        parts += [f"## {suite}\n", *_section([*each])]
    PAGE.write_text("\n".join(parts), encoding="utf-8")


def _place(row: Row) -> tuple[object, ...]:
    return (row.name.suite, natural_order(row.name))


def _section(rows: list[Row]) -> Iterator[str]:
    for time in ("kernel", "end_to_end"):
        if taken := [row for row in rows if row.name.time == time]:
            yield f"{text.time_label(time).capitalize()}:\n"
            yield from _table(taken)
    starts = [row for row in rows if row.name.time == "start" and row.seconds is not None]
    if starts:
        yield from _of_which_kernels(rows, starts)
        yield "| kernel | implementation | start |\n| --- | --- | --- |"
        for row in starts:
            cells = (row.name.kernel, _column(row), text.seconds(row.seconds))
            yield f"| {' | '.join(cells)} |"
        yield ""


def _of_which_kernels(rows: list[Row], starts: list[Row]) -> Iterator[str]:
    """Yield what the table of starts leaves out, and how much a kernel matters to a start."""
    each: dict[str, list[float]] = {}
    for row in starts:
        each.setdefault(_column(row), []).append(row.seconds or 0.0)
    taken, known = (len({row.name.kernel for row in some}) for some in (starts, rows))
    apart = max(max(seconds) / min(seconds) for seconds in each.values())
    yield (
        f"A fresh process to its first result, of {taken} of {known} kernels, which differ by "
        f"{text.ratio(apart)} at most for one implementation:\n"
    )


def _table(rows: Iterable[Row]) -> Iterator[str]:
    problems: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        problems.setdefault((row.name.kernel, row.problem or row.name.case), {})[_column(row)] = row
    columns = dict.fromkeys(
        name for each in problems.values() for name, row in each.items() if not row.is_baseline
    )
    yield f"| kernel | problem | baseline | {' | '.join(columns)} |"
    yield f"| --- | --- | --- |{' --- |' * len(columns)}"
    for (kernel, problem), each in problems.items():
        baseline = next((row for row in each.values() if row.is_baseline), None)
        cells = [kernel, problem, _baseline(baseline), *(_speedup(each.get(c)) for c in columns)]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield from _without_time(problems)


def _without_time(problems: Mapping[tuple[str, str], Mapping[str, Row]]) -> Iterator[str]:
    ended = [
        f"- {kernel} {problem}, {column}: {row.status.replace('_', ' ')}: {row.reason}"
        for (kernel, problem), each in problems.items()
        for column, row in each.items()
        if row.seconds is None
    ]
    if ended:
        yield "\n".join((*ended, ""))


def _column(row: Row) -> str:
    on = "" if row.device == "cpu" else f" {row.device}"
    return f"{row.name.implementation}{on}"


def _baseline(row: Row | None) -> str:
    return "-" if row is None else _with_more(text.seconds(row.seconds), row)


def _speedup(row: Row | None) -> str:
    if row is None or row.speedup is None:
        return "-"
    words = text.speedup(row.speedup)
    return _with_more(f"({words})" if row.speedup.verdict == "unclear" else words, row)


def _with_more(words: str, row: Row) -> str:
    """Its score and the memory that it held, where there are such."""
    score = None if row.score is None else text.score(row.score)
    return "; ".join(filter(None, (words, score, text.memory(row.peak_bytes))))


if __name__ == "__main__":
    main()
