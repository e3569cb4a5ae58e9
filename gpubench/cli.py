"""The command line: arguments to calls to an exit code. The only file that prints and exits."""

from __future__ import annotations

import json
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from gpubench import __version__, tables
from gpubench.errors import Fault, GpubenchError, SuiteError

OUT = Console(soft_wrap=True, highlight=False)
ERR = Console(stderr=True, soft_wrap=True, highlight=False)

SUITES = Path("suites")
RESULTS = Path(".asv/results")
HTML = Path("reports/html")

P = ParamSpec("P")


def reporting_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Errors of ours become text on standard error and exit code 2; never a traceback."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except SuiteError as error:
            _print_faults(error.faults)
            ERR.print(f"{len(error.faults)} faults", markup=False)
            sys.exit(2)
        except GpubenchError as error:
            ERR.print(f"gpubench: {error}", markup=False)
            sys.exit(2)

    return wrapped


paths_argument = click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
preset_option = click.option(
    "--preset",
    envvar="GPUBENCH_PRESET",
    help="Named overlay of sizes, launches and sampling; also the variable GPUBENCH_PRESET.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpubench")
def main() -> None:
    """Declarative benchmarks of Numba kernels (CUDA and CPU) against NumPy, on airspeed velocity.

    Suites are YAML files in suites/. Measure with `asv run`, then write the report with
    `gpubench report`. `gpubench init` starts a new project.

    \b
    Shell completion:
      bash  eval "$(_GPUBENCH_COMPLETE=bash_source gpubench)"
      zsh   eval "$(_GPUBENCH_COMPLETE=zsh_source gpubench)"
      fish  _GPUBENCH_COMPLETE=fish_source gpubench | source
    """


@main.command()
@paths_argument
@preset_option
@reporting_errors
def check(paths: tuple[Path, ...], preset: str | None) -> None:
    """Check suite files and every function that they name.

    PATHS are suite files or folders of them (default: suites/). Prints one line of counts, or every
    fault on standard error with exit code 2.
    """
    plan = _plan(paths, preset)
    if plan.faults():
        raise SuiteError(plan.faults())
    _print_faults(plan.warnings(), "warning: ")
    OUT.print(tables.counts_line(plan), markup=False)


@main.command()
@paths_argument
@preset_option
@click.option("--where", metavar="EXPR", help="Keep cases for which this holds: 'n >= 2**20'.")
@click.option(
    "-a",
    "axes",
    multiple=True,
    metavar="NAME=VALUES",
    help="Keep these values of an axis: -a n=1024,4096 -a implementation=numpy. Repeatable.",
)
@json_option
@click.option("--explain", metavar="CASE", help="Say which line of which file set each value.")
@reporting_errors
def plan(
    paths: tuple[Path, ...],
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    as_json: bool,
    explain: str | None,
) -> None:
    """Show the cases that suites expand to. Touches no device.

    CASE is what --json prints as "name": an asv benchmark and an identity, for example
    'suites.vector_add__numba_cuda.time_kernel n=1024 block=256'.
    """
    from gpubench.plan.selection import selected

    made = _plan(paths, preset)
    if explain is not None:
        OUT.print(tables.explanation(made, explain))
        return
    cases = list(selected(made.cases(), where, axes))
    if as_json:
        click.echo(json.dumps([tables.case_row(case) for case in cases], indent=2))
        return
    _print_faults([*made.faults(), *made.warnings()], "warning: ")
    OUT.print(tables.plan_table(cases, each=bool(where or axes)))


@main.command()
@json_option
@reporting_errors
def devices(as_json: bool) -> None:
    """Show the CPU and the GPUs of this machine. Starts no CUDA context."""
    from gpubench.backends.devices import describe

    found = describe()
    if as_json:
        click.echo(json.dumps([asdict(device) for device in found], indent=2, default=str))
    else:
        OUT.print(tables.devices_table(found))


@main.command()
@click.option("--reference", is_flag=True, help="Print the reference in Markdown instead.")
@reporting_errors
def schema(reference: bool) -> None:
    """Print the JSON Schema of suite files, for editors."""
    from gpubench.suite.reference import reference_markdown
    from gpubench.suite.schema import schema_text

    click.echo(reference_markdown() if reference else schema_text(), nl=False)


@main.command()
@click.option(
    "--results", type=click.Path(path_type=Path), default=RESULTS, show_default=True,
    help="asv's results directory.",
)  # fmt: skip
@click.option(
    "--output", type=click.Path(path_type=Path), default=HTML, show_default=True,
    help="Where the pages are written.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print what the pages show as JSON instead.")
@click.option("--open", "open_browser", is_flag=True, help="Open the first page in the browser.")
@reporting_errors
def report(results: Path, output: Path, as_json: bool, open_browser: bool) -> None:
    """Write the report: static pages that open from disk.

    Templates in the project's own reports/ replace single pages. Prints the path of the first page.
    """
    from gpubench.report.render import view_models, write_report
    from gpubench.results.loading import load_results

    with _progress("reading results"):
        loaded = load_results(results, Path.cwd())
    if as_json:
        click.echo(json.dumps(view_models(loaded), indent=2, default=str))
        return
    with _progress("writing pages"):
        overrides = Path("reports") if Path("reports").is_dir() else None
        index = write_report(loaded, output, overrides)
    click.echo(index.resolve())
    if open_browser:
        webbrowser.open(index.resolve().as_uri())


@main.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), default=Path())
@reporting_errors
def init(directory: Path) -> None:
    """Start benchmarks in a project: asv.conf.json, benchmarks/, a first suite and its kernel.

    Overwrites nothing. Prints what was written and what to do next.
    """
    from gpubench.scaffold import next_steps, write_project

    files = write_project(directory)
    for file in files:
        click.echo(f"{'wrote' if file.written else 'kept '} {file.path}")
    click.echo("\nNext:")
    for step in next_steps(directory, files):
        click.echo(f"  {step}")


def _plan(paths: tuple[Path, ...], preset: str | None) -> Any:
    """Plan of the suites at these paths, for this machine's devices."""
    from gpubench.backends.devices import gpu_count
    from gpubench.backends.numba_cuda import simulating
    from gpubench.plan.plan import build_plan
    from gpubench.suite.loading import load_suites

    if not paths and not SUITES.is_dir():
        raise GpubenchError(
            f"there is no {SUITES}/ in {Path.cwd()}: name a suite file or folder, or start with "
            "`gpubench init`"
        )
    # A command is started without it, and a suite may name functions of the folder it stands in.
    sys.path.insert(0, str(Path.cwd()))
    with _progress("reading suites"):
        loaded = load_suites(paths or (SUITES,), preset)
        return build_plan(loaded, gpu_count(), simulator=simulating())


def _print_faults(faults: Any, prefix: str = "") -> None:
    for fault in faults:
        text = str(fault)
        if prefix and isinstance(fault, Fault):
            text = str(Fault(fault.path, fault.line, fault.column, prefix + fault.message))
        ERR.print(text, markup=False)


@contextmanager
def _progress(what: str) -> Iterator[None]:
    """A spinner on standard error while something may take longer than a second."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=ERR, transient=True, disable=not ERR.is_terminal) as progress:
        progress.add_task(what, total=None)
        yield
