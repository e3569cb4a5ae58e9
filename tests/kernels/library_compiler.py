"""Compiles and links every CUDA kernel of every suite, for the types that the suite calls it with.

What a launcher queues is found by calling it with kernels that only note what they are launched
with.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from importlib.metadata import distributions
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
from cuda_compiler import ARCHITECTURES, Compiled, compile_kernel
from library_cases import checked_cases, small_plan

from gpubench.backends import software
from gpubench.backends.protocol import Target
from gpubench.environment import environment
from gpubench.kernels.lazy_numba import resolve
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.targets import load_target
from gpubench.plan.case import Case

PROCESSES = 2
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OF_RESULTS = ("analysis", "cli", "fleet", "report", "results", "scaffold", "tables")
"""Rooms of the engine that no kernel is compiled by."""
SETTINGS = ("NUMBA_", "CUDA_", "NVVM", "LIBRARY_")
"""Beginnings of variables that may change what is compiled."""
Queued = tuple[Any, tuple[Any, ...]]


class NotingKernel:
    """Stands for a kernel and notes the arguments of its launches."""

    def __init__(self, kernel: Any, queued: list[Queued]) -> None:
        self._kernel = kernel
        self._queued = queued

    def __getitem__(self, _: Any) -> Any:
        return lambda *arguments: self._queued.append((self._kernel, arguments))


def compile_some(*implementations: str) -> dict[str, Compiled]:
    """Some kernels by title, as of ``compile_library``, by ``suite.kernel.implementation``."""
    real_linker = environment({software.SWITCH: None})
    with real_linker, ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        made = pool.map(_compile_implementation, implementations)
        return {title: compiled for each in made for title, compiled in each.items()}


def compile_library(folder: Path | None = None) -> dict[str, Compiled]:
    """All CUDA kernels by title: ``suite.kernel.implementation function(types)``, with constants
    before the function. Compiled side by side, by processes that have nothing of this one's, nor
    the device in software, whose linker leaves PTX.

    A folder keeps them for the next run, under the digest of all that they are made from.
    """
    kept = folder and folder / f"{digest()}.json"
    if kept and kept.exists():
        return msgspec.json.decode(kept.read_bytes(), type=dict[str, Compiled])
    library = compile_some(*_implementations())
    if kept:
        for other in kept.parent.glob("*.json"):
            other.unlink()
        part = kept.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(library))
        part.replace(kept)
    return library


def digest() -> str:
    """Of what the kernels are made from: sources, suites, architectures, all that is installed,
    and settings of the compilers."""
    installed = sorted(f"{each.name} {each.version}" for each in distributions())
    settings = sorted(each for each in os.environ.items() if each[0].startswith(SETTINGS))
    value = hashlib.sha256(repr((sys.version, ARCHITECTURES, installed, settings)).encode())
    for path in made_from():
        value.update(f"{path.relative_to(ROOT)} {path.stat().st_size}\n".encode())
        value.update(path.read_bytes())
    return value.hexdigest()


def made_from() -> list[Path]:
    """The suites, these tests, and all modules but those that read results."""
    modules = (
        path
        for path in (ROOT / "gpubench").rglob("*.py")
        if path.relative_to(ROOT / "gpubench").parts[0] not in OF_RESULTS
    )
    return sorted([*modules, *(ROOT / "suites").rglob("*.yaml"), *HERE.glob("*.py")])


@cache
def _implementations() -> dict[str, list[Case]]:
    cases: dict[str, list[Case]] = defaultdict(list)
    for case in checked_cases(small_plan(own_parameters=True), ("numba_cuda",)):
        cases[_implementation(case)].append(case)
    return cases


def _compile_implementation(implementation: str) -> dict[str, Compiled]:
    compiled: dict[str, Compiled] = {}
    for case in _implementations()[implementation]:
        for kernel, signature in _signatures(case):
            title = _title(case, kernel, signature)
            if title not in compiled:
                compiled[title] = compile_kernel(kernel, signature)
    return compiled


def _title(case: Case, kernel: Any, signature: tuple[Any, ...]) -> str:
    constants = "".join(f" {name}={value}" for name, value in case.with_values().items())
    types = ", ".join(str(argument).replace(" ", "") for argument in signature)
    return f"{_implementation(case)}{constants} {kernel.py_func.__name__}({types})"


def _implementation(case: Case) -> str:
    return f"{case.suite.suite}.{case.kernel_name}.{case.implementation_name}"


def _signatures(case: Case) -> Iterator[Queued]:
    """Kernels that a case queues, with the types of their arguments."""
    import numba

    inputs = draw_inputs(case)
    scope = {**case.values, **inputs.scalars, **inputs.arrays}
    arguments = tuple(scope[name] for name in case.kernel.call)
    for kernel, given in _queued(load_target(case), case, arguments):
        yield kernel, tuple(map(numba.typeof, given))


def _queued(target: Target, case: Case, arguments: tuple[Any, ...]) -> list[Queued]:
    if target.launcher is None:
        return [(target.function, arguments)]
    queued: list[Queued] = []
    namespace = target.launcher.__globals__
    kernels = {name: resolve(found) for name, found in list(namespace.items())}
    noting = {
        name: NotingKernel(found, queued) for name, found in kernels.items() if _is_kernel(found)
    }
    assert case.launch is not None
    with patch.dict(namespace, noting):
        target.launcher(replace(case.launch, stream=0), *arguments)
    assert queued, f"{case.implementation_name} queues no kernel"
    return queued


def _is_kernel(found: Any) -> bool:
    if type(found).__name__ != "CUDADispatcher":
        return False
    return not found.targetoptions.get("device", False)
