"""The command line: arguments to calls to an exit code. The only package that prints and exits."""

from __future__ import annotations

import click

from gpubench import __version__
from gpubench.cli.advise import advise
from gpubench.cli.comparison import compare
from gpubench.cli.console import ERR, Commands
from gpubench.cli.exporting import export
from gpubench.cli.fleet import fleet
from gpubench.cli.measuring import count, time, verify
from gpubench.cli.profiling import profile
from gpubench.cli.reading import acknowledge, choose, query, report, serve
from gpubench.cli.suites import add, check, devices, grid, init, plan, schema
from gpubench.distribution import describe_conflict


@click.group(
    cls=Commands,
    sections={
        "Write suites": (init, add, check, plan, schema),
        "Run them": (verify, count, time, profile, fleet),
        "Read results": (report, serve, compare, acknowledge, choose, advise, query, export),
        "This machine": (devices, grid),
    },
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="gpubench")
def main() -> None:
    """Declare benchmarks of Numba kernels (CUDA and CPU) against NumPy, on airspeed velocity.

    Suites are YAML files in suites/. Measure with `asv run`, then write the report with
    `gpubench report`. `gpubench init` starts a new project.

    \b
    Shell completion:
      bash  eval "$(_GPUBENCH_COMPLETE=bash_source gpubench)"
      zsh   eval "$(_GPUBENCH_COMPLETE=zsh_source gpubench)"
      fish  _GPUBENCH_COMPLETE=fish_source gpubench | source
    """
    if conflict := describe_conflict():
        ERR.print(f"gpubench: {conflict}")
