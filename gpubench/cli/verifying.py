"""`gpubench verify`: what implementations compute, on a GPU or without one, and no times."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from gpubench.cli.console import INTERRUPTED, OUT, print_json, watched
from gpubench.cli.options import axes_option, json_option, preset_option, where_option
from gpubench.cli.planning import chosen_cases, loaded_suites, suite_and_kernel

SMOKE = "smoke"
"""The preset that is taken in software where none is named."""


@click.command()
@click.argument("targets", metavar="[SUITE[::KERNEL]]...", nargs=-1)
@preset_option
@where_option
@axes_option
@click.option(
    "--orders",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Orders of threads and blocks to run in, on softcuda: ascending, descending, then random.",
)
@click.option(
    "--sanitize", is_flag=True, help="Look for races and uninitialised reads too, on softcuda."
)
@json_option
def verify(
    targets: tuple[str, ...],
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    orders: int,
    sanitize: bool,
    as_json: bool,
) -> None:
    """Compute every implementation and compare it with its baseline. Takes no time.

    SUITE is a file, or the name of one in suites/; none are all. CUDA runs on the GPU where there
    is one, else on softcuda, a CUDA device in software; with --orders or --sanitize always there,
    and always where GPUBENCH_SOFTCUDA=1 is set. As it is slow, the preset `smoke` is taken there
    where none is named. Exit code 1 where something is wrong.
    """
    from gpubench.backends.devices import gpu_count, known_gpus, no_gpu_reason
    from gpubench.backends.software import NAME, device_count, requested
    from gpubench.measure import verifying
    from gpubench.measure.recorder import run_facts
    from gpubench.tables import verdicts

    only_in_software = orders > 1 or sanitize
    in_software = requested() or only_in_software or not gpu_count()
    count = device_count() if in_software else gpu_count()
    if in_software and preset is None:
        paths = tuple(dict.fromkeys(suite_and_kernel(target)[0] for target in targets))
        if any(SMOKE in loaded.suite.presets for loaded in loaded_suites(paths, None)):
            preset = SMOKE
    cases = chosen_cases(targets, preset, where, axes, count)
    tried = verifying.orders(orders) if in_software else ()
    manner = verifying.Manner(in_software, tried, sanitize)
    outcomes = {}
    with watched(len(cases), "verifying") as work:
        for index, outcome in verifying.verified(cases, manner, work.warned):
            outcomes[index] = outcome
            work.advance(f"{cases[index].group.title} {cases[index].identity}", 1)
    rows = [(cases[index], outcomes[index]) for index in sorted(outcomes)]
    cuda = verdicts.CudaPlace(
        NAME if in_software else ", ".join(gpu.name for gpu in known_gpus()),
        None if only_in_software or requested() else no_gpu_reason(),
        preset,
        tried,
        sanitize,
    )
    if as_json:
        listed = [verdicts.case_row(*row) for row in rows]
        print_json({**asdict(cuda), "facts": run_facts(), "cases": listed})
    else:
        OUT.print(*verdicts.report(rows, cuda), sep="\n")
    if work.interrupted:
        sys.exit(INTERRUPTED)
    if any(outcome.status in verdicts.WRONG for outcome in outcomes.values()):
        sys.exit(1)
