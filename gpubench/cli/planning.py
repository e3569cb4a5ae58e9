"""The plan of the suites that a command names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from gpubench.cli.console import progress
from gpubench.cli.options import SUITES
from gpubench.errors import GpubenchError


def planned(paths: tuple[Path, ...], preset: str | None) -> Any:
    """Plan of the suites at these paths, for this machine's devices."""
    from gpubench.backends.devices import gpu_count
    from gpubench.backends.numba_cuda import simulating
    from gpubench.plan.plan import build_plan
    from gpubench.suite.loading import load_suites

    if not paths and not SUITES.is_dir():
        raise GpubenchError(
            f"there is no {SUITES}/ in {Path.cwd()}: name a suite file or folder, or start with "
            "`gpubench init`"
        )
    # A command is started without it, and a suite may name functions of the folder it stands in.
    sys.path.insert(0, str(Path.cwd()))
    with progress("reading suites"):
        loaded = load_suites(paths or (SUITES,), preset)
        return build_plan(loaded, gpu_count(), simulator=simulating())


def suite_and_kernel(target: str) -> tuple[Path, str | None]:
    """Path of a suite, given by path or by name, and the kernel after ``::``."""
    suite, _, kernel = target.partition("::")
    path, named = Path(suite), SUITES / f"{suite}.yaml"
    for found in (path, named):
        if found.exists():
            return found, kernel or None
    there = ", ".join(sorted(file.stem for file in SUITES.glob("*.yaml"))) or "no suites"
    raise GpubenchError(f"there is no {path} and no {named}; {SUITES}/ has {there}")
