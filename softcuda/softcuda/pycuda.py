"""PyCUDA's ``SourceModule`` on the device in software: NVRTC compiles to PTX in place of nvcc.

nvcc makes machine code of GPUs, and may not be there. NVRTC comes with numba-cuda.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from softcuda.build import find_cuda_header
from softcuda.importing import change_on_import


def compile_by_nvrtc_on_import() -> None:
    """Have PyCUDA compile by NVRTC when its compiler is imported."""
    change_on_import("pycuda.compiler", _replace_compiler)


def _replace_compiler(compiler: Any) -> None:
    compiler.compile = compile_to_ptx


def compile_to_ptx(
    source: str,
    nvcc: str = "nvcc",
    options: Sequence[str] | None = None,
    keep: bool = False,
    no_extern_c: bool = False,
    arch: str | None = None,
    code: str | None = None,
    cache_dir: str | None = None,
    include_dirs: Sequence[str] = (),
    target: str = "cubin",
) -> bytes:
    """Return the PTX of a program, for the device of the current context or for ``arch``.

    ``pycuda.compiler.compile`` has these arguments. What only means something for nvcc is left out,
    and nothing is kept on disk. Raises PyCUDA's ``CompileError`` for a program that does not
    compile.
    """
    driver, compiler = import_module("pycuda.driver"), import_module("pycuda.compiler")
    if arch is None:
        arch = "sm_{}{}".format(*driver.Context.get_device().compute_capability())
    folders = [*include_dirs, compiler._find_pycuda_include_path(), str(find_cuda_header())]
    flags = [f"--gpu-architecture={arch.replace('sm_', 'compute_')}", *(options or ())]
    text = source if no_extern_c else f'extern "C" {{\n{source}\n}}\n'
    return _compile(text, [*flags, *(f"-I{folder}" for folder in folders)], driver.CompileError)


def _compile(text: str, flags: Sequence[str], error: Callable[..., Exception]) -> bytes:
    nvrtc = import_module("cuda.bindings.nvrtc")
    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"source.cu", 0, [], [])

    def read(size_of: Callable[..., Any], fill: Callable[..., Any]) -> bytes:
        room = b" " * int(size_of(program)[1])
        fill(program, room)
        return room

    try:
        (status,) = nvrtc.nvrtcCompileProgram(
            program, len(flags), [flag.encode() for flag in flags]
        )
        # An empty log is one byte, and Python has one object for each of these: writing into it
        # would change all blanks of the process.
        if status != 0:
            log = read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
            said = log.decode(errors="replace").rstrip("\0")
            what = "NVRTC, which compiles in place of nvcc on softcuda, refused the program"
            raise error(f"{what}:\n{said}", ["nvrtc", *flags], stderr=said)
        return read(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
