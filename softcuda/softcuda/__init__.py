"""A CUDA device in software: a look-alike of NVIDIA's driver that runs kernels on the CPU.

It stands in for ``libcuda.so.1`` and ``libnvidia-ml.so.1`` in this process, so that numba-cuda,
cuda-bindings and cuda-core run as they are; PTX is translated to C and compiled by the C compiler
at hand. It has no times that mean anything. ``README.md`` says how it works.

    import softcuda
    device = softcuda.start()      # before anything else loads a CUDA driver
    ...                            # import numba.cuda and use it
    print(*device.reports(), sep="\\n")

(PYTEST_DONT_REWRITE: pytest would warn where this is imported before it looks for plugins.)
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import os
import platform
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from softcuda import cupy, lines, local_arrays, pycuda
from softcuda.build import (
    INSTALL_CUDA,
    Libraries,
    UnavailableError,
    build_libraries,
    compile_ptx,
)
from softcuda.counts import LaunchCounts, parse_launches, work_on_host
from softcuda.older import recompile_for
from softcuda.reports import Report, parse_reports
from softcuda.resources import (
    Architecture,
    ModuleResources,
    Resources,
    compile_resources,
    find_linker,
    kernel_names,
)
from softcuda.sass import ModuleCode, disassemble
from softcuda.switches import SWITCH, is_on

__version__ = "0.1.0"

__all__ = [
    "NAME",
    "SWITCH",
    "DriverLoadedError",
    "LaunchCounts",
    "Report",
    "SoftwareDevice",
    "UnavailableError",
    "__version__",
    "requested",
    "start",
]

NAME = "softcuda"
"""What its devices are called, in NVML and by the driver."""

_TAKEN = ("libcuda.so.1", "libnvJitLink.so.13", "libnvJitLink.so.12")
"""Libraries that ours has to come before."""
_MACHINES = ("x86_64", "aarch64")
_INVALID_PTX = 218
"""``CUDA_ERROR_INVALID_PTX`` of the driver API."""
_ROOM = (ctypes.c_void_p, ctypes.c_size_t)
_COMPILER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, *_ROOM, *_ROOM)
"""Compiles PTX, and writes the path of the library or why there is none."""


class DriverLoadedError(UnavailableError):
    """A library of NVIDIA's is loaded already, so that ours cannot take its place."""

    def __init__(self, soname: str) -> None:
        super().__init__(
            f"{soname} is loaded already, and the device in software has to come first; "
            "call softcuda.start() before any kernel is compiled"
        )


class SoftwareDevice:
    """The device that this process runs on, and what it has found."""

    def __init__(self, libraries: Libraries) -> None:
        # Loaded by its path, it is found by its soname by all who ask for libcuda.so.1 later.
        self._driver = ctypes.CDLL(str(libraries.driver), mode=os.RTLD_NOW | os.RTLD_GLOBAL)
        self._nvml = ctypes.CDLL(str(libraries.nvml), mode=os.RTLD_NOW | os.RTLD_GLOBAL)
        self._linker = _load_linker(libraries.linker)
        self._driver.softcuda_reports.restype = ctypes.c_size_t
        self._driver.softcuda_name.argtypes = [ctypes.c_uint64, ctypes.c_char_p]
        self._driver.softcuda_counts.restype = ctypes.c_size_t
        self._images: dict[str, str] = {}  # the last module with a kernel of that name
        self._on_host: list[LaunchCounts] = []  # what was done there while it counted
        self._sanitize = is_on("SOFTCUDA_SANITIZE")
        self._count = is_on("SOFTCUDA_COUNT")
        if self._sanitize or self._count:
            self.add_lines()
        self._choose_local_arrays()
        self._compiler = _COMPILER(self._compile)  # the driver calls it for as long as it lives
        self._driver.softcuda_set_compiler(self._compiler)

    def set(self, name: str, value: str) -> None:
        """Set an option while programs run; raises ``ValueError`` for one that means nothing.

        ``order``: ``ascending``, ``descending`` or a seed, from the next launch on; ``sanitize``:
        ``0`` or ``1``, for modules that are loaded from then on; ``count``: the same, for
        ``counts``; ``timeout``: seconds of a kernel. Faults and counts name Python's lines in
        kernels that Numba compiles after ``sanitize`` or ``count`` was ``1``.
        """
        if not self._driver.softcuda_set(name.encode(), value.encode()):
            raise ValueError(f"softcuda has no option {name}={value}")
        if name == "sanitize":
            self._sanitize = value not in ("", "0")
        if name == "count":
            self._count = value not in ("", "0")
        if name in ("sanitize", "count"):
            self._choose_local_arrays()
            if value == "1":
                self.add_lines()

    def add_lines(self) -> None:
        """Have faults name Python's lines in kernels that Numba compiles from now on."""
        lines.add_lines()

    def _choose_local_arrays(self) -> None:
        """Leave local arrays unwritten under the sanitizer; code that is counted stays as it is."""
        local_arrays.leave_unwritten(self._sanitize and not self._count)

    def name(self, address: int, name: str) -> None:
        """Name the allocation at a device address: reports say ``'b'`` instead of its number."""
        self._driver.softcuda_name(address, name.encode())

    def resources(self, kernel: str, architecture: Architecture) -> ModuleResources:
        """Return what the kernels of a module take on GPUs of an architecture.

        ``kernel`` is the name, as the code has it, of one that was loaded; of several modules with
        that kernel it is the last. Nothing is compiled before this is called.
        """
        if (image := self._images.get(kernel)) is None:
            return ModuleResources({}, f"no module with a kernel {kernel} was loaded")
        return compile_resources(image, architecture, recompile_for)

    def code(self, kernel: str, architecture: Architecture) -> ModuleCode:
        """Return the machine code of a kernel's module for an architecture, as ``resources`` does.

        Its lines are those of ``add_lines`` and ``lineinfo=True``.
        """
        if (image := self._images.get(kernel)) is None:
            return ModuleCode({}, f"no module with a kernel {kernel} was loaded")
        return disassemble(image, architecture, recompile_for)

    def reports(self) -> list[Report]:
        """Faults that were found since the last call, oldest first."""
        return parse_reports(_read(self._driver.softcuda_reports))

    def wait(self) -> None:
        """Wait for the work of the calling thread's context; errors are the program's to see."""
        self._driver.cuCtxSynchronize()

    def recover(self) -> None:
        """Let the program go on after a fault: calls answer its error no more, as on no device.

        Work that was queued behind the fault stays undone. A device that is lost stays lost.
        """
        self._driver.softcuda_recover()

    def counts(self) -> list[LaunchCounts]:
        """Return what launches did since the last call, oldest first; see ``COUNTS``.

        A launch counts once it has ended, so synchronise first; and where the option ``count`` was
        ``1`` then. One that failed, or whose module was loaded before, is in the list with the
        reason why it has no counts; so does a call of a library that the host did (``on_host``).
        Those come last.
        """
        launches = parse_launches(_read(self._driver.softcuda_counts), self._resources_of)
        on_host, self._on_host = self._on_host, []
        return launches + on_host

    def note_work_on_host(self, call: str) -> None:
        """Note that the host does a call of one of NVIDIA's libraries in place of the device."""
        if self._count:
            self._on_host.append(work_on_host(call))

    def _resources_of(self, kernel: str, architecture: Architecture) -> Resources | None:
        return self.resources(kernel, architecture).kernels.get(kernel)

    def _compile(self, ptx: bytes, path: int, path_room: int, log: int, log_room: int) -> int:
        """Compile a module for the driver, which calls this; no exception may leave it.

        What interrupts it, as Ctrl-C does, leaves no path: the driver then sends the signal again
        (``native/images.c``).
        """
        try:
            image = ptx.decode()
            made = compile_ptx(image, sanitize=self._sanitize, count=self._count)
            self._images |= dict.fromkeys(kernel_names(image), image)
            _write(path, path_room, os.fsencode(made))
        except Exception as error:
            _write(log, log_room, str(error).encode())
            print(f"softcuda: {error}", file=sys.stderr)
            return _INVALID_PTX
        except BaseException:
            _write(path, path_room, b"")
        return 0


def requested() -> bool:
    """Return whether the environment asks for the device in software."""
    return is_on(SWITCH)


@cache
def start() -> SoftwareDevice:
    """Build what is missing and put the device in place of a driver, once in a process.

    Raises ``UnavailableError`` where that cannot be: not Linux on x86-64 or Arm, no C compiler,
    numba-cuda missing, or a driver that is loaded already.
    """
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        raise UnavailableError(
            f"the CUDA device in software runs on Linux on x86-64 and 64-bit Arm; "
            f"this is {platform.system()} on {platform.machine()}"
        )
    if importlib.util.find_spec("numba_cuda") is None:
        raise UnavailableError(
            "the CUDA device in software runs the package numba-cuda, which is not installed; "
            f"{INSTALL_CUDA}"
        )
    for soname in filter(_loaded, _TAKEN):
        raise DriverLoadedError(soname)
    device = SoftwareDevice(build_libraries())
    lines.link_lines_with_c()
    cupy.connect_on_import()
    pycuda.compile_by_nvrtc_on_import()
    # numba-cuda looks for a driver when it is imported, and remembers that there was none.
    module = sys.modules.get("numba.cuda.cudadrv.driver")
    if module is not None and module.driver.initialization_error:
        module.driver.__init__()
    return device


def _loaded(soname: str) -> bool:
    try:
        ctypes.CDLL(soname, mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def _load_linker(path: Path) -> ctypes.CDLL | None:
    """Our nvJitLink in front of NVIDIA's, where its wheels (CUDA 13, then 12) or a toolkit have
    that; it links, and leaves PTX.

    Without NVIDIA's, cuda-core links through the driver, which hands over PTX by itself.
    """
    real = find_linker()
    if real is None:
        return None
    linker = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_GLOBAL)
    linker.softcuda_set_nvjitlink(os.fsencode(real))
    return linker


def _read(take: Callable[..., int]) -> str:
    """Read a text of any length that the driver forgets once it is read."""
    size = 1 << 16
    while True:
        room = ctypes.create_string_buffer(size)
        needed = take(room, ctypes.c_size_t(size))
        if needed <= size:
            return room.raw[:needed].decode(errors="replace")
        size = needed


def _write(room: int, size: int, text: bytes) -> None:
    ctypes.memmove(room, text[: size - 1] + b"\0", min(len(text), size - 1) + 1)
