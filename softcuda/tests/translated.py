"""Compiles PTX through the translator, and runs single threads of it from Python.

The device behind them is a fake: it lets every access pass, and notes what the thread asks for.
"""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import softcuda
from softcuda.translation.translate import translate

NATIVE = Path(softcuda.__file__).parent / "native"
COMPILER = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
FLAGS = (
    *("-std=gnu11", "-O1", "-g0", "-fPIC", "-shared", "-fvisibility=hidden"),
    *("-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv", "-fno-math-errno"),
)
# Registers may be set and never read, as in PTX; all other warnings are faults of the translation.
WARNINGS = ("-Wall", "-Werror", *(f"-Wno-unused{part}" for part in ("", "-but-set-variable")))

HEAD = ".version 8.8\n.target sm_100\n.address_size 64\n"

READ, WRITE, ATOMIC = 1, 2, 4
SHARED_BYTES = 4096

_u32, _u64, _i32, _text = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32, ctypes.c_char_p
_pointer = ctypes.c_void_p


class WarpCall(ctypes.Structure):
    _fields_ = [
        *(("op", _u32), ("mask", _u32), ("value", _u64), ("b", _u32), ("c", _u32)),
        *(("result", _u64), ("predicate", _u32)),
    ]


_SERVICES: dict[str, Sequence[Any]] = {
    "access": (_pointer, _pointer, _u64, _u32, _u32),
    "barrier": (_u32, _pointer, _u32, _u32, _u32, _u32, _u32),
    "arrive": (None, _pointer, _u32, _u32, _u32),
    "warp": (None, _pointer, ctypes.POINTER(WarpCall), _u32),
    "grid": (None, _pointer, _u32),
    "fence": (None, _pointer, _u32),
    "print": (_i32, _pointer, _u64, _u64),
    "fail": (None, _pointer, _u64, _u64, _u32, _u64),
    "trap": (None, _pointer),
    "take": (_u64, _pointer, _u64),
    "give_back": (None, _pointer, _u64),
    "clock": (_u64, _pointer),
    "enter": (_u64, _pointer, _u32),
    "leave": (None, _pointer, _u64),
    "yield": (None, _pointer),
}
_CALLBACKS = {name: ctypes.CFUNCTYPE(*types) for name, types in _SERVICES.items()}


class Services(ctypes.Structure):
    _fields_ = list(_CALLBACKS.items())


class ThreadState(ctypes.Structure):
    _fields_ = [
        *((name, _u32 * 3) for name in ("tid", "ntid", "ctaid", "nctaid")),
        *(("linear", _u32), ("dynamic_shared", _u32), ("shared", _u64), ("dynamic_at", _u32)),
        *(("globals", ctypes.POINTER(_u64)), ("line", _u32), ("file", _u32)),
        *(("services", ctypes.POINTER(Services)), ("recent_at", _u64), ("recent_size", _u64)),
        *(("state", _pointer), ("local", _u64), ("local_bytes", _u32)),
    ]


_RUN = ctypes.CFUNCTYPE(None, ctypes.POINTER(ThreadState), _pointer)


class Kernel(ctypes.Structure):
    _fields_ = [
        *(("name", _text), ("run", _RUN), ("parameters", _u32)),
        *(("offsets", ctypes.POINTER(_u32)), ("sizes", ctypes.POINTER(_u32))),
        *(("parameter_bytes", _u32), ("local_bytes", _u32), ("max_threads", _u32)),
        *(("waits", _u32), ("cooperative", _u32)),
    ]


class Variable(ctypes.Structure):
    _fields_ = [
        *(("name", _text), ("bytes", _u64), ("align", _u32), ("at", _u32)),
        *(("initial", _pointer), ("constant", _u32)),
    ]


class Module(ctypes.Structure):
    _fields_ = [
        *(("abi", _u32), ("kernels", ctypes.POINTER(Kernel)), ("kernel_count", _u32)),
        *(("globals", ctypes.POINTER(Variable)), ("global_count", _u32)),
        *(("shared", ctypes.POINTER(Variable)), ("shared_count", _u32)),
        *(("shared_window", _u32), ("shared_bytes", _u32)),
        *(("files", ctypes.POINTER(_text)), ("file_count", _u32)),
    ]


class Translated:
    """A module of PTX that was translated, compiled and loaded."""

    def __init__(self, ptx: str, folder: Path, *flags: str) -> None:
        assert COMPILER
        source, library = folder / "module.c", folder / "module.so"
        source.write_text(translate(ptx), encoding="utf-8")
        command = [COMPILER, *FLAGS, *WARNINGS, *flags, f"-I{NATIVE}", str(source), "-o"]
        done = subprocess.run(
            [*command, str(library), "-lm"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        self.module = Module.in_dll(ctypes.CDLL(str(library)), "softcuda_module")
        rows = [self.module.kernels[i] for i in range(self.module.kernel_count)]
        self.kernels = {one.name.decode(): one for one in rows}

    def globals(self) -> list[Variable]:
        return [self.module.globals[i] for i in range(self.module.global_count)]


class Thread:
    """A thread that runs kernels of a module; ``asked`` is what it asked of the device."""

    def __init__(self, translated: Translated) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.answers: dict[str, Callable[..., Any]] = {}
        self._translated = translated
        self._kept: list[Any] = []
        self.shared = self.buffer(SHARED_BYTES, align=128)
        self.globals = [self._global(one) for one in translated.globals()]
        table = (_u64 * max(len(self.globals), 1))(*map(ctypes.addressof, self.globals))
        self._services = Services(**{name: self._service(name) for name in _SERVICES})
        self.state = ThreadState(
            ntid=(1, 1, 1),
            nctaid=(1, 1, 1),
            shared=ctypes.addressof(self.shared),
            dynamic_at=(translated.module.shared_window + 15) // 16 * 16,
            dynamic_shared=256,
            globals=ctypes.cast(table, ctypes.POINTER(_u64)),
            services=ctypes.pointer(self._services),
        )
        self._kept.append(table)

    def run(self, name: str, form: str, *values: Any) -> None:
        """Run a kernel; ``form`` is how ``struct`` packs its parameters, aligned."""
        parameters = self.buffer(max(struct.calcsize("@" + form), 1))
        struct.pack_into("@" + form, parameters, 0, *values)
        self._translated.kernels[name].run(ctypes.byref(self.state), ctypes.addressof(parameters))

    def buffer(self, size: int, align: int = 16) -> Any:
        """Zeroed memory that lives as long as the thread."""
        whole = ctypes.create_string_buffer(size + align)
        self._kept.append(whole)
        start = -ctypes.addressof(whole) % align
        return (ctypes.c_char * size).from_buffer(whole, start)

    def asked_for(self, *names: str) -> list[tuple[Any, ...]]:
        return [one for one in self.asked if one[0] in names]

    def _global(self, one: Variable) -> Any:
        memory = self.buffer(max(one.bytes, 1), align=max(one.align, 16))
        if one.initial:
            ctypes.memmove(memory, one.initial, one.bytes)
        return memory

    def _service(self, name: str) -> Any:
        def serve(thread: int, *values: Any) -> Any:
            if name == "warp":
                return self._warp(*values)
            self.asked.append((name, *values))
            if name in self.answers:
                return self.answers[name](*values)
            if name == "access":
                return values[0]
            if name == "enter":
                return ctypes.addressof(self.buffer(values[0]))
            return None if _SERVICES[name][0] is None else 0

        return _CALLBACKS[name](serve)

    def _warp(self, call: Any, site: int) -> None:
        one = call.contents
        self.asked.append(("warp", one.op, one.mask, one.value, one.b, one.c))
        one.result, one.predicate = self.answers.get("warp", lambda _: (one.value, 1))(one)
