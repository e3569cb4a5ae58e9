"""`gpubench advise`: which implementation to use, where, and with how many workers."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from gpubench.cli import options
from gpubench.cli.console import OUT, print_json
from gpubench.cli.planning import chosen_cases
from gpubench.cli.reading import read_table
from gpubench.errors import GpubenchError


@click.command()
@click.argument("target", metavar="SUITE::KERNEL")
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
    help="Only these: cpu,cuda:0,dask:8 (up to 8 workers; 8 are estimated where fewer were "
    "measured).",
)
@click.option("--cost", type=click.Path(path_type=Path), help="YAML: prices of an hour by device.")
@click.option(
    "--refresh",
    is_flag=True,
    help="First measure some sizes of each again, to know how fast the machine is now.",
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
    refresh: bool,
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
    """Say what gets a result fastest, for a size that may not have been measured.

    It adds what is paid until the result is there: the start of a process, compilation, copies and
    calls, each estimated between the sizes that were measured (`asv run`), with an interval. Beyond
    these it says that it extrapolates.

    --verify hides every second size and the largest number of workers, predicts them from the rest,
    measures them on this machine, and keeps how wrong that was beside the results. A kernel whose
    intervals held less than 90 % gets no advice. Exit code 1 where one did.

    The cases to measure, with --refresh and --verify, are those of a --preset.
    """
    from gpubench.analysis import advice
    from gpubench.analysis.estimates import CURVES
    from gpubench.cli import advising
    from gpubench.measure.direct import jobs
    from gpubench.report.exports import plain
    from gpubench.report.site import Site, kernel_label
    from gpubench.tables.advice import advice_lines

    with closing(read_table(results, suites)) as table:
        site = Site(table)
        there = site.histories_of_first_branch
        histories = [one for one in there if one.setup.fits(machine, environment)]
        work = None
        if verify or refresh:
            work = jobs(chosen_cases([target], preset, where, axes if verify else ()), samples)
            histories = [advising.history_of_here(histories)]
            if verify:
                advising.verify(work, site, histories[0], as_json)
                return
        prices = advising.read_prices(cost)
        key = advising.kernel_asked(target, site, histories)
        asked = advising.values_asked(axes)
        stored = advising.stored_times(key, site, histories)
        label = kernel_label(key)
        timed = [row for _, rows in stored for row in rows if row.name.time in CURVES]
        sizes = advising.sizes_asked(asked, timed, label)
        ways, notes = advising.trusted_ways(key, site, stored, asked, [*sizes], work is not None)
    if work is not None:
        ways, words = advising.refreshed_ways(ways, timed, [*sizes], work)
        notes.append(words)
    ask = advice.Ask(
        sizes,
        calls,
        source == "host",
        "warm" if warm else "cached" if cached else "fresh",
        tuple(filter(None, (one.strip() for one in (have or "").split(",")))),
        prices.per_hour,
    )
    advices = advice.advise(ways, ask)
    if not advices:
        raise GpubenchError(f"{label}: nothing is left of what was measured; see --have and -a")
    if as_json:
        content = {"kernel": label, "sizes": sizes, "calls": calls, "from": source}
        content |= {"process": ask.process, "currency": prices.currency, "notes": notes}
        print_json(content | {"advice": list(map(plain, advices))})
        return
    several = len({way.place for way in ways}) > 1
    for one in advices:
        for line in advice_lines(one, ask, label, prices.currency, several):
            OUT.print(line)
    for note in notes:
        OUT.print(note)
