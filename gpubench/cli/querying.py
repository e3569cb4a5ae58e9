"""``gpubench query``: SQL over all that was measured."""

from __future__ import annotations

import csv
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from rich.table import Table as RichTable
from rich.text import Text

from gpubench.cli.console import ERR, OUT, print_faults, progress, reporting_errors
from gpubench.cli.options import results_option, suites_option
from gpubench.tables.width import unwrapped


@click.command()
@click.argument("sql", required=False)
@results_option
@suites_option
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects, one for each row.")
@click.option("--csv", "as_csv", is_flag=True, help="Print rows as CSV, with the columns' names.")
@click.option(
    "--path", "as_path", is_flag=True, help="Print the table's file, a DuckDB database, instead."
)
@reporting_errors
def query(
    sql: str | None, results: Path, suites: Path, as_json: bool, as_csv: bool, as_path: bool
) -> None:
    """Query stored results with SQL; without SQL, list the columns.

    The view `results` has a row for each case of each commit. The SQL is DuckDB's, and read only.

    \b
    gpubench query "select kernel, max(speedup) from results where device = 'cpu' group by 1"
    """
    from gpubench.project import project_table
    from gpubench.results import table_path

    if (sql is not None) + as_path > 1 or as_json + as_csv > 1:
        raise click.UsageError("give SQL or --path, and --json or --csv")
    with progress("reading results"):
        table, faults = project_table(results, Path.cwd(), suites)
    print_faults(faults)
    for problem in table.problems:
        ERR.print(f"{problem.path}: {problem.message}", markup=False)
    with closing(table):
        if as_path:
            click.echo(table_path(results))
            return
        columns, rows = table.query(sql) if sql is not None else table.described()
    if as_json:
        click.echo(json.dumps([dict(zip(columns, row, strict=True)) for row in rows], default=str))
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([columns, *rows])
    else:
        OUT.print(_shown(columns, rows))


def _shown(columns: list[str], rows: list[tuple[Any, ...]]) -> RichTable:
    table = RichTable(box=None, header_style="bold")
    for place, name in enumerate(columns):
        numbers = all(isinstance(row[place], int | float | None) for row in rows)
        table.add_column(Text(name), justify="right" if numbers else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(_text(value)) for value in row))
    return unwrapped(table)


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


COMMANDS = (query,)
