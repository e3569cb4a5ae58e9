"""Compiles every CUDA kernel of every suite to PTX, for the types that the suite calls it with.

Run as a program it prints the PTX of every so many implementations as JSON; ``cuda_compiler`` tells
why that is a process of its own and where the compiler comes from. What a launcher queues is found
by calling it with kernels that only note what they are launched with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cuda_compiler import (
    ARCHITECTURES,
    Resources,
    Toolkit,
    compile_ptx,
    make_cuda_home,
    read_resources,
)
from cuda_compiler import name as architecture_name
from library_cases import checked_cases, small_plan

from gpubench.backends.protocol import LaunchContext, Target
from gpubench.kernels.lazy_numba import resolve
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.targets import load_target
from gpubench.plan.case import Case

PROCESSES = 2
Queued = tuple[Any, tuple[Any, ...]]


class NotingKernel:
    """Stands for a kernel and notes the arguments of its launches."""

    def __init__(self, kernel: Any, queued: list[Queued]) -> None:
        self._kernel = kernel
        self._queued = queued

    def __getitem__(self, _: Any) -> Any:
        return lambda *arguments: self._queued.append((self._kernel, arguments))


def compile_library(toolkit: Toolkit, folder: Path) -> dict[str, str]:
    """PTX of all CUDA kernels, by title, compiled by two processes side by side."""
    environment = os.environ | {"CUDA_HOME": str(make_cuda_home(toolkit, folder))}
    commands = [[sys.executable, __file__, str(part), str(PROCESSES)] for part in range(PROCESSES)]
    running = [
        subprocess.Popen(one, env=environment, stdout=subprocess.PIPE, text=True)
        for one in commands
    ]
    printed = [process.communicate()[0] for process in running]
    assert not any(process.returncode for process in running), "compiling failed, see above"
    return {title: ptx for text in printed for title, ptx in json.loads(text).items()}


def resources_of(ptx: Mapping[str, str], toolkit: Toolkit) -> dict[str, Resources]:
    """What each kernel needs on its architecture, by the title of its PTX."""
    architectures = {architecture_name(one): one for one in ARCHITECTURES}

    def read(title: str) -> Resources:
        return read_resources(ptx[title], architectures[title.rpartition(" ")[2]], toolkit.ptxas)

    with ThreadPoolExecutor(PROCESSES) as pool:
        return dict(zip(ptx, pool.map(read, ptx), strict=True))


def compiled_part(part: int, parts: int) -> dict[str, str]:
    """PTX by ``suite.kernel.implementation function(types) sm_90``, and so on."""
    found: dict[str, str] = {}
    compiled: set[str] = set()
    cases = checked_cases(small_plan(own_parameters=True), ("numba_cuda",))
    for case in (case for case in cases if zlib.crc32(_group(case).encode()) % parts == part):
        for kernel, signature in _signatures(case):
            title = _title(case, kernel, signature)
            if title not in compiled:
                compiled.add(title)
                made = compile_ptx(kernel, signature)
                found |= {f"{title} {architecture}": ptx for architecture, ptx in made.items()}
    return found


def _title(case: Case, kernel: Any, signature: tuple[Any, ...]) -> str:
    constants = "".join(f" {name}={value}" for name, value in case.with_values().items())
    types = ", ".join(str(argument).replace(" ", "") for argument in signature)
    return f"{_group(case)}{constants} {kernel.py_func.__name__}({types})"


def _group(case: Case) -> str:
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
    launch = case.launch
    context = LaunchContext(0, launch.grid, launch.block, launch.shared_bytes)
    with patch.dict(namespace, noting):
        target.launcher(context, *arguments)
    assert queued, f"{case.implementation_name} queues no kernel"
    return queued


def _is_kernel(found: Any) -> bool:
    if type(found).__name__ != "CUDADispatcher":
        return False
    return not found.targetoptions.get("device", False)


if __name__ == "__main__":
    json.dump(compiled_part(*map(int, sys.argv[1:])), sys.stdout)
