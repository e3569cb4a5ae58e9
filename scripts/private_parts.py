"""List what gpubench and softcuda use of other packages that these do not promise to keep: `python
scripts/private_parts.py`. Exit code 1 where a list and the code differ, or an installed package
lacks a part.

A part counts as private where a name in its path begins with an underscore, or where its package
documents no Python interface of that place (`INTERNAL`). Each has its line in `USES`, below the
one module that uses it: what is public in its place, or why nothing is.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]

INTERNAL = ("asv", "asv_runner", "numba.core", "numba.np", "numba.cuda.core", "numba.cuda.cudadrv")
INTERNAL += ("numba.cuda.codegen", "numba.cuda.cudaimpl", "numba.cuda.debuginfo")
INTERNAL += ("numba.cuda.dispatcher", "cupy_backends")
INTERNAL += ("joblib.externals", "cupyx.jit", "modin.core", "ray._private")
"""Packages, or parts of such, without a documented interface for Python. asv documents commands and
files; its plugins are Python, and see all of it (asv's manual, *Developing*)."""

OBJECTS = {
    "_ARRAY_API": "numpy._core._multiarray_umath._ARRAY_API",
    "_add_module": "numba.core.codegen.JITCPUCodegen._add_module",
    "_cache": "numba.cuda.dispatcher.CUDADispatcher._cache",
    "_const_int": "numba.cuda.debuginfo.DIBuilder._const_int",
    "_cubin_cache": "numba.cuda.codegen.CUDACodeLibrary._cubin_cache",
    "_ee": "numba.core.codegen.JitEngine._ee",
    "_engine": "numba.core.codegen.CPUCodegen._engine",
    "_find_pycuda_include_path": "pycuda.compiler._find_pycuda_include_path",
    "_func_cache": "modin.core.execution.ray.common.RayWrapper._func_cache",
    "_generic_array": "numba.cuda.cudaimpl._generic_array",
    "_load_defined_symbols": "numba.core.codegen.JitEngine._load_defined_symbols",
    "_seed_seq": "cupy.random._bit_generator.BitGenerator._seed_seq",
    "_multiarray_umath": "numpy._core._multiarray_umath",
    "_path": "asv.plugins.git.Git._path",
    "_rlock": "multiprocessing.queues.SimpleQueue._rlock",
    "_set_module_flags": "numba.cuda.debuginfo.DIBuilder._set_module_flags",
    "_tm": "numba.core.codegen.CPUCodegen._tm",
}
"""Private names of objects of other packages, by their last part, in full."""

METHODS = {"_help_stuff_finish": "multiprocessing.pool.Pool._help_stuff_finish"}
"""Private methods of other packages that a class of ours replaces."""

DOCUMENTED = ("_asdict", "_exit", "_replace")
"""Names of Python's own library that begin with an underscore and are public."""


_CODE = "nothing lets another change the code that Numba has made"
_LINES = "nothing asks for tables of lines without the checks of `debug=True`"
_ASV = "nothing: asv documents commands and files, and its plugins see all of it"
_ON_HOST = "nothing lets others do what NVIDIA's libraries do for CuPy"
_SOFTCUDA = "nothing tells how numba-cuda is to compile, whoever decorated a kernel"
USES = {
    "analysis/changes": {
        "asv.step_detect": "nothing: `asv publish` writes steps of its own series alone",
    },
    "asv_code": {
        "asv.config.Config": _ASV,
        "asv.console.log": _ASV,
        "asv.environment.get_environments": _ASV,
        "asv.machine.Machine": _ASV,
        "asv.plugin_manager.plugin_manager": _ASV,
        "asv.plugins.git.Git._path": "nothing says where asv keeps a mirror",
        "asv.repo.get_repo": _ASV,
        "asv.runner": _ASV,
        "asv.util": _ASV,
    },
    "asv_plugin": {
        "asv.commands.make_argparser": _ASV,
        "asv.publishing.OutputPublisher": "it is asv's own way to add to what `asv publish` writes",
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
        "numba.core.codegen": _CODE,
        "numba.core.codegen.CPUCodegen._engine": _CODE,
        "numba.core.codegen.JITCPUCodegen._add_module": _CODE,
        "numba.core.codegen.JitEngine._load_defined_symbols": _CODE,
        "numba.core.compiler": _LINES,
        "numba.core.lowering": _LINES,
        "an object's _make_subtarget": _LINES,
    },
    "counts/machine": {
        "numba.core.codegen.CPUCodegen._tm": _CODE,
        "numba.core.codegen.JitEngine._ee": _CODE,
    },
    "counts/numpy_memory": dict.fromkeys(
        (
            "numpy._core",
            "numpy._core._multiarray_umath",
            "numpy._core._multiarray_umath._ARRAY_API",
        ),
        "tracemalloc, which counts no array that has gone; NumPy gives its table to C alone",
    ),
    "fleet/checkout": {
        "asv.machine.MachineCollection": "`asv machine`, which knows only all facts or none",
    },
    "measure/installing": {
        "asv.environment.EnvironmentUnavailable": _ASV,
        "asv.environment.is_existing_only": _ASV,
        "asv.repo.NoSuchNameError": _ASV,
    },
    "measure/worker": {
        "numba.np.ufunc.omppool": (
            "numba.threading_layer, which does not say whether it has started"
        ),
    },
    "results/asv_json": {
        "asv.environment.get_env_name": "result files of format 2 hold the name; those of 1 do not",
    },
    "results/asv_files": {
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
        "multiprocessing.queues.SimpleQueue._rlock": (
            "a pool whose process was killed never ends by itself"
        ),
    },
    "systems/pycuda": {
        "pycuda.compiler._find_pycuda_include_path": "nothing says where PyCUDA's headers are",
    },
    "systems/ray": {
        "ray._private.ray_constants": "nothing sets how long Ray waits for a head",
    },
    "on_host/blas": {
        "cupy_backends.cuda.libs.cublas": _ON_HOST,
    },
    "on_host/random": {
        "cupy.random._bit_generator.BitGenerator._seed_seq": "nothing gives its seed",
        "cupy.random._generator": _ON_HOST,
        "cupy.random._generator_api": _ON_HOST,
        "cupy_backends.cuda.libs.curand": _ON_HOST,
    },
    "on_host/replacements": {
        "cupy_backends.cuda.libs.cusolver": _ON_HOST,
        "cupy_backends.cuda.libs.cusparse": _ON_HOST,
    },
    "softcuda/__init__": {
        "numba.cuda.cudadrv.driver": "nothing ends Numba's contexts before the driver's library",
    },
    "softcuda/cupy": {
        "cupy_backends.cuda.api.runtime": "nothing lets another runtime answer CuPy",
    },
    "softcuda/lines": {
        "numba.cuda.debuginfo": _SOFTCUDA,
        "numba.cuda.debuginfo.DIBuilder._const_int": _SOFTCUDA,
        "numba.cuda.debuginfo.DIBuilder._set_module_flags": _SOFTCUDA,
        "numba.cuda.dispatcher": _SOFTCUDA,
        "numba.cuda.dispatcher.CUDADispatcher._cache": _SOFTCUDA,
    },
    "softcuda/local_arrays": {
        "numba.cuda.cudaimpl": "nothing leaves a local array unwritten",
        "numba.cuda.cudaimpl._generic_array": "nothing leaves a local array unwritten",
    },
    "softcuda/older": {
        "numba.cuda.codegen": "nothing lists what Numba has compiled",
        "numba.cuda.codegen.CUDACodeLibrary._cubin_cache": "nothing lists what Numba has compiled",
    },
    "softcuda/pycuda": {
        "pycuda.compiler._find_pycuda_include_path": "nothing says where PyCUDA's headers are",
    },
}
"""By the module that uses them, with its folder: private parts, and what is public in the place of
each, or why nothing is."""

PARTS: dict[str, set[str]] = {
    part: {module for module, of_module in USES.items() if part in of_module}
    for parts in USES.values()
    for part in parts
}
"""The one module of gpubench that uses each part, and the one of softcuda."""
INSTEAD = {part: instead for parts in USES.values() for part, instead in parts.items()}


def guard_of(part: str) -> str:
    """Return what tells that a part is gone, or keeps other releases away."""
    if part.startswith("asv"):
        return "pyproject.toml allows asv>=0.6.5,<0.7, which brings asv_runner"
    if part.startswith("numba.core.codegen") or "counts/hooks" in PARTS[part]:
        return "`refuse_other_hooks` of counts/hooks.py, before anything is counted"
    if part.startswith("numpy"):
        return "`numpy._core` or, where it is not there, `numpy.core`; tests/counts"
    return "the tests of the backend, with the oldest and the newest release"


def used_parts(*roots: Path) -> dict[str, set[str]]:
    """Return the private parts that modules use, each with these modules."""
    found = defaultdict[str, set[str]](set)
    for root in roots or (ROOT / "gpubench", ROOT / "softcuda/softcuda"):
        for path in sorted(root.rglob("*.py")):
            if "tests" in path.relative_to(root).parts:
                continue
            parts = path.relative_to(root.parent).with_suffix("").parts
            module = "/".join((parts if root.name == "softcuda" else parts[1:])[-2:])
            for part in _parts_of(ast.parse(path.read_text(encoding="utf-8"))):
                found[part].add(module)
    return dict(found)


def _parts_of(tree: ast.Module) -> Iterator[str]:
    own = _own_names(tree)
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
            case ast.Attribute(attr=name) if _is_underscored(name) and name not in own:
                yield OBJECTS.get(name, f"an object's {name}")
            case ast.ClassDef(bases=[_, *_], body=body):  # which may replace what a base has
                yield from (METHODS[one.name] for one in _functions(body) if one.name in METHODS)
            case ast.Constant(value=str(text)) if _is_dotted(text) and is_private(text):
                yield text
            case ast.Constant(value=str(text)) if "import " in text:
                with suppress(SyntaxError):  # a text that is code: another process runs it
                    yield from _parts_of(ast.parse(text))


def _own_names(tree: ast.Module) -> set[str]:
    """Return the private names that a module gives its own objects."""
    own = set(DOCUMENTED)
    for node in ast.walk(tree):
        match node:
            case (
                ast.ClassDef(name=name)
                | ast.FunctionDef(name=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, value=ast.Name(id="self" | "cls"))
            ):
                own.add(name)
    return own


def _functions(body: Sequence[ast.stmt]) -> Iterator[ast.FunctionDef]:
    return (one for one in body if isinstance(one, ast.FunctionDef))


def _is_underscored(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def is_private(name: str) -> bool:
    """Return whether a dotted name of another package is nothing that this promises to keep."""
    top, *inner = name.split(".")
    if top in ("gpubench", "softcuda", "") or name.startswith("asv.conf.json"):  # asv's file
        return False
    inside = any(name == each or name.startswith(f"{each}.") for each in INTERNAL)
    return inside or any(map(_is_underscored, inner))


def _is_dotted(text: str) -> bool:
    """Return whether a text names something of a package: it begins with the package's name, which
    is in lower case, and not with that of a class."""
    return "." in text and text[0].islower() and all(map(str.isidentifier, text.split(".")))


def find_missing(part: str) -> bool | None:
    """Return whether an installed package lacks a part; ``None`` where nobody can tell."""
    words = part.split(".")
    # numba-cuda takes the place of Numba's own target, whose parts are others.
    package = "numba_cuda" if words[:2] == ["numba", "cuda"] else words[0]
    if find_spec(package) is None:
        return None
    for end in range(len(words), 0, -1):
        try:
            found: object = import_module(".".join(words[:end]))
        except ImportError:
            continue
        try:
            for word in words[end:]:
                if not hasattr(found, word):  # instances alone may have it
                    return f"self.{word} =" not in inspect.getsource(found)  # type: ignore[arg-type]
                found = getattr(found, word)
        except (OSError, TypeError, ImportError):  # compiled, or it needs a library of a GPU's
            return None
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
