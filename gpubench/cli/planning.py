"""The plan of the suites that a command names."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.cli import options
from gpubench.cli.console import narrated, print_faults
from gpubench.errors import GpubenchError, PlanError, SuiteError
from gpubench.links import stay_inside
from gpubench.suite.folder import asked_folder, suite_paths
from gpubench.suite.naming import Target, list_names

if TYPE_CHECKING:  # a command imports what plans only when it plans: --help answers at once
    from gpubench.plan.case import Case
    from gpubench.plan.plan import Plan
    from gpubench.suite.loading import LoadedSuite


def planned(
    names: Sequence[str],
    preset: str | None,
    gpu_count: int | None = None,
    *,
    nested: bool = False,
) -> Plan:
    """Return the plan of the suites and kernels that are named, all where none is, for this
    machine's devices or so many of CUDA's. ``nested``: see ``loaded_suites``."""
    from gpubench.backends import devices
    from gpubench.plan.plan import build_plan

    targets = options.suite_files(nested=nested).find_all(names)
    count = devices.gpu_count() if gpu_count is None else gpu_count
    with narrated("reading suites"):
        paths = tuple(dict.fromkeys(target.path for target in targets))
        made = build_plan(loaded_suites(paths, preset, nested=nested), count)
    return _keep(made, targets) if targets else made


def _keep(plan: Plan, targets: Iterable[Target]) -> Plan:
    """Return the plan with the kernels alone that are named."""
    kept: set[int] = set()
    for target in targets:
        of_path = [
            (place, groups[0].kernel_name)
            for place, groups in enumerate(plan.kernels)
            if target.path in (groups[0].loaded.path, *groups[0].loaded.path.parents)
        ]
        if target.kernel is not None and target.kernel not in (kernel for _, kernel in of_path):
            there = list_names(dict.fromkeys(kernel for _, kernel in of_path))
            raise GpubenchError(f"{target.path} has no kernel {target.kernel!r}; it has {there}")
        kept |= {place for place, kernel in of_path if target.kernel in (None, kernel)}
    kernels = tuple(groups for place, groups in enumerate(plan.kernels) if place in kept)
    return replace(plan, kernels=kernels)


def loaded_suites(
    paths: Sequence[Path], preset: str | None, *, nested: bool = False
) -> tuple[LoadedSuite, ...]:
    """Load the suites at these paths, where none is named those in the folder that is asked for;
    ``nested``: those in folders of it too, and where none is named all in ``suites/``."""
    from gpubench.plan import source
    from gpubench.suite.loading import load_suites

    default = options.SUITES if nested else asked_folder(options.SUITES)
    if not paths and not default.is_dir():
        raise GpubenchError(
            f"there is no {options.SUITES}/ in {Path.cwd()}: name a suite file or folder, or start "
            "with `gpubench init`"
        )
    for path in paths or (default,):
        stay_inside(path)
    # A suite may name functions of the folder it stands in. Nothing is imported from there: a file
    # called like a module of ours would run, in a repository that is only looked at.
    source.SEARCHED_FIRST[:] = [str(Path.cwd())]
    return load_suites(paths or (default,), preset, nested=nested)


def chosen_cases(
    names: Sequence[str],
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    gpu_count: int | None = None,
) -> list[Case]:
    """Return the cases of the suites and kernels that are named, as far as the options keep them;
    see ``chosen_plan``."""
    from gpubench.plan.rules import selected

    return selected(chosen_plan(names, preset, axes, gpu_count).cases(), where, axes)


def cases_to_order(
    names: Sequence[str],
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    ordered: Sequence[str],
    gpu_count: int,
) -> list[Case]:
    """Return the cases of a quick preset, which has few blocks, with all values that suites
    declare of the axes ``ordered``. Axes whose values ``axes`` names keep these."""
    from gpubench.plan.trying import axis_of, every_value, manner_of

    quick = chosen_cases(names, preset, where, axes, gpu_count)
    declared = chosen_cases(names, None, where, axes, gpu_count)
    given = {*map(axis_of, axes)}
    more = every_value(declared, [name for name in ordered if name not in given])
    if not more:
        return quick
    # -a asks a value of every implementation, also of those that declare other values.
    known = {*map(manner_of, declared), *map(manner_of, quick)}
    wider = chosen_cases(names, preset, where, (*axes, *more), gpu_count)
    return [case for case in wider if manner_of(case) in known]


def declared_cases(
    names: Sequence[str], preset: str | None, where: str | None, axes: tuple[str, ...]
) -> list[Case]:
    """Return the chosen cases for asv to measure, which knows those that suites declare. Raises
    ``PlanError`` for a value of ``axes`` that none declares."""
    from gpubench.plan.asked import with_values
    from gpubench.plan.rules import selected, value_text

    plan = chosen_plan(names, preset, ())
    wider = with_values(plan, axes)
    asked = dict.fromkeys(text.partition("=")[0].strip() for text in axes)
    new = [
        f"{name}={value}"
        for name in (asked if wider is not plan else ())
        for value in dict.fromkeys(value_text(case, name) for case in wider.cases())
        if value not in {value_text(case, name) for case in plan.cases()}
    ]
    if new:
        place = f" in the preset {preset}" if preset else ""
        without = "leave --preset out, or add" if preset else "add"
        raise PlanError(
            f"no suite declares {', '.join(new)}{place}, and asv measures what suites declare: "
            f"{without} the value to the suite"
        )
    return selected(plan.cases(), where, axes)


def chosen_plan(
    names: Sequence[str],
    preset: str | None,
    axes: tuple[str, ...],
    gpu_count: int | None = None,
) -> Plan:
    """Return the plan of the suites and kernels that are named, all where none is; faults of the
    suites are printed as warnings. A value of ``axes`` that no suite declares makes cases of that
    value.

    Its cases are for running: from here on modules of the working folder can be imported, as in
    Python.
    """
    from gpubench.plan.asked import with_values

    made = planned(names, preset, gpu_count)
    with narrated("checking kernels"):
        faults = made.faults()
    print_faults(faults, "warning: ")
    sys.path.insert(0, str(Path.cwd()))
    return with_values(made, axes)


def with_faults_of_code(error: SuiteError, names: Sequence[str]) -> SuiteError:
    """Return the faults of suite files together with those of the functions that they name: of the
    same files, and of the files that are sound."""
    from gpubench.backends import devices
    from gpubench.plan.group import missing_functions
    from gpubench.plan.plan import build_plan
    from gpubench.suite.loading import load_suite

    named = [target.path for target in options.suite_files(nested=True).find_all(names)]
    faults, faulty = [*error.faults], {fault.path for fault in error.faults}
    for path in named or [options.SUITES]:
        for file in suite_paths(path, nested=True) if path.is_dir() else [path]:
            if str(file) in faulty:
                faults += missing_functions(file)
                continue
            with suppress(SuiteError):  # a file that others extend need not be a whole suite
                faults += build_plan([load_suite(file)], devices.gpu_count()).faults()
    return SuiteError(faults)


def has_preset(names: Sequence[str], preset: str) -> bool:
    """Return whether one of the suites that are named has a preset."""
    targets = options.suite_files().find_all(names)
    suites = loaded_suites(tuple(dict.fromkeys(target.path for target in targets)), None)
    return any(preset in loaded.suite.presets for loaded in suites)
