"""The command line: arguments to calls to an exit code. The only package that prints and exits.

Commands are entry points (``gpubench.commands``): one is imported when it is asked for. A command
takes what the user wrote, calls the rooms below, and leaves text and an exit code.
"""

from __future__ import annotations

import click

from gpubench.cli.console import ERR, Commands
from gpubench.distribution import VERSION, describe_conflict


@click.group(
    cls=Commands,
    first=("init", "add", "check", "verify", "count", "time", "report", "compare"),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(VERSION, prog_name="gpubench")
def main() -> None:
    """Declare benchmarks of Numba kernels (CUDA and CPU) against NumPy, on airspeed velocity.

    Suites are YAML files in suites/. Measure with `asv run`, then write the report with
    `gpubench report`. `gpubench init` starts a new project.
    """
    if conflict := describe_conflict():
        ERR.print(f"gpubench: {conflict}")
