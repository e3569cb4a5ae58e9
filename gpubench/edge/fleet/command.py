"""`gpubench fleet`: the same suites on many machines, through Dask."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from gpubench.cli import options
from gpubench.cli.console import ERR, OUT, interruptible, print_answer, print_json
from gpubench.cli.planning import planned
from gpubench.distribution import require_extra
from gpubench.edge.fleet.addresses import listening_place, scheduler_address
from gpubench.environment import environment
from gpubench.errors import Exit, GpubenchError
from gpubench.suite.folder import SUITES_VARIABLE as SUITES_VARIABLE

LOGS = Path(".asv/fleet")
"""A file for each machine, beside the results."""

DEFINITIONS = ("benchmarks", "suites", "asv.conf.json")
"""What says what is measured: machines have it as it is committed."""

PRESET_VARIABLE = "GPUBENCH_PRESET"
ADDRESS_VARIABLE = "DASK_SCHEDULER_ADDRESS"


def _address(_: click.Context, __: click.Parameter, value: str) -> str:
    return scheduler_address(value)


def _host(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    return None if value is None else listening_place(value)


scheduler_option = click.option(
    "--scheduler",
    required=True,
    envvar=ADDRESS_VARIABLE,
    metavar="ADDRESS",
    callback=_address,
    help=f"Of Dask's: tcp://127.0.0.1:8786, tls://host:8786; also the variable {ADDRESS_VARIABLE}.",
)


def tls_options(command: options.Command) -> options.Command:
    """Files of certificates, named as Dask's own options; else as Dask is configured."""
    for name, what in (
        ("key", "The private key of it."),
        ("cert", "This side's certificate."),
        ("ca-file", "Certificates of whom to trust; without, only loopback addresses are used."),
    ):
        path = click.Path(exists=True, dir_okay=False)
        command = click.option(f"--tls-{name}", type=path, help=f"{what} PEM.")(command)
    return command


def _security(address: str, tls: dict[str, Any]) -> Any:
    """Return how the scheduler is spoken to; raises ``GpubenchError`` where that is not safe."""
    if find_spec("distributed") is None:
        raise GpubenchError(f"a fleet needs Dask: pip install '{require_extra('fleet')}'")
    from gpubench.edge.fleet.cluster import security_for

    return security_for(address, **tls)


def _connected(address: str, tls: dict[str, Any]) -> AbstractContextManager[Any]:
    security = _security(address, tls)
    from gpubench.edge.fleet.cluster import connected

    return connected(address, security)


@click.group()
def fleet() -> None:
    """Measure on many machines, through Dask."""


@fleet.command()
@click.argument("commits", default="HEAD^!")
@scheduler_option
@click.option(
    "--suite",
    "names",
    multiple=True,
    metavar="NAME",
    type=options.SuiteName(),
    help="Only this suite or kernel: vector_add, reductions::sum, sum. Repeatable.",
)
@options.preset
@click.option(
    "--suites",
    envvar=SUITES_VARIABLE,
    metavar="FOLDER",
    help="Folder of suites inside the project, suites/systems for example; also the variable "
    f"{SUITES_VARIABLE}.  [default: suites]",
)
@click.option("--skip-existing", "-k", is_flag=True, help="Leave out what has results here.")
@click.option(
    "--share",
    metavar="NAME",
    help="Machines of one kind that are proven equal divide the work; their results are kept under "
    "this name.",
)
@click.option("--only", multiple=True, metavar="MACHINE", help="Only this machine. Repeatable.")
@click.option("--wait", is_flag=True, help="Wait while another run measures on this fleet.")
@click.option(
    "--repository",
    metavar="URL",
    help="What machines clone (default: this folder on this machine, else the remote `origin`).",
)
@options.results
@tls_options
def run(
    commits: str,
    scheduler: str,
    names: tuple[str, ...],
    preset: str | None,
    suites: str | None,
    skip_existing: bool,
    share: str | None,
    only: tuple[str, ...],
    wait: bool,
    repository: str | None,
    results: Path,
    **tls: Any,
) -> None:
    """Measure COMMITS on all machines, and keep the results here.

    COMMITS are as of `asv run`: HEAD^! (the default) is one, HEAD~3..HEAD are three. Each machine
    measures everything that it can. Exit code 1 where something was not measured.
    """
    connection = _connected(scheduler, tls)
    from gpubench.edge.fleet import coordinator
    from gpubench.edge.fleet.checkout import git
    from gpubench.edge.fleet.cluster import SchedulerStopped, measure
    from gpubench.edge.fleet.dispatch import Dispatch, keep_logs
    from gpubench.edge.fleet.parcels import merge, remove_leftovers

    say = ERR.print
    # By these a process knows what it is asked for, here and on the machines. Empty, they mean
    # nothing, whatever a machine has set.
    variables = {PRESET_VARIABLE: preset or "", SUITES_VARIABLE: suites or ""}
    with environment(variables):
        refuse_other_folders(names)
        plans = cache(partial(planned, names, preset))
        plans(0)  # faults of suites are told first
        asked = _committed(commits, suites)
        head = git(Path(), "rev-parse", "HEAD")
        if repository is None:
            repository = _cloned_from(scheduler)
    dispatch, refused, shares = None, list[str](), list[Any]()
    try:
        with environment(variables), interruptible() as interrupted, connection as client:
            coordinator.claim_or_wait(client, commits, say, wait=wait)
            remove_leftovers(results)
            progress = keep_logs(client, LOGS)
            say(f"preparing checkouts and environments; what machines write is in {LOGS}/")
            machines, refused = coordinator.machines_of(client, repository, head, only, say)
            keepers, notes = {machine.name: machine.name for machine in machines}, dict[str, str]()
            if share is not None:
                every = planned((), preset, 0)  # machines are equal or not, whatever is measured
                keepers, notes = coordinator.keepers_of(
                    client, machines, every, share, say, variables
                )
            shares = coordinator.shares_of(
                machines, keepers, plans, asked, results, skip_existing=skip_existing
            )
            say(coordinator.expectation(shares, keepers))

            def keep(parcel: Any, share: Any, machine: Any, begun: Any) -> int:
                facts = {"fleet": notes[machine.name]} if machine.name in notes else {}
                return merge(parcel, share, machine.environments, results, facts, begun)

            dispatch = Dispatch(
                client,
                machines,
                keepers,
                shares,
                results,
                keep,
                say,
                task=partial(measure, repository, head),
                variables=variables,
                progress=progress,
            )
            dispatch.run()
    except SchedulerStopped:
        done = dispatch.outcome.kept if dispatch else 0
        say(
            f"gpubench: the scheduler at {scheduler} stopped: {done} of {len(shares)} shares are "
            f"kept in {results}, and of the others the cases that were finished; start it again, "
            f"let the workers join, and go on with `{_go_on(skip_existing)}`"
        )
        sys.exit(Exit.FOUND)
    if interrupted:
        sys.exit(Exit.INTERRUPTED)
    outcome = dispatch.outcome
    if shares:
        say(f"{outcome.kept} of {len(shares)} shares are measured and kept in {results}")
    elif skip_existing:
        say(f"nothing is left to measure: all that machines can of {commits} is in {results}")
    else:
        say(f"nothing of {commits} can be measured by these machines: all of it needs a GPU")
    for line in refused:
        say(line)
    for lost, why in outcome.lost:
        say(f"not measured: {lost.title} for {lost.keeper}: {why}")
    if refused or outcome.lost:
        say(f"measure the rest with `{_go_on(skip_existing)}`")
    if refused or outcome.lost or not (shares or skip_existing):
        sys.exit(Exit.FOUND)


def _committed(commits: str, suites: str | None) -> list[str]:
    """Return the hashes of the commits that are asked for; raises ``GpubenchError`` where there is
    none, and where a file that defines benchmarks is not committed."""
    from gpubench.edge.fleet.checkout import git

    words = commits.split()
    asked = git(Path(), "rev-list", "--first-parent", *words, "--").split() if words else []
    if not asked:
        raise GpubenchError(
            f"{commits!r} is no commit: HEAD^! is the newest one, HEAD~3..HEAD are three"
        )
    defined_in = *DEFINITIONS, *filter(None, [suites])
    if changed := git(Path(), "status", "--porcelain", "--", *defined_in):
        raise GpubenchError(
            f"{changed.splitlines()[0][3:]} is not committed, and machines measure what is "
            "committed: commit it first"
        )
    return asked


def _cloned_from(scheduler: str) -> str:
    """Return what machines clone: this folder on this machine, and else the remote ``origin``."""
    from gpubench.edge.fleet.checkout import git
    from gpubench.edge.fleet.cluster import is_loopback

    if is_loopback(scheduler):
        return str(Path().resolve())
    return git(Path(), "remote", "get-url", "origin")


def _go_on(skip_existing: bool) -> str:
    """Return the command that was given, and the option by which it leaves out what it has."""
    words = ["gpubench", *sys.argv[1:], *([] if skip_existing else ["--skip-existing"])]
    return shlex.join(words)


def refuse_other_folders(names: Sequence[str]) -> None:
    """Raise ``GpubenchError`` for a name of suites that machines do not measure: they take those of
    one folder."""
    files = options.suite_files()
    measured = {path.resolve() for paths in files.paths.values() for path in paths}
    for name in names:
        path = files.find(name).path
        if path.resolve() not in {*measured, files.folder.resolve()}:
            raise GpubenchError(
                f"--suite {name!r}: {path} is not of {files.folder}/, whose suites machines "
                "measure; name a folder of suites with --suites"
            )


@fleet.command()
@click.argument("scheduler", metavar="ADDRESS", envvar=ADDRESS_VARIABLE, callback=_address)
@click.option(
    "--checkout",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("gpubench-checkout"),
    show_default=True,
    help="Folder of its own that measures; cloned where there is nothing.",
)
@click.option("--machine", help="Name of this machine (default: asv's).")
@click.option(
    "--python",
    metavar="PATH",
    help="A Python that measures what is checked out, in place of asv's environments.",
)
@click.option("--name", help="Dask's name for the worker (default: the machine's).")
@click.option(
    "--host",
    callback=_host,
    help="Where it listens: an address of this machine, with :PORT or not.",
)
@click.option(
    "--retry", is_flag=True, help="Wait for a scheduler that is not there yet, or has stopped."
)
@tls_options
def worker(
    scheduler: str,
    checkout: Path,
    machine: str | None,
    python: str | None,
    name: str | None,
    host: str | None,
    retry: bool,
    **tls: Any,
) -> None:
    """Measure what `gpubench fleet run` asks for, until Ctrl-C."""
    security = _security(scheduler, tls)
    import asyncio  # which no other command needs

    from gpubench.asv_config import machine_name
    from gpubench.edge.fleet.checkout import Checkout
    from gpubench.edge.fleet.cluster import serve

    place = Checkout(checkout.resolve(), machine or machine_name(), python)
    ERR.print(f"{place.machine} measures in {place.folder} (Ctrl-C ends it)")
    asyncio.run(serve(scheduler, security, place, name, host, retry=retry, say=ERR.print))


@fleet.command()
@scheduler_option
@options.json
@tls_options
def status(scheduler: str, as_json: bool, **tls: Any) -> None:
    """Show the machines, what they do, and the last run."""
    connection = _connected(scheduler, tls)
    from gpubench.edge.fleet import coordinator
    from gpubench.edge.fleet.dispatch import last_run

    with connection as client:
        machines, refused = coordinator.described(client)
        run = last_run(client)
    for line in refused:
        ERR.print(line)
    if as_json:
        print_json({"machines": machines, "run": run})
        return
    columns = ("machine", "does", "progress", "address", "checkout")
    print_answer(columns, [[one[name] or "-" for name in columns] for one in machines])
    if run:
        left = f"; {run['left']} left" if run.get("left") and run["kept"] < run["shares"] else ""
        OUT.print(
            f"{run['kept']} of {run['shares']} shares are kept, {run['lost']} lost; "
            f"{run['asked_again']} came damaged and were asked for again{left}"
        )
