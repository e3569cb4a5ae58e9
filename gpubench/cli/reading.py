"""Commands that read stored results."""

from __future__ import annotations

import csv
import re
import sys
import time
import webbrowser
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from gpubench.cli import options
from gpubench.cli.console import (
    ERR,
    OUT,
    again_with_a_new_table,
    echo,
    print_answer,
    print_faults,
    print_json,
    print_json_fields,
    printable,
)
from gpubench.cli.options import SUITES
from gpubench.errors import GpubenchError
from gpubench.links import stay_inside
from gpubench.names import pattern_fault
from gpubench.suite.folder import asked_folder

if TYPE_CHECKING:  # a command imports what reads results only when it runs: --help answers at once
    from gpubench.analysis.comparison import ComparisonSide
    from gpubench.results import CaseName, PairPattern, Row, Table

T = TypeVar("T")

TEMPLATES = Path("reports")
"""Of the project: they replace those of the package by name."""

MAX_TABLE_COLUMNS = 16
"""Of an answer on the terminal, as far as what was measured."""

OUTPUT = Path("reports/html")

MUCH_BYTES = 2**23
"""Bytes of results from which several processes may make a report: 8 MiB are some 300,000 times
of asv's, and a report starts processes later from ``render.MUCH`` of them."""


def _default_output() -> Path:
    """Return where pages go: in a project with suites to ``OUTPUT``, in another project of asv's
    beside its site, to ``gpubench/`` in its ``html_dir``."""
    from gpubench.asv_config import project_config

    config = project_config()
    if config is None or config.html_dir is None or SUITES.exists() or TEMPLATES.exists():
        return OUTPUT
    return config.html_dir / "gpubench"


output_option = click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=_default_output,
    show_default="reports/html; without suites gpubench/ in html_dir of asv.conf.json",
    help="Where the pages are written.",
)
open_option = click.option(
    "--open", "open_browser", is_flag=True, help="Open the first page in the browser."
)
packaged_option = click.option(
    "--packaged",
    is_flag=True,
    help="Leave out templates and scripts of the project's own reports/.",
)


def _patterns(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[PairPattern, ...]:
    if not given:
        return ()
    from gpubench.results import PairPattern

    patterns = []
    for text in given:
        baseline, _, candidate = text.rpartition("=")
        fault = pattern_fault(baseline, candidate)
        if not (baseline and candidate):
            fault = f"{text!r} is not two parts with '=' between them, such as A_(.*)=B_\\1"
        if fault:
            raise click.BadParameter(fault)
        patterns.append(PairPattern("", baseline, candidate))
    return tuple(patterns)


pair_option = click.option(
    "--pair",
    "pairs",
    multiple=True,
    metavar="BASELINE=CANDIDATE",
    callback=_patterns,
    help="Report an asv project's benchmarks side by side: a regular expression of baselines, and "
    r"what replaces it, as 'time_cpu_(.*)=time_cuda_\1'. Repeatable.",
)


@click.command()
@options.names
@options.results
@output_option
@options.suites
@options.where
@options.axes
@pair_option
@packaged_option
@click.option("--json", "as_json", is_flag=True, help="Print what the pages show as JSON instead.")
@open_option
def report(
    names: tuple[str, ...],
    results: Path,
    output: Path,
    suites: Path,
    where: str | None,
    axes: tuple[str, ...],
    pairs: tuple[PairPattern, ...],
    packaged: bool,
    as_json: bool,
    open_browser: bool,
) -> None:
    """Write the report: static pages that open from disk.

    Templates in the project's own reports/ replace single pages. Prints the path of the first page,
    or of the pages of NAME: a suite or a kernel (SUITE::KERNEL, or KERNEL alone where one suite has
    it). All pages are written in either case. With --where or -a pages have only the cases that
    these keep and what they are compared with, and say so.
    """

    def read(results: Path, suites: Path, pairs: Sequence[PairPattern]) -> Table:
        return selected_table(read_results(results, suites, pairs), where, axes)

    if as_json:
        from gpubench.report.render import encoded_pages, kernel_pages

        table = read(results, suites, pairs)
        kept = {*kernel_pages(table, names)} if names else None
        print_json_fields(encoded_pages(table, kept))
        return
    from gpubench.report.freshness import Receipt, ReportSources

    for path in (results, suites, output, TEMPLATES):
        stay_inside(path)
    receipt = Receipt(
        ReportSources(
            results,
            suites,
            output,
            _own_templates(packaged),
            (pairs, where, axes),
        )
    )
    if receipt.is_valid() and not names:
        pages = [output / "index.html"]
    else:
        said = ERR.printed
        _prepare_processes(receipt.result_bytes)
        pages = _write(results, suites, output, packaged, pairs, names, read)
        if ERR.printed == said:  # a warning is printed by each report
            receipt.keep()
    for page in pages:
        click.echo(page.resolve())
    if open_browser:
        webbrowser.open(pages[0].resolve().as_uri())


def _own_templates(packaged: bool) -> Path | None:
    """Return the folder of the project's own templates, if it is there and wanted."""
    return TEMPLATES if TEMPLATES.is_dir() and not packaged else None


def _prepare_processes(result_bytes: int) -> None:
    """Start the process that others are forked from where results may be many: it imports while
    this one does, and that takes most of a second."""
    from gpubench.parallel import processors, start_fork_server

    if processors() > 1 and result_bytes >= MUCH_BYTES:
        with suppress(OSError):  # then all is done here
            start_fork_server("gpubench.report.render")


@click.command()
@options.results
@output_option
@options.suites
@packaged_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="Of 127.0.0.1; 0 takes any that is free.",
)
@open_option
def serve(
    results: Path, output: Path, suites: Path, packaged: bool, port: int, open_browser: bool
) -> None:
    """Show the report on 127.0.0.1, and keep it up to date.

    Open pages load anew by themselves. The pages on disk are those of `gpubench report`. Ctrl-C
    ends it.
    """
    from gpubench.report.freshness import packaged_templates
    from gpubench.report.serving import ReportServer, changes_of_files, rewrite_on_change

    for path in (results, suites, output, TEMPLATES):
        stay_inside(path)
    with ReportServer(output, port) as server:
        with suppress(OSError):  # the folder is below that of templates, which has to be there
            output.mkdir(parents=True, exist_ok=True)
        changes = changes_of_files((results, suites, packaged_templates(), TEMPLATES), output)
        next(changes)  # from here on nothing is missed
        _write(results, suites, output, packaged)
        with server.serving(), suppress(KeyboardInterrupt):
            click.echo(f"{server.url} (Ctrl-C ends it)")
            if open_browser:
                webbrowser.open(server.url)
            rewrite_on_change(
                server,
                changes,
                rewrite=lambda: again_with_a_new_table(
                    lambda: _write(results, suites, output, packaged)
                ),
                tell=lambda words: ERR.print(f"{time.strftime('%H:%M:%S')} {words}"),
            )


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
    pages = chosen_pages(table, names, machine, environment, cases)
    if as_json:
        print_json(plain(pages))
        return
    for page in pages:
        OUT.print(*choices.choose_page(page), sep="\n")


def selected_table(table: Table, where: str | None, axes: Sequence[str]) -> Table:
    """Return the table with the cases that ``--where`` and ``-a`` keep, and what these are compared
    with."""
    if not (where or axes):
        return table
    given = [f"-a {text}" for text in axes] + ([f"--where {where!r}"] if where else [])
    return table.keep(selected_cases(table, where, axes), " ".join(given))


def selected_cases(table: Table, where: str | None, axes: Sequence[str]) -> Collection[CaseName]:
    """Return the names of the cases with results that ``--where`` and ``-a`` keep, each as it was
    last measured. Raises ``GpubenchError`` where that is none."""
    stored = [each for setup in table.measured for each in table.newest_rows(setup).items()]
    if kept := select_stored(stored, where, axes):
        return kept
    raise GpubenchError("--where and -a together keep no case that has results")


def select_stored(
    stored: Iterable[tuple[CaseName, Row]], where: str | None, axes: Sequence[str]
) -> Collection[CaseName]:
    """Return the names of stored cases that ``--where`` and ``-a`` keep, all without either."""
    from gpubench.names import Value, format_shape, format_value, parse_identity

    of_names: dict[CaseName, dict[str, Value]] = {}
    for name, row in stored:
        if name in of_names:
            continue
        given: dict[str, Value | None] = {
            **parse_identity(name.case),
            "suite": name.suite,
            "kernel": name.kernel,
            "implementation": name.implementation,
            "backend": row.backend or None,
            "device": row.device or None,
            "threads": row.threads,
            "block": format_shape(row.block) if row.block else None,
        }
        of_names[name] = {key: value for key, value in given.items() if value is not None}
    if not (where or axes):
        return of_names.keys()
    from gpubench.plan.rules import select

    def text_of(name: CaseName, key: str) -> str | None:
        value = of_names[name].get(key)
        return None if value is None else format_value(value)

    return {
        *select(
            [*of_names],
            frozenset[str]().union(*of_names.values()),
            where,
            axes,
            text_of,
            lambda name, used: {key: of_names[name][key] for key in used & of_names[name].keys()},
            lambda name, formula, values: formula.evaluate(values),
        )
    }


@click.command()
@click.argument("commit")
@click.argument("benchmarks", nargs=-1, required=True, metavar="BENCHMARK...")
@click.option("--reason", required=True, help="Why it is accepted, a sentence.")
@click.option("--by", default="", help="Who says so.")
@options.results
def acknowledge(
    commit: str, benchmarks: tuple[str, ...], reason: str, by: str, results: Path
) -> None:
    """Accept a known change of benchmarks at a commit.

    COMMIT is what git takes for one, or the beginning of a hash. BENCHMARK is
    a name as asv or the report has it, with *, ? and [...], such as
    'vector_add*'. It may have become slower, wrong or failed there; '*' takes
    what most benchmarks share. Adds an entry to gpubench-acknowledged.yaml beside
    asv.conf.json. Pages fold these changes, and compare raises no alarm for
    them until the level changes again.
    """
    from gpubench.acknowledgements import add_acknowledgement
    from gpubench.asv_config import find_config
    from gpubench.results.acknowledgement import Acknowledgement

    table = read_table(results)
    snapshots = find_side(commit, results, lambda _: table).snapshots
    if not snapshots:
        raise GpubenchError(f"{commit} has no results in {results}: name a commit that has")
    found = snapshots[0].commit.hash
    names = [name for setup in table.setups for name in table.outline(setup).names]
    for pattern in benchmarks:
        if not any(Acknowledgement(found, (pattern,), reason, by).covers(name) for name in names):
            raise GpubenchError(
                f"{pattern!r} fits no benchmark with results; "
                '`gpubench query "select distinct kernel from results"` lists them'
            )
    entry = Acknowledgement(found, benchmarks, reason, by)
    echo(str(add_acknowledgement(find_config(results).folder, entry)))


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
    shows the first.

    \b
    gpubench query "select kernel, max(speedup) from results where device = 'cpu' group by 1"
    """
    from gpubench.results import table_path

    if (sql is not None) + as_path > 1 or as_json + as_csv > 1:
        raise click.UsageError("give SQL or --path, and --json or --csv")
    with closing(read_results(results, suites)) as table:
        for problem in table.problems:
            ERR.print(f"{problem.path}: {problem.message}")
        if as_path:
            click.echo(table_path(results))
            return
        if sql is None or re.search(r"\bchanges\b", sql, re.IGNORECASE):
            from gpubench.analysis.change_rows import CHANGE_COLUMNS, change_rows

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


def find_side(name: str, results: Path, open_once: Callable[[Path], Table]) -> ComparisonSide:
    """Return one side of a comparison: a results folder, or a commit of ``results``.

    Raises ``GpubenchError`` for a name of neither.
    """
    from gpubench.analysis.comparison import side_of
    from gpubench.results.commits import names_commit

    repository = Path.cwd()
    folder = Path(name)
    if not name:
        raise GpubenchError("an empty text names no commit; give a branch, a tag or a hash")
    if any(folder.glob("*/machine.json")):
        if names_commit(name, repository):
            raise GpubenchError(
                f"{name!r} is a folder with results, and git takes it for a commit: "
                f"./{name} is the folder, {name}~0 the commit"
            )
        return side_of(name, open_once(folder))
    table = open_once(results)
    if commit := _find_measured(name, table):
        return side_of(name, table, commit)
    if folder.is_dir() and not names_commit(name, repository):
        raise GpubenchError(f"the folder {name} holds no results of asv: it has no */machine.json")
    if name.startswith(("/", "./", "../")):
        raise GpubenchError(f"there is no folder {name}")
    raise _not_measured(name, table, results)


def measured_commit(name: str, table: Table, results: Path) -> str:
    """Return the full hash of a commit with results, by what git takes for it. Raises
    ``GpubenchError`` where there is none."""
    if commit := _find_measured(name, table):
        return commit
    raise _not_measured(name, table, results)


def _find_measured(name: str, table: Table) -> str | None:
    """Return the full hash of a commit with results; raise ``GpubenchError`` for a range."""
    from gpubench.results.commits import range_fault, resolve_commit

    if fault := range_fault(name):
        raise GpubenchError(fault)
    return resolve_commit(name, table.commits, Path.cwd())


def _not_measured(name: str, table: Table, results: Path) -> GpubenchError:
    """Say that a commit has no results, and which have some."""
    from gpubench.results.commits import why_unresolved

    measured = ", ".join(commit.hash[:8] for commit in reversed(table.commits[-5:]))
    newest = f"; the newest results in {results} are of {measured or 'no commit'}"
    words = f"{why_unresolved(name, Path.cwd())}{newest}"
    return GpubenchError(words.replace("?; the", "? The"))


def _write(
    results: Path,
    suites: Path,
    output: Path,
    packaged: bool,
    pairs: Sequence[PairPattern] = (),
    names: Sequence[str] = (),
    read: Callable[[Path, Path, Sequence[PairPattern]], Table] | None = None,
) -> list[Path]:
    """Write the report; return its first page, or the pages of the kernels that are named.
    ``read_table`` reads, where nothing else is to."""
    from gpubench.report.render import kernel_pages, write_report

    stay_inside(output)
    stay_inside(TEMPLATES)
    overrides = _own_templates(packaged)
    with (
        closing((read or read_table)(results, suites, pairs)) as table,
        ERR.status("writing pages"),
    ):
        for problem in table.problems:
            if problem.path.startswith("pair "):
                ERR.print(f"warning: {problem.path}: {problem.message}")
        named = kernel_pages(table, names) if names else ()
        first = write_report(table, output, overrides)
        return [output / address for address in named] or [first]


def read_results(
    results: Path, suites: Path | None = None, pairs: Sequence[PairPattern] = ()
) -> Table:
    """Read stored results of which there have to be some.

    Raises ``GpubenchError`` where the directory is not there, where nothing in it can be read, and
    where a pattern of ``pairs`` pairs nothing.
    """
    if not results.exists():
        raise GpubenchError(
            f"there are no results: {results} does not exist; run `asv run`, or "
            "name asv's results directory with --results"
        )
    table = read_table(results, suites, pairs)
    if unmatched := table.unmatched_patterns.intersection(map(str, pairs)):
        words = "; ".join(
            f"{problem.path}: {problem.message}"
            for problem in table.problems
            if problem.path.removeprefix("pair ") in unmatched
        )
        raise GpubenchError(words)
    if not table.setups:
        said = [f"{problem.path}: {problem.message}" for problem in table.problems]
        more = f"; and {len(said) - 1:,} more like it" if len(said) > 1 else ""
        why = f"; {said[0]}{more}" if said else "; it holds no result file of asv"
        raise GpubenchError(
            f"nothing in {results} can be read{why}; run `asv run`, or name asv's "
            "results directory with --results"
        )
    return table


def read_table(
    results: Path, suites: Path | None = None, pairs: Sequence[PairPattern] = ()
) -> Table:
    """Return stored results with these pairs and those of the suites, whose faults are warnings
    here."""
    from gpubench.project import project_table

    suites = suites or asked_folder(SUITES)
    stay_inside(results)
    stay_inside(suites)
    with ERR.status("reading results"):
        table, faults = project_table(results, Path.cwd(), suites, pairs)
    print_faults(faults, "warning: ")
    if table.running:
        from gpubench.report import text

        for snapshot, run in table.running:
            where = f"{snapshot.setup.machine}, {snapshot.setup.environment}"
            ERR.print(f"asv run of {snapshot.commit.hash[:8]} on {where}: {text.running(run)}")
    return table
