"""`gpubench time` and `gpubench verify`: measure or verify at once, without asv and commits."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpubench.cli import options
from gpubench.cli.console import ERR, OUT, interruptible, narrated, print_json, watched
from gpubench.cli.options import SUITES, default_results
from gpubench.cli.planning import cases_to_order, chosen_cases, chosen_plan, has_preset
from gpubench.errors import Exit, GpubenchError
from gpubench.links import stay_inside
from gpubench.names import CPU
from gpubench.suite.folder import asked_folder

if TYPE_CHECKING:  # a command imports what measures only when it does: --help answers at once
    from gpubench.analysis.declared_work import KernelDoubts
    from gpubench.analysis.headline import KernelKey
    from gpubench.measure.cpu_counting import CounterName
    from gpubench.measure.direct import Job, Measured, Twins
    from gpubench.measure.verify_cases import Manner, Verified
    from gpubench.plan.case import Case
    from gpubench.plan.trying import Trial
    from gpubench.results import Ratio, Row


@click.command()
@options.names
@options.preset
@options.where
@options.library
@options.axes
@click.option("--samples", type=click.IntRange(min=1), help="Samples of each time, in all rounds.")
@click.option("--control", is_flag=True, help="Measure each case against itself instead.")
@click.option(
    "--comparisons",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="With --control: how many.",
)
@options.json
def time(
    names: tuple[str, ...],
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    samples: int | None,
    control: bool,
    comparisons: int,
    as_json: bool,
) -> None:
    """Measure at once, without asv and without commits.

    NAME is a suite, a kernel (SUITE::KERNEL, or KERNEL alone where one suite has it), or a suite
    file; none are all, which asks first where no --preset is given. Baselines of the cases that are
    kept are measured too. Ctrl-C ends it with what there is. Exit code 1 where a case failed or is
    wrong.

    --control measures implementations against themselves and prints how often this machine sees a
    difference where there is none.
    """
    from gpubench.measure.disturbance import busy_since, core_use

    before = core_use()
    kept = chosen_cases(names, preset, where, axes)
    if not names and preset is None:
        _ask_for_all(len(kept))
    if warning := busy_since(before):
        ERR.print(f"gpubench: {warning}")
    if control:
        _control(kept, comparisons, samples, as_json)
    else:
        _time(kept, samples, as_json)


def _ask_for_all(count: int) -> None:
    """Ask whether to measure all suites; raise ``GpubenchError`` where nobody can answer."""
    if not sys.stdin.isatty():
        raise GpubenchError(
            f"no name is given, and all {count:,} cases may take hours; name suites or kernels, or "
            f"choose a preset: gpubench time --preset {SMOKE}"
        )
    click.confirm(f"Measure all {count:,} cases?", abort=True, err=True)


def measured_now(work: Sequence[Job], what: str) -> tuple[list[Row], bool]:
    """Rows of these jobs, measured now, and whether Ctrl-C ended that."""
    from gpubench.measure.direct import bench, measure, turns_of

    measured: dict[int, Measured] = {}
    backends = {job.case.backend for job in work}
    with watched(turns_of(work), what) as waiting, bench(backends, waiting.warned) as take:
        from gpubench.tables.times import rows_of  # while a process gets ready, on another core

        def shown(job: Job) -> Measured:
            waiting.advance(f"{job.case.group.title} {job.case.identity} {job.time}", 0)
            return take(job)

        for index, outcome in measure(work, shown):
            measured[index] = outcome
            waiting.advance(None, 1)
    rows = rows_of(measured[index] for index in sorted(measured))
    return rows, waiting.interrupted


def _time(cases: Sequence[Case], samples: int | None, as_json: bool) -> None:
    """Measure these cases and their baselines, and print what there is."""
    from gpubench.measure.direct import jobs

    rows, interrupted = measured_now(jobs(cases, samples), "measuring")
    from gpubench.measure.recorder import run_facts
    from gpubench.statuses import FAILURES
    from gpubench.tables import times

    doubts = _stored_doubts(rows)
    if as_json:
        listed = [times.time_row(row, doubts) for row in rows]
        print_json({"facts": run_facts(), "cases": listed})
    else:
        for part in times.report(rows, OUT.rich.width if OUT.is_terminal else None, doubts):
            OUT.print(part)
    if interrupted:
        sys.exit(Exit.INTERRUPTED)
    if any(row.status in FAILURES for row in rows):
        sys.exit(Exit.FOUND)


def _stored_doubts(rows: Sequence[Row]) -> Mapping[KernelKey, KernelDoubts]:
    """Return what stored counts say against the work that suites declare; nothing where no rate is
    shown or nothing is stored."""
    from gpubench.analysis.declared_work import find_doubts
    from gpubench.project.opening import project_table

    results = default_results()
    if not (results.is_dir() and any(row.bytes_per_second or row.flops_per_second for row in rows)):
        return {}
    try:
        stay_inside(results)
        with closing(project_table(results, Path.cwd(), asked_folder(SUITES))[0]) as table:
            return find_doubts(table)
    except GpubenchError:  # of stored results, which were not asked for; `gpubench report` says it
        return {}


def _control(cases: Sequence[Case], comparisons: int, samples: int | None, as_json: bool) -> None:
    """Measure cases against themselves and print how often the verdict is false."""
    from gpubench.analysis.control import false_alarms
    from gpubench.measure.direct import bench, twins
    from gpubench.measure.recorder import run_facts
    from gpubench.tables import times

    compared: list[tuple[Twins, Ratio | None]] = []
    backends = {case.backend for case in cases}
    with watched(comparisons) as waiting, bench(backends, waiting.warned) as take:
        for pair in twins(cases, comparisons, take, samples):
            compared.append((pair, times.control_speedup(pair)))
            waiting.advance(f"{pair.case.group.title} {pair.case.identity}", 1)
    alarms = false_alarms(ratio for _, ratio in compared if ratio)
    if as_json:
        content = {**asdict(alarms), "rate": alarms.rate, "facts": run_facts()}
        content["cases"] = times.control_rows(compared)
        print_json(content)
    else:
        OUT.print(times.control_table(compared))
        OUT.print(times.control_line(alarms))
    if waiting.interrupted:
        sys.exit(Exit.INTERRUPTED)


SMOKE = "smoke"
"""The preset that is taken in software where none is named."""


@click.command()
@options.names
@options.preset
@options.where
@options.library
@options.axes
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
@click.option(
    "--declared", "is_declared", is_flag=True, help="Leave out sizes beside the declared ones."
)
@options.json
def verify(
    names: tuple[str, ...],
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    orders: int,
    sanitize: bool,
    is_declared: bool,
    as_json: bool,
) -> None:
    """Compare every implementation with its baseline. Takes no time.

    Each kernel is computed at sizes beside the declared ones too, where -a names none: one above
    its smallest size, a prime, and 1. An implementation that raises there does not take the size;
    one that gives wrong results is wrong.

    NAME is a suite, a kernel (SUITE::KERNEL, or KERNEL alone where one suite has it), or a suite
    file; none are all. CUDA runs on the GPU where there
    is one, else on softcuda, a CUDA device in software; with --orders or --sanitize always there,
    and always where GPUBENCH_SOFTCUDA=1 is set. As it is slow, the preset `smoke` is taken there
    where none is named. Exit code 1 where something is wrong.
    """
    from gpubench.backends.devices import gpu_count, known_gpus, no_gpu_reason
    from gpubench.backends.software import NAME, counts_wanted, device_count, requested
    from gpubench.measure import verify_cases
    from gpubench.measure.recorder import run_facts
    from gpubench.plan.beside import cases_beside
    from gpubench.plan.rules import selected
    from gpubench.tables import counts, verdicts

    only_in_software = orders > 1 or sanitize
    in_software = requested() or only_in_software or not gpu_count()
    count = device_count() if in_software else gpu_count()
    if in_software:
        preset = preset or _quick_preset(names)
    plan = chosen_plan(names, preset, axes, count)
    cases = selected(plan.cases(), where, axes)
    beside = [] if axes or is_declared else cases_beside(plan, cases)
    tried = verify_cases.orders(orders) if in_software else ()
    is_counted = in_software and not sanitize and counts_wanted()
    manner = verify_cases.Manner(in_software, tried, sanitize, is_counted)
    every, is_interrupted = _verified_now([*cases, *beside], manner, "verifying")
    rows = every[: len(cases)]
    undeclared = verdicts.Undeclared.of(every[len(cases) :], rows)
    cuda = verdicts.CudaPlace(
        NAME if in_software else ", ".join(gpu.name for gpu in known_gpus()),
        None if only_in_software or requested() else no_gpu_reason(),
        preset,
        tried,
        sanitize,
    )
    if as_json:
        listed = [counts.case_row(*row, lines=False) for row in rows]
        others = [verdicts.case_row(*row) for row in undeclared.taken]
        print_json({**asdict(cuda), "facts": run_facts(), "cases": listed, "undeclared": others})
    else:
        OUT.print(*verdicts.report(rows, cuda, undeclared), sep="\n")
    _exit_with([*rows, *undeclared.wrong], is_interrupted)


@click.command()
@options.names
@options.preset
@options.where
@options.library
@options.axes
@click.option(
    "--lines",
    is_flag=True,
    help="Show the code too, with the counts of every line and, where nvdisasm is installed, its "
    "instructions of SASS.",
)
@click.option(
    "--hints",
    is_flag=True,
    help="Name lines that cost more than they must, with two counts, the cause and one change: at "
    "most three a kernel.",
)
@click.option(
    "--try",
    "tried",
    multiple=True,
    metavar="NAME=VALUES",
    help="Count each case with these values of an axis too, declared or not, and show which counts "
    "and hints change: --try block=32x8 --try padding=1. Repeatable; each is tried alone.",
)
@click.option(
    "--order",
    "ordered",
    multiple=True,
    metavar="NAME",
    help="With --gpu: order cases that differ in this axis alone (block, grid, a parameter) by "
    "their counts, so that a fifth of them is left to measure. Repeatable: several axes together.",
)
@click.option(
    "--gpu",
    "gpu_names",
    multiple=True,
    metavar="NAME",
    help="Show the occupancy on this GPU, and the least time that the counts allow there, a bound: "
    "T4, A100, 'RTX 4090', H100, B200, or a file that describes one. Repeatable.",
)
@click.option(
    "--cpu",
    is_flag=True,
    help="Count what Numba's code does on the CPU instead: operations, vectors, bytes, calls. With "
    "--lines by line, and why LLVM has not vectorized a loop.",
)
@click.option(
    "--machine",
    is_flag=True,
    help="With --cpu: count instructions of x86-64 that Numba's code executes too.",
)
@click.option(
    "--caches",
    is_flag=True,
    help="With --cpu: count lines of 64 bytes that Numba's code touches too, and misses of a "
    "modelled L1 (32 KiB) and L2 (1 MiB).",
)
@click.option(
    "--callgrind",
    is_flag=True,
    help="With --cpu: count instructions of NumPy and Numba too, with callgrind or a counter.",
)
@options.json
def count(
    names: tuple[str, ...],
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    lines: bool,
    hints: bool,
    tried: tuple[str, ...],
    ordered: tuple[str, ...],
    gpu_names: tuple[str, ...],
    cpu: bool,
    machine: bool,
    caches: bool,
    callgrind: bool,
    as_json: bool,
) -> None:
    """Count exactly what kernels do: CUDA without a GPU, or the CPU.

    Sectors, wavefronts, lanes, instructions; no time is taken.

    Each case runs once on softcuda, a CUDA device in software, also where there is a GPU, and is
    compared with its baseline; the numbers are the same every time. NAME is a suite, a kernel
    (SUITE::KERNEL, or KERNEL alone where one suite has it), or a suite file; none are all. The
    preset `smoke` is taken where none is named. Exit code 1 where something is wrong.
    """
    from gpubench.backends.devices import is_cuda
    from gpubench.backends.software import NAME, device_count
    from gpubench.measure import verify_cases
    from gpubench.measure.recorder import run_facts
    from gpubench.tables import counts, orders, verdicts
    from gpubench.tables import trials as trial_tables
    from gpubench.work.gpus import load_gpu

    gpus = [*map(load_gpu, gpu_names)]
    if cpu and (tried or ordered):
        raise GpubenchError("--try and --order count CUDA kernels: leave --cpu out")
    if ordered and not gpus:
        raise GpubenchError("the order of --order depends on the GPU: give --gpu too")
    if ordered and preset is None:
        preset = _quick_preset(names)
        chosen = cases_to_order(names, preset, where, axes, ordered, device_count())
    else:
        preset = preset or _quick_preset(names)
        chosen = chosen_cases(names, preset, where, axes, device_count())
    if cpu:
        on_cpu = [case for case in chosen if case.device == CPU]
        also: dict[CounterName, bool] = {"machine": machine, "caches": caches}
        counters = [name for name, is_asked in also.items() if is_asked]
        _count_on_cpu(
            on_cpu, preset, lines=lines, counters=counters, callgrind=callgrind, as_json=as_json
        )
        return
    if callgrind or machine or caches:
        raise GpubenchError("--callgrind, --machine and --caches count on the CPU: give --cpu too")
    cases = [case for case in chosen if is_cuda(case.device)]
    if not cases:
        raise GpubenchError(
            "no case that is named runs on a CUDA device, and only CUDA kernels are counted; "
            "`gpubench plan` shows where each runs, and --cpu counts instructions there"
        )
    trials = _trials(cases, names, preset, where, axes, tried)
    known = {(case.group.title, case.identity) for case in cases}
    after = {(one.after.group.title, one.after.identity): one.after for one in trials}
    others = [case for name, case in after.items() if name not in known]
    manner = verify_cases.Manner(in_software=True, count=True, code=lines or bool(gpus))
    every, is_interrupted = _verified_now([*cases, *others], manner, "counting")
    rows = every[: len(cases)]
    compared = trial_tables.compare_trials(trials, every)
    in_order = orders.order_cases(rows, ordered, gpus) if ordered else []
    place = verdicts.CudaPlace(NAME, None, preset, (), sanitize=False)
    if as_json:
        listed = [counts.case_row(*row, gpus, lines=lines, hints=hints) for row in rows]
        shown = {"tried": trial_tables.trial_rows(compared)} if tried else {}
        shown |= {"ordered": orders.order_rows(in_order)} if ordered else {}
        print_json({"preset": preset, "facts": run_facts(), "cases": listed, **shown})
    else:
        OUT.print(*counts.report(rows, place, gpus, lines=lines, hints=hints), sep="\n")
        if compared:
            OUT.print(*trial_tables.report(compared), sep="\n")
        if in_order:
            OUT.print(*orders.report(in_order), sep="\n")
    _exit_with(every, is_interrupted)


def _trials(
    cases: Sequence[Case],
    names: Sequence[str],
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    tried: Sequence[str],
) -> list[Trial]:
    """Return what ``--try`` asks for; what ``-a`` keeps of that axis are the values before."""
    from gpubench.backends.devices import is_cuda
    from gpubench.backends.software import device_count
    from gpubench.plan.trying import axis_of, pair_up, without_axis

    trials: list[Trial] = []
    for text in tried:
        kept = *without_axis(axes, axis_of(text)), text
        others = chosen_cases(names, preset, where, kept, device_count())
        trials += pair_up(cases, [case for case in others if is_cuda(case.device)], text)
    return trials


def _count_on_cpu(
    cases: Sequence[Case],
    preset: str | None,
    *,
    lines: bool,
    counters: Sequence[CounterName],
    callgrind: bool,
    as_json: bool,
) -> None:
    """Verify these cases, count what the right cases do, and print it."""
    from gpubench.measure.cpu_counting import is_counted_on_cpu, with_more_counts
    from gpubench.measure.instructions import count_instructions_of
    from gpubench.measure.recorder import run_facts
    from gpubench.measure.verify_cases import Manner
    from gpubench.tables import cpu_counts

    if not cases:
        raise GpubenchError("none of these cases runs on the CPU; `gpubench plan` shows where")
    manner = Manner(count_on_cpu=True, code=lines)
    rows, is_interrupted = _verified_now(cases, manner, "counting")
    right = [case for case, outcome in rows if outcome.status == "right"]
    asked = [case for case in right if is_counted_on_cpu(case)]
    for counter in counters if not is_interrupted else ():
        manner = Manner(count_on_cpu=True, counter=counter)
        others, is_interrupted = _verified_now(asked, manner, f"counting {counter}")
        rows = with_more_counts(rows, others, counter)
    counted = {}
    if callgrind and not is_interrupted:
        with interruptible() as interrupted, narrated("counting"):
            counted = dict(zip(map(id, right), count_instructions_of(right), strict=True))
        is_interrupted = bool(interrupted)
    shown = [(case, outcome, counted.get(id(case))) for case, outcome in rows]
    if as_json:
        listed = [cpu_counts.case_row(*row) for row in shown]
        print_json({"preset": preset, "facts": run_facts(), "cases": listed})
    else:
        OUT.print(*cpu_counts.report(shown, lines=lines), sep="\n")
    _exit_with(rows, is_interrupted)


def _quick_preset(names: Sequence[str]) -> str | None:
    """Return ``SMOKE`` where one of the suites has it."""
    return SMOKE if has_preset(names, SMOKE) else None


def _verified_now(
    cases: Sequence[Case], manner: Manner, what: str
) -> tuple[list[tuple[Case, Verified]], bool]:
    """Return these cases with what became of each, and whether Ctrl-C ended that."""
    from gpubench.measure import verify_cases

    outcomes: dict[int, Verified] = {}
    with watched(len(cases), what) as work:
        for index, outcome in verify_cases.verified(cases, manner, work.warned):
            outcomes[index] = outcome
            work.advance(f"{cases[index].group.title} {cases[index].identity}", 1)
    interrupted = verify_cases.Verified("interrupted", "Ctrl-C came before its outcome")
    rows = [(case, outcomes.get(index, interrupted)) for index, case in enumerate(cases)]
    return rows, work.interrupted


def _exit_with(rows: Sequence[tuple[Case, Verified]], is_interrupted: bool) -> None:
    """Exit with the code of what became of these cases, if it is not 0."""
    from gpubench.statuses import FAILURES

    if is_interrupted:
        sys.exit(Exit.INTERRUPTED)
    if any(outcome.status in FAILURES for _, outcome in rows):
        sys.exit(Exit.FOUND)
