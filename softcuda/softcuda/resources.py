"""What NVIDIA's compiler makes of a kernel for a GPU: registers, shared and local memory, spills.

nvJitLink links a module for any architecture and needs no GPU. Its assembler, ptxas, logs what each
kernel takes (option ``-Xptxas=-v``). ``docs/occupancy-and-bounds.md`` explains the numbers.
"""

from __future__ import annotations

import base64
import binascii
import ctypes
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from softcuda.build import INSTALL_CUDA, UnavailableError, cache_folder, nvidia_folders

Architecture = tuple[int, int]
"""A compute capability: (9, 0) for Hopper."""

CACHED_FORMAT = 1
"""Version of what is cached; raise it with every change of what is read from a log or from code."""

_ORIGIN_MARK = "//softcuda-linked-from"
_ORIGIN = re.compile(rf"^{_ORIGIN_MARK} (\S+) (.*)\n?", re.MULTILINE)
"""Comments that ``native/jitlink.c`` writes at the end of linked PTX."""
_ENTRY = re.compile(r"\.entry\s+([\w$%]+)")
_TARGET = re.compile(r"^(\s*\.target\s+)sm_(\d+)([a-z]?)", re.MULTILINE)
_PTX_INPUT, _LTOIR_INPUT, _LIBRARY_INPUT = 2, 3, 6
"""``NVJITLINK_INPUT_PTX``, ``_LTOIR`` and ``_LIBRARY`` (nvJitLink, 3.2)."""
_IS_NEWER = "newer than target"
"""What nvJitLink says where it refuses LTO-IR for its architecture."""
_FAMILY_CODE_FROM: Architecture = (9, 0)
"""numba-cuda asks for code of this architecture alone from Hopper on: ``sm_90a``."""
_MAX_REASON_CHARACTERS = 300


@dataclass(frozen=True)
class Resources:
    """What one thread and one block of a kernel take on GPUs of an architecture."""

    registers: int
    """Of a thread."""
    shared_bytes: int
    """Static shared memory of a block; a launch may add dynamic one."""
    local_bytes: int
    """Local memory of a thread: its stack, which holds spills too."""
    spill_store_bytes: int
    """Bytes that instructions of the code write to spill registers, in each run through it."""
    spill_load_bytes: int
    """Bytes that instructions of the code read back."""
    architecture: Architecture
    barriers: int = 0
    """Barriers of a block."""
    from_ptx: bool = False
    """Whether PTX was assembled, as for a module that has no LTO-IR."""


@dataclass(frozen=True)
class ModuleResources:
    """What all kernels of a module take on one architecture."""

    kernels: Mapping[str, Resources]
    """By the name that the code has, mangled; empty where they are missing."""
    missing: str | None = None
    """Why there are none; ``None`` where there are."""


@dataclass(frozen=True)
class LinkedModule:
    """A module as machine code of one architecture."""

    log: str
    """What the assembler and the linker wrote."""
    error: str
    """What they complained of; empty where they linked the module."""
    cubin: bytes
    """The machine code; empty where the link failed."""
    from_ptx: bool


@dataclass(frozen=True)
class _Input:
    kind: int
    """``nvJitLinkInputType``."""
    data: bytes


Recompile = Callable[[str, Architecture], str | None]
"""Makes a module for an older architecture than its LTO-IR was made for; ``None`` if it cannot."""


def compile_resources(
    image: str, architecture: Architecture, recompile: Recompile | None = None
) -> ModuleResources:
    """Return what each kernel of a module takes on an architecture, from the cache where it can.

    ``image`` is what the device in software loads: PTX, at whose end linked code names the LTO-IR
    that it was made from. A GPU gets that LTO-IR linked, so it is linked here. A module without any
    is assembled from its PTX, and ``Resources.from_ptx`` says so. ``recompile`` is asked where the
    architecture is older than what the LTO-IR was made for.
    """
    linker = find_linker()
    if linker is None:
        return ModuleResources({}, _no_linker())
    place = _cached_place(image, architecture, linker)
    if (cached := _read_cached(place)) is not None:
        return cached
    linked = link_module(image, architecture, recompile)
    kernels = read_log(linked.log, architecture, from_ptx=linked.from_ptx)
    if not set(kernel_names(image)) <= set(kernels):  # not cached: it may succeed elsewhere
        return ModuleResources({}, linked.error or "nvJitLink's log names no registers")
    made = ModuleResources(kernels)
    _write_cached(place, made)
    return made


def link_module(
    image: str,
    architecture: Architecture,
    recompile: Recompile | None = None,
    options: Sequence[str] = (),
) -> LinkedModule:
    """Link a module for an architecture with NVIDIA's linker; raises ``UnavailableError`` where
    there is none.

    ``options`` of the linker come to those that the module was linked with. The linker refuses
    LTO-IR that was made for a newer architecture, which ``recompile`` then makes for this one. Its
    PTX is no substitute: the assembler may give it twice the registers.
    """
    linker = find_linker()
    if linker is None:
        raise UnavailableError(_no_linker())
    if origin := _ORIGIN.findall(image):
        given = [value for kind, value in origin if kind == "option"]
        inputs = [
            _make_input(int(kind), _decode(data), architecture)
            for kind, data in origin
            if kind.isdecimal()
        ]
        if any(kind == "library" for kind, _ in origin):
            inputs += _device_runtime()
        from_ptx = all(one.kind != _LTOIR_INPUT for one in inputs)
        linked = _link(linker, inputs, (*given, *options), architecture, from_ptx=from_ptx)
        if _IS_NEWER not in linked.error:
            return linked
        if recompile is None or (older := recompile(image, architecture)) is None:
            return replace(linked, error=_explain_newer(image, architecture))
        return link_module(older, architecture, None, options)
    assembled = _make_input(_PTX_INPUT, image.encode(), architecture)
    return _link(linker, [assembled], options, architecture, from_ptx=True)


def replace_ltoir(image: str, ltoir: str) -> str:
    """Return a module whose first LTO-IR is this, in base64."""
    return re.sub(
        rf"^({_ORIGIN_MARK} {_LTOIR_INPUT}) .*$",
        lambda found: f"{found[1]} {ltoir}",
        image,
        count=1,
        flags=re.MULTILINE,
    )


def kernel_names(image: str) -> list[str]:
    """Return the names of a module's kernels, as the code has them."""
    return _ENTRY.findall(strip_origin(image))


def strip_origin(image: str) -> str:
    """Return PTX without the comments that say what it was linked from."""
    return _ORIGIN.sub("", image)


def architecture_name(architecture: Architecture) -> str:
    """Return the name that numba-cuda asks the linker for: ``sm_80``, ``sm_90a``."""
    major, minor = architecture
    return f"sm_{major}{minor}{'a' if architecture >= _FAMILY_CODE_FROM else ''}"


@cache
def find_linker() -> Path | None:
    """Return NVIDIA's nvJitLink from its wheels (CUDA 13, then 12) or a toolkit, if any has it."""
    for place in nvidia_folders(("cu13/lib", "nvjitlink/lib"), "lib64"):
        for library in sorted(place.glob("libnvJitLink.so.1?")):
            return library
    return None


def read_log(
    log: str, architecture: Architecture, *, from_ptx: bool = False
) -> dict[str, Resources]:
    """Return what the log of ``ptxas -v`` says of each kernel, by name.

    Functions that were not inlined have lines of their own. Their spills count for each kernel of
    the module, since the log does not say which of them calls which.
    """
    made: dict[str, dict[str, Any]] = {}
    of_functions = {"spill_store_bytes": 0, "spill_load_bytes": 0}
    largest_frame = 0
    entry = function = ""
    for line in log.splitlines():
        if found := re.search(r"Compiling entry function '([^']+)'", line):
            entry = found[1]
            made[entry] = dict.fromkeys(_LOGGED, 0)
        elif found := re.search(r"Function properties for '?([^'\s:]+)", line):
            function = found[1]
        elif "bytes stack frame" in line:
            spills = {
                "spill_store_bytes": _number(r"(\d+) bytes spill stores", line),
                "spill_load_bytes": _number(r"(\d+) bytes spill loads", line),
            }
            if function == entry:
                made[entry] |= spills
                made[entry]["local_bytes"] = _number(r"(\d+) bytes stack frame", line)
            else:
                of_functions = {name: of_functions[name] + spills[name] for name in spills}
                largest_frame = max(largest_frame, _number(r"(\d+) bytes stack frame", line))
        elif re.search(r"Used \d+ registers", line) and entry:
            one = made[entry]
            one["registers"] = _number(r"Used (\d+) registers", line)
            one["barriers"] = _number(r"used (\d+) barriers", line)
            one["shared_bytes"] = _number(r"(\d+) bytes smem", line)
            stack = _number(r"(\d+) bytes cumulative stack size", line)
            one["local_bytes"] = max(one["local_bytes"], stack, _number(r"(\d+) bytes lmem", line))
            entry = ""
        elif (found := re.search(r"\bused \d+ registers.* (\d+) stack", line)) and function in made:
            # The linker knows the stack of a kernel with that of all functions that it calls.
            one = made[function]
            one["local_bytes"] = max(one["local_bytes"], int(found[1]))
    for name in re.findall(r"function '([^']+)' cannot be statically determined", log):
        if name in made:  # it recurses: one call is the least
            made[name]["local_bytes"] += largest_frame
    for one in made.values():
        for name, spilled in of_functions.items():
            one[name] += spilled
    return {
        name: Resources(architecture=architecture, from_ptx=from_ptx, **one)
        for name, one in made.items()
        if one["registers"]
    }


_LOGGED = (
    *("registers", "shared_bytes", "local_bytes"),
    *("spill_store_bytes", "spill_load_bytes", "barriers"),
)


def _number(pattern: str, line: str) -> int:
    found = re.search(pattern, line)
    return int(found[1]) if found else 0


def _explain_newer(image: str, architecture: Architecture) -> str:
    target = _TARGET.search(image)
    made_for = f"sm_{target[2]}" if target else "a newer architecture"
    return (
        f"the code was made for {made_for} and cannot be linked for "
        f"{architecture_name(architecture)}, which is older; "
        f"set SOFTCUDA_CC={architecture[0]}.{architecture[1]}"
    )


def _device_runtime() -> list[_Input]:
    """Return the library that synchronises grids, where it is installed."""
    for place in nvidia_folders(("cu13/lib", "cuda_runtime/lib"), "lib64"):
        if (library := place / "libcudadevrt.a").is_file():
            return [_Input(_LIBRARY_INPUT, library.read_bytes())]
    return []


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        return b""  # a damaged file, which the linker refuses


def _make_input(kind: int, data: bytes, architecture: Architecture) -> _Input:
    if kind == _PTX_INPUT:
        data = _lower_target(data.decode(errors="replace"), architecture).encode()
    return _Input(kind, data)


def _lower_target(ptx: str, architecture: Architecture) -> str:
    """Return PTX whose target is not newer than an architecture, nor meant for another one alone.

    Instructions that need the newer one are refused when the text is assembled.
    """
    asked = 10 * architecture[0] + architecture[1]

    def lower(found: re.Match[str]) -> str:
        target = int(found[2])
        fits = (target < asked and not found[3]) or target == asked
        return found[0] if fits else f"{found[1]}sm_{asked}"

    return _TARGET.sub(lower, ptx)


# ---- NVIDIA's linker -----------------------------------------------------------------------------


def _no_linker() -> str:
    return f"nvJitLink is not installed; {INSTALL_CUDA} brings it"


@cache
def _load(linker: Path) -> ctypes.CDLL:
    # By its path, so that ours, which the process may have loaded by the same name, stays apart.
    return ctypes.CDLL(str(linker), mode=os.RTLD_NOW | os.RTLD_LOCAL)


def _link(
    linker: Path,
    inputs: Sequence[_Input],
    options: Sequence[str],
    architecture: Architecture,
    *,
    from_ptx: bool,
) -> LinkedModule:
    library = _load(linker)
    asked = [f"-arch={architecture_name(architecture)}", *options, "-Xptxas=-v", "-verbose"]
    words = [option.encode() for option in dict.fromkeys(asked)]
    handle = ctypes.c_void_p()
    failed = library.nvJitLinkCreate(
        ctypes.byref(handle), ctypes.c_uint32(len(words)), (ctypes.c_char_p * len(words))(*words)
    )
    name = architecture_name(architecture)
    if failed:
        reason = f"nvJitLink refuses {name} (error {failed}); update nvidia-nvjitlink"
        return LinkedModule("", reason, b"", from_ptx)
    try:
        for one in inputs:
            size = ctypes.c_size_t(len(one.data))
            failed = failed or library.nvJitLinkAddData(
                handle, ctypes.c_int(one.kind), one.data, size, b"module"
            )
        failed = library.nvJitLinkComplete(handle) or failed
        log = _read(library, handle, "InfoLog").decode(errors="replace").rstrip("\0")
        said = _read(library, handle, "ErrorLog").decode(errors="replace").rstrip("\0").strip()
        reason = " ".join(said.split())[:_MAX_REASON_CHARACTERS] or f"error {failed}"
        error = f"nvJitLink for {name}: {reason}"
        cubin = b"" if failed else _read(library, handle, "LinkedCubin")
        return LinkedModule(log, error if failed else "", cubin, from_ptx)
    finally:
        library.nvJitLinkDestroy(ctypes.byref(handle))


def _read(library: ctypes.CDLL, handle: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    if getattr(library, f"nvJitLinkGet{what}Size")(handle, ctypes.byref(size)) or not size.value:
        return b""
    room = ctypes.create_string_buffer(size.value + 1)
    getattr(library, f"nvJitLinkGet{what}")(handle, room)
    return room.raw[: size.value]


# ---- the cache -----------------------------------------------------------------------------------


def cached_file(name: str, image: str, architecture: Architecture, *tools: Path) -> Path:
    """Return where in softcuda's cache a result lies that was made from a module by some tools."""
    digest = hashlib.sha256(image.encode())
    for tool in tools:
        status = tool.stat()
        digest.update(f"{tool} {status.st_size} {status.st_mtime_ns}\n".encode())
    digest.update(f"{CACHED_FORMAT} {architecture_name(architecture)}".encode())
    return cache_folder() / f"{digest.hexdigest()[:32]}-{name}"


def write_cached_file(place: Path, text: str) -> None:
    """Write a file at once, so that nobody reads half of it; do nothing where it cannot be."""
    with suppress(OSError):
        handle, made = tempfile.mkstemp(dir=place.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(made).replace(place)


def _cached_place(image: str, architecture: Architecture, linker: Path) -> Path:
    return cached_file("resources.json", image, architecture, linker)


def _read_cached(place: Path) -> ModuleResources | None:
    try:
        kernels = {
            name: Resources(**{**one, "architecture": tuple(one["architecture"])})
            for name, one in json.loads(place.read_text(encoding="utf-8")).items()
        }
        return ModuleResources(kernels)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None  # not made yet, or damaged: it is made now


def _write_cached(place: Path, made: ModuleResources) -> None:
    write_cached_file(place, json.dumps({k: asdict(one) for k, one in made.kernels.items()}))
