"""The plan of the suites that a command names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpubench.cli.console import print_faults, progress
from gpubench.cli.options import SUITES
from gpubench.errors import GpubenchError


def planned(paths: tuple[Path, ...], preset: str | None, gpu_count: int | None = None) -> Any:
    """Plan of the suites at these paths, for this machine's devices or so many of CUDA's."""
    from gpubench.backends import devices
    from gpubench.plan.plan import build_plan

    count = devices.gpu_count() if gpu_count is None else gpu_count
    with progress("reading suites"):
        return build_plan(loaded_suites(paths, preset), count)


def loaded_suites(paths: tuple[Path, ...], preset: str | None) -> Any:
    """The suites at these paths, those in ``suites/`` where none is named."""
    from gpubench.suite.loading import load_suites

    if not paths and not SUITES.is_dir():
        raise GpubenchError(
            f"there is no {SUITES}/ in {Path.cwd()}: name a suite file or folder, or start with "
            "`gpubench init`"
        )
    # A command is started without it, and a suite may name functions of the folder it stands in.
    sys.path.insert(0, str(Path.cwd()))
    return load_suites(paths or (SUITES,), preset)


def chosen_cases(
    targets: Sequence[str],
    preset: str | None,
    where: str | None,
    axes: tuple[str, ...],
    gpu_count: int | None = None,
) -> list[Any]:
    """Cases of the suites and kernels that are named, all where none is, as far as the options
    keep them; faults of the suites are printed as warnings."""
    from gpubench.plan.selection import selected

    asked = [suite_and_kernel(target) for target in targets]
    made = planned(tuple(dict.fromkeys(path for path, _ in asked)), preset, gpu_count)
    print_faults(made.faults(), "warning: ")
    for path, kernel in asked:
        _require_kernel(made, path, kernel)
    cases = (case for case in made.cases() if not asked or _is_asked(case.subject, asked))
    return list(selected(cases, where, axes))


def suite_and_kernel(target: str) -> tuple[Path, str | None]:
    """Path of a suite, given by path or by name, and the kernel after ``::``."""
    suite, _, kernel = target.partition("::")
    path, named = Path(suite), SUITES / f"{suite}.yaml"
    for found in (path, named):
        if found.exists():
            return found, kernel or None
    there = ", ".join(sorted(file.stem for file in SUITES.glob("*.yaml"))) or "no suites"
    raise GpubenchError(f"there is no {path} and no {named}; {SUITES}/ has {there}")


def _is_asked(subject: Any, asked: Sequence[tuple[Path, str | None]]) -> bool:
    own = Path(subject.loaded.path)
    return any(
        path in (own, *own.parents) and kernel in (None, subject.kernel_name)
        for path, kernel in asked
    )


def _require_kernel(made: Any, path: Path, kernel: str | None) -> None:
    subjects = [group.subject for group in made.groups()]
    own = [subject for subject in subjects if _is_asked(subject, [(path, None)])]
    if kernel is not None and not any(_is_asked(subject, [(path, kernel)]) for subject in own):
        names = ", ".join(dict.fromkeys(subject.kernel_name for subject in own))
        raise GpubenchError(f"{path} has no kernel {kernel!r}; it has {names or 'none'}")
