"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

SUITES = Path("suites")
RESULTS = Path(".asv/results")

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
results_option = click.option(
    "--results", type=click.Path(path_type=Path), default=RESULTS, show_default=True,
    help="asv's results directory.",
)  # fmt: skip
machine_option = click.option("--machine", help="Only results of this machine.")
environment_option = click.option(
    "--environment", help="Only results of this environment, by asv's name for it."
)
suites_option = click.option(
    "--suites", type=click.Path(path_type=Path), default=SUITES, show_default=True,
    help="Suites whose `pairs` of an asv project's benchmarks are reported too.",
)  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
