"""Lists what gpubench uses of other packages that these do not promise to keep: `python
scripts/private_parts.py`. Exit code 1 where a list and the code differ, or an installed package
lacks a part.

A part counts as private where a name in its path begins with an underscore, or where its package
documents no Python interface of that place (`INTERNAL`). Each has its line in `PARTS`: the modules
that use it, what is public in its place or why nothing is, and what tells that it is gone.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

INTERNAL = ("asv", "asv_runner", "numba.core", "numba.np", "numba.cuda.core", "numba.cuda.cudadrv")
INTERNAL += ("joblib.externals", "cupyx.jit", "modin.core", "ray._private")
"""Packages, or parts of such, without a documented interface for Python. asv documents commands and
files; its plugins are Python, and see all of it (asv's manual, *Developing*)."""

OBJECTS = {
    "_default_benchmark_timeout": "asv.environment.Environment._default_benchmark_timeout",
    "_help_stuff_finish": "multiprocessing.pool.Pool._help_stuff_finish",
    "_find_pycuda_include_path": "pycuda.compiler._find_pycuda_include_path",
    "_add_module": "numba.core.codegen.JITCPUCodegen._add_module",
    "_load_defined_symbols": "numba.core.codegen.JitEngine._load_defined_symbols",
    "_func_cache": "modin.core.execution.ray.common.RayWrapper._func_cache",
}
"""Private names of objects of other packages, by their last part, in full."""


class Part(NamedTuple):
    """Why a private part is used."""

    modules: tuple[str, ...]
    """That use it: their names, and their folder's."""
    instead: str
    """What is public in its place, or why nothing is."""
    guard: str
    """What tells that it is gone, or keeps other releases away."""


BOUND = "pyproject.toml allows asv>=0.6.5,<0.7, which brings asv_runner"
_TESTED = "the tests of the backend, with the oldest and the newest release"
_HOOKS = "`refuse_other_hooks` of counts/hooks.py, before anything is counted"
_CODE = "nothing lets another change the code that Numba has made"
_LINES = "nothing asks for tables of lines without the checks of `debug=True`"
_ASV = "nothing: asv documents commands and files, and its plugins see all of it"
PARTS = {
    "asv.commands.make_argparser": Part(("asv_plugin",), _ASV, BOUND),
    "asv.config.Config": Part(("asv_plugin", "measure/two_commits"), _ASV, BOUND),
    "asv.console.log": Part(("asv_plugin", "measure/two_commits"), _ASV, BOUND),
    "asv.environment.Environment._default_benchmark_timeout": Part(
        ("measure/two_commits",), "the configuration has the same number", BOUND
    ),
    "asv.environment.EnvironmentUnavailable": Part(("measure/two_commits",), _ASV, BOUND),
    "asv.environment.get_env_name": Part(
        ("results/asv_files",), "result files of format 2 hold the name; those of 1 do not", BOUND
    ),
    "asv.environment.get_environments": Part(("measure/two_commits",), _ASV, BOUND),
    "asv.environment.is_existing_only": Part(("measure/two_commits",), _ASV, BOUND),
    "asv.machine.Machine": Part(("asv_plugin",), _ASV, BOUND),
    "asv.machine.MachineCollection": Part(("asv_config",), _ASV, BOUND),
    "asv.main.main": Part(
        ("fleet/checkout",), "the command `asv machine`, which a process of its own takes", BOUND
    ),
    "asv.plugin_manager.plugin_manager": Part(("measure/two_commits",), _ASV, BOUND),
    "asv.publishing.OutputPublisher": Part(
        ("asv_plugin",), "it is asv's own way to add to what `asv publish` writes", BOUND
    ),
    "asv.plugins.git.Git._path": Part(
        ("asv_plugin", "measure/two_commits"), "nothing says where asv keeps a mirror", BOUND
    ),
    "asv.repo.NoSuchNameError": Part(("measure/two_commits",), _ASV, BOUND),
    "asv.repo.get_repo": Part(("asv_plugin", "measure/two_commits"), _ASV, BOUND),
    "asv.runner": Part(("asv_plugin", "measure/two_commits"), _ASV, BOUND),
    "asv.step_detect": Part(
        ("analysis/changes",), "nothing: `asv publish` writes steps of its own series alone", BOUND
    ),
    "asv.util": Part(("measure/two_commits",), _ASV, BOUND),
    "asv.util.TIMEOUT_RETCODE": Part(("measure/two_commits",), _ASV, BOUND),
    "asv.util.UserError": Part(("asv_config", "measure/two_commits"), _ASV, BOUND),
    "asv_runner.statistics.binom_pmf": Part(
        ("analysis/control",), "scipy.stats.binom, which gpubench does not need otherwise", BOUND
    ),
    "asv_runner.statistics.compute_stats": Part(
        ("results/asv_files",), "nothing: a time has to be stated as asv states it", BOUND
    ),
    "cupyx.jit._interface": Part(
        ("systems/cupy",), "nothing tells a kernel of cupyx.jit from a function", _TESTED
    ),
    "joblib.externals.loky": Part(
        ("systems/joblib",), "joblib has no way to ask for its pool's processes", _TESTED
    ),
    "joblib.externals.loky.backend.resource_tracker": Part(
        ("systems/joblib",), "nothing starts the tracker before it is timed", _TESTED
    ),
    "joblib.externals.loky.process_executor": Part(
        ("systems/joblib",), "nothing says which error a lost process is", _TESTED
    ),
    "modin.core.dataframe.pandas.partitioning": Part(
        ("systems/modin",), "nothing waits for all parts of a frame", _TESTED
    ),
    "modin.core.execution.ray.common.RayWrapper._func_cache": Part(
        ("systems/modin",), "nothing empties it when a cluster ends", _TESTED
    ),
    "modin.core.execution.ray.common.engine_wrapper": Part(
        ("systems/modin",), "nothing empties its cache when a cluster ends", _TESTED
    ),
    "multiprocessing.pool.Pool._help_stuff_finish": Part(
        ("systems/multiprocessing",),
        "a pool whose process was killed never ends by itself",
        _TESTED,
    ),
    "numba.core.caching": Part(("counts/hooks",), "nothing keeps a cache from being asked", _HOOKS),
    "numba.core.codegen": Part(("counts/hooks", "counts/machine"), _CODE, _HOOKS),
    "numba.core.codegen.JITCPUCodegen._add_module": Part(
        ("counts/hooks", "counts/machine"), _CODE, _HOOKS
    ),
    "numba.core.codegen.JitEngine._load_defined_symbols": Part(
        ("counts/hooks", "counts/machine"), _CODE, _HOOKS
    ),
    "numba.core.cpu": Part(("counts/hooks",), _LINES, _HOOKS),
    "numba.core.config": Part(
        ("backends/numba",), "numba.config, which imports Numba where nothing has", _TESTED
    ),
    "numba.core.event": Part(
        ("backends/numba",), "nothing: Numba's manual describes it among its own parts", _TESTED
    ),
    "numba.cuda.core.config": Part(
        ("backends/numba_cuda",), "numba.config, as long as numba-cuda shares it", _TESTED
    ),
    "numba.cuda.cudadrv.nvvm": Part(
        ("backends/numba_cuda",),
        "nothing says before a kernel is compiled that this fails",
        _TESTED,
    ),
    "numba.np.ufunc.omppool": Part(
        ("measure/worker",),
        "numba.threading_layer, which does not say whether it has started",
        _TESTED,
    ),
    "numba.np.ufunc.ufuncbuilder": Part(("counts/hooks",), _LINES, _HOOKS),
    "pycuda.compiler._find_pycuda_include_path": Part(
        ("systems/pycuda",), "nothing says where PyCUDA's headers are", _TESTED
    ),
    "ray._private.ray_constants": Part(
        ("systems/ray",), "nothing sets how long Ray waits for a head", _TESTED
    ),
}


def used_parts(root: Path = ROOT / "gpubench") -> dict[str, set[str]]:
    """Return the private parts that modules use, each with these modules."""
    found = defaultdict[str, set[str]](set)
    for path in sorted(root.rglob("*.py")):
        if "tests" in path.relative_to(root).parts:
            continue
        module = "/".join(path.relative_to(root).with_suffix("").parts[-2:])
        for part in _parts_of(ast.parse(path.read_text(encoding="utf-8"))):
            found[part].add(module)
    return dict(found)


def _parts_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if is_private(each.name))
            case ast.ImportFrom(module=str(module), names=names, level=0):
                whole = (f"{module}.{each.name}" for each in names)
                yield from filter(is_private, whole)
            case ast.Call(
                func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ) if is_private(name):
                yield name
            case ast.Attribute(attr=name) if name in OBJECTS:
                yield OBJECTS[name]
            case ast.Attribute(value=ast.Name(id="repository"), attr="_path"):
                yield "asv.plugins.git.Git._path"
            case ast.Constant(value=str(text)) if _is_dotted(text) and is_private(text):
                yield text


def is_private(name: str) -> bool:
    """Return whether a dotted name of another package is nothing that this promises to keep."""
    top, *inner = name.split(".")
    if top in ("gpubench", "softcuda", "") or name.startswith("asv.conf.json"):  # asv's file
        return False
    inside = any(name == each or name.startswith(f"{each}.") for each in INTERNAL)
    return inside or any(word.startswith("_") and not word.endswith("__") for word in inner)


def _is_dotted(text: str) -> bool:
    """Return whether a text names something of a package: it begins with the package's name, which
    is in lower case, and not with that of a class."""
    return "." in text and text[0].islower() and all(map(str.isidentifier, text.split(".")))


def find_missing(part: str) -> bool | None:
    """Return whether an installed package lacks a part; ``None`` where it is not installed."""
    words = part.split(".")
    if find_spec(words[0]) is None:
        return None
    for end in range(len(words), 0, -1):
        try:
            found: object = import_module(".".join(words[:end]))
        except ImportError:
            continue
        for word in words[end:]:
            if not hasattr(found, word):  # instances alone may have it
                return f"self.{word} =" not in inspect.getsource(found)  # type: ignore[arg-type]
            found = getattr(found, word)
        return False
    return True


def main() -> int:
    used, wrong = used_parts(), 0
    for part in sorted(used.keys() | PARTS.keys()):
        declared = PARTS.get(part)
        modules = set(declared.modules) if declared else set()
        is_missing = find_missing(part)
        faults = [] if modules == used.get(part, set()) else [f"used by {used.get(part, 'nobody')}"]
        faults += ["the installed package lacks it"] if is_missing else []
        wrong += bool(faults)
        print(f"{part}: {', '.join(sorted(modules)) or 'not listed'}")
        if declared:
            print(f"    instead: {declared.instead}\n    guard: {declared.guard}")
        for fault in faults:
            print(f"    WRONG: {fault}")
    print(f"{len(used)} parts of {len({part.split('.')[0] for part in used})} packages")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
