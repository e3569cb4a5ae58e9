"""`gpubench fleet`: the same suites on many machines, through Dask."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from gpubench.cli import options
from gpubench.cli.console import ERR, INTERRUPTED, OUT, interruptible, print_json
from gpubench.cli.planning import planned
from gpubench.distribution import require_extra
from gpubench.errors import GpubenchError

LOGS = Path(".asv/fleet")
"""A file for each machine, beside the results."""

DEFINITIONS = ("benchmarks", "suites", "asv.conf.json")
"""What says what is measured: machines have it as it is committed."""

VARIABLES = ("GPUBENCH_PRESET", "GPUBENCH_SUITES")
"""Environment variables that say what is measured; they go to the machines."""

ADDRESS = "DASK_SCHEDULER_ADDRESS"
scheduler_option = click.option(
    "--scheduler",
    required=True,
    envvar=ADDRESS,
    metavar="ADDRESS",
    help=f"Of Dask's: tcp://127.0.0.1:8786, tls://host:8786; also the variable {ADDRESS}.",
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
    """How the scheduler is spoken to; raises ``GpubenchError`` where that is not safe."""
    if find_spec("distributed") is None:
        raise GpubenchError(f"a fleet needs Dask: pip install '{require_extra('fleet')}'")
    from gpubench.fleet.cluster import security_for

    return security_for(address, **tls)


def _connected(address: str, tls: dict[str, Any]) -> AbstractContextManager[Any]:
    security = _security(address, tls)
    from gpubench.fleet.cluster import connected

    return connected(address, security)


@click.group()
def fleet() -> None:
    """Measure on many machines, through Dask (docs/fleet.md)."""


@fleet.command()
@click.argument("commits", default="HEAD^!")
@scheduler_option
@click.option("--skip-existing", "-k", is_flag=True, help="Leave out what has results here.")
@click.option(
    "--share",
    metavar="NAME",
    help="Machines of one kind that are proven equal divide the work; their results are kept under "
    "this name.",
)
@click.option("--only", multiple=True, metavar="MACHINE", help="Only this machine. Repeatable.")
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
    skip_existing: bool,
    share: str | None,
    only: tuple[str, ...],
    repository: str | None,
    results: Path,
    **tls: Any,
) -> None:
    """Measure COMMITS on all machines, and keep the results here.

    COMMITS are as of `asv run`: HEAD^! (the default) is one, HEAD~3..HEAD are three. Each machine
    measures everything that it can. Exit code 1 where something was not measured.
    """
    connection = _connected(scheduler, tls)
    from gpubench.fleet import coordinator
    from gpubench.fleet.checkout import git
    from gpubench.fleet.cluster import is_loopback
    from gpubench.fleet.parcels import merge, remove_leftovers

    here, say = Path(), ERR.print
    plans = cache(partial(planned, (), os.environ.get("GPUBENCH_PRESET") or None))
    plan = plans(0)  # faults of suites are told first
    chosen = git(here, "rev-list", "--first-parent", *commits.split(), "--").split()
    if changed := git(here, "status", "--porcelain", "--", *DEFINITIONS):
        raise GpubenchError(
            f"{changed.splitlines()[0][3:]} is not committed, and machines measure what is "
            "committed: commit it first"
        )
    head = git(here, "rev-parse", "HEAD")
    if repository is None:
        is_here = is_loopback(scheduler)
        repository = str(here.resolve()) if is_here else git(here, "remote", "get-url", "origin")
    with interruptible() as interrupted, connection as client:
        remove_leftovers(results)
        coordinator.keep_logs(client, LOGS)
        machines, refused = coordinator.machines_of(client, repository, head, only, say)
        keepers, notes = {machine.name: machine.name for machine in machines}, dict[str, str]()
        if share is not None:
            keepers, notes = coordinator.keepers_of(client, machines, plan, share, say)
        shares = coordinator.shares_of(
            machines, keepers, plans, chosen, results, skip_existing=skip_existing
        )

        def keep(parcel: Any, share: Any, machine: Any, begun: Any) -> int:
            facts = {"fleet": notes[machine.name]} if machine.name in notes else {}
            return merge(parcel, share, machine.environments, results, facts, begun)

        variables = {name: os.environ[name] for name in VARIABLES if os.environ.get(name)}
        outcome = coordinator.Dispatch(
            client, machines, keepers, shares, results, keep, say, variables=variables
        ).run()
    if interrupted:
        sys.exit(INTERRUPTED)
    say(f"{outcome.kept} of {len(shares)} shares are measured and kept in {results}")
    for line in refused:
        say(line)
    for lost, why in outcome.lost:
        say(f"not measured: {lost.title} for {lost.keeper}: {why}")
    if refused or outcome.lost:
        say("measure the rest with `gpubench fleet run --skip-existing`")
        sys.exit(1)


@fleet.command()
@click.argument("scheduler", metavar="ADDRESS", envvar=ADDRESS)
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
@click.option("--host", help="Where it listens: an address of this machine, with :PORT or not.")
@tls_options
def worker(
    scheduler: str,
    checkout: Path,
    machine: str | None,
    python: str | None,
    name: str | None,
    host: str | None,
    **tls: Any,
) -> None:
    """Measure on this machine what `gpubench fleet run` asks for, until Ctrl-C."""
    security = _security(scheduler, tls)
    import asyncio  # which no other command needs

    from gpubench.fleet.checkout import Checkout, machine_name
    from gpubench.fleet.cluster import serve

    place = Checkout(checkout.resolve(), machine or machine_name(), python)
    ERR.print(f"{place.machine} measures in {place.folder} (Ctrl-C ends it)")
    asyncio.run(serve(scheduler, security, place, name, host))


@fleet.command()
@scheduler_option
@options.json
@tls_options
def status(scheduler: str, as_json: bool, **tls: Any) -> None:
    """Show the machines, what they do, and how far the last run has come."""
    connection = _connected(scheduler, tls)
    from gpubench.fleet import coordinator
    from gpubench.tables.table import answer_table

    with connection as client:
        machines = coordinator.described(client)
        run = client.get_metadata(coordinator.METADATA, {})
    if as_json:
        print_json({"machines": machines, "run": run})
        return
    columns = ("machine", "does", "progress", "address", "checkout")
    OUT.print(answer_table(columns, [[one[name] or "-" for name in columns] for one in machines]))
    if run:
        OUT.print(
            f"{run['kept']} of {run['shares']} shares are kept, {run['lost']} lost; "
            f"{run['asked_again']} came damaged and were asked for again"
        )
