"""Commands that ask stored results: `gpubench choose`, `changes` and `query`."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click

from gpubench.cli import options
from gpubench.cli.console import (
    ERR,
    OUT,
    echo,
    narrated,
    print_answer,
    print_json,
    print_table,
)
from gpubench.cli.printable import printable
from gpubench.cli.reading import read_results, selected_cases
from gpubench.errors import GpubenchError
from gpubench.waiting import say_each

MAX_TABLE_COLUMNS = 16
"""Of an answer on the terminal, as far as what was measured."""

MAX_PROBLEMS_NAMED = 5
"""Of the parts of results that are left out; the others are counted."""


@click.command()
@options.names
@options.results
@options.suites
@options.where
@options.axes
@options.machine
@options.environment
@options.json
def choose(
    names: tuple[str, ...],
    results: Path,
    suites: Path,
    where: str | None,
    axes: tuple[str, ...],
    machine: str | None,
    environment: str | None,
    as_json: bool,
) -> None:
    """Say which implementation to use at which size.

    NAME is a suite or a kernel (SUITE::KERNEL, or KERNEL alone where one suite has it); none are
    all. --where and -a keep the cases to choose from: -a implementation=numba,numba_parallel. For
    each machine and environment: the fastest at each size, from which size on an
    implementation beats the baseline, whether the copies eat the gain, how many calls repay
    compilation, and what was not measured.
    """
    from gpubench.report.choose import chosen_pages
    from gpubench.report.exports import plain
    from gpubench.tables import choices

    table = read_results(results, suites)
    cases = selected_cases(table, where, axes) if where or axes else None
    with narrated("looking for the fastest"):
        pages = chosen_pages(table, names, machine, environment, cases)
    if as_json:
        print_json(plain(pages))
        return
    for page in pages:
        OUT.print(*choices.choose_page(page), sep="\n")


@click.command()
@options.names
@options.results
@options.suites
@options.machine
@options.environment
@click.option(
    "--lasting",
    is_flag=True,
    help="Only what is worse now than at its best level, the worst first.",
)
@options.json
def changes(
    names: tuple[str, ...],
    results: Path,
    suites: Path,
    machine: str | None,
    environment: str | None,
    lasting: bool,
    as_json: bool,
) -> None:
    """List what changed over the stored commits.

    Regressions and improvements, the worst first, and what is to be checked. NAME is a part of a
    case, as the list shows it: a module, a class, a suite, a kernel. With --json each has its chain
    of steps and the command that finds the commit.
    """
    from gpubench.report.change_list import listed_changes, row_of
    from gpubench.report.exports import plain
    from gpubench.report.site import Site

    with closing(read_results(results, suites)) as table, narrated("judging cases"):
        site = Site(table)
        histories = [
            one for one in site.histories_of_first_branch if one.setup.fits(machine, environment)
        ]
        if not histories:
            raise GpubenchError("no results of that machine and environment; see gpubench report")
        listed = {
            history.setup: [
                change
                for change in listed_changes(history, site, lasting=lasting)
                if not names or any(name in f"{change.benchmark} {change.words}" for name in names)
            ]
            for history in say_each(histories, len(histories), "judging machines and environments")
        }
    if as_json:
        print_json(plain([change for of_setup in listed.values() for change in of_setup]))
        return
    kind = "lasting regression" if lasting else "change"
    for setup, found in listed.items():
        words = f"{setup.machine}, {setup.environment}: {len(found):,} {kind}"
        echo(f"{words}{'' if len(found) == 1 else 's'}")
        if found:
            rows = [row_of(change) for change in found]
            print_table([*rows[0]], [[*row.values()] for row in rows], ["factor", "before", "now"])


@click.command()
@click.argument("sql", required=False)
@options.results
@options.suites
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects, one for each row.")
@click.option("--csv", "as_csv", is_flag=True, help="Print rows as CSV, with the columns' names.")
@click.option("--all-columns", is_flag=True, help="Print every column of a wide table.")
@click.option(
    "--path", "as_path", is_flag=True, help="Print the table's file, a DuckDB database, instead."
)
def query(
    sql: str | None,
    results: Path,
    suites: Path,
    as_json: bool,
    as_csv: bool,
    all_columns: bool,
    as_path: bool,
) -> None:
    """Query stored results with SQL; without SQL, list the columns.

    `results` has a row for each case of each commit. Others are `commits`, `runs`, `benchmarks`,
    `changes` and `counts`. The SQL is DuckDB's, and read only. Of more than 16 columns a table
    shows the first. The file that --path names has all of them as they are then.

    \b
    gpubench query "select kernel, max(speedup) from results where device = 'cpu' group by 1"
    """
    from gpubench.results import table_path

    if (sql is not None) + as_path > 1 or as_json + as_csv > 1:
        raise click.UsageError("give SQL or --path, and --json or --csv")
    with closing(read_results(results, suites)) as table:
        for problem in table.problems[:MAX_PROBLEMS_NAMED]:
            ERR.print(f"{problem.path}: {problem.message}")
        if more := len(table.problems[MAX_PROBLEMS_NAMED:]):
            ERR.print(
                f"parts of the results that are left out: {more:,} more; the report lists all"
            )
        if as_path or sql is None or re.search(r"\bchanges\b", sql, re.IGNORECASE):
            from gpubench.analysis.change_rows import CHANGE_COLUMNS, change_rows

            with narrated("judging cases"):
                if as_path:
                    table.keep_tables(changes=(CHANGE_COLUMNS, change_rows(table)))
                    click.echo(table_path(results))
                    return
                table.add_table("changes", CHANGE_COLUMNS, change_rows(table) if sql else ())
        columns, rows = table.query(sql) if sql is not None else table.described()
    if as_json:
        names = _without_repetitions(columns)
        print_json([dict(zip(names, row, strict=True)) for row in rows], indent=None)
    elif as_csv:
        if sys.stdout.isatty():  # elsewhere texts stay as they are
            rows = [tuple(printable(v) if isinstance(v, str) else v for v in row) for row in rows]
        csv.writer(sys.stdout, lineterminator="\n").writerows([columns, *rows])
    else:
        shown = None if all_columns or sql is None else MAX_TABLE_COLUMNS
        print_answer(columns[:shown], [row[:shown] for row in rows])
        if hidden := len(columns[shown or len(columns) :]):
            ERR.print(
                f"{hidden} more columns: name those to see, or give --all-columns, --csv or --json"
            )


def _without_repetitions(columns: Sequence[str]) -> list[str]:
    """Return names that are all different, as DuckDB makes them: ``kernel``, ``kernel_1``."""
    names: dict[str, None] = {}
    for column in columns:
        name, number = column, 0
        while name in names or (number and name in columns):
            number += 1
            name = f"{column}_{number}"
        names[name] = None
    return list(names)
