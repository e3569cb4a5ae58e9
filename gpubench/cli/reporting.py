"""Commands that write pages: `gpubench report` and `gpubench serve`."""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpubench.cli import options
from gpubench.cli.console import (
    ERR,
    again_with_a_new_table,
    narrated,
    print_json_fields,
)
from gpubench.cli.options import SUITES
from gpubench.links import stay_inside

if TYPE_CHECKING:  # a command imports what reads results only when it runs: --help answers at once
    from gpubench.results import PairPattern, Table
from gpubench.cli.reading import pair_option, read_results, read_table, selected_table

TEMPLATES = Path("reports")
"""Of the project: they replace those of the package by name."""


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
    from gpubench.report.serving import (
        ReportServer,
        changes_of_files,
        ctrl_c_noted,
        rewrite_on_change,
    )

    for path in (results, suites, output, TEMPLATES):
        stay_inside(path)
    with ctrl_c_noted() as is_over, ReportServer(output, port) as server:
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
                takewhile(lambda _: not is_over(), changes),
                rewrite=lambda: again_with_a_new_table(
                    lambda: _write(results, suites, output, packaged)
                ),
                tell=lambda words: ERR.print(f"{time.strftime('%H:%M:%S')} {words}"),
            )


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
        narrated("writing pages"),
    ):
        for problem in table.problems:
            if problem.path.startswith("pair "):
                ERR.print(f"warning: {problem.path}: {problem.message}")
        named = kernel_pages(table, names) if names else ()
        first = write_report(table, output, overrides)
        return [output / address for address in named] or [first]
