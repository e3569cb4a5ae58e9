"""`gpubench compare`: two commits or results folders, stored or measured now."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpubench.cli import options
from gpubench.cli.console import OUT, echo, narrated, print_json
from gpubench.cli.planning import declared_cases
from gpubench.cli.reading import find_side, read_table, select_stored
from gpubench.errors import Exit, GpubenchError

if TYPE_CHECKING:  # a command imports what reads results only when it runs: --help answers at once
    from gpubench.analysis.count_changes import CaseLines, CountComparison
    from gpubench.analysis.differences import SnapshotComparison
    from gpubench.plan.case import Case
    from gpubench.report.comparison_view import ComparisonView
    from gpubench.results import CaseName, Row, Snapshot, Table

T = TypeVar("T")


def _finite(context: click.Context, option: click.Parameter, value: float) -> float:
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is no finite number; give a ratio such as 1.1")
    return value


def _allowances(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> Mapping[str, float]:
    """Read shares by which counts may grow, by the names of costs or of their groups."""
    allowed: dict[str, float] = {}
    for each in given:
        from gpubench.analysis.costs import COST_NAMES

        name, _, percent = each.partition("=")
        if name not in COST_NAMES:
            raise click.BadParameter(f"{name!r} is no count; give one of {', '.join(COST_NAMES)}")
        try:
            allowed[name] = float(percent.removesuffix("%")) / 100
        except ValueError:
            allowed[name] = math.nan
        if not (percent.endswith("%") and 0 <= allowed[name] < math.inf):
            raise click.BadParameter(f"{each!r} is no share; give one such as {name}=1%")
    return allowed


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asks `gpubench compare` for: its arguments and options."""

    old: str
    new: str
    names: tuple[str, ...]
    results: Path
    machine: str | None
    environment: str | None
    measure: bool
    suspects: bool
    seconds: float
    preset: str | None
    where: str | None
    axes: tuple[str, ...]
    everything: bool
    factor: float
    fail_on: str | None
    allowed: Mapping[str, float]
    as_markdown: bool
    as_json: bool


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of both sides on one machine and environment, and the lines of a case."""

    comparison: CountComparison
    lines_of: Callable[[CaseName], CaseLines]


@click.command()
@click.argument("old", metavar="A")
@click.argument("new", metavar="B", required=False)
@options.names
@options.results
@options.machine
@options.environment
@click.option(
    "--measure",
    is_flag=True,
    help="Measure both commits now, a process of each in turn, instead of reading results.",
)
@click.option(
    "--suspects",
    is_flag=True,
    help="With --measure: only the cases that stored results make suspects.",
)
@click.option(
    "--time",
    "seconds",
    default="3m",
    show_default=True,
    metavar="DURATION",
    callback=options.read_duration,
    help="With --measure: how long at most, such as 90s, 3m or 1h; making environments is extra.",
)
@options.preset
@options.where
@options.axes
@click.option("--all", "everything", is_flag=True, help="List every case, not only what differs.")
@click.option(
    "-f",
    "--factor",
    type=click.FloatRange(min=1),
    default=1.0,
    callback=_finite,
    help="Call a case slower or faster only beyond this ratio, such as 1.1; at least 1.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["slower", "failed", "counts"]),
    help="Exit with 1 where a case has failed; with 'slower', also where one is surely slower; "
    "with 'counts', where a count of its work grew.",
)
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    metavar="COUNT=PERCENT",
    callback=_allowances,
    help="Let a count grow by so much: --allow sectors=1%. Repeatable.",
)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown for a pull request.")
@options.json
def compare(**given: Any) -> None:
    """Compare two commits, or two results folders.

    A and B are what git takes for a commit (a branch, a tag, HEAD~1, a hash or its beginning), or
    folders like .asv/results, of which the newest commit counts. Git's names go before folders'
    names: ./NAME is a folder.

    Stored results: the processes of each case are compared. A case is slower or faster where the
    processes of the two sides differ by more than processes of one commit do; it is the same where
    the whole 99 % interval of the ratio is within 5 %. With one process on a side a case that looks
    changed is a suspect, and --measure --suspects decides. Where machine, processor or environment
    differ, speedups are compared. Counts of the device in software are exact: each that grew is
    listed, and each that improved.

    With --measure asv installs both commits, and processes of both take turns. That is what decides
    for pull requests: between stored runs a machine changes. Ctrl-C ends it with what there is.

    NAME is a suite or a kernel (SUITE::KERNEL, or KERNEL alone where one suite has it); none are
    all. --where and -a keep cases. Exits with 2 where nothing could be compared.
    """
    if given["new"] is None:
        from gpubench.results.commits import range_fault

        raise click.UsageError(range_fault(given["old"]) or "Missing argument 'B'.")
    request = Request(**given)
    if request.suspects and not request.measure:
        raise click.UsageError("--suspects says what --measure measures: give both")
    if request.measure:
        from gpubench.analysis.count_changes import with_counted

        comparison, is_interrupted = _measure(request)
        counted = _stored_counts(request)
        for of in counted:
            comparison = with_counted(comparison, of.comparison, of.lines_of)
        comparisons = [comparison]
    else:
        with narrated("comparing"):
            comparisons, counted = _compare_stored(request)
        is_interrupted = False
    views = _show(request, comparisons, counted)
    if is_interrupted:
        sys.exit(Exit.INTERRUPTED)
    _exit_with_findings(request, views, counted)


def _measure(request: Request) -> tuple[SnapshotComparison, bool]:
    """Measure both commits in turn; tell whether Ctrl-C ended that."""
    from gpubench.cli.comparing import measured_in_turn
    from gpubench.results.commits import range_fault

    if request.machine:
        raise click.UsageError("--measure measures on this machine: leave --machine out")
    if request.fail_on == "counts":
        raise click.UsageError("--measure takes times, and counts nothing: leave one out")
    for name in (request.old, request.new):
        if fault := range_fault(name):
            raise GpubenchError(fault)
    cases = declared_cases(request.names, request.preset, request.where, request.axes)
    if request.suspects:
        cases = _keep_suspects(request, cases)
    comparison, interrupted = measured_in_turn(
        (request.old, request.new),
        cases,
        request.environment,
        request.preset,
        request.seconds,
        request.factor,
    )
    given = ("--preset", request.preset), ("--where", request.where)
    chosen = [word for option, value in given if value for word in (option, value)]
    chosen += [word for axis in request.axes for word in ("-a", axis)]
    return replace(comparison, options=tuple(chosen)), interrupted


def _keep_suspects(request: Request, cases: Iterable[Case]) -> list[Case]:
    """Return the cases that stored results of both commits make suspects."""
    comparisons, _ = _compare_stored(request)
    suspects = {
        (one.name.suite, one.name.kernel, one.name.implementation, one.name.case)
        for comparison in comparisons
        for one in comparison.differences
        if one.verdict == "suspect"
    }
    if not suspects:
        raise GpubenchError(
            f"stored results of {request.old} and {request.new} make no case a suspect; name "
            "suites or kernels to measure them"
        )
    kept = [
        case
        for case in cases
        if (case.suite.suite, case.kernel_name, case.implementation_name, case.identity) in suspects
    ]
    if len(kept) < len(suspects):
        preset = f"the preset {request.preset!r}" if request.preset else "no preset"
        raise GpubenchError(
            f"{len(suspects) - len(kept)} of {len(suspects)} suspects are no cases of these suites "
            f"with {preset}: give --preset as in the stored runs, or name their kernels with -a"
        )
    return kept


def _stored_counts(request: Request) -> list[Counted]:
    """Return the stored counts of both commits, which stand beside times that were measured in
    turn; empty where no case was counted on both sides, or nothing is stored."""
    with suppress(GpubenchError):
        _, counted = _compare_stored(request)
        return [of for of in counted if of.comparison.compared][:1]
    return []


def _compare_stored(
    request: Request,
) -> tuple[list[SnapshotComparison], list[Counted]]:
    """Compare stored times and counts of each machine and environment that both sides have."""
    from gpubench.analysis.acknowledged import without_known_alarms
    from gpubench.analysis.comparison import compare_rows, paired, read_earlier_runs
    from gpubench.analysis.count_changes import CountedSnapshot, compare_counts, with_counted

    open_once = cache(read_table)  # both sides are mostly of one folder
    before, after = (
        find_side(name, request.results, open_once).on(request.machine, request.environment)
        for name in (request.old, request.new)
    )
    pairs = [*paired(before, after)]
    both_rows = [(before.table.rows(was), after.table.rows(now)) for was, now in pairs]
    kept = _kept_cases(request, both_rows)
    comparisons = []
    counted = []
    for pair, of_pair in zip(pairs, both_rows, strict=True):
        rows = _only(of_pair[0], kept), _only(of_pair[1], kept)
        earlier = read_earlier_runs(after.table, pair)
        judged = compare_rows(*pair, *rows, request.factor, earlier)
        known = without_known_alarms(judged, after.table)
        asv_names = {**before.table.asv_names, **after.table.asv_names}
        was, now = (
            replace(counts, counts=_only(counts.counts, kept))
            for counts in (
                CountedSnapshot.of(before.table, pair[0]),
                CountedSnapshot.of(after.table, pair[1]),
            )
        )
        compared = compare_counts(was, now, request.allowed)
        sides = ((before.table, pair[0]), (after.table, pair[1]))
        counted.append(Counted(compared, partial(_lines_of, sides)))
        decided = with_counted(known, compared, counted[-1].lines_of)
        comparisons.append(replace(decided, asv_names=asv_names))
    return comparisons, counted


def _lines_of(
    sides: tuple[tuple[Table, Snapshot], tuple[Table, Snapshot]], name: CaseName
) -> CaseLines:
    """Return the counted lines of a case on both sides."""
    (before, was), (after, now) = sides
    return before.count_lines(was, name), after.count_lines(now, name)


def _kept_cases(
    request: Request, both_rows: Sequence[tuple[Mapping[CaseName, Row], Mapping[CaseName, Row]]]
) -> Collection[CaseName]:
    """Return the stored cases that names, ``--where`` and ``-a`` keep."""
    from gpubench.suite.naming import find_kernels

    stored = [item for rows in both_rows for each in rows for item in each.items()]
    keys = find_kernels(
        request.names, dict.fromkeys((name.suite, name.kernel) for name, _ in stored)
    )
    of_kernels = [item for item in stored if (item[0].suite, item[0].kernel) in keys]
    return select_stored(of_kernels, request.where, request.axes)


def _only(rows: Mapping[CaseName, T], kept: Collection[CaseName]) -> dict[CaseName, T]:
    """Return what is of the cases that are kept."""
    return {name: each for name, each in rows.items() if name in kept}


def _show(
    request: Request,
    comparisons: Sequence[SnapshotComparison],
    counted: Sequence[Counted],
) -> list[ComparisonView]:
    """Print the comparisons as asked; return them in words."""
    from gpubench.report.comparison_view import comparison_view
    from gpubench.report.count_view import counts_json, lines_where_counts_grew
    from gpubench.report.pull_request import ComparedSetup, pull_request_comment
    from gpubench.tables.comparisons import comparison_report, comparison_row
    from gpubench.tables.count_changes import count_report

    everything = request.everything or request.as_json
    views = [comparison_view(one, everything=everything) for one in comparisons]
    both = [*zip_longest(views, counted)]
    if request.as_json:
        compared = (
            comparison_row(view, one.asv_name)
            | ({"counted": counts_json(of.comparison)} if of else {})
            for one, (view, of) in zip(comparisons, both, strict=True)
        )
        print_json([*compared])
    elif request.as_markdown:
        setups = (
            ComparedSetup(view, of.comparison, lines_where_counts_grew(of.comparison, of.lines_of))
            if of
            else ComparedSetup(view)
            for view, of in both
        )
        echo(pull_request_comment([*setups]), nl=False)
    else:
        for view, of in both:
            report = [*comparison_report(view), *(count_report(of.comparison) if of else ())]
            OUT.print(*report, sep="\n")
    return views


def _exit_with_findings(
    request: Request, views: Sequence[ComparisonView], counted: Sequence[Counted]
) -> None:
    """Exit with 1 where ``--fail-on`` asks for it; raise ``GpubenchError`` where nothing was
    compared."""
    fail_on = request.fail_on
    refused = ("failed", "slower") if fail_on == "slower" else ("failed",) if fail_on else ()
    alarms = [{**view.sure, "failed": view.counts.get("failed", 0)} for view in views]
    if any(counts.get(verdict, 0) for counts in alarms for verdict in refused):
        sys.exit(Exit.FOUND)
    if fail_on == "counts":
        _refuse_counts(request.old, request.new, counted)
    is_counted = any(of.comparison.compared or of.comparison.is_refused for of in counted)
    if not is_counted and not any(view.is_compared for view in views):
        lost = sum(view.only_old.count + view.only_new.count for view in views)
        renamed = "; a renamed suite or kernel keeps its history with `was:`" if lost else ""
        if renames := [words for view in views for words in view.renames]:
            renamed = f"; {'; '.join(renames)}"
        raise GpubenchError(
            f"nothing was compared: {request.old} and {request.new} have no case with a result on "
            f"both sides{renamed}"
        )


def _refuse_counts(old: str, new: str, counted: Sequence[Counted]) -> None:
    """Exit with 1 where a count grew or was lost; raise ``GpubenchError`` where none compares."""
    if any(of.comparison.is_refused for of in counted):
        sys.exit(Exit.FOUND)
    if not any(of.comparison.compared for of in counted):
        notes = {item.note for of in counted for item in of.comparison.differences if item.note}
        why = "; ".join(sorted(notes)) or (
            "no case was counted on both sides; counts come from `GPUBENCH_SOFTCUDA=1 asv run`"
        )
        raise GpubenchError(f"no counts of {old} and {new} compare: {why}")
