"""Compiles CUDA kernels of Numba on a machine without a GPU, and reads what they need of one.

Compiling takes a process of its own, because Numba looks for NVVM once. The compiler comes from the
wheels ``nvidia-nvvm`` and ``nvidia-cuda-nvcc``, which the ``test`` extra installs on Linux, or else
from a CUDA toolkit. It has to be of CUDA 13: earlier ones refuse the atomic addition that Numba
writes.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

ARCHITECTURES = ((7, 5), (8, 0), (9, 0), (10, 0))
"""Turing, Ampere, Hopper, Blackwell: the oldest that CUDA 13 compiles for, and data centres'."""


@dataclass(frozen=True)
class Toolkit:
    """Where the parts of a compiler lie; all of one release."""

    nvvm: Path
    libdevice: Path
    ptxas: Path


@dataclass(frozen=True)
class Resources:
    """What one thread and one block of a kernel take on an architecture."""

    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int


def find_toolkit() -> Toolkit | None:
    """The first of wheels, ``CUDA_HOME`` and ``/usr/local/cuda`` that has every part."""
    namespace = importlib.util.find_spec("nvidia")
    packages = namespace.submodule_search_locations if namespace else None
    roots = [Path(folder, "cu13") for folder in packages or ()]
    roots.append(Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")))
    return next(filter(None, map(_toolkit_in, roots)), None)


def _toolkit_in(root: Path) -> Toolkit | None:
    """CUDA 13 keeps the library beside the others, earlier releases keep it apart."""
    folders = ("lib", "lib64", "nvvm/lib64")
    libraries = [found for folder in folders for found in root.glob(f"{folder}/libnvvm.so*")]
    libdevice, ptxas = root / "nvvm/libdevice", root / "bin/ptxas"
    if libraries and libdevice.is_dir() and ptxas.is_file():
        return Toolkit(libraries[0], libdevice, ptxas)
    return None


def make_cuda_home(toolkit: Toolkit, folder: Path) -> Path:
    """Lay the toolkit out the way Numba looks for it below ``CUDA_HOME``.

    Numba asks for ``nvvm/lib64/libnvvm.so.<version>``, as releases before CUDA 13 had it.
    """
    (folder / "nvvm/lib64").mkdir(parents=True)
    (folder / "nvvm/lib64/libnvvm.so.4").symlink_to(toolkit.nvvm)
    (folder / "nvvm/libdevice").symlink_to(toolkit.libdevice)
    return folder


def compile_ptx(kernel: Any, signature: tuple[Any, ...]) -> dict[str, str]:
    """PTX of a kernel for argument types, by the names of the architectures.

    Numba makes the same intermediate code for all of them; NVVM compiles it for each.
    """
    from numba import cuda
    from numba.core import config
    from numba.cuda.codegen import CUDACodeLibrary

    def ptx_of(library: CUDACodeLibrary, cc: tuple[int, int]) -> dict[str, str]:
        made = {}
        for architecture in ARCHITECTURES:
            # The target inside Numba takes anything above 9.0 for 9.0 unless it is forced;
            # numba-cuda compiles for what it is asked.
            config.FORCE_CUDA_CC = architecture
            made[name(architecture)] = one(library, cc=architecture)
        return made

    one, least = CUDACodeLibrary.get_asm_str, min(ARCHITECTURES)
    # Device functions that a kernel calls ask the current device what to compile for.
    device = SimpleNamespace(compute_capability=least)
    with (
        patch("numba.cuda.dispatcher.get_current_device", lambda: device),
        patch.object(CUDACodeLibrary, "get_asm_str", ptx_of),
    ):
        made: dict[str, str] = cuda.compile_ptx(kernel.py_func, signature, cc=least)[0]
    return made


def read_resources(ptx: str, architecture: tuple[int, int], ptxas: Path) -> Resources:
    """Assemble PTX and read what ``ptxas -v`` says of its only kernel."""
    command = [str(ptxas), "-v", f"-arch={name(architecture)}", "-o", os.devnull, "-"]
    done = subprocess.run(command, input=ptx, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Resources(
        registers=_number(r"Used (\d+) registers", done.stderr),
        shared_bytes=_number(r"(\d+) bytes smem", done.stderr),
        stack_bytes=_number(r"(\d+) bytes stack frame", done.stderr),
        spill_bytes=_number(r"(\d+) bytes spill stores", done.stderr),
    )


def _number(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return int(match[1]) if match else 0


def name(architecture: tuple[int, int]) -> str:
    """``sm_90`` for ``(9, 0)``."""
    return "sm_{}{}".format(*architecture)
