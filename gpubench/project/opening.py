"""The table of a project's results, with the pairs and the old names that its suites declare.

The two halves of gpubench meet here: suites give names, and nothing else of them reaches a report.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.asv_config import find_config
from gpubench.errors import Fault, SuiteError
from gpubench.files import TooLarge, read_regular
from gpubench.project.acknowledgements import read_acknowledgements
from gpubench.project.settings import read_machines
from gpubench.results import (
    NO_RENAMES,
    KernelNames,
    Pair,
    PairPattern,
    Renames,
    Table,
    open_table,
    table_path,
)
from gpubench.suite.folder import MAX_SUITE_BYTES, suite_files, suite_paths

if TYPE_CHECKING:
    from gpubench.suite.model import Kernel


def project_table(
    results_dir: Path,
    repository: Path | None,
    suites: Path,
    patterns: Sequence[PairPattern] = (),
) -> tuple[Table, tuple[Fault, ...]]:
    """Open the results of gpubench's benchmarks and of pairs: pairs of ``suites``, a suite file or
    a folder, and of ``patterns``. Where there are none of these, open all time benchmarks.

    Histories are those of the branches that ``asv.conf.json`` names, in its ``repo``, else in
    ``repository``. Suites with faults do not stand in the way of results: their faults are
    returned, and their pairs and old names are left out. So are faults of ``asv.conf.json``, of
    ``gpubench.yaml`` and ``gpubench-acknowledged.yaml`` (beside it), and what is to say of the
    branches. The table is kept beside ``results_dir``. Raises ``ResultsError`` like ``open_table``.
    """
    config = find_config(results_dir)
    machines, faults_of_machines = read_machines(config.folder)
    faults = [*config.faults, *faults_of_machines]
    pairs: tuple[Pair | PairPattern, ...] = ()
    renames = NO_RENAMES
    try:
        pairs, renames = declared_pairs(suites), declared_renames(suites)
    except SuiteError as error:
        faults += error.faults
    table = open_table(
        results_dir,
        config.repository if config.path or config.repository != Path() else repository,
        (*pairs, *patterns),
        table_path(results_dir),
        renames,
        branches=config.branches,
        name_of=machines.name_of,
        thresholds=config.thresholds,
        higher_is_better=config.higher_is_better,
        commit_url=config.show_commit_url,
    )
    table.acknowledged, faults_of_acknowledged = read_acknowledgements(config.folder)
    faults += faults_of_acknowledged
    faults += [Fault(str(config.path or ".git"), 0, 0, note) for note in table.order.notes]
    return table, tuple(faults)


def declared_pairs(suites: Path) -> tuple[Pair | PairPattern, ...]:
    """Return the pairs of all suites. Suites are read only if one may have pairs. Raises
    ``SuiteError``."""
    files = suite_files(suites) if suites.is_dir() else [suites]
    if not any(_may_have(re.compile(b"pairs"), file) for file in files):
        return ()
    from gpubench.suite.loading import load_suites

    return tuple(
        Pair(loaded.suite.suite, pair.name, pair.baseline, pair.candidate)
        if pair.name
        else PairPattern(loaded.suite.suite, pair.baseline, pair.candidate)
        for loaded in load_suites([suites])
        for pair in loaded.suite.pairs
    )


def declared_renames(suites: Path) -> Renames:
    """Read what suites, those in folders too, call otherwise now than results may; raises
    ``SuiteError``. Suites are read only if one may have old names."""
    files = suite_paths(suites, nested=True) if suites.is_dir() else [suites]
    if not any(_may_have(_OLD_NAMES_PATTERN, file) for file in files):
        return Renames()
    from gpubench.suite.arrays import old_names
    from gpubench.suite.loading import load_suites

    kernels: dict[tuple[str, str], KernelNames] = {}
    of_suites: dict[str, str] = {}
    for suite in (loaded.suite for loaded in load_suites([suites], nested=True)):
        of_suites |= dict.fromkeys(old_names(suite.was), suite.suite)
        suite_names = (suite.suite, *old_names(suite.was))
        for name, kernel in suite.kernels.items():
            names = _kernel_names(suite.suite, name, kernel)
            kernels |= {
                place: names
                for place in itertools.product(suite_names, (name, *old_names(kernel.was)))
                if names.axes or names.implementations or place != (suite.suite, name)
            }
    return Renames(kernels, of_suites)


def _kernel_names(suite: str, name: str, kernel: Kernel) -> KernelNames:
    from gpubench.plan.axes import kernel_axes

    axes = kernel_axes(kernel)
    sizes = {size for axis in axes for size in axis.sizes}
    others = {one for axis in axes for one in axis.names} - sizes
    implementations = {name: one.old_names() for name, one in kernel.implementations.items()}
    return KernelNames(
        suite,
        name,
        {old: now for now, before in implementations.items() for old in before},
        {old: now for now, before in kernel.old_axes().items() for old in before},
        (*sorted(sizes), *sorted(others)),
    )


_OLD_NAMES_PATTERN = re.compile(rb"\bwas['\"]?\s*:")
"""The field ``was``."""


def _may_have(field: re.Pattern[bytes], path: Path) -> bool:
    try:
        return field.search(read_regular(path, MAX_SUITE_BYTES)) is not None
    except OSError:
        return False
    except TooLarge:
        return True  # which reading it as a suite tells
