"""Runs kernels that are written by hand in C (``native/kernels.c``), without a driver around them.

What runs kernels in the device in software is linked with a stand-in for the rest of the driver, so
that each rule of it is tried by itself: orders, waiting, faults, and what the sanitizer finds.
"""

from __future__ import annotations

import functools
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from softcuda import build
from softcuda.build import NATIVE, UnavailableError, find_compiler, find_cuda_header

FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")

SUCCESS, OUT_OF_MEMORY = 0, 2
ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, ASSERT = 700, 702, 710
STACK_ERROR, ILLEGAL_INSTRUCTION, MISALIGNED_ADDRESS, LAUNCH_FAILED = 714, 715, 716, 719
"""CUresult (cuda.h)."""

DEVICE_MEMORY, HOST_MEMORY = 1, 2
ORDERS = ("ascending", "descending", "1", "2")
FULL = 0xFFFFFFFF


@dataclass(frozen=True)
class Report:
    """One fault; a place is (block, thread) by their first two indices."""

    kind: str
    at: tuple[int, int]
    other: tuple[int, int] | None
    space: str
    array: str
    offset: int | None
    file: str
    line: int
    other_line: int
    text: str


@dataclass(frozen=True)
class Outcome:
    """What came of a kernel."""

    status: int
    """Exit status of the process; negative for a signal."""
    results: list[int]
    """One CUresult for each launch."""
    reports: list[Report]
    b: list[int]
    c: list[int]
    printed: str
    errors: str

    @property
    def result(self) -> int:
        (result,) = self.results
        return result

    @property
    def kinds(self) -> list[str]:
        return [report.kind for report in self.reports]

    @property
    def report(self) -> Report:
        (report,) = self.reports
        return report


def why_not() -> str:
    """Return why kernels cannot be run here; empty where they can."""
    try:
        find_cuda_header()
        find_compiler()
    except UnavailableError as error:
        return str(error)
    return ""


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *(value & FULL for value in values))


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def run(kernel: str, **options: object) -> Outcome:
    """Launch ``kernel`` with what main.c reads: grid, block, order, a=bytes, c_show=words ..."""
    given = {k: v.hex() if isinstance(v, bytes) else v for k, v in options.items()}
    arguments = [f"{name}={value}" for name, value in given.items()]
    done = subprocess.run(
        [_program(), f"kernel={kernel}", *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        check=False,
    )
    outcome = Outcome(done.returncode, [], [], [], [], "", done.stderr)
    printed = []
    for line in done.stdout.splitlines(keepends=True):
        first, *rest = line.rstrip("\n").split("\t")
        if first == "report":
            outcome.reports.append(_report(rest))
        elif first in ("result", "b", "c"):
            {"result": outcome.results, "b": outcome.b, "c": outcome.c}[first].extend(
                map(int, rest)
            )
        else:
            printed.append(line)
    return Outcome(**{**vars(outcome), "printed": "".join(printed)})


def _report(fields: Sequence[str]) -> Report:
    said = dict(part.split("=", 1) for part in fields)
    return Report(
        kind=said["kind"],
        at=_place(said["at"]),
        other=_place(said["other"]) if "other" in said else None,
        space=said.get("space", ""),
        array=said.get("array", ""),
        offset=int(said["offset"]) if "offset" in said else None,
        file=said["file"],
        line=int(said["line"]),
        other_line=int(said["other_line"]),
        text=said["text"],
    )


def _place(text: str) -> tuple[int, int]:
    block, thread = (part.split(",") for part in text.split("/"))
    return int(block[0]), int(thread[0])


@functools.cache
def _program() -> str:
    """Return the program, built now where its sources have changed."""
    here, header = Path(__file__).parent / "native", find_cuda_header()
    sources = [path for folder in (NATIVE, here) for path in sorted(folder.glob("*.[ch]"))]
    flags = [*FLAGS, *(f"-I{folder}" for folder in (header, NATIVE, here))]
    texts = [path.read_bytes() for path in (*sources, header / "cuda.h")]
    program = build.kept("kernel-runs", [" ".join(flags).encode(), *texts])
    with build.building(program) as is_missing:
        if is_missing:
            with tempfile.TemporaryDirectory(dir=program.parent) as folder:
                objects = build.compile_each(NATIVE.glob("*.c"), Path(folder), flags)
                driver = Path(folder, "driver.a")
                subprocess.run(["ar", "rcs", driver, *objects.values()], check=True)
                # Of an archive the linker takes what is missing: what stands in comes first.
                stand_in = map(str, sorted(here.glob("*.c")))
                build.compile_to(program, [*flags, *stand_in, str(driver), "-lpthread", "-lm"])
    return str(program)
