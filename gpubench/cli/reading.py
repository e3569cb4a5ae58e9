"""Commands that judge stored results, and how all commands open them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from gpubench.cli import options
from gpubench.cli.console import (
    ERR,
    OUT,
    echo,
    print_faults,
    print_json,
)
from gpubench.cli.options import SUITES
from gpubench.cli.planning import chosen_cases
from gpubench.errors import Exit, GpubenchError
from gpubench.links import stay_inside
from gpubench.names import pattern_fault
from gpubench.suite.folder import asked_folder

if TYPE_CHECKING:  # a command imports what reads results only when it runs: --help answers at once
    from gpubench.analysis.comparison import ComparisonSide
    from gpubench.analysis.count_changes import CountComparison
    from gpubench.results import CaseName, PairPattern, Row, Table

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


def _patterns(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[PairPattern, ...]:
    if not given:
        return ()
    from gpubench.results import PairPattern

    patterns = []
    for text in given:
        baseline, _, candidate = text.rpartition("=")
        fault = pattern_fault(baseline, candidate)
        if not (baseline and candidate):
            fault = f"{text!r} is not two parts with '=' between them, such as A_(.*)=B_\\1"
        if fault:
            raise click.BadParameter(fault)
        patterns.append(PairPattern("", baseline, candidate))
    return tuple(patterns)


pair_option = click.option(
    "--pair",
    "pairs",
    multiple=True,
    metavar="BASELINE=CANDIDATE",
    callback=_patterns,
    help="Report an asv project's benchmarks side by side: a regular expression of baselines, and "
    r"what replaces it, as 'time_cpu_(.*)=time_cuda_\1'. Repeatable.",
)


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
def compare(
    old: str,
    new: str | None,
    names: tuple[str, ...],
    results: Path,
    machine: str | None,
    environment: str | None,
    measure: bool,
    seconds: float,
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    everything: bool,
    factor: float,
    fail_on: str | None,
    allowed: Mapping[str, float],
    as_markdown: bool,
    as_json: bool,
) -> None:
    """Compare two commits, or two results folders.

    A and B are what git takes for a commit (a branch, a tag, HEAD~1, a hash or its beginning), or
    folders like .asv/results, of which the newest commit counts. Git's names go before folders'
    names: ./NAME is a folder. The implementations' own times are compared: one is slower or faster
    where the interval of their ratio excludes 1x and they differ by more than unchanged times do
    between runs on the machine, which its history tells; else the same where the whole interval is
    within 5 %. That is corrected for the number of cases: at most one in ten of those called slower
    or faster is unchanged, and one in a hundred of those called sure. Where machine, processor or
    environment differ, speedups are compared. Counts of the device in software are exact: each
    that grew is listed, and each that improved.

    With --measure nothing stored is read: asv installs both commits, and processes of both take
    turns until each verdict is sure at 99 % or the time is over. That is what decides for pull
    requests: between stored runs a machine changes. Ctrl-C ends it with what there is.

    NAME is a suite or a kernel (SUITE::KERNEL, or KERNEL alone where one suite has it); none are
    all. --where and -a keep cases.
    """
    from gpubench.analysis.acknowledged import without_known_alarms
    from gpubench.analysis.comparison import compare_rows, known_scatters, paired
    from gpubench.analysis.count_changes import CountedSnapshot, compare_counts
    from gpubench.analysis.in_turn import judge_interleaved
    from gpubench.report.comparison_view import comparison_view, markdown
    from gpubench.report.count_view import counts_json, counts_markdown, hints_where_counts_grew
    from gpubench.results.commits import range_fault
    from gpubench.suite.naming import find_kernels
    from gpubench.tables.comparisons import comparison_report, comparison_row
    from gpubench.tables.count_changes import count_report

    if new is None:
        raise click.UsageError(range_fault(old) or "Missing argument 'B'.")
    interrupted = False
    counted: list[CountComparison] = []
    hints: list[list[str]] = []
    if measure:
        from gpubench.cli.comparing import measured_in_turn

        if machine:
            raise click.UsageError("--measure measures on this machine: leave --machine out")
        if fail_on == "counts":
            raise click.UsageError("--measure takes times, and counts nothing: leave one out")
        for name in (old, new):
            if fault := range_fault(name):
                raise GpubenchError(fault)
        cases = chosen_cases(names, preset, where, axes)
        comparison, interrupted = measured_in_turn(
            (old, new), cases, environment, preset, seconds, factor
        )
        comparisons = [comparison]
    else:
        open_once = cache(read_table)  # both sides are mostly of one folder
        before, after = (
            _side(name, results, open_once).on(machine, environment) for name in (old, new)
        )
        comparisons = []
        pairs = [*paired(before, after)]
        both_rows = [(before.table.rows(was), after.table.rows(now)) for was, now in pairs]
        cases_there = (case for rows in both_rows for each in rows for case in each)
        keys = find_kernels(names, dict.fromkeys((case.suite, case.kernel) for case in cases_there))
        stored = [
            (name, row)
            for rows in both_rows
            for each in rows
            for name, row in each.items()
            if (name.suite, name.kernel) in keys
        ]
        kept = _select(stored, where, axes)
        for pair, of_pair in zip(pairs, both_rows, strict=True):
            rows = _only(of_pair[0], kept), _only(of_pair[1], kept)
            scatters = known_scatters(before.table, after.table, pair)
            judged = judge_interleaved(compare_rows(*pair, *rows, factor, scatters))
            comparisons.append(without_known_alarms(judged, after.table))
            was, now = (
                replace(counts, counts=_only(counts.counts, kept))
                for counts in (
                    CountedSnapshot.of(before.table, pair[0]),
                    CountedSnapshot.of(after.table, pair[1]),
                )
            )
            counted.append(compare_counts(was, now, allowed))
            lines_of = partial(after.table.count_lines, pair[1])
            hints.append(hints_where_counts_grew(counted[-1], lines_of))
    views = [comparison_view(one, everything=everything or as_json) for one in comparisons]
    both = [*zip_longest(views, counted)]
    if as_json:
        compared = (
            comparison_row(view) | ({"counted": counts_json(of)} if of else {}) for view, of in both
        )
        print_json([*compared])
    elif as_markdown:
        texts = (
            markdown(view) + (counts_markdown(of, of_new or ()) if of else "")
            for (view, of), of_new in zip_longest(both, hints)
        )
        echo("\n".join(texts), nl=False)
    else:
        for view, of in both:
            report = [*comparison_report(view), *(count_report(of) if of else ())]
            OUT.print(*report, sep="\n")
    if interrupted:
        sys.exit(Exit.INTERRUPTED)
    if fail_on and not any(view.counts for view in views):
        raise GpubenchError(f"{old} and {new} have no case in common: nothing was compared")
    refused = ("failed", "slower") if fail_on == "slower" else ("failed",) if fail_on else ()
    alarms = [{**view.sure, "failed": view.counts.get("failed", 0)} for view in views]
    if any(counts.get(verdict, 0) for counts in alarms for verdict in refused):
        sys.exit(Exit.FOUND)
    if fail_on == "counts":
        _refuse_counts(old, new, counted)


def _only(rows: Mapping[CaseName, T], kept: Collection[CaseName]) -> dict[CaseName, T]:
    """Return what is of the cases that are kept."""
    return {name: each for name, each in rows.items() if name in kept}


def selected_table(table: Table, where: str | None, axes: Sequence[str]) -> Table:
    """Return the table with the cases that ``--where`` and ``-a`` keep, and what these are compared
    with."""
    if not (where or axes):
        return table
    given = [f"-a {text}" for text in axes] + ([f"--where {where!r}"] if where else [])
    return table.keep(selected_cases(table, where, axes), " ".join(given))


def selected_cases(table: Table, where: str | None, axes: Sequence[str]) -> Collection[CaseName]:
    """Return the names of the cases with results that ``--where`` and ``-a`` keep, each as it was
    last measured. Raises ``GpubenchError`` where that is none."""
    stored = [each for setup in table.measured for each in table.newest_rows(setup).items()]
    if kept := _select(stored, where, axes):
        return kept
    raise GpubenchError("--where and -a together keep no case that has results")


def _select(
    stored: Iterable[tuple[CaseName, Row]], where: str | None, axes: Sequence[str]
) -> Collection[CaseName]:
    """Return the names of stored cases that ``--where`` and ``-a`` keep, all without either."""
    from gpubench.names import Value, format_shape, format_value, parse_identity

    of_names: dict[CaseName, dict[str, Value]] = {}
    for name, row in stored:
        if name in of_names:
            continue
        given: dict[str, Value | None] = {
            **parse_identity(name.case),
            "suite": name.suite,
            "kernel": name.kernel,
            "implementation": name.implementation,
            "backend": row.backend or None,
            "device": row.device or None,
            "threads": row.threads,
            "block": format_shape(row.block) if row.block else None,
        }
        of_names[name] = {key: value for key, value in given.items() if value is not None}
    if not (where or axes):
        return of_names.keys()
    from gpubench.plan.rules import select

    def text_of(name: CaseName, key: str) -> str | None:
        value = of_names[name].get(key)
        return None if value is None else format_value(value)

    return {
        *select(
            [*of_names],
            frozenset[str]().union(*of_names.values()),
            where,
            axes,
            text_of,
            lambda name, used: {key: of_names[name][key] for key in used & of_names[name].keys()},
            lambda name, formula, values: formula.evaluate(values),
        )
    }


def _refuse_counts(old: str, new: str, counted: Sequence[CountComparison]) -> None:
    """Exit with 1 where a count grew or was lost; raise ``GpubenchError`` where none compares."""
    if any(of.is_refused for of in counted):
        sys.exit(Exit.FOUND)
    if not any(of.compared for of in counted):
        notes = {item.note for of in counted for item in of.differences if item.note}
        why = "; ".join(sorted(notes)) or (
            "no case was counted on both sides; counts come from `GPUBENCH_SOFTCUDA=1 asv run`"
        )
        raise GpubenchError(f"no counts of {old} and {new} compare: {why}")


@click.command()
@click.argument("commit")
@click.argument("benchmarks", nargs=-1, required=True, metavar="BENCHMARK...")
@click.option("--reason", required=True, help="Why it is accepted, a sentence.")
@click.option("--by", default="", help="Who says so.")
@options.results
def acknowledge(
    commit: str, benchmarks: tuple[str, ...], reason: str, by: str, results: Path
) -> None:
    """Accept a known change of benchmarks at a commit.

    COMMIT is what git takes for one, or the beginning of a hash. BENCHMARK is
    a name as asv or the report has it, with *, ? and [...], such as
    'vector_add*'. It may have become slower, wrong or failed there; '*' takes
    what most benchmarks share. Adds an entry to gpubench-acknowledged.yaml beside
    asv.conf.json. Pages fold these changes, and compare raises no alarm for
    them until the level changes again.
    """
    from gpubench.asv_config import find_config
    from gpubench.project.acknowledgements import add_acknowledgement
    from gpubench.results.acknowledgement import Acknowledgement

    table = read_table(results)
    snapshots = _side(commit, results, lambda _: table).snapshots
    if not snapshots:
        raise GpubenchError(f"{commit} has no results in {results}: name a commit that has")
    found = snapshots[0].commit.hash
    names = [name for setup in table.setups for name in table.outline(setup).names]
    for pattern in benchmarks:
        if not any(Acknowledgement(found, (pattern,), reason, by).covers(name) for name in names):
            raise GpubenchError(
                f"{pattern!r} fits no benchmark with results; "
                '`gpubench query "select distinct kernel from results"` lists them'
            )
    entry = Acknowledgement(found, benchmarks, reason, by)
    echo(str(add_acknowledgement(find_config(results).folder, entry)))


def _side(name: str, results: Path, open_once: Callable[[Path], Table]) -> ComparisonSide:
    """Return one side of a comparison: a results folder, or a commit of ``results``."""
    from gpubench.analysis.comparison import side_of
    from gpubench.results.commits import names_commit

    repository = Path.cwd()
    folder = Path(name)
    if not name:
        raise GpubenchError("an empty text names no commit; give a branch, a tag or a hash")
    if any(folder.glob("*/machine.json")):
        if names_commit(name, repository):
            raise GpubenchError(
                f"{name!r} is a folder with results, and git takes it for a commit: "
                f"./{name} is the folder, {name}~0 the commit"
            )
        return side_of(name, open_once(folder))
    table = open_once(results)
    if commit := _find_measured(name, table):
        return side_of(name, table, commit)
    if folder.is_dir() and not names_commit(name, repository):
        raise GpubenchError(f"the folder {name} holds no results of asv: it has no */machine.json")
    if name.startswith(("/", "./", "../")):
        raise GpubenchError(f"there is no folder {name}")
    raise _not_measured(name, table, results)


def measured_commit(name: str, table: Table, results: Path) -> str:
    """Return the full hash of a commit with results, by what git takes for it. Raises
    ``GpubenchError`` where there is none."""
    if commit := _find_measured(name, table):
        return commit
    raise _not_measured(name, table, results)


def _find_measured(name: str, table: Table) -> str | None:
    """Return the full hash of a commit with results; raise ``GpubenchError`` for a range."""
    from gpubench.results.commits import range_fault, resolve_commit

    if fault := range_fault(name):
        raise GpubenchError(fault)
    return resolve_commit(name, table.commits, Path.cwd())


def _not_measured(name: str, table: Table, results: Path) -> GpubenchError:
    """Say that a commit has no results, and which have some."""
    from gpubench.results.commits import why_unresolved

    measured = ", ".join(commit.hash[:8] for commit in reversed(table.commits[-5:]))
    newest = f"; the newest results in {results} are of {measured or 'no commit'}"
    words = f"{why_unresolved(name, Path.cwd())}{newest}"
    return GpubenchError(words.replace("?; the", "? The"))


def read_results(
    results: Path, suites: Path | None = None, pairs: Sequence[PairPattern] = ()
) -> Table:
    """Read stored results of which there have to be some.

    Raises ``GpubenchError`` where the directory is not there, where nothing in it can be read, and
    where a pattern of ``pairs`` pairs nothing.
    """
    if not results.exists():
        raise GpubenchError(
            f"there are no results: {results} does not exist; run `asv run`, or "
            "name asv's results directory with --results"
        )
    table = read_table(results, suites, pairs)
    if unmatched := table.unmatched_patterns.intersection(map(str, pairs)):
        words = "; ".join(
            f"{problem.path}: {problem.message}"
            for problem in table.problems
            if problem.path.removeprefix("pair ") in unmatched
        )
        raise GpubenchError(words)
    if not table.setups:
        said = [f"{problem.path}: {problem.message}" for problem in table.problems]
        more = f"; and {len(said) - 1:,} more like it" if len(said) > 1 else ""
        why = f"; {said[0]}{more}" if said else "; it holds no result file of asv"
        from gpubench.record import SUFFIX  # which commands that only answer --help do without

        if not said and any(results.glob(f"*/*{SUFFIX}")):
            why = (
                ": a run has begun, and no case of it is finished (it is at work, or was stopped); "
                "`asv run --skip-existing` goes on"
            )
        raise GpubenchError(
            f"nothing in {results} can be read{why}; run `asv run`, or name asv's "
            "results directory with --results"
        )
    return table


def read_table(
    results: Path, suites: Path | None = None, pairs: Sequence[PairPattern] = ()
) -> Table:
    """Return stored results with these pairs and those of the suites, whose faults are warnings
    here."""
    from gpubench.project.opening import project_table

    suites = suites or asked_folder(SUITES)
    stay_inside(results)
    stay_inside(suites)
    with ERR.status("reading results"):
        table, faults = project_table(results, Path.cwd(), suites, pairs)
    print_faults(faults, "warning: ")
    if table.running:
        from gpubench.report import text

        for snapshot, run in table.running:
            where = f"{snapshot.setup.machine}, {snapshot.setup.environment}"
            ERR.print(f"asv run of {snapshot.commit.hash[:8]} on {where}: {text.running(run)}")
    return table
