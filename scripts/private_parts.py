"""List what gpubench uses of other packages that these do not promise to keep: `python
scripts/private_parts.py`. Exit code 1 where a list and the code differ, or an installed package
lacks a part.

A part counts as private where a name in its path begins with an underscore, or where its package
documents no Python interface of that place (`INTERNAL`). Each has its line in `USES`, below the
modules that use it: what is public in its place, or why nothing is.
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


_CODE = "nothing lets another change the code that Numba has made"
_LINES = "nothing asks for tables of lines without the checks of `debug=True`"
_ASV = "nothing: asv documents commands and files, and its plugins see all of it"
USES = {
    "analysis/changes": {
        "asv.step_detect": "nothing: `asv publish` writes steps of its own series alone",
    },
    "analysis/control": {
        "asv_runner.statistics.binom_pmf": (
            "scipy.stats.binom, which gpubench does not need otherwise"
        ),
    },
    "asv_config": {
        "asv.machine.MachineCollection": _ASV,
    },
    "asv_config measure/two_commits": {
        "asv.util.UserError": _ASV,
    },
    "asv_plugin": {
        "asv.commands.make_argparser": _ASV,
        "asv.machine.Machine": _ASV,
        "asv.publishing.OutputPublisher": "it is asv's own way to add to what `asv publish` writes",
    },
    "asv_plugin measure/two_commits": {
        "asv.config.Config": _ASV,
        "asv.console.log": _ASV,
        "asv.plugins.git.Git._path": "nothing says where asv keeps a mirror",
        "asv.repo.get_repo": _ASV,
        "asv.runner": _ASV,
    },
    "backends/numba": {
        "numba.core.config": "numba.config, which imports Numba where nothing has",
        "numba.core.event": "nothing: Numba's manual describes it among its own parts",
    },
    "backends/numba_cuda": {
        "numba.cuda.core.config": "numba.config, as long as numba-cuda shares it",
        "numba.cuda.cudadrv.nvvm": "nothing says before a kernel is compiled that this fails",
    },
    "backends/numba_settings": {
        "numba.core.decorators": "numba.jit is of that module: no name tells it by itself",
    },
    "counts/hooks": {
        "numba.core.caching": "nothing keeps a cache from being asked",
        "numba.core.cpu": _LINES,
        "numba.np.ufunc.ufuncbuilder": _LINES,
    },
    "counts/hooks counts/machine": {
        "numba.core.codegen": _CODE,
        "numba.core.codegen.JITCPUCodegen._add_module": _CODE,
        "numba.core.codegen.JitEngine._load_defined_symbols": _CODE,
    },
    "fleet/checkout": {
        "asv.main.main": "the command `asv machine`, which a process of its own takes",
    },
    "measure/two_commits": {
        "asv.environment.Environment._default_benchmark_timeout": (
            "the configuration has the same number"
        ),
        "asv.environment.EnvironmentUnavailable": _ASV,
        "asv.environment.get_environments": _ASV,
        "asv.environment.is_existing_only": _ASV,
        "asv.plugin_manager.plugin_manager": _ASV,
        "asv.repo.NoSuchNameError": _ASV,
        "asv.util": _ASV,
        "asv.util.TIMEOUT_RETCODE": _ASV,
    },
    "measure/worker": {
        "numba.np.ufunc.omppool": (
            "numba.threading_layer, which does not say whether it has started"
        ),
    },
    "results/asv_files": {
        "asv.environment.get_env_name": "result files of format 2 hold the name; those of 1 do not",
        "asv_runner.statistics.compute_stats": "nothing: a time has to be stated as asv states it",
    },
    "systems/cupy": {
        "cupyx.jit._interface": "nothing tells a kernel of cupyx.jit from a function",
    },
    "systems/joblib": {
        "joblib.externals.loky": "joblib has no way to ask for its pool's processes",
        "joblib.externals.loky.backend.resource_tracker": (
            "nothing starts the tracker before it is timed"
        ),
        "joblib.externals.loky.process_executor": "nothing says which error a lost process is",
    },
    "systems/modin": {
        "modin.core.dataframe.pandas.partitioning": "nothing waits for all parts of a frame",
        "modin.core.execution.ray.common.RayWrapper._func_cache": (
            "nothing empties it when a cluster ends"
        ),
        "modin.core.execution.ray.common.engine_wrapper": (
            "nothing empties its cache when a cluster ends"
        ),
    },
    "systems/multiprocessing": {
        "multiprocessing.pool.Pool._help_stuff_finish": (
            "a pool whose process was killed never ends by itself"
        ),
    },
    "systems/pycuda": {
        "pycuda.compiler._find_pycuda_include_path": "nothing says where PyCUDA's headers are",
    },
    "systems/ray": {
        "ray._private.ray_constants": "nothing sets how long Ray waits for a head",
    },
}
"""By the modules that use them, each with its folder: private parts, and what is public in the
place of each, or why nothing is."""

PARTS = {part: {*modules.split()} for modules, parts in USES.items() for part in parts}
"""The modules that use each part."""
INSTEAD = {part: instead for parts in USES.values() for part, instead in parts.items()}


def guard_of(part: str) -> str:
    """Return what tells that a part is gone, or keeps other releases away."""
    if part.startswith("asv"):
        return "pyproject.toml allows asv>=0.6.5,<0.7, which brings asv_runner"
    if "counts/hooks" in PARTS[part]:
        return "`refuse_other_hooks` of counts/hooks.py, before anything is counted"
    return "the tests of the backend, with the oldest and the newest release"


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
        modules = PARTS.get(part, set())
        faults = [] if modules == used.get(part, set()) else [f"used by {used.get(part, 'nobody')}"]
        faults += ["the installed package lacks it"] if find_missing(part) else []
        wrong += bool(faults)
        print(f"{part}: {', '.join(sorted(modules)) or 'not listed'}")
        if modules:
            print(f"    instead: {INSTEAD[part]}\n    guard: {guard_of(part)}")
        for fault in faults:
            print(f"    WRONG: {fault}")
    print(f"{len(used)} parts of {len({part.split('.')[0] for part in used})} packages")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
