"""Options and arguments that several commands share: ``@options.results`` ..."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from gpubench.asv_config import project_config
from gpubench.errors import GpubenchError
from gpubench.suite.folder import SUITES_VARIABLE, asked_folder, library_instead

if TYPE_CHECKING:  # which reads what names stand for: --help answers at once
    from gpubench.suite.naming import SuiteFiles

Command = TypeVar("Command", bound=Callable[..., None])

SUITES = Path("suites")
RESULTS = Path(".asv/results")


def default_results() -> Path:
    """Return where results are: as asv.conf.json in the working folder says, if they are there."""
    config = project_config()
    return config.results_dir if config and config.results_dir.is_dir() else RESULTS


def path(name: str, default: Path, help: str, **more: Any) -> Callable[[Command], Command]:
    """Return an option whose value is a path."""
    of_path = click.Path(path_type=Path)
    return click.option(name, type=of_path, default=default, show_default=True, help=help, **more)


def suite_files(*, nested: bool = False) -> SuiteFiles:
    """Return the suites that names on the command line are of."""
    from gpubench.suite.naming import SuiteFiles

    return SuiteFiles(SUITES if nested else asked_folder(SUITES), nested=nested)


class SuiteName(click.types.StringParamType):
    """A name of a suite or a kernel, which a shell completes."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from gpubench.suite.naming import complete

        try:
            names = complete(incomplete, suite_files())
        except GpubenchError:
            names = []
        # A shell completes paths by itself where no suite begins so.
        return [*map(CompletionItem, names)] or [CompletionItem(incomplete, type="file")]


class PresetName(click.types.StringParamType):
    """A name of a preset of any suite, which a shell completes."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from gpubench.suite.loading import read_fields

        try:
            files = suite_files().paths.values()
        except GpubenchError:
            return []
        names = sorted({name for paths in files for name in read_fields(paths[0], "presets")})
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


names = click.argument("names", metavar="[NAME]...", nargs=-1, type=SuiteName())
"""Suites and kernels, as ``gpubench.suite.naming`` resolves them; none are all."""
preset = click.option(
    "--preset",
    type=PresetName(),
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
    f"{SUITES_VARIABLE}.",
    envvar=SUITES_VARIABLE,
)
machine = click.option("--machine", help="Only results of this machine.")
environment = click.option(
    "--environment", help="Only results of this environment, by asv's name for it."
)
json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _read_the_library(context: click.Context, option: click.Parameter, given: bool) -> None:
    context.with_resource(library_instead(given))  # until the command ends


library = click.option(
    "--library",
    is_flag=True,
    expose_value=False,
    callback=_read_the_library,
    help="Take the suites that gpubench brings instead of those in suites/; needs no project.",
)

MAX_MEASURE_SECONDS = 86_400.0
"""Longest time that commits are measured in turn, which is there to avoid that days differ."""


def read_duration(context: click.Context, option: click.Parameter, given: str) -> float:
    """Return seconds of a text such as ``90s``, ``3m``, ``1.5h`` or ``90``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)?", given.strip())
    seconds = float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2] or "s"] if match else 0.0
    if not 0 < seconds <= MAX_MEASURE_SECONDS:
        raise click.BadParameter(f"{given!r} is no duration up to a day; give 90s, 3m or 1h")
    return seconds
