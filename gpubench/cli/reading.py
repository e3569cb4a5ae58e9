"""Commands that judge stored results, and how all commands open them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from gpubench.cli import options
from gpubench.cli.console import ERR, echo, narrated, print_faults
from gpubench.cli.options import SUITES
from gpubench.errors import GpubenchError
from gpubench.links import stay_inside
from gpubench.names import pattern_fault
from gpubench.suite.folder import asked_folder

if TYPE_CHECKING:  # a command imports what reads results only when it runs: --help answers at once
    from gpubench.analysis.differences import ComparisonSide
    from gpubench.results import CaseName, PairPattern, Row, Table

T = TypeVar("T")


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
    if kept := select_stored(stored, where, axes):
        return kept
    raise GpubenchError("--where and -a together keep no case that has results")


def select_stored(
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
    snapshots = find_side(commit, results, lambda _: table).snapshots
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


def find_side(name: str, results: Path, open_once: Callable[[Path], Table]) -> ComparisonSide:
    """Return one side of a comparison: a results folder, or a commit of ``results``.

    Raises ``GpubenchError`` for a name of neither.
    """
    from gpubench.analysis.differences import side_of
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
    with narrated("reading results"):
        table, faults = project_table(results, Path.cwd(), suites, pairs)
    print_faults(faults, "warning: ")
    if table.running:
        from gpubench.report import text

        for snapshot, run in table.running:
            where = f"{snapshot.setup.machine}, {snapshot.setup.environment}"
            ERR.print(f"asv run of {snapshot.commit.hash[:8]} on {where}: {text.running(run)}")
    return table
