"""The plan of the suites that a command names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.cli.console import ERR, print_faults
from gpubench.cli.options import SUITES
from gpubench.errors import GpubenchError
from gpubench.links import stay_inside
from gpubench.suite.folder import asked_folder, suite_files

if TYPE_CHECKING:  # a command imports what plans only when it plans: --help answers at once
    from gpubench.plan.case import Case
    from gpubench.plan.plan import Plan
    from gpubench.suite.loading import LoadedSuite


def planned(
    paths: tuple[Path, ...],
    preset: str | None,
    gpu_count: int | None = None,
    *,
    nested: bool = False,
) -> Plan:
    """Plan of the suites at these paths, for this machine's devices or so many of CUDA's."""
    from gpubench.backends import devices
    from gpubench.plan.plan import build_plan

    count = devices.gpu_count() if gpu_count is None else gpu_count
    with ERR.status("reading suites"):
        return build_plan(loaded_suites(paths, preset, nested=nested), count)


def loaded_suites(
    paths: tuple[Path, ...], preset: str | None, *, nested: bool = False
) -> tuple[LoadedSuite, ...]:
    """The suites at these paths, where none is named those in the folder that is asked for;
    ``nested``: those in folders of it too, and where none is named all in ``suites/``."""
    from gpubench.plan import source
    from gpubench.suite.loading import load_suites

    default = SUITES if nested else asked_folder(SUITES)
    if not paths and not default.is_dir():
        raise GpubenchError(
            f"there is no {SUITES}/ in {Path.cwd()}: name a suite file or folder, or start with "
            "`gpubench init`"
        )
    for path in paths or (default,):
        stay_inside(path)
    # A suite may name functions of the folder it stands in. Nothing is imported from there: a file
    # called like a module of ours would run, in a repository that is only looked at.
    source.SEARCHED_FIRST[:] = [str(Path.cwd())]
    return load_suites(paths or (default,), preset, nested=nested)


def chosen_cases(
    targets: Sequence[str],
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    gpu_count: int | None = None,
) -> list[Case]:
    """Cases of the suites and kernels that are named, all where none is, as far as the options
    keep them; faults of the suites are printed as warnings. A value of ``axes`` that no suite
    declares makes cases of that value.

    They are for running: from here on modules of the working folder can be imported, as in Python.
    """
    from gpubench.plan.asked import declare
    from gpubench.plan.expansion import cases_of
    from gpubench.plan.rules import selected

    asked = [suite_and_kernel(target) for target in targets]
    made = planned(tuple(dict.fromkeys(path for path, _ in asked)), preset, gpu_count)
    print_faults(made.faults(), "warning: ")
    groups = made.groups()
    kept = set() if asked else {*groups}
    for path, kernel in asked:
        of_path = [each for each in groups if path in (each.loaded.path, *each.loaded.path.parents)]
        kernels = dict.fromkeys(group.kernel_name for group in of_path)
        if kernel is not None and kernel not in kernels:
            names = ", ".join(kernels) or "none"
            raise GpubenchError(f"{path} has no kernel {kernel!r}; it has {names}")
        kept |= {group for group in of_path if kernel in (None, group.kernel_name)}
    sys.path.insert(0, str(Path.cwd()))
    chosen = [group for group in groups if group in kept]
    cases = [case for group in chosen for case in cases_of(group)]
    if (more := declare(chosen, cases, axes)) != chosen:
        cases = [case for group in more for case in cases_of(group)]
    return selected(cases, where, axes)


def suite_and_kernel(target: str) -> tuple[Path, str | None]:
    """Path of a suite, given by path or by name, and the kernel after ``::``."""
    suite, _, kernel = target.partition("::")
    suites = asked_folder(SUITES)
    path, named = Path(suite), suites / f"{suite}.yaml"
    for found in (path, named):
        if found.exists():
            return found, kernel or None
    there = ", ".join(file.stem for file in suite_files(suites)) or "no suites"
    raise GpubenchError(f"there is no {path} and no {named}; {suites}/ has {there}")
