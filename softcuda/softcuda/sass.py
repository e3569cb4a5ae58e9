"""The machine code of kernels, SASS: instructions by line of Python and by loop, joined loads.

nvJitLink makes it and ``nvdisasm`` writes it out; neither needs a GPU. Numbers are static: each
instruction counts once, however often it runs. ptxas unrolls loops and schedules across lines, so
that how often a block of SASS ran does not follow from how often a block of PTX did.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from softcuda.build import INSTALL_CUDA, UnavailableError, nvidia_folders
from softcuda.resources import (
    Architecture,
    Recompile,
    cached_file,
    find_linker,
    link_module,
    strip_origin,
    write_cached_file,
)

_MAX_SECONDS = 120
"""A disassembly takes far less than one."""


@dataclass(frozen=True)
class LineCode:
    """What one line of Python became."""

    file: str
    """Empty, with line 0, where the kernel was compiled without lines."""
    line: int
    instructions: int
    in_loops: int = 0
    """Of these, those in the body of a loop."""


@dataclass(frozen=True)
class LoopCode:
    """The body of one loop, from where it begins to the last jump back."""

    instructions: int
    depth: int
    """1 for a loop that stands in no other, 2 for one inside it ..."""
    file: str
    """Of the most instructions of the body."""
    first_line: int
    last_line: int
    """Lines of that file; both are 0 where the kernel was compiled without lines."""


@dataclass(frozen=True)
class KernelCode:
    """The machine code of a kernel, each instruction counted once."""

    instructions: int
    shared_loads: int
    """Instructions that load from shared memory."""
    shared_load_bytes: int
    """Bytes that one thread loads by all of them."""
    joined_shared_loads: float
    """Shared loads of PTX in the widest one of the machine code: 1 where ptxas joined none, 4 where
    it made one of 16 bytes of four of 4 bytes."""
    lines: tuple[LineCode, ...]
    """By file and line."""
    loops: tuple[LoopCode, ...] = ()
    """In their order in the code. ptxas unrolls loops, and makes several of one."""


@dataclass(frozen=True)
class ModuleCode:
    """The machine code of all kernels of a module for one architecture."""

    kernels: Mapping[str, KernelCode]
    """By the name that the code has, mangled; empty where they are missing."""
    missing: str | None = None
    """Why there is none, so that PTX is what can be shown; ``None`` where there is."""


def disassemble(
    image: str, architecture: Architecture, recompile: Recompile | None = None
) -> ModuleCode:
    """Return the machine code of a module for an architecture, from the cache where it can.

    ``image`` and ``recompile`` are those of ``resources.compile_resources``.
    """
    disassembler, linker = find_disassembler(), find_linker()
    if disassembler is None:
        return ModuleCode(
            {}, "nvdisasm is not installed; pip install nvidia-cuda-nvdisasm brings it"
        )
    if linker is None:
        return ModuleCode({}, f"nvJitLink is not installed; {INSTALL_CUDA} brings it")
    place = cached_file("sass.json", image, architecture, disassembler, linker)
    if (cached := _read_cached(place)) is not None:
        return cached
    # Lines are in the code for who asks; they change no instruction.
    linked = link_module(image, architecture, recompile, ("-lineinfo",))
    if not linked.cubin:
        return ModuleCode({}, linked.error)
    try:
        text = _run(disassembler, linked.cubin)
    except UnavailableError as error:
        return ModuleCode({}, str(error))
    made = ModuleCode(read_sass(text, read_shared_load_bytes(strip_origin(image))))
    write_cached_file(place, json.dumps({k: asdict(one) for k, one in made.kernels.items()}))
    return made


@cache
def find_disassembler() -> Path | None:
    """Return ``nvdisasm`` from NVIDIA's wheels or a toolkit, if any has it."""
    for place in nvidia_folders(("cu13/bin", "cuda_nvdisasm/bin"), "bin"):
        if (program := place / "nvdisasm").is_file():
            return program
    return None


def _run(disassembler: Path, cubin: bytes) -> str:
    """Return the code of a cubin with lines, as text."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "module.cubin")
        file.write_bytes(cubin)
        try:
            done = subprocess.run(
                [disassembler, "--print-code", "--print-line-info", file],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_MAX_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UnavailableError(f"{disassembler}: {error}") from error
    if done.returncode:
        said = done.stderr.strip()[-300:] or f"exit code {done.returncode}"
        raise UnavailableError(f"{disassembler}: {said}")
    return done.stdout


_SECTION = re.compile(r"^\s*\.section\s+\.text\.([\w$%]+)")
_LINE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+\{?\s*(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")
_LABEL = re.compile(r"^(\.L_x_\d+):")
_JUMP_TO = re.compile(r"\bBRA\b.*(\.L_x_\d+)")
_Place = tuple[str, int]


def read_sass(text: str, ptx_bytes: Mapping[str, int]) -> dict[str, KernelCode]:
    """Return what ``nvdisasm`` says of each kernel; ``ptx_bytes``: of its narrowest shared load in
    PTX."""
    found: dict[str, list[_Place]] = {}
    loads: dict[str, list[int]] = {}
    loops: dict[str, dict[int, int]] = {}  # first and last instruction
    labels: dict[str, int] = {}
    name, at, label = "", ("", 0), ""
    for line in text.splitlines():
        if section := _SECTION.match(line):
            name, at, label = section[1], ("", 0), ""
            found[name], loads[name], loops[name] = [], [], {}
        elif place := _LINE.match(line):
            at = place[1], int(place[2])
        elif mark := _LABEL.match(line):
            label = mark[1]
            labels[label] = len(found.get(name, ()))
        elif name and (instruction := _INSTRUCTION.match(line)):
            # What follows the last instruction fills its line of the instruction cache.
            jump = _JUMP_TO.search(line)
            if instruction[1] != "NOP" and not (jump and jump[1] == label):
                found[name].append(at)
                if jump and jump[1] in labels:  # back to what stands before
                    loops[name][labels[jump[1]]] = len(found[name]) - 1
            if instruction[1].split(".")[0] == "LDS":
                loads[name].append(_loaded_bytes(instruction[1]))
            label = ""
    return {
        name: KernelCode(
            instructions=len(places),
            shared_loads=len(loads[name]),
            shared_load_bytes=sum(loads[name]),
            joined_shared_loads=_joined(loads[name], ptx_bytes.get(name)),
            lines=tuple(_lines(places, loops[name])),
            loops=tuple(_loops(places, loops[name])),
        )
        for name, places in found.items()
    }


def _lines(places: Sequence[_Place], loops: Mapping[int, int]) -> Iterator[LineCode]:
    """Yield the instructions of each line; ``places`` has the line of each instruction."""
    inside = {each for first, last in loops.items() for each in range(first, last + 1)}
    in_loops = Counter(places[each] for each in inside)
    for place, count in sorted(Counter(places).items()):
        yield LineCode(*place, count, in_loops[place])


def _loops(places: Sequence[_Place], loops: Mapping[int, int]) -> Iterator[LoopCode]:
    for first, last in sorted(loops.items()):
        body = places[first : last + 1]
        file = Counter(file for file, _ in body).most_common(1)[0][0]
        lines = [line for of, line in body if of == file]
        depth = sum(start <= first and last <= end for start, end in loops.items())
        yield LoopCode(len(body), depth, file, min(lines), max(lines))


def _loaded_bytes(instruction: str) -> int:
    """Return what a thread loads by an instruction such as ``LDS.U.128``."""
    bits = [int(part[-2:]) for part in instruction.split(".") if part in ("U16", "S16", "64")]
    if "128" in instruction.split("."):
        return 16
    if any(part in ("U8", "S8") for part in instruction.split(".")):
        return 1
    return bits[0] // 8 if bits else 4


def _joined(loads: Iterable[int], narrowest: int | None) -> float:
    return max(1.0, max(loads, default=0) / narrowest) if narrowest else 1.0


_ENTRY = re.compile(r"\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$%]+)")
_SHARED_LOAD = re.compile(r"\bld(?:\.\w+)*\.shared(?:::\w+)?((?:\.\w+)*)")


def read_shared_load_bytes(ptx: str) -> dict[str, int]:
    """Return the bytes of the narrowest load from shared memory of each kernel that has one."""
    narrowest: dict[str, int] = {}
    name = ""
    for line in ptx.splitlines():
        if entry := _ENTRY.search(line):
            name = entry[1]
        elif load := _SHARED_LOAD.search(line):
            parts = load[1].split(".")
            vector = next((int(part[1:]) for part in parts if part in ("v2", "v4")), 1)
            bits = next((int(part[1:]) for part in parts if re.fullmatch(r"[bsuf]\d+", part)), 32)
            size = vector * bits // 8
            narrowest[name] = min(size, narrowest.get(name, size))
    return narrowest


def _read_cached(place: Path) -> ModuleCode | None:
    try:
        read = json.loads(place.read_text(encoding="utf-8"))
        return ModuleCode(
            {
                name: KernelCode(
                    **{
                        **one,
                        "lines": tuple(LineCode(**line) for line in one["lines"]),
                        "loops": tuple(LoopCode(**loop) for loop in one["loops"]),
                    }
                )
                for name, one in read.items()
            }
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None  # not made yet, or damaged: it is made now
