"""What gpubench uses of cuda-bindings, numba-cuda and NVML is there, and takes what it is given.

The uses are collected from our source, so that a new one is covered by itself; a release that takes
a function away, or changes its parameters, is told by name. Nothing here calls a driver.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from gpubench.backends import numba_cuda

if (reason := numba_cuda._compiler_fault()) is not None:
    pytest.skip(reason, allow_module_level=True)

PACKAGE = Path(__file__).parents[2] / "gpubench"

BINDINGS, NVML, NUMBA = "cuda.bindings.driver", "pynvml", "numba.cuda"
ARRAY = "numba.cuda.cudadrv.devicearray:DeviceNDArray"
CONTEXT = "numba.cuda.cudadrv.driver:Context"
PENDING = "numba.cuda.cudadrv.driver:_PendingDeallocs"

NAMES: dict[str, dict[str, str]] = {
    "backends/cuda_driver.py": {"api": BINDINGS, "self._api": BINDINGS},
    "backends/cuda_sampling.py": {"api": BINDINGS, "self._driver": BINDINGS},
    "backends/cuda_session.py": {"self._driver": BINDINGS},
    "backends/devices.py": {"pynvml": NVML, "nvml": NVML, "self._nvml": NVML},
    "backends/numba_cuda.py": {
        "cuda": NUMBA,
        "self._cuda": NUMBA,
        "self._driver": BINDINGS,
        "self._context": CONTEXT,
        "context.deallocations": PENDING,
        "context": CONTEXT,
        "native": ARRAY,
        "pristine": ARRAY,
        "target": ARRAY,
        "nvvm": "numba.cuda.cudadrv.nvvm",
        "CUDADispatcher": "numba.cuda.dispatcher:CUDADispatcher",
    },
}
"""What names and expressions stand for, by file. Kernels call Numba's target ``cuda``."""

NOT_THEIRS = {"target.launcher", "target.function", "target.source"}
"""Expressions that look like the ones above and are gpubench's own."""

ASKED = {"ask", "_ask"}
"""Functions of ``devices.py`` that are given the name of a question; a handle goes with it."""


@dataclass(frozen=True)
class Use:
    """A name of another package in our source, and what it is called with where it is called."""

    owner: str
    name: str
    arguments: tuple[str, ...] | None = None
    """``""`` for an argument by position, else its keyword; ``None`` where nothing is called or the
    number of arguments depends."""

    def __str__(self) -> str:
        given = "" if self.arguments is None else f"({', '.join(a or '_' for a in self.arguments)})"
        return f"{self.owner.rpartition(':')[2]}.{self.name}{given}"


def uses_in(source: str, names: Mapping[str, str]) -> Iterator[Use]:
    """Each import, and each attribute of what ``names`` stand for, with its arguments where it is
    called."""
    tree = ast.parse(source)
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) not in NOT_THEIRS:
            yield from _use(node, calls.get(id(node)), names)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ASKED:
            yield from _question(node)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba."):
            yield from (Use(node.module or "", imported.name) for imported in node.names)


def _use(node: ast.Attribute, call: ast.Call | None, names: Mapping[str, str]) -> Iterator[Use]:
    chain: list[str] = []
    base: ast.expr = node
    while isinstance(base, ast.Attribute):
        chain.insert(0, base.attr)
        base = base.value
        if (owner := names.get(ast.unparse(base))) is not None:
            yield Use(owner, ".".join(chain), None if call is None else _arguments(call))
            return


def _question(call: ast.Call) -> Iterator[Use]:
    """``ask("nvmlDeviceGetMemoryInfo")`` and ``_ask(nvml, "nvmlDeviceGetHandleByUUID", uuid)``."""
    texts = [i for i, given in enumerate(call.args) if isinstance(given, ast.Constant)]
    if texts:
        first = call.args[texts[0]]
        assert isinstance(first, ast.Constant)
        count = len(call.args) - texts[0] - 1 + (ast.unparse(call.func) == "ask")
        yield Use(NVML, first.value, ("",) * count)


def _arguments(call: ast.Call) -> tuple[str, ...] | None:
    if any(isinstance(given, ast.Starred) for given in call.args):
        return None
    if any(keyword.arg is None for keyword in call.keywords):
        return None
    return ("",) * len(call.args) + tuple(keyword.arg or "" for keyword in call.keywords)


def fault(use: Use) -> str | None:
    """What the installed package says to a use: ``None``, or what is wrong with it by name."""
    *outer, last = use.name.split(".")
    try:
        owner = resolve_name(use.owner)
        for name in outer:
            owner = getattr(owner, name)
        found = _attribute(owner, last)
    except (ImportError, AttributeError) as error:
        return f"{use}: {error}"
    parameters = _parameters(found)
    if use.arguments is None or parameters is None:
        return None
    if parameters and parameters[0].name == "self":
        _, *parameters = parameters
    named = {name: None for name in use.arguments if name}
    try:
        inspect.Signature(parameters).bind(*[None] * use.arguments.count(""), **named)
    except TypeError as error:
        return f"{use}: {error}; it takes {inspect.Signature(parameters)}"
    return None


def _attribute(owner: Any, name: str) -> Any:
    """An attribute of a module, of a class or of its instances."""
    made = getattr(owner, "__init__", None)
    if inspect.isfunction(made) and f"self.{name} = " in inspect.getsource(made):
        return None
    return getattr(owner, name)


def _parameters(found: Any) -> list[inspect.Parameter] | None:
    """Parameters of a function; ``None`` for what is called in kernels alone and tells none.

    What kernels call is either written as an intrinsic, whose function has the typing context
    before what a kernel gives, or a class without a body whose text begins with the signature.
    """
    if (definition := getattr(found, "_defn", None)) is not None:
        _, *parameters = inspect.signature(definition).parameters.values()
        return parameters
    if not inspect.isclass(found):
        return list(inspect.signature(found).parameters.values()) if callable(found) else None
    text, _, _ = (found.__doc__ or "").strip().partition(")")
    name, _, parameters_text = text.partition("(")
    if name != found.__name__:
        return None
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [inspect.Parameter(one.strip(), kind) for one in parameters_text.split(",")]


def all_uses() -> list[Use]:
    uses = [
        use for file, names in NAMES.items() for use in uses_in((PACKAGE / file).read_text(), names)
    ]
    for file in PACKAGE.glob("kernels/*.py"):
        uses += uses_in(file.read_text(), {"cuda": NUMBA})
    return sorted(set(uses), key=str)


USES = all_uses()


@pytest.mark.parametrize("use", USES, ids=str)
def test_what_is_used_is_there_and_takes_what_it_is_given(use: Use) -> None:
    assert fault(use) is None


@pytest.mark.parametrize(
    "use",
    [
        Use(BINDINGS, "cuStreamWaitValue32", ("",) * 4),
        Use(BINDINGS, "CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL"),
        Use(BINDINGS, "cuGraphInstantiate", ("", "")),
        Use(NVML, "nvmlDeviceGetClockInfo", ("", "")),
        Use(NUMBA, "to_device", ("", "stream")),
        Use(NUMBA, "atomic.add", ("", "", "")),
        Use(NUMBA, "syncthreads", ()),
        Use(ARRAY, "copy_to_host", ("stream",)),
        Use(BINDINGS, "cuEventElapsedTime", ("", "")),
        Use(CONTEXT, "pop"),
        Use(PENDING, "clear"),
        Use(BINDINGS, "cuDeviceGetAttribute", ("", "")),
        Use(BINDINGS, "CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE"),
        Use("numba.cuda.core", "config"),
    ],
    ids=str,
)
def test_uses_are_found_in_every_part_of_our_source(use: Use) -> None:
    assert use in USES


@pytest.mark.parametrize(
    ("line", "fragment"),
    [
        ("api.cuGraphLanch(graph, stream)", "has no attribute 'cuGraphLanch'"),
        ("api.cuGraphLaunch(graph)", "missing a required argument"),
        ("api.cuGraphLaunch(graph, stream, 0)", "too many positional arguments"),
        ("api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_WORLD", "CU_STREAM_CAPTURE_MODE_WORLD"),
        ("cuda.to_device(array, strem=stream)", "unexpected keyword argument 'strem'"),
        ("cuda.grid(1, 2)", "too many positional arguments"),
        ("cuda.atomic.add(array, 1)", "missing a required argument: 'val'"),
        ("cuda.atomic.ad(array, 0, 1)", "has no attribute 'ad'"),
        ("api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L3_CACHE_SIZE", "L3_CACHE_SIZE"),
        ("ask('nvmlDeviceGetMemoryInf')", "has no attribute 'nvmlDeviceGetMemoryInf'"),
        ("ask('nvmlDeviceGetClockInfo')", "missing a required argument: 'type'"),
    ],
)
def test_what_a_release_would_take_away_is_told_by_name(line: str, fragment: str) -> None:
    names = {"api": BINDINGS, "cuda": NUMBA}
    faults = [found for use in uses_in(line, names) if (found := fault(use)) is not None]
    assert faults
    assert fragment in faults[0]


def test_everything_of_the_session_that_is_numbas_has_a_name_in_this_file() -> None:
    """An attribute of a parameter, or of a call's result, would be passed over otherwise."""
    file = "backends/numba_cuda.py"
    (session,) = (
        node
        for node in ast.parse((PACKAGE / file).read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "NumbaCudaSession"
    )
    unnamed = [
        ast.unparse(node)
        for method in session.body
        if isinstance(method, ast.FunctionDef)
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and _may_be_numbas(node.value, method)
        if ast.unparse(node.value) not in NAMES[file] and ast.unparse(node) not in NOT_THEIRS
    ]
    assert unnamed == []


def _may_be_numbas(value: ast.expr, method: ast.FunctionDef) -> bool:
    """What a call of Numba returns, and a parameter whose annotation tells nothing."""
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).startswith("self._cuda.")
    untyped = {
        argument.arg
        for argument in method.args.args
        if argument.annotation is not None and ast.unparse(argument.annotation) in ("Any", "Native")
    }
    return isinstance(value, ast.Name) and value.id in untyped


@pytest.mark.parametrize(
    ("names", "module"),
    [
        (numba_cuda._KERNELS, "numba.cuda.dispatcher"),
        (numba_cuda._UFUNCS, "numba.cuda.vectorizers"),
        (numba_cuda._ERRORS - {"CUDAError"}, "numba.cuda.cudadrv.driver"),
    ],
)
def test_types_that_are_recognised_by_name_are_there(names: frozenset[str], module: str) -> None:
    there = dir(resolve_name(module)) + dir(resolve_name("numba.cuda.cudadrv.error"))
    assert names - set(there) == set()
