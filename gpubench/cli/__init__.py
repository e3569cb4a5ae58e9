"""The command line: arguments to calls to an exit code. The only package that prints and exits."""

from __future__ import annotations

import click

from gpubench import __version__
from gpubench.cli import measuring, querying, reading, suites, verifying


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


for _command in (
    *suites.COMMANDS,
    *verifying.COMMANDS,
    *measuring.COMMANDS,
    *reading.COMMANDS,
    *querying.COMMANDS,
):
    main.add_command(_command)
