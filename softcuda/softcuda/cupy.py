"""CuPy on the device in software: what its runtime module answers is answered by the driver.

CuPy's other modules reach the functions of ``cupy_backends.cuda.api.runtime`` through a table of
pointers, ``__pyx_capi__``. ``connect`` puts functions of the same types into the table before those
modules read it; they call softcuda's driver (``native/cupy/runtime.c``). Why is in the README.

What calls NVIDIA's runtime by itself does not run: cuBLAS, cuFFT, cuRAND, cuSOLVER, cuSPARSE, CUB
and Thrust. ``on_host`` does on the host what programs ask most of these, and refuses the rest by
name.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import os
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from softcuda.build import UnavailableError, build_for_cupy, find_cuda_header

_SOURCE = Path(__file__).parent / "native" / "cupy" / "runtime.c"
_MODULE = "cupy_backends.cuda.api.runtime"

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]

_signatures: list[bytes] = []
"""The types of our functions: a capsule keeps no copy of its name."""

_C_TYPES: dict[str, Any] = {
    "PyObject *": ctypes.py_object,
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "size_t": ctypes.c_size_t,
    "intptr_t": ctypes.c_ssize_t,
    "uintmax_t": ctypes.c_size_t,
    "cudaMemcpyKind": ctypes.c_int,
    "float": ctypes.c_float,
}
_NEEDED = {"check_status", "malloc", "free", "memcpyAsync", "streamSynchronize", "eventRecord"}
"""Functions without which no array would come back."""
_RENAMED = {name: f"{name}_device" for name in ("malloc", "free", "memcpy", "memset")}
"""Names that C's library has too."""


class _Loader(SourceFileLoader):
    """Loads CuPy, connected. To be asked whether there is CuPy loads nothing."""

    def exec_module(self, module: ModuleType) -> None:
        try:
            connect()
            from softcuda.on_host import replacements  # which imports NumPy

            replacements.load_libraries()
        except UnavailableError as error:
            raise ImportError(str(error)) from error
        super().exec_module(module)
        replacements.replace_functions()


class _Finder(MetaPathFinder):
    """Finds CuPy where Python does."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name == "cupy" else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin)
        return spec


def connect_on_import() -> None:
    """Have CuPy run on softcuda when it is imported, if it is not yet."""
    if "cupy" not in sys.modules:
        sys.meta_path.insert(0, _Finder())


@cache
def connect() -> None:
    """Have CuPy run on softcuda, once in a process, after ``softcuda.start()`` and before CuPy is
    imported.

    Raises ``UnavailableError`` where Python's headers are missing or CuPy is one whose runtime
    module has other functions.
    """
    # softcuda's machine code is PTX. CUB would bring NVIDIA's runtime into sums.
    os.environ |= {"CUPY_COMPILE_WITH_PTX": "1", "CUPY_ACCELERATORS": ""}
    includes = (find_cuda_header(), Path(sysconfig.get_paths()["include"]))
    if not (includes[1] / "Python.h").is_file():
        raise UnavailableError(
            f"CuPy on the device in software needs Python.h, which is not in {includes[1]}; "
            "install Python's headers (Debian: apt install python3-dev)"
        )
    ours = ctypes.PyDLL(str(build_for_cupy(_SOURCE, includes)), mode=ctypes.RTLD_GLOBAL)
    runtime: Any = importlib.import_module(_MODULE)
    table: dict[str, Any] = getattr(runtime, "__pyx_capi__", {})
    if missing := _NEEDED - table.keys():
        raise UnavailableError(
            f"this CuPy has no {', '.join(sorted(missing))} in {_MODULE}; softcuda was made with "
            "CuPy 14.2"
        )
    ours.softcuda_cupy_begin.argtypes = [ctypes.py_object, ctypes.py_object]
    ours.softcuda_cupy_begin.restype = None
    driver = ctypes.CDLL("libcuda.so.1")
    driver.softcuda_keep_default_stream()
    atexit.register(_wait_for_calls, ours, driver)
    ours.softcuda_cupy_begin(runtime.CUDARuntimeError, runtime.PointerAttributes)
    for name, capsule in list(table.items()):
        function = getattr(ours, _RENAMED.get(name, name), None)
        if function is None:
            continue
        signature = _get_name(capsule)
        _signatures.append(signature)
        table[name] = _new_capsule(ctypes.cast(function, ctypes.c_void_p), signature, None)
        if hasattr(runtime, name):
            setattr(runtime, name, _python_function(function, signature.decode()))


def _wait_for_calls(ours: ctypes.PyDLL, driver: ctypes.CDLL) -> None:
    """Wait for streams that call Python: a thread that asks for it when it is gone never ends."""
    if ours.softcuda_cupy_calls_python():
        driver.cuCtxSynchronize()


def _python_function(function: Any, signature: str) -> Callable[..., Any]:
    """Return the same function for Python: the number that Cython passes after what is required is
    0."""
    result, _, parameters = signature.partition("(")
    names = [name.strip() for name in parameters.rstrip(")").split(",")]
    required = [name for name in names if "struct __pyx_opt_args" not in name]
    types = [_type_of(name.removesuffix(" __pyx_skip_dispatch")) for name in required]
    has_option = len(required) < len(names)
    function.restype = _type_of(result.strip())
    function.argtypes = [*types, ctypes.c_void_p] if has_option else types
    count = len(types) - 1

    def call(*arguments: Any, **named: Any) -> Any:
        given = (*arguments, *named.values())
        if not has_option:
            return function(*given, 0)
        options = (ctypes.c_int * 2)(len(given) > count, *given[count:])
        return function(*given[:count], 0, ctypes.addressof(options))

    return call


def _type_of(name: str) -> Any:
    """Return the type of a parameter or result: a struct of Cython's is an object of Python's."""
    return ctypes.py_object if name.startswith("struct ") else _C_TYPES[name]
