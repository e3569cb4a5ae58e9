"""`gpubench export`: results of one commit for other programs."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpubench.cli import options
from gpubench.cli.console import ERR, echo
from gpubench.cli.reading import measured_commit, read_table, selected_cases
from gpubench.errors import GpubenchError
from gpubench.links import stay_inside

if TYPE_CHECKING:  # a command imports what reads results only when it runs: --help answers at once
    from gpubench.results import CaseName, Snapshot, Table

CASE_COLUMNS = ("suite", "kernel", "implementation", "time", "identity")
"""Columns of the table that name a case."""

EXPORT_FORMATS = ("bencher", "github-action-benchmark", "csv")


@click.command()
@click.argument("commit", required=False)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(EXPORT_FORMATS),
    required=True,
    help="Who reads it.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write this file instead of printing; it is replaced as a whole.",
)
@options.results
@options.suites
@options.where
@options.axes
@options.machine
@options.environment
def export(
    commit: str | None,
    format_name: str,
    output: Path | None,
    results: Path,
    suites: Path,
    where: str | None,
    axes: tuple[str, ...],
    machine: str | None,
    environment: str | None,
) -> None:
    """Write results of a commit for another program.

    COMMIT is what git takes for one (default: the newest with results). bencher is Bencher Metric
    Format, github-action-benchmark its customSmallerIsBetter; csv has the columns of `gpubench
    query`. The first two have no place for cases without a number: such cases are left out, and
    standard error names the failed ones. --where and -a keep cases: --where "kernel == 'norms'".
    """
    from gpubench.files import replace_file
    from gpubench.tables import export_formats as formats

    if output is not None:
        stay_inside(output)
    with closing(read_table(results, suites)) as table:
        chosen = _snapshots(table, results, commit, machine, environment)
        kept = selected_cases(table, where, axes) if where or axes else None
        if format_name == "csv":
            content = formats.csv_text(*_rows_of(table, chosen, kept)).encode()
        else:
            if len(chosen) > 1:
                raise GpubenchError(_several(format_name, chosen))
            cases = [
                case
                for one in chosen
                for case in formats.exported_cases(
                    one, table.rows(one), table.counts(one), table.asv_name
                )
                if kept is None or case.row.name in kept
            ]
            for line in formats.left_out(cases):
                ERR.print(line)
            content = formats.WRITERS[format_name](cases).encode()
    if output is None:
        echo(content.decode(), nl=False)
    else:
        replace_file(output, content)
        click.echo(f"wrote {output}")


def _snapshots(
    table: Table,
    results: Path,
    commit: str | None,
    machine: str | None,
    environment: str | None,
) -> list[Snapshot]:
    """Return the snapshots of a commit, by default of the newest that fits. Raises
    ``GpubenchError`` where there is none."""
    measured = [
        snapshot
        for snapshot in chain.from_iterable(map(table.snapshots, table.measured))
        if snapshot.setup.fits(machine, environment)
    ]
    if not measured:
        where = " ".join(filter(None, (machine, environment)))
        of = f" of {where}" if where else ""
        raise GpubenchError(f"there are no results{of} to export; `asv run` measures")
    if commit is None:
        hashes = {snapshot.commit.hash for snapshot in measured}
        wanted = next(one.hash for one in reversed(table.commits) if one.hash in hashes)
    else:
        wanted = measured_commit(commit, table, results)
    chosen = [snapshot for snapshot in measured if snapshot.commit.hash == wanted]
    if not chosen:
        raise GpubenchError(
            f"{commit} was measured, but not on this machine and environment; leave out --machine "
            "and --environment"
        )
    return chosen


def _several(format_name: str, chosen: list[Snapshot]) -> str:
    places = "; ".join(
        f"--machine {one.setup.machine} --environment {one.setup.environment}" for one in chosen
    )
    return (
        f"{chosen[0].commit.hash[:8]} has results of {len(chosen)} machines or environments, whose "
        f"cases have the same names in {format_name}; choose one: {places}"
    )


def _rows_of(
    table: Table, chosen: list[Snapshot], kept: Collection[CaseName] | None
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the columns of `gpubench query`, and the rows of these snapshots: of the cases that
    are ``kept``, of all by default."""
    columns = [name for view, name, _, _ in table.described()[1] if view == "results"]
    ids = ", ".join(str(one.id) for one in chosen)
    names = ", ".join(f'"{name}"' for name in columns)
    rows = table.query(f"select {names} from results where snapshot in ({ids})")[1]
    if kept is not None:
        places = [columns.index(name) for name in CASE_COLUMNS]
        cases = {(c.suite, c.kernel, c.implementation, c.time, c.case) for c in kept}
        rows = [row for row in rows if tuple(row[place] for place in places) in cases]
    return columns, rows
