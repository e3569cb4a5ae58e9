"""Compiles and links CUDA kernels as numba-cuda does on a GPU, on a machine that has none.

numba-cuda makes LTO-IR with NVVM, and nvJitLink links it to the machine code of the device. Both
come from the wheels of ``gpubench-suite[cuda]`` and need no driver. All that numba-cuda wants of a
device meanwhile is its compute capability, which ``_device`` gives it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from gpubench.backends import numba_cuda

Capability = tuple[int, int]

EVERY_ARCHITECTURE = "GPUBENCH_EVERY_ARCHITECTURE"
"""The variable that asks for all of them: `make docs` and `make test-thorough` set it. Each takes a
quarter of the time that the library takes to be linked."""

ALL_ARCHITECTURES: dict[Capability, str] = {
    (7, 5): "sm_75",
    (8, 0): "sm_80",
    (9, 0): "sm_90a",
    (10, 0): "sm_100a",
}
"""Turing, Ampere, Hopper, Blackwell: the oldest that CUDA 13 compiles for, and data centres', with
what numba-cuda asks the linker for. From Hopper on it asks for all that the architecture has, hence
the ``a``."""

ARCHITECTURES = {
    capability: name
    for capability, name in ALL_ARCHITECTURES.items()
    if capability in ((7, 5), (9, 0)) or os.environ.get(EVERY_ARCHITECTURE)
}
"""Those that are linked for: the oldest, and one from which on numba-cuda asks for more."""

SHOWN: Capability = (9, 0)
"""The architecture whose PTX is kept to be looked at."""


@dataclass(frozen=True)
class Resources:
    """What one thread and one block of a kernel take on an architecture."""

    architecture: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int


@dataclass(frozen=True)
class Compiled:
    """A kernel for given types of its arguments, linked for each architecture."""

    ptx: str
    """What nvJitLink makes machine code of, for ``SHOWN``."""
    needs: dict[str, Resources]
    """By architecture, ``sm_90a`` for example."""


def missing() -> str | None:
    """What this machine lacks to compile and link; ``None`` where it has all."""
    if (fault := numba_cuda._compiler_fault()) is not None:
        return fault
    from numba.cuda.cudadrv.driver import _have_nvjitlink

    return None if _have_nvjitlink() else "nvJitLink is missing; pip install 'gpubench-suite[cuda]'"


def linker_version() -> str:
    """nvJitLink's, ``13.0`` for example."""
    from cuda.bindings import nvjitlink

    return ".".join(map(str, nvjitlink.version()))


def compile_kernel(kernel: Any, signature: tuple[Any, ...]) -> Compiled:
    """Link a kernel for argument types, with the options that it was decorated with.

    Numba makes the same intermediate code for all architectures; NVVM and nvJitLink do the rest for
    each. A GPU gets what ``get_cubin`` returns.
    """
    from numba.cuda.dispatcher import _Kernel

    with _device(min(ARCHITECTURES)):
        library = _Kernel(kernel.py_func, signature, **kernel.targetoptions).library
    needs: dict[str, Resources] = {}
    for capability, architecture in ARCHITECTURES.items():
        with _device(capability), _assembler_tells():
            library.get_cubin()
            needs[architecture] = read_resources(library.get_linkerinfo(library._ensure_cc(None)))
    with _device(SHOWN):
        return Compiled(library.get_lto_ptx(), needs)


@contextmanager
def _device(capability: Capability) -> Iterator[None]:
    """Let numba-cuda see a device with a compute capability and nothing else."""
    context = SimpleNamespace(device=SimpleNamespace(compute_capability=capability))

    def current(ordinal: int | None = None) -> Any:
        return context

    with (
        patch("numba.cuda.api.current_context", current),
        patch("numba.cuda.cudadrv.devices.get_context", current),
    ):
        yield


@contextmanager
def _assembler_tells() -> Iterator[None]:
    """Have the assembler inside nvJitLink write down what each kernel needs.

    Its log is the one source for what runs: the machine code is made there, of code that link-time
    optimisation has changed. ``ptxas`` on the PTX is another program, perhaps of another release;
    the machine code itself tells registers, but not what was spilled.
    """
    from numba.cuda.cudadrv.driver import _Linker

    options_of = _Linker._get_linker_options

    def with_log(linker: Any, ptx: bool) -> Any:
        options = options_of(linker, ptx)
        options.ptxas_options = ["-v"]
        return options

    with patch.object(_Linker, "_get_linker_options", with_log):
        yield


def read_resources(log: str) -> Resources:
    """What the assembler says of the only kernel of a link, and of functions that it calls."""
    (entry,) = re.findall(r"Compiling entry function '\w+' for '(\w+)'", log)
    return Resources(
        architecture=entry,
        registers=max(_numbers(r"Used (\d+) registers", log)),
        shared_bytes=max(_numbers(r"(\d+) bytes smem", log), default=0),
        stack_bytes=max(_numbers(r"(\d+) bytes stack frame", log)),
        spill_bytes=sum(_numbers(r"(\d+) bytes spill stores", log)),
    )


def _numbers(pattern: str, text: str) -> list[int]:
    return [int(number) for number in re.findall(pattern, text)]
