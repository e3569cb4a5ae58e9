"""The table of a project's results, with the pairs that its suites declare.

The two halves of gpubench meet here: suites give names, and nothing else of them reaches a report.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpubench.asv_config import find_config
from gpubench.errors import Fault, SuiteError
from gpubench.files import TooLarge, read_regular
from gpubench.project_file import read_machines
from gpubench.results import Pair, PairPattern, Table, open_table, table_path
from gpubench.suite.folder import MAX_BYTES, suite_files


def project_table(
    results_dir: Path,
    repository: Path | None,
    suites: Path,
    patterns: Sequence[PairPattern] = (),
) -> tuple[Table, tuple[Fault, ...]]:
    """Results of gpubench's benchmarks and of pairs: those in ``suites``, a suite file or a folder,
    and those of ``patterns``; where there is nothing of these, of all time benchmarks.

    Histories are those of the branches that ``asv.conf.json`` names, in its ``repo``, else in
    ``repository``. Suites with faults do not stand in the way of results: their faults are
    returned, and their pairs are left out. So are faults of ``asv.conf.json`` and ``gpubench.yaml``
    (beside it), and what is to say of the branches. The table is kept beside ``results_dir``.
    Raises ``ResultsError`` like ``open_table``.
    """
    config = find_config(results_dir)
    machines, faults_of_machines = read_machines(config.folder)
    faults = [*config.faults, *faults_of_machines]
    pairs: tuple[Pair | PairPattern, ...] = ()
    try:
        pairs = declared_pairs(suites)
    except SuiteError as error:
        faults += error.faults
    table = open_table(
        results_dir,
        config.repository if config.path else repository,
        (*pairs, *patterns),
        table_path(results_dir),
        config.branches,
        machines.name_of,
    )
    faults += [Fault(str(config.path or ".git"), 0, 0, note) for note in table.order.notes]
    return table, tuple(faults)


def declared_pairs(suites: Path) -> tuple[Pair | PairPattern, ...]:
    """Pairs of all suites; raises ``SuiteError``. Suites are read only if one may have pairs."""
    files = suite_files(suites) if suites.is_dir() else [suites]
    if not any(map(_may_have_pairs, files)):
        return ()
    from gpubench.suite.loading import load_suites

    return tuple(
        Pair(loaded.suite.suite, pair.name, pair.baseline, pair.candidate)
        if pair.name
        else PairPattern(loaded.suite.suite, pair.baseline, pair.candidate)
        for loaded in load_suites([suites])
        for pair in loaded.suite.pairs
    )


def _may_have_pairs(path: Path) -> bool:
    try:
        return b"pairs" in read_regular(path, MAX_BYTES)
    except OSError:
        return False
    except TooLarge:
        return True  # which reading it as a suite tells
