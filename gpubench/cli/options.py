"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from gpubench.suite.folder import VARIABLE

Command = TypeVar("Command", bound=Callable[..., None])

SUITES = Path("suites")
RESULTS = Path(".asv/results")


def path_option(name: str, default: Path, help: str) -> Callable[[Command], Command]:
    """An option whose value is a path."""
    path = click.Path(path_type=Path)
    return click.option(name, type=path, default=default, show_default=True, help=help)


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
results_option = path_option("--results", RESULTS, "asv's results directory.")
suites_option = click.option(
    "--suites",
    type=click.Path(path_type=Path),
    default=SUITES,
    show_default=True,
    envvar=VARIABLE,
    help="Suites whose `pairs` of an asv project's benchmarks are reported too; also the variable "
    f"{VARIABLE}.",
)
machine_option = click.option("--machine", help="Only results of this machine.")
environment_option = click.option(
    "--environment", help="Only results of this environment, by asv's name for it."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
