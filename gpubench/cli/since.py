"""`gpubench since`: the commit that made a case slower or faster."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import click

from gpubench.cli import options
from gpubench.cli.comparing import PairJudge, name_of, sort_out
from gpubench.cli.console import OUT, echo, interruptible, narrated, print_json
from gpubench.cli.planning import declared_cases
from gpubench.errors import Exit, GpubenchError

if TYPE_CHECKING:  # a command imports what measures only when it does: --help answers at once
    from gpubench.analysis.bisection import Bisection
    from gpubench.measure.bisecting import LineCommit
    from gpubench.measure.direct import Job
    from gpubench.measure.two_commits import TwoCommits
    from gpubench.plan.case import Case
    from gpubench.tables.since import SinceReport


@click.command()
@options.names
@click.option("--good", required=True, metavar="A", help="The older commit, before the change.")
@click.option("--bad", required=True, metavar="B", help="The newer commit, behind the change.")
@click.option(
    "--sure",
    type=click.FloatRange(0.5, 0.9999),
    default=0.95,
    show_default=True,
    help="Probability at which a commit is the answer.",
)
@click.option(
    "--time",
    "seconds",
    default="30m",
    show_default=True,
    metavar="DURATION",
    callback=options.read_duration,
    help="How long at most, such as 10m or 1h; installing the two ends is extra.",
)
@click.option(
    "--counts",
    is_flag=True,
    help="Search by what cases do in place of times: counted once at a commit, without noise.",
)
@options.environment
@options.preset
@options.where
@options.axes
@options.json
def since(
    names: tuple[str, ...],
    good: str,
    bad: str,
    sure: float,
    seconds: float,
    counts: bool,
    environment: str | None,
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Find the commit that made a case slower or faster.

    NAME is a suite or a kernel (SUITE::KERNEL, or KERNEL alone where one suite has it); name as few
    cases as show the change, with --where and -a. asv installs both ends, and processes of both
    take turns until a case surely differs. Then commits between them are measured in turn with the
    good end, each where it tells most, until one commit has the probability --sure. The line of
    commits follows first parents. What cannot be installed or measured is skipped, and the answer
    may be a range.

    With --counts work is counted in place of times: Numba's code on the CPU, and CUDA kernels in
    software. One run of a commit decides, so that a busy machine does not matter, and half of the
    commits are left out at a time. What changes a time and no count is not found so.

    Exit code 1: the ends do not differ, or the time was over. Ctrl-C shows what is known so far.
    """
    from gpubench.measure.bisecting import read_line
    from gpubench.measure.in_turn import jobs_in_turn
    from gpubench.measure.installing import installer_of
    from gpubench.measure.two_commits import sides_of
    from gpubench.tables.since import ends_lines, ends_row, since_lines, since_row

    if not names:
        raise click.UsageError("Missing argument 'NAME': a suite or a kernel")
    cases = declared_cases(names, preset, where, axes)
    command = _command(names, environment, preset, where, axes, counts)
    if counts:
        _search_by_counts(cases, (good, bad), environment, preset, seconds, command, as_json)
        return
    work = jobs_in_turn(cases)
    with ExitStack() as stack:
        say = stack.enter_context(narrated("making environments"))
        event = partial(say, is_event=True)
        installer = stack.enter_context(installer_of(work, environment, preset, event))
        ends = [installer.find_commit(label) for label in (good, bad)]
        line = read_line(installer.repository_path, *ends)
        event(f"{len(line):,} commits from {ends[0][:8]} to {ends[1][:8]}, along first parents")
        bench = stack.enter_context(sides_of(installer, (good, bad)))
        both, *_ = sort_out(work, bench)
        if not both:
            raise GpubenchError(
                f"{good} and {bad} have none of these cases in one version: nothing can be compared"
            )
        search = _Search(bench, both, line, sure, monotonic() + seconds, say)
        with interruptible() as interrupted:
            search.compare_ends()
            search.find_commit()
    report = search.report
    if report is None:
        if as_json:
            print_json(ends_row(search.ends))
        else:
            echo("\n".join(ends_lines(search.ends)))
    elif as_json:
        print_json(since_row(report, command))
    else:
        first, *rest = since_lines(report, command)
        OUT.print(first, style="bold")
        echo("\n".join(rest))
    if interrupted:
        sys.exit(Exit.INTERRUPTED)
    if report is None or not report.is_found:
        sys.exit(Exit.FOUND)


def _search_by_counts(
    cases: Sequence[Case],
    labels: tuple[str, str],
    environment: str | None,
    preset: str | None,
    seconds: float,
    command: str,
    as_json: bool,
) -> None:
    """Find the commit that changed what a case does, and print the answer."""
    from gpubench.cli.count_since import CountSearch
    from gpubench.measure.bisecting import read_line
    from gpubench.measure.counted_commits import CommitCounter, countable_jobs
    from gpubench.measure.installing import installer_of
    from gpubench.tables.count_since import (
        count_ends_lines,
        count_ends_row,
        count_since_lines,
        count_since_row,
    )

    jobs = countable_jobs(cases)
    with ExitStack() as stack:
        say = stack.enter_context(narrated("making an environment"))
        event = partial(say, is_event=True)
        installer = stack.enter_context(installer_of(jobs, environment, preset, event))
        ends = [installer.find_commit(label) for label in labels]
        line = read_line(installer.repository_path, *ends)
        event(f"{len(line):,} commits from {ends[0][:8]} to {ends[1][:8]}, along first parents")
        search = CountSearch(CommitCounter(installer, jobs), jobs, ends[0], line, seconds, say)
        with interruptible() as interrupted:
            search.count_ends()
            search.find_commit()
    report = search.report
    if report is not None:
        if as_json:
            print_json(count_since_row(report, command))
        else:
            first, *rest = count_since_lines(report, command)
            OUT.print(first, style="bold")
            echo("\n".join(rest))
    elif search.ends is not None:
        if as_json:
            print_json(count_ends_row(search.ends))
        else:
            echo("\n".join(count_ends_lines(search.ends)))
    if interrupted:
        sys.exit(Exit.INTERRUPTED)
    if report is None or not report.bisection.is_found:
        sys.exit(Exit.FOUND)


def _command(
    names: Sequence[str],
    environment: str | None,
    preset: str | None,
    where: str | None,
    axes: Sequence[str],
    counts: bool,
) -> str:
    """Return the command with its cases, without its ends."""
    given = (("--environment", environment), ("--preset", preset), ("--where", where))
    options_given = [word for name, value in given if value for word in (name, value)]
    options_given += [word for axis in axes for word in ("-a", axis)]
    options_given += ["--counts"] if counts else []
    return shlex.join(["gpubench", "since", *names, *options_given])


@dataclass
class _Search:
    """A search on its way: what is known when Ctrl-C ends it stays here."""

    bench: TwoCommits
    jobs: Sequence[Job]
    line: Sequence[LineCommit]
    sure: float
    end: float
    """When the time is over, by ``monotonic``."""
    say: Callable[..., None]
    began: float = field(default_factory=monotonic)
    report: SinceReport | None = None

    def __post_init__(self) -> None:
        """Begin with nothing known of the ends."""
        from gpubench.analysis.sequential import Evidence
        from gpubench.tables.since import EndsReport

        self.evidence = Evidence(len(self.jobs))
        self.failures: dict[int, str] = {}
        good, bad = (side.commit for side in self.bench.sides)
        cases = [*zip(map(name_of, self.jobs), self.evidence.cases, strict=True)]
        self.ends = EndsReport(good, bad, cases, self.line, self.failures)

    def compare_ends(self) -> None:
        """Measure both ends in turn until a case surely differs, and all have first pairs."""
        from gpubench.measure.in_turn import measure_in_turn
        from gpubench.report import text

        evidence, seconds = self.evidence, self.end - monotonic()
        measured = measure_in_turn(self.jobs, self.bench, PairJudge(evidence), seconds)
        for pairs, (place, turns) in enumerate(measured, 1):
            failed = [side.record for side in turns.sides if side and side.record.status != "ok"]
            if failed:
                self.failures[place] = f"{failed[0].status}: {failed[0].reason}"
            left = text.duration(max(self.end - monotonic(), 0))
            self.say(f"comparing the two ends: {text.plural(pairs, 'pair')}, {left} left")
            if evidence.sure and evidence.has_first_pairs:
                return

    def find_commit(self) -> None:
        """Search for the commit by the surest case, where one differs."""
        from gpubench.analysis.bisection import Bisection
        from gpubench.measure.bisecting import search_in_turn
        from gpubench.tables.since import SinceReport

        if not self.ends.changed:
            return
        changed = self.ends.changed[0]
        name, evidence = self.ends.cases[changed]
        bisection = Bisection(len(self.line), evidence.prior, self.sure)
        for log in evidence.logs:
            bisection.add(len(self.line) - 1, log)
        reasons: dict[int, str] = {}
        self.report = SinceReport(self.ends, name, bisection, reasons)
        left = self.end - monotonic()
        for step in search_in_turn(self.jobs[changed], self.line, self.bench, bisection, left):
            if step.skipped_because:
                reasons[step.place] = step.skipped_because
            self.report.seconds = monotonic() - self.began
            self.report.install_seconds += step.install_seconds
            self.say(self._progress(bisection, step.place))

    def _progress(self, bisection: Bisection, place: int) -> str:
        """Say how far the search is."""
        from gpubench.report import text

        likeliest = bisection.likeliest()
        left = text.duration(max(self.end - monotonic(), 0))
        return (
            f"{text.plural(bisection.pairs, 'pair')}, now {self.line[place].hash[:8]} "
            f"({place + 1:,} of {len(self.line):,}), likeliest "
            f"{self.line[likeliest.last].hash[:8]} ({likeliest.probability:.0%}), {left} left"
        )
