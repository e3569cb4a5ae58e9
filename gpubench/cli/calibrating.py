"""`gpubench calibrate`: how much times of this machine differ from one run to the next."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import click

from gpubench.cli import options
from gpubench.cli.console import ERR, OUT, print_json, watched
from gpubench.cli.options import RESULTS
from gpubench.errors import Exit, GpubenchError
from gpubench.links import stay_inside

if TYPE_CHECKING:  # a command imports what measures only when it does: --help answers at once
    from gpubench.results import Row

RUN_SECONDS = 600.0
"""Seconds that one run of all control kernels may take; some ten on two cores."""

VERSIONS = ("gpubench", "python", "numpy", "numba", "cpu", "cpu_threads", "os")
"""Facts that stand with a calibration: what differs makes it another machine in all but name."""


@click.command()
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True, max=24 * 60),
    default=2.0,
    show_default=True,
    help="How long to measure; more runs tell more.",
)
@options.path("--results", RESULTS, "asv's results directory, which keeps what was found.")
@options.json
@click.option("--one-run", is_flag=True, hidden=True)
def calibrate(minutes: float, results: Path, as_json: bool, one_run: bool) -> None:
    """Measure how much times of this machine differ between runs.

    Control kernels, with NumPy and Numba, on one thread and on several, in cache and over memory,
    are measured in one new process after another. What is found is kept beside the results of this
    machine, and `gpubench compare` of two stored runs asks it. Leave the machine alone meanwhile.
    Ctrl-C ends it with the runs that there are.
    """
    if one_run:
        _hand_over_one_run()
        return
    from gpubench.asv_config import machine_name
    from gpubench.measure.disturbance import busy_since, core_use
    from gpubench.measure.recorder import run_facts
    from gpubench.report import text
    from gpubench.results.calibration import MIN_RUNS, calibrate_kinds, write_calibration
    from gpubench.tables.calibration import calibration_report, calibration_rows

    stay_inside(results)
    before = core_use()
    facts = run_facts()
    if warning := busy_since(before):
        ERR.print(f"gpubench: {warning}")
    runs: list[list[Row]] = []
    end = monotonic() + 60 * minutes
    with watched(0, "measuring control kernels") as waiting:
        for run in _runs(end):
            runs.append(run)
            waiting.advance(f"measuring control kernels, {len(runs)} runs", 0)
    kinds = calibrate_kinds(runs)
    if not kinds:
        why = "other work on the machine disturbed them"
        if len(runs) < MIN_RUNS:
            why = f"it needs {MIN_RUNS}"
        raise GpubenchError(
            f"after {text.plural(len(runs), 'run')} of the control kernels nothing is known or "
            f"kept: {why}; leave the machine alone, or give more --minutes"
        )
    versions = {name: facts.get(name) for name in VERSIONS}
    path = write_calibration(results, machine_name(), kinds, versions)
    if as_json:
        print_json({"path": path, "kinds": calibration_rows(kinds), "versions": versions})
    else:
        OUT.print(*calibration_report(kinds), sep="\n")
        click.echo(path)
    if waiting.interrupted:
        sys.exit(Exit.INTERRUPTED)


def _runs(end: float) -> Iterator[list[Row]]:
    """Yield the rows of one run after another until then (``time.monotonic``), two at least."""
    runs = 0
    longest = 0.0
    while runs < 2 or monotonic() + longest < end:
        began = monotonic()
        command = [sys.executable, "-P", "-m", "gpubench", "calibrate", "--one-run"]
        try:
            done = subprocess.run(command, capture_output=True, timeout=RUN_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise GpubenchError(
                f"the control kernels took longer than {RUN_SECONDS:g} s: what else runs here?"
            ) from error
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip().splitlines()[-5:]
            raise GpubenchError("\n".join(["the control kernels cannot be measured:", *words]))
        rows: list[Row] = pickle.loads(done.stdout)  # of the process started above
        yield rows
        runs += 1
        longest = max(longest, monotonic() - began)


def _hand_over_one_run() -> None:
    """Measure the control kernels once and write their rows to who started this process."""
    from gpubench.measure import direct
    from gpubench.plan.plan import build_plan
    from gpubench.suite.loading import load_suites
    from gpubench.tables.times import rows_of

    controls = Path(direct.__file__).with_name("controls.yaml")
    cases = [*build_plan(load_suites([controls], None), gpu_count=0).cases()]
    work = [job for job in direct.jobs(cases) if job.time == "kernel"]
    with direct.bench({case.backend for case in cases}) as take:
        measured = dict(direct.measure(work, take))
    rows = rows_of(measured[place] for place in sorted(measured))
    sys.stdout.buffer.write(pickle.dumps(rows))
    sys.stdout.buffer.flush()
