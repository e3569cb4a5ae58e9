"""Options and arguments that several commands share: ``@options.results`` ..."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from gpubench.asv_config import project_config
from gpubench.suite.folder import VARIABLE

Command = TypeVar("Command", bound=Callable[..., None])

SUITES = Path("suites")
RESULTS = Path(".asv/results")


def default_results() -> Path:
    """Return where results are: as asv.conf.json in the working folder says, if they are there."""
    config = project_config()
    return config.results_dir if config and config.results_dir.is_dir() else RESULTS


def path(name: str, default: Path, help: str, **more: Any) -> Callable[[Command], Command]:
    """An option whose value is a path."""
    of_path = click.Path(path_type=Path)
    return click.option(name, type=of_path, default=default, show_default=True, help=help, **more)


paths = click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
preset = click.option(
    "--preset",
    envvar="GPUBENCH_PRESET",
    help="Named overlay of sizes, launches and sampling; also the variable GPUBENCH_PRESET.",
)
where = click.option(
    "--where", metavar="EXPR", help="Keep cases for which this holds: 'n >= 2**20'."
)
axes = click.option(
    "-a",
    "axes",
    multiple=True,
    metavar="NAME=VALUES",
    help="Keep these values of an axis, declared or not: -a n=1024,5000 -a implementation=numpy. "
    "Repeatable.",
)
results = click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=default_results,
    show_default="results_dir of asv.conf.json, or .asv/results",
    help="asv's results directory.",
)
suites = path(
    "--suites",
    SUITES,
    "Suites whose `pairs` of an asv project's benchmarks are reported too; also the variable "
    f"{VARIABLE}.",
    envvar=VARIABLE,
)
machine = click.option("--machine", help="Only results of this machine.")
environment = click.option(
    "--environment", help="Only results of this environment, by asv's name for it."
)
json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
