"""Commands about suites and devices, before anything is measured."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click

from gpubench.cli import options
from gpubench.cli.console import ERR, OUT, echo, narrated, print_faults, print_json, print_table
from gpubench.cli.planning import planned, with_faults_of_code
from gpubench.collecting import without_collecting
from gpubench.errors import Exit, SuiteError
from gpubench.suite.folder import asked_folder


@click.command()
@options.names
@options.preset
@options.where
@options.axes
@options.json
@without_collecting()
def check(
    names: tuple[str, ...],
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check suite files and every function that they name.

    NAME is a suite, a kernel (SUITE::KERNEL, or KERNEL alone where one suite has it), a suite file
    or a folder of them; none are all in suites/. Prints one line of counts, of the cases that
    --where and -a keep, or every fault on standard error with exit code 2.
    """
    from gpubench.plan.rules import selected
    from gpubench.tables import plans

    try:
        made = planned(names, preset, nested=True)
    except SuiteError as error:
        every = with_faults_of_code(error, names)
        if not as_json:
            raise every from error
        listed = [asdict(fault) for fault in every.faults]
        print_json({"counts": None, "faults": listed, "warnings": []})
        sys.exit(Exit.REFUSED)
    with narrated("checking kernels"):
        faults = made.faults()
    if faults and not as_json:
        raise SuiteError(faults)
    cases = selected(made.cases(), where, axes)
    if as_json:
        print_json(plans.check_row(made, cases))
        sys.exit(Exit.REFUSED if faults else Exit.DONE)
    print_faults(made.warnings(), "warning: ")
    echo(plans.counts_line(made, cases))


@click.command()
@options.names
@options.preset
@options.where
@options.axes
@options.json
@click.option("--list", "as_list", is_flag=True, help="Print one case a line, for grep.")
@click.option(
    "--explain", "explained", metavar="CASE", help="Say which line of which file set each value."
)
@without_collecting()
def plan(
    names: tuple[str, ...],
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    as_json: bool,
    as_list: bool,
    explained: str | None,
) -> None:
    """Show the cases that suites expand to. Touches no device.

    NAME is a suite or a kernel, as for `gpubench check`. CASE is a line of --list: an asv benchmark
    and an identity, for example 'suites.vector_add__numba_cuda.time_kernel n=1024 block=256'.
    """
    from gpubench.plan.asked import with_values
    from gpubench.plan.explanation import explain
    from gpubench.plan.rules import selected
    from gpubench.tables import plans

    made = planned(names, preset, nested=True)
    if explained is not None:
        from gpubench.tables.table import table

        values = explain(made.find(explained))
        OUT.print(table(("field", "value", "set in"), values, folded=True))
        return
    wider = with_values(made, axes)
    cases = selected(wider.cases(), where, axes)
    if as_json:
        print_json([plans.case_row(case, wider.times_of(case)) for case in cases])
        return
    with narrated("checking kernels"):
        faults = [*made.faults(), *made.warnings()]
    print_faults(faults, "warning: ")
    if as_list:
        for case in cases:
            echo(plans.case_name(case))
        return
    print_table(*plans.plan_table(cases, listed=bool(where or axes)))


@click.command()
@options.json
def devices(as_json: bool) -> None:
    """Show the CPU and the GPUs of this machine. Starts no CUDA context."""
    from gpubench.backends.registry import describe_devices
    from gpubench.tables import plans

    described = describe_devices()
    if as_json:
        print_json([asdict(device) for device in described])
    else:
        OUT.print(plans.devices_table(described))


@click.command()
@click.option("--path", "as_path", is_flag=True, help="Print the path of the installed schema.")
def schema(as_path: bool) -> None:
    """Print the JSON Schema of suite files, for editors."""
    from gpubench.suite.schema import schema_path, schema_text

    if as_path:
        click.echo(schema_path())
    else:
        click.echo(schema_text(), nl=False)


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option("--with", "systems", default="", help="Systems to install too: dask,ray,modin.")
@click.option("--project", "name", help="Name of the project (default: as its build files say).")
@click.option("--example", is_flag=True, help="Write a suite and its kernel into a package too.")
@click.option(
    "--ci",
    "host",
    type=click.Choice(["github", "gitlab"]),
    help="Write a workflow too, which checks, counts and times pull requests.",
)
def init(
    directory: Path,
    systems: str,
    name: str | None,
    example: bool,
    host: Literal["github", "gitlab"] | None,
) -> None:
    """Start benchmarks in a project.

    Writes asv.conf.json and benchmarks/, and overwrites nothing. An empty folder also gets an
    example, a suite and its kernel; a package gets it by --example. Adds what is missing to
    .gitignore and to an asv.conf.json that is there. Can be run twice. Prints what was written and
    what to do next. Where no file states the project's name, its build backend
    is asked, which runs code of the project.
    """
    from gpubench.scaffold.first_steps import next_steps
    from gpubench.scaffold.project import add_to_project, find_project, write_project

    # An extra has hyphens, the backend underscores: scikit-learn is scikit_learn.
    named = [word.strip().replace("-", "_") for word in systems.split(",") if word.strip()]
    project = find_project(directory, name, lambda text: ERR.print(f"gpubench: {text}"))
    files = write_project(directory, named, project, needs_cuda=host is not None, example=example)
    added = add_to_project(directory, files, project, needs_cuda=host is not None)
    steps = next_steps(directory, files, named)
    if host is not None:
        from gpubench.scaffold.continuous_integration import workflow_steps, write_workflow

        workflow = write_workflow(directory, host, project)
        files |= workflow
        steps = [*workflow_steps(directory, workflow), *steps]
    for path, is_new in files.items():
        click.echo(f"{'wrote' if is_new else 'kept '} {path}")
    for line in added:
        echo(f"added to {line}")
    if files[directory / "asv.conf.json"]:
        echo(f"\nThe project is called {project.distribution}, as {project.named_by} says.")
    click.echo("\nNext:")
    for step in steps:
        click.echo(f"  {step}")
    if project.package and not any((directory / "suites").glob("*.yaml")):
        click.echo("\nFor an example to look at, suites/saxpy.yaml with its kernel:")
        click.echo(f"  gpubench init --example{_directory_argument(directory)}")


def _directory_argument(directory: Path) -> str:
    """Return what names a directory on the command line; nothing for the one we are in."""
    return "" if directory == Path() else f" {shlex.quote(str(directory))}"


@click.command()
@click.argument("function", metavar="MODULE:FUNCTION")
@click.option(
    "--baseline", metavar="MODULE:FUNCTION", help="What results and times are held against."
)
@click.option("--name", help="Name of the suite and its kernel (default: the function's).")
@click.option(
    "--array",
    "arrays",
    multiple=True,
    metavar="NAME=SHAPE[:DTYPE][:INTENT]",
    help="What an argument is: --array y=m,n:float32:inout. Repeatable.",
)
@click.option(
    "--scalar",
    "scalars",
    multiple=True,
    metavar="NAME=VALUE",
    help="An argument that is a number: --scalar alpha=2.5. Repeatable.",
)
@click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="NAME=VALUES",
    help="Sizes of an extent: --size n=1000,1000000. Repeatable.",
)
def add(
    function: str,
    baseline: str | None,
    name: str | None,
    arrays: tuple[str, ...],
    scalars: tuple[str, ...],
    sizes: tuple[str, ...],
) -> None:
    """Write a suite for a function of yours: suites/FUNCTION.yaml.

    Reads arguments, dtypes and what is written from the source, and imports nothing. Asks for
    what the source does not tell, or takes it from the options. Overwrites nothing. Where a kernel
    of a suite is held against the same --baseline, the function joins it as one more form; --name,
    or an option that describes arguments, makes a suite of its own.
    """
    from gpubench.plan import source
    from gpubench.scaffold.adding import (
        AddError,
        describe_arguments,
        draft_suite,
        explain_missing,
        write_suite,
    )

    source.SEARCHED_FIRST[:] = [str(Path.cwd()), str(Path("src").resolve())]
    describes_one = name or arrays or scalars or sizes
    if baseline is not None and not describes_one and _try_to_join(function, baseline):
        return
    given_arrays, given_scalars = _by_name("--array", arrays), _by_name("--scalar", scalars)
    given_sizes = {
        axis: text if text.startswith(("[", "{")) else f"[{', '.join(text.split(','))}]"
        for axis, text in _by_name("--size", sizes).items()
    }
    while True:
        draft, missing = draft_suite(
            function,
            baseline,
            name=name,
            arrays=given_arrays,
            scalars=given_scalars,
            sizes=given_sizes,
        )
        if not missing:
            break
        if not sys.stdin.isatty():
            raise AddError(explain_missing(missing))
        for one in missing:
            said = click.prompt(f"{one}: a number, or SHAPE:DTYPE:INTENT", default="n:float64:in")
            (given_scalars if _is_number(said) else given_arrays)[one] = said
    path = asked_folder(options.SUITES) / f"{draft.name}.yaml"
    write_suite(draft, path)
    click.echo(f"wrote {path}")
    for line in describe_arguments(draft):
        echo(f"  {line}")
    click.echo("\nNext: see that this is so, then")
    for step in (f"gpubench verify {draft.name}", f"gpubench time {draft.name} --preset smoke"):
        click.echo(f"  {step}")


def _try_to_join(function: str, baseline: str) -> bool:
    """Add a function to the kernel that is held against this baseline; return whether there is
    one."""
    from gpubench.scaffold.function_source import read_function
    from gpubench.scaffold.joining import find_kernel_of, join_kernel

    kernel = find_kernel_of(baseline, asked_folder(options.SUITES))
    if kernel is None:
        return False
    name = join_kernel(kernel, read_function(function))
    target = f"{kernel.suite}::{kernel.name}"
    click.echo(f"added the implementation {name} to {target} in {kernel.path}")
    click.echo(f"\nNext:\n  gpubench verify {target}\n  gpubench time {target} --preset smoke")
    return True


def _by_name(option: str, pairs: tuple[str, ...]) -> dict[str, str]:
    """Return what options of the form NAME=VALUE give by name."""
    from gpubench.scaffold.adding import AddError

    given = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise AddError(f"{option} {pair}: write {option} NAME=VALUE")
        given[name.strip()] = value.strip()
    return given


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
