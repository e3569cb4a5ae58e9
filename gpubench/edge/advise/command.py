"""`gpubench advise`: which implementation to use, and where."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from gpubench.cli import options
from gpubench.cli.console import errors_first
from gpubench.cli.reading import read_table


@click.command()
@click.argument("target", metavar="NAME", type=options.SuiteName())
@click.option(
    "-a",
    "axes",
    multiple=True,
    metavar="NAME=VALUE",
    help="The size, measured or not, and parameters: -a n=50000000 -a dtype=float32. With "
    "--verify, keep these values.",
)
@click.option(
    "--calls", type=click.IntRange(min=1), default=1, show_default=True, help="How many are made."
)
@click.option(
    "--from",
    "source",
    type=click.Choice(["host", "device"]),
    default="host",
    show_default=True,
    help="Where the arrays are, and the results are wanted.",
)
@click.option("--warm", is_flag=True, help="The process runs: nothing is started or compiled.")
@click.option("--cached", is_flag=True, help="What is compiled is on disk already.")
@click.option(
    "--have",
    metavar="DEVICES",
    help="Only these: cpu,cuda:0,dask:8 (up to 8 workers).",
)
@click.option("--cost", type=click.Path(path_type=Path), help="YAML: prices of an hour by device.")
@click.option(
    "--measure", is_flag=True, help="Measure the size that is asked for now, beside the prediction."
)
@click.option("--verify", is_flag=True, help="Hide sizes, predict them, and measure them.")
@options.preset
@options.where
@click.option("--samples", type=click.IntRange(min=1), help="Measured now, of each time.")
@options.results
@options.suites
@options.machine
@options.environment
@options.json
def advise(
    target: str,
    axes: tuple[str, ...],
    calls: int,
    source: str,
    warm: bool,
    cached: bool,
    have: str | None,
    cost: Path | None,
    measure: bool,
    verify: bool,
    preset: str | None,
    where: str | None,
    samples: int | None,
    results: Path,
    suites: Path,
    machine: str | None,
    environment: str | None,
    as_json: bool,
) -> None:
    """Rank what gets a result fastest, for any size.

    NAME is a kernel (SUITE::KERNEL, or KERNEL alone where one suite has it), or a suite of one. It
    adds what is paid until the result is there: the start of a process, compilation, copies and
    calls, each estimated between the sizes that were measured (`asv run`), with an interval. It
    ranks nothing that is not known within a factor of four, and says what measures it.

    --verify hides every second size, predicts them from the rest, measures them on this machine,
    and keeps how wrong that was beside the results. A kernel whose intervals held less than 90 %
    gets no ranking. Exit code 1 where one did.
    """
    from gpubench.edge.advise import answering
    from gpubench.edge.advise.advice import Ask, Process
    from gpubench.report.site import Site

    process: Process = "warm" if warm else "cached" if cached else "fresh"
    had = tuple(filter(None, (one.strip() for one in (have or "").split(","))))
    with errors_first(), closing(read_table(results, suites)) as table:
        site = Site(table)
        there = site.histories_of_first_branch
        histories = [one for one in there if one.setup.fits(machine, environment)]
        plan = answering.Measuring(target, preset, where, samples)
        if verify:
            history = answering.find_history_of_here(histories)
            answering.verify(plan.find_jobs(axes), site, history, as_json)
            return
        ask = Ask({}, calls, source == "host", process, had)
        values, prices = answering.read_values(axes), answering.read_prices(cost)
        question = answering.Question(target, values, ask, prices, plan if measure else None)
        answers = answering.answer_question(question, site, histories)
    (answering.show_json if as_json else answering.show)(question, answers)
