"""`gpubench profile`: one case under a profiler of the user's."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click

from gpubench.cli import options
from gpubench.cli.console import ERR, echo
from gpubench.cli.planning import planned
from gpubench.environment import environment
from gpubench.errors import Exit, GpubenchError

PROGRAM = "gpubench.measure.profiled"

HINTS = {
    "ncu": '`ncu --nvtx --nvtx-include "gpubench/"` profiles the launches of the runs alone',
    "nsys": "`nsys profile --trace=cuda,nvtx --capture-range=nvtx --nvtx-capture=gpubench` records "
    "the runs alone",
    "perf": "`perf record -g` samples the whole process; more --runs make the rest of it small",
    "valgrind": "`valgrind --tool=cachegrind` counts the whole process; take few --runs of a small "
    "case",
    "py-spy": "`py-spy record --native -o runs.svg --` takes the program after its own `--`",
}
"""By the profiler's name, how it tells the runs from all else."""


@click.command()
@click.argument("case")
@click.argument("profiler", metavar="-- PROFILER [ARGUMENT]...", nargs=-1, type=click.UNPROCESSED)
@options.preset
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    help="How often it runs (default: 10 times on a GPU, 2 seconds on the CPU).",
)
@click.option("--show", is_flag=True, help="Show the command instead, and what it would do.")
def profile(
    case: str, profiler: tuple[str, ...], preset: str | None, runs: int | None, show: bool
) -> None:
    """Run one case under a profiler.

    CASE is a line of `gpubench plan --list`. The profiler's command line is yours; what it profiles
    is appended. There the case is drawn, compiled, checked against its baseline and warmed up; then
    it runs, each run alone in the NVTX range `gpubench`.

    \b
    gpubench profile 'suites.saxpy__numba_cuda.time_kernel n=65536 block=256' -- \\
      ncu --set full --nvtx --nvtx-include gpubench/

    Where the profiler or the case's GPU is missing, the command is shown, with exit code 2. Else
    the exit code is the profiler's.
    """
    from gpubench.backends.devices import gpu_count, is_cuda, no_gpu_reason

    if not profiler:
        raise click.UsageError(
            f"give a profiler after --, such as: gpubench profile {shlex.quote(case)} -- "
            "ncu --set full"
        )
    found = planned((), preset).find(case)
    program = [sys.executable, "-m", PROGRAM]
    program += ["--preset", preset] if preset else []
    program += ["--runs", str(runs)] if runs else []
    command = [*profiler, *program, case]
    missing = None
    if shutil.which(profiler[0]) is None:
        missing = f"{profiler[0]} is not installed here"
    elif is_cuda(found.device) and not gpu_count():
        missing = no_gpu_reason() or "there is no GPU here"
    if show or missing:
        _show(command, missing)
        sys.exit(Exit.REFUSED if missing and not show else 0)
    from gpubench.measure.caches import caches_of_sources

    # nsys heeds ranges by registered names alone, unless this is set; others do not read it.
    with caches_of_sources(), environment({"NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"}):
        try:
            sys.exit(subprocess.run(command).returncode)
        except OSError as error:
            raise GpubenchError(f"{profiler[0]} does not start: {error.strerror}") from error


def _show(command: list[str], missing: str | None) -> None:
    """Print a command and what it does; why it is not run, on standard error."""
    if missing:
        ERR.print(f"gpubench: nothing was profiled: {missing}. This would run:")
    echo(shlex.join(command))
    ERR.print(
        "It draws the case's inputs, compiles it and compares its results with the baseline's. "
        "Then it warms it up and runs it, each run alone in the NVTX range `gpubench`."
    )
    if hint := HINTS.get(Path(command[0]).name):
        ERR.print(f"{hint}.")
