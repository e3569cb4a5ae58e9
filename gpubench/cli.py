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
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from gpubench import __version__, tables
from gpubench.errors import Fault, GpubenchError, SuiteError

OUT = Console(soft_wrap=True, highlight=False)
ERR = Console(stderr=True, soft_wrap=True, highlight=False)

SUITES = Path("suites")
RESULTS = Path(".asv/results")
HTML = Path("reports/html")

INTERRUPTED = 130
"""Exit code after Ctrl-C, as of shells: 128 and the number of the signal."""

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
where_option = click.option(
    "--where", metavar="EXPR", help="Keep cases for which this holds: 'n >= 2**20'."
)
axes_option = click.option(
    "-a",
    "axes",
    multiple=True,
    metavar="NAME=VALUES",
    help="Keep these values of an axis: -a n=1024,4096 -a implementation=numpy. Repeatable.",
)
suites_option = click.option(
    "--suites", type=click.Path(path_type=Path), default=SUITES, show_default=True,
    help="Suites whose `pairs` of an asv project's benchmarks are reported too.",
)  # fmt: skip
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
@where_option
@axes_option
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
@click.argument("target", metavar="SUITE[::KERNEL]")
@preset_option
@where_option
@axes_option
@click.option("--samples", type=click.IntRange(min=1), help="Samples of each time, in all rounds.")
@click.option("--control", is_flag=True, help="Measure each case against itself instead.")
@click.option(
    "--comparisons",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="With --control: how many.",
)
@json_option
@reporting_errors
def time(
    target: str,
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    samples: int | None,
    control: bool,
    comparisons: int,
    as_json: bool,
) -> None:
    """Measure at once, without asv and without commits.

    SUITE is a file or the name of one in suites/. Baselines of the cases that are kept are measured
    too. Ctrl-C ends it with what there is. Exit code 1 where a case failed or is wrong.

    --control measures implementations against themselves and prints how often this machine sees a
    difference where there is none.
    """
    from gpubench.plan.selection import selected

    path, kernel = _suite_and_kernel(target)
    made = _plan((path,), preset)
    _print_faults(made.faults(), "warning: ")
    cases = [case for case in made.cases() if kernel in (None, case.kernel_name)]
    if kernel is not None and not cases:
        names = ", ".join(dict.fromkeys(group.subject.kernel_name for group in made.groups()))
        raise GpubenchError(f"{path} has no kernel {kernel!r}; it has {names or 'none'}")
    kept = list(selected(cases, where, axes))
    if control:
        _control(kept, comparisons, samples, as_json)
    else:
        _time(kept, samples, as_json)


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
@suites_option
@click.option("--json", "as_json", is_flag=True, help="Print what the pages show as JSON instead.")
@click.option("--open", "open_browser", is_flag=True, help="Open the first page in the browser.")
@reporting_errors
def report(results: Path, output: Path, suites: Path, as_json: bool, open_browser: bool) -> None:
    """Write the report: static pages that open from disk.

    Templates in the project's own reports/ replace single pages. Prints the path of the first page.
    """
    from gpubench.report.render import view_models, write_report

    loaded = _stored(results, suites)
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
@click.argument("kernel", required=False)
@click.option(
    "--results", type=click.Path(path_type=Path), default=RESULTS, show_default=True,
    help="asv's results directory.",
)  # fmt: skip
@suites_option
@click.option("--machine", help="Only results of this machine.")
@click.option("--environment", help="Only results of this environment, by asv's name for it.")
@json_option
@reporting_errors
def choose(
    kernel: str | None,
    results: Path,
    suites: Path,
    machine: str | None,
    environment: str | None,
    as_json: bool,
) -> None:
    """Say which implementation to use at which size, from what was measured.

    KERNEL is a kernel's name, or SUITE.KERNEL (default: all). For each machine and environment:
    the fastest at each size, from which size on an implementation beats the baseline, whether the
    copies eat the gain, how many calls repay compilation, and what was not measured.
    """
    from gpubench import choose_tables
    from gpubench.report.choose import chosen_pages
    from gpubench.report.render import plain

    pages = chosen_pages(_stored(results, suites), kernel, machine, environment)
    if as_json:
        click.echo(json.dumps([plain(asdict(page)) for page in pages], indent=2, default=str))
        return
    for page in pages:
        OUT.print(choose_tables.choose_page(page))


@main.command()
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@click.option(
    "--results", type=click.Path(path_type=Path), default=RESULTS, show_default=True,
    help="asv's results directory, where A and B are commits.",
)  # fmt: skip
@click.option("--machine", help="Only results of this machine.")
@click.option("--environment", help="Only results of this environment, by asv's name for it.")
@click.option("--all", "everything", is_flag=True, help="List every case, not only what differs.")
@click.option(
    "--fail-on",
    type=click.Choice(["slower", "failed"]),
    help="Exit with 1 where a case has failed; with 'slower', also where one became slower.",
)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown for a pull request.")
@json_option
@reporting_errors
def compare(
    old: str,
    new: str,
    results: Path,
    machine: str | None,
    environment: str | None,
    everything: bool,
    fail_on: str | None,
    as_markdown: bool,
    as_json: bool,
) -> None:
    """Compare two commits, or two results folders: A is before, B after.

    A and B are hashes (or their beginnings), branches or tags, or folders like .asv/results, of
    which the newest commit counts. The implementations' own times are compared; times are the same
    where the whole interval of their ratio is within 5 %.
    """
    from gpubench import compare_tables
    from gpubench.analysis.comparison import compare_snapshots
    from gpubench.analysis.sides import paired
    from gpubench.report.comparison_view import comparison_view
    from gpubench.report.markdown import markdown

    with _progress("reading results"):
        sides = [_side(name, results) for name in (old, new)]
    pairs = paired(*(side.on(machine, environment) for side, _ in sides))
    found = [compare_snapshots(*pair) for pair in pairs]
    commits = {commit.hash: commit for _, known in sides for commit in known}
    listed = everything or as_json
    views = [comparison_view(one, commits, everything=listed) for one in found]
    if as_json:
        click.echo(json.dumps([compare_tables.comparison_row(view) for view in views], indent=2))
    elif as_markdown:
        click.echo("\n".join(map(markdown, views)), nl=False)
    else:
        for view in views:
            OUT.print(*compare_tables.comparison_report(view), sep="\n")
    if fail_on and not any(one.counts for one in found):
        raise GpubenchError(f"{old} and {new} have no case in common: nothing was compared")
    refused = ("failed", "slower") if fail_on == "slower" else (fail_on,)
    if any(verdict in one.counts for one in found for verdict in refused):
        sys.exit(1)


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


def _side(name: str, results: Path) -> tuple[Any, Any]:
    """One side of a comparison, and the commits that are known there."""
    from gpubench.analysis.sides import commit_side, newest_side
    from gpubench.results.commits import resolve_commit

    if any(Path(name).glob("*/machine.json")):
        loaded = _stored(Path(name))
        return newest_side(name, loaded), loaded.commits
    loaded = _stored(results)
    commit = resolve_commit(name, loaded.commits, Path.cwd())
    if commit is None:
        measured = ", ".join(known.hash[:8] for known in reversed(loaded.commits[-5:]))
        raise GpubenchError(
            f"there are no results of {name} in {results}; the newest are of "
            f"{measured or 'no commit'}; measure it with `asv run {name}^!`"
        )
    return commit_side(name, loaded, commit), loaded.commits


def _suite_and_kernel(target: str) -> tuple[Path, str | None]:
    """Path of a suite, given by path or by name, and the kernel after ``::``."""
    suite, _, kernel = target.partition("::")
    path = Path(suite)
    named = SUITES / f"{suite}.yaml"
    return (named if not path.exists() and named.exists() else path), kernel or None


def _time(cases: list[Any], samples: int | None, as_json: bool) -> None:
    """Measure these cases and their baselines, and print what there is."""
    from gpubench import time_tables
    from gpubench.measure.direct import jobs, measure, rounds_of
    from gpubench.measure.facts import run_facts
    from gpubench.measure.worker import Bench

    work, found = jobs(cases, samples), {}
    with Bench() as bench, _interruptible() as interrupted, _bar(rounds_of(work)) as advance:
        for index, measured in measure(work, bench.take):
            found[index] = measured
            advance(f"{measured.record.benchmark} {measured.record.case}")
    rows = time_tables.compared(found[index] for index in sorted(found))
    if as_json:
        listed = [time_tables.time_row(row) for row in rows]
        click.echo(json.dumps({"facts": run_facts(), "cases": listed}, indent=2, default=str))
    else:
        for kernel in time_tables.by_kernel(rows):
            OUT.print(*time_tables.kernel_report(kernel), sep="\n")
    if interrupted:
        sys.exit(INTERRUPTED)
    if any(row.outcome.status in ("failed", "wrong", "timed_out", "killed") for row in rows):
        sys.exit(1)


def _control(cases: list[Any], comparisons: int, samples: int | None, as_json: bool) -> None:
    """Measure cases against themselves and print how often the verdict is false."""
    from gpubench import time_tables
    from gpubench.analysis.control import false_alarms
    from gpubench.measure.control import twins
    from gpubench.measure.facts import run_facts
    from gpubench.measure.worker import Bench

    found = []
    with Bench() as bench, _interruptible() as interrupted, _bar(comparisons) as advance:
        for one in twins(cases, comparisons, bench.take, samples):
            found.append(one)
            advance(f"{one.case.subject.title} {one.case.identity}")
    speedups = filter(None, map(time_tables.control_speedup, found))
    alarms = false_alarms(speedups)
    if as_json:
        content = {**asdict(alarms), "rate": alarms.rate, "facts": run_facts()}
        content["cases"] = time_tables.control_rows(found)
        click.echo(json.dumps(content, indent=2, default=str))
    else:
        OUT.print(time_tables.control_table(found))
        OUT.print(time_tables.control_line(alarms), markup=False)
    if interrupted:
        sys.exit(INTERRUPTED)


@contextmanager
def _interruptible() -> Iterator[list[str]]:
    """Ctrl-C ends what is inside; the list is then not empty."""
    interrupted: list[str] = []
    try:
        yield interrupted
    except KeyboardInterrupt:
        interrupted.append("interrupted")
        ERR.print("interrupted: this is what there is")


def _stored(results: Path, suites: Path = SUITES) -> Any:
    """Stored results with the pairs of the suites; faults of suites are warnings here."""
    from gpubench.project import project_results

    with _progress("reading results"):
        loaded, faults = project_results(results, Path.cwd(), suites)
    _print_faults(faults, "warning: ")
    return loaded


def _print_faults(faults: Any, prefix: str = "") -> None:
    for fault in faults:
        text = str(fault)
        if prefix and isinstance(fault, Fault):
            text = str(Fault(fault.path, fault.line, fault.column, prefix + fault.message))
        ERR.print(text, markup=False)


@contextmanager
def _progress(what: str) -> Iterator[None]:
    """A spinner on standard error while something may take longer than a second."""
    if not ERR.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=ERR, transient=True) as progress:
        progress.add_task(what, total=None)
        yield


@contextmanager
def _bar(total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar on standard error; call what it gives after each step, with what was done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=ERR, transient=True, disable=not ERR.is_terminal
    ) as progress:
        task = progress.add_task("measuring", total=total)
        yield lambda what: progress.update(task, advance=1, description=what)
