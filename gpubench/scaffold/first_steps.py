"""What to type after ``gpubench init``: commands that lead to a first report, and the function of
the project that ``gpubench add`` can take."""

from __future__ import annotations

import ast
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from gpubench.asv_config import read_configuration
from gpubench.errors import GpubenchError
from gpubench.scaffold.adding import draft_suite
from gpubench.scaffold.existing import PLUGIN
from gpubench.scaffold.function_source import FunctionSource, read_function
from gpubench.scaffold.project import SUITE, find_modules, find_packages, repository_root
from gpubench.scaffold.requirements import asv_requirements, software_of
from gpubench.suite.folder import suite_files

MAX_SEARCHED_FILES = 1000
"""Modules of a package that are read for a proposal: about a second of work."""


def next_steps(
    directory: Path, files: Mapping[Path, bool], systems: Sequence[str] = ()
) -> list[str]:
    """Return the commands and remarks, in order, that lead from the written files to a first
    report. A project that has results gets no command that measures."""
    steps = []
    if not files[directory / "asv.conf.json"] and not _is_configured(directory):
        requirements = asv_requirements()
        needed = " and ".join(
            [requirements.gpubench, *requirements.cuda, *software_of(systems)],
        )
        steps.append(
            "asv.conf.json was there and is kept: its environments have to install "
            f"{needed}. Its benchmark_dir has to be the folder of suites.py. Its plugins have to "
            'name ".gpubench.asv_plugin", so that the record is kept'
        )
        steps.append(
            'see that "project" in asv.conf.json is the name that pip knows the project by. See '
            "that its install_command replaces what is installed (pip install --no-deps "
            "--force-reinstall {wheel_file}): pip leaves a wheel of the same version alone, and "
            "each later commit would be measured with the code of the first"
        )
    if directory.resolve() != Path.cwd():
        steps.append(f"cd {shlex.quote(str(directory))}")
    if repository_root(directory.resolve()) is None:
        steps.append("git init")
    suites = directory / SUITE.parent
    if not (suites.is_dir() and suite_files(suites)):
        steps.append(f"gpubench add {propose_functions(directory)}")
    steps.append("git add . && git commit -m 'Benchmarks'")
    if any((directory / ".asv" / "results").glob("*/machine.json")):
        return steps
    if not Path.home().joinpath(".asv-machine.json").is_file():
        steps.append("asv machine --yes")
    return [*steps, "GPUBENCH_PRESET=smoke asv run HEAD^!", "gpubench report"]


def _is_configured(directory: Path) -> bool:
    """Return whether a configuration that was there keeps the record and installs gpubench."""
    try:
        content = read_configuration(directory / "asv.conf.json")
    except ValueError:
        return False
    installs = str(content.get("install_command", ""))
    return PLUGIN in content.get("plugins", ()) and "gpubench" in installs


def propose_functions(directory: Path) -> str:
    """Return what ``gpubench add`` takes for the project's first function that a suite can be
    written for without a word more: a compiled one with a baseline, else a compiled one, else any.
    """
    from gpubench.plan import source

    directory = directory.resolve()
    source.SEARCHED_FIRST[:] = [str(directory), str(directory / "src")]
    best, best_rank = "MODULE:FUNCTION --baseline MODULE:FUNCTION", 0
    for module, path in _modules_of(directory):
        functions = [*_functions_of(module, path)]
        for one in functions:
            baseline = _baseline_among(one, functions)
            rank = 1 + (one.backend != "numpy") + (baseline is not None)
            if rank > best_rank and _is_enough(one, baseline):
                best = one.reference + (f" --baseline {baseline.reference}" if baseline else "")
                best_rank = rank
        if best_rank == 3:
            break
    return best


def _modules_of(directory: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and file of the modules of a project, at most ``MAX_SEARCHED_FILES``."""
    for name in find_modules(directory):
        yield name, directory / f"{name}.py"
    searched = 0
    for package in find_packages(directory):
        top = package.parent
        for folder, folders, names in os.walk(directory / package):
            folders[:] = sorted(name for name in folders if name.isidentifier() and name != "tests")
            for path in (Path(folder, name) for name in sorted(names) if name.endswith(".py")):
                inside = path.relative_to(directory / top).with_suffix("")
                parts = inside.parts[:-1] if inside.name == "__init__" else inside.parts
                searched += 1
                if searched > MAX_SEARCHED_FILES:
                    return
                yield ".".join(parts), path


def _functions_of(module: str, path: Path) -> Iterator[FunctionSource]:
    """Yield what the source tells of the functions at the top of a module."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            with suppress(GpubenchError):
                yield read_function(f"{module}:{node.name}")


def _baseline_among(
    one: FunctionSource, functions: Sequence[FunctionSource]
) -> FunctionSource | None:
    """Return the function of NumPy that takes the same arguments as a compiled one; of several that
    whose name begins most like it."""
    if one.backend == "numpy":
        return None
    names = [parameter.name for parameter in one.parameters]
    alike = (
        other
        for other in functions
        if other.backend == "numpy" and [each.name for each in other.parameters] == names
    )
    return max(alike, key=lambda other: _common_beginning(one.name, other.name), default=None)


def _common_beginning(one: str, other: str) -> int:
    """Return how many characters two names begin with alike."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_enough(one: FunctionSource, baseline: FunctionSource | None) -> bool:
    """Return whether a suite of these functions needs no word of the user."""
    with suppress(GpubenchError):
        _, missing = draft_suite(one.reference, baseline.reference if baseline else None)
        return not missing
    return False
