"""Compiles every CUDA kernel of every suite to PTX, for the types that the suite calls it with.

Run as a program it prints the PTX as JSON; ``cuda_compiler`` tells why that is a process of its own
and where the compiler comes from. What a launcher queues is found by calling it with kernels that
only note what they are launched with.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from cuda_compiler import ARCHITECTURES, compile_ptx
from cuda_compiler import name as architecture_name
from library_cases import checked_cases, small_plan

from gpubench.backends.protocol import LaunchContext, Target
from gpubench.kernels.lazy_numba import resolve
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.targets import load_target
from gpubench.plan.case import Case

Queued = tuple[Any, tuple[Any, ...]]


class NotingKernel:
    """Stands for a kernel and notes the arguments of its launches."""

    def __init__(self, kernel: Any, queued: list[Queued]) -> None:
        self._kernel = kernel
        self._queued = queued

    def __getitem__(self, _: Any) -> Any:
        return lambda *arguments: self._queued.append((self._kernel, arguments))


def compiled_library() -> dict[str, str]:
    """PTX by ``suite.kernel.implementation function(types) sm_90``, and so on."""
    found: dict[str, str] = {}
    for case in checked_cases(small_plan(), ("numba_cuda",)):
        for kernel, signature in _signatures(case):
            for architecture in ARCHITECTURES:
                title = f"{_title(case, kernel, signature)} {architecture_name(architecture)}"
                if title not in found:
                    found[title] = compile_ptx(kernel, signature, architecture)
    return found


def _title(case: Case, kernel: Any, signature: tuple[Any, ...]) -> str:
    constants = "".join(f" {name}={value}" for name, value in case.with_values().items())
    types = ", ".join(str(argument).replace(" ", "") for argument in signature)
    where = f"{case.suite.suite}.{case.kernel_name}.{case.implementation_name}{constants}"
    return f"{where} {kernel.py_func.__name__}({types})"


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
    json.dump(compiled_library(), sys.stdout)
