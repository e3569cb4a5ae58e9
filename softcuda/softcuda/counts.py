"""What launches on the device in software did, as whole numbers that are the same in every run.

``COUNTS`` defines every number; ``docs/counts.md`` explains them. The rules have a version,
``MODEL``: numbers of two versions do not compare.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from softcuda.build import description_of
from softcuda.reports import readable_name
from softcuda.resources import Resources

MODEL = 3
"""Version of the rules; raise it with every change that gives any kernel another number."""

Level = Literal["warp", "thread", "launch"]
Extent = tuple[int, int, int]


@dataclass(frozen=True)
class Count:
    """One number that is counted."""

    name: str
    unit: str
    level: Level
    """What is counted once: what a warp does together, what each thread does, or the launch."""
    nvidia: str | None
    """The metric of Nsight Compute that means the same; ``None`` where there is none."""
    meaning: str


@dataclass(frozen=True)
class LineCounts:
    """What one line of the source did, in all warps of a launch."""

    file: str
    line: int
    counts: Mapping[str, int]
    """Without the numbers that are zero."""


Step = int | Literal["varies"] | None
"""Bytes that are the same wherever they are defined, over all requests; ``varies`` where they
differ, ``None`` where no two lanes tell."""


@dataclass(frozen=True)
class AccessCounts:
    """What one access of the code did in one space, over all its requests."""

    file: str
    line: int
    space: str
    """``global``, ``shared`` or ``local``."""
    kind: str
    """``load``, ``store`` or ``atomic``."""
    size: int
    """Bytes of a lane."""
    requests: int
    lanes: int
    passes: int
    """Sectors; of shared memory, wavefronts."""
    ideal: int
    """Passes that as many lanes take side by side; 0 of local memory."""
    same_address: int
    """Lanes of atomic requests whose address a lane before them has."""
    step_x: Step
    """Bytes from a lane to the next in ``threadIdx.x``."""
    step_y: Step
    """Bytes from a lane to the next in ``threadIdx.y``."""
    pitch: Step
    """Of shared memory: bytes from row to row, where lanes of a request stand in several rows."""
    uniform: int
    """Requests whose lanes all have one place."""
    padded: int
    """Of shared memory: wavefronts, by the addresses, if each row were one element longer, and 4
    bytes at least, from the first request with a conflict on."""
    sectors: int
    """Different sectors of global memory in the launch."""
    block_sectors: int
    """Different sectors of each block, added up."""
    uneven: int = 0
    """Requests in which ``step_x`` changes at most lanes, as where an index comes from data."""
    number: str = ""
    """Type of what is accessed, as PTX has it: ``f64``; vectors have that of their parts."""


@dataclass(frozen=True)
class LaunchCounts:
    """What one launch did."""

    kernel: str
    """``module.function``, read from the mangled name."""
    grid: Extent
    block: Extent
    shared_bytes: int
    """Shared memory of a block, static and dynamic."""
    architecture: tuple[int, int]
    """The compute capability of the device in software."""
    missing: str | None
    """Why there are no counts; ``None`` where there are."""
    counts: Mapping[str, int]
    """Every name of ``COUNTS`` with its number, zeros included; empty where counts are missing."""
    lines: tuple[LineCounts, ...] = ()
    """By file and line; empty where the kernel was compiled without lines."""
    resources: Resources | None = None
    """What the compiler made of it on that architecture; ``None`` where no linker is installed."""
    accesses: tuple[AccessCounts, ...] = ()
    """In the order of the code; empty where the kernel was compiled without lines."""
    loaded_block_sectors: int = 0
    """Different sectors of global memory that the loads of each block ask for, added up."""
    symbol: str = ""
    """The mangled name, by which ``SoftwareDevice.code`` finds its machine code."""


_SIDE_BY_SIDE = "side by side, and never more than were needed"


def _requests_and_sectors(space: str, kind: str, operation: str, done: str) -> list[Count]:
    """Return the counts that accesses to global and to local memory share."""
    metric = f"pipe_lsu_mem_{space}_op_{operation}.sum"
    access = f"{space}_{kind}"
    return [
        Count(
            f"{access}_requests",
            "requests",
            "warp",
            f"l1tex__t_requests_{metric}",
            f"instructions that {done} {space} memory, with at least one lane on",
        ),
        Count(
            f"{access}_sectors",
            "sectors",
            "warp",
            f"l1tex__t_sectors_{metric}",
            "different sectors of 32 bytes that the lanes of each request touch"
            + (", each as often as most lanes have one address in it" if kind == "atomic" else ""),
        ),
    ]


def _global(kind: str, operation: str, done: str) -> list[Count]:
    return [
        *_requests_and_sectors("global", kind, operation, done),
        Count(
            f"global_{kind}_ideal_sectors",
            "sectors",
            "warp",
            "memory_l2_theoretical_sectors_global_ideal",
            f"sectors that as many lanes take {_SIDE_BY_SIDE}",
        ),
    ]


def _shared(kind: str, operation: str, done: str) -> list[Count]:
    return [
        Count(
            f"shared_{kind}_requests",
            "requests",
            "warp",
            f"smsp__inst_executed_op_shared_{operation}.sum",
            f"instructions that {done} shared memory, with at least one lane on",
        ),
        Count(
            f"shared_{kind}_wavefronts",
            "wavefronts",
            "warp",
            "memory_l1_wavefronts_shared",
            "passes in which each of 32 banks gives one word of 4 bytes",
        ),
        Count(
            f"shared_{kind}_ideal_wavefronts",
            "wavefronts",
            "warp",
            "memory_l1_wavefronts_shared_ideal",
            f"passes that as many lanes take {_SIDE_BY_SIDE}",
        ),
    ]


def _same_address(space: str) -> Count:
    return Count(
        f"{space}_atomic_same_address",
        "lanes",
        "thread",
        None,
        f"lanes of atomic requests to {space} memory whose address a lane before them has",
    )


def _flops(bits: int, precision: str, letter: str) -> Count:
    return Count(
        f"flops_float{bits}",
        "operations",
        "thread",
        f"smsp__sass_thread_inst_executed_op_{{{letter}add,{letter}mul,2*{letter}fma}}_pred_on.sum",
        f"additions, subtractions and multiplications in {precision} precision; an fma is two, "
        "and each number of a packed instruction counts",
    )


def _instructions(kind: str, which: str) -> Count:
    return Count(f"ptx_{kind}", "instructions", "warp", None, f"of ptx_instructions: {which}")


_CHANGE = "change by an atomic operation"

COUNTS: tuple[Count, ...] = (
    Count("warps", "warps", "launch", "smsp__warps_launched.sum", "warps of the launch"),
    Count("threads", "threads", "launch", "launch__thread_count", "threads of the launch"),
    Count(
        "ptx_instructions",
        "instructions",
        "warp",
        None,
        "instructions of PTX that warps execute, also where the guard is off for all lanes",
    ),
    Count(
        "ptx_thread_instructions",
        "instructions",
        "thread",
        None,
        "each of them once for every active lane, also where the lane's guard is off",
    ),
    Count(
        "busiest_block_instructions",
        "instructions",
        "launch",
        None,
        "of ptx_instructions: those of the block of threads that executes most",
    ),
    *_global("load", "ld", "read"),
    *_global("store", "st", "write"),
    *_global("atomic", "{atom,red}", _CHANGE),
    _same_address("global"),
    *_shared("load", "ld", "read"),
    *_shared("store", "st", "write"),
    *_shared("atomic", "atom", _CHANGE),
    _same_address("shared"),
    *_requests_and_sectors("local", "load", "ld", "read"),
    *_requests_and_sectors("local", "store", "st", "write"),
    Count(
        "guarded_off_lanes",
        "lanes",
        "thread",
        None,
        "lanes that come to an access or operation with a guard, and whose guard is off",
    ),
    Count(
        "branches",
        "branches",
        "warp",
        None,
        "branches that depend on a condition or an index",
    ),
    Count(
        "divergent_branches",
        "branches",
        "warp",
        None,
        "branches at which lanes of a warp go different ways",
    ),
    Count(
        "waiting_lanes",
        "lanes",
        "thread",
        None,
        "lanes that parted from others at this branch, once for each instruction that the others "
        "execute until they meet",
    ),
    Count("barriers", "barriers", "warp", None, "arrivals of warps at barriers of the block"),
    _flops(16, "half (float16, bfloat16)", "h"),
    _flops(32, "single", "f"),
    _flops(64, "double", "d"),
    Count(
        "special_functions",
        "operations",
        "thread",
        None,
        "div, rcp, sqrt, rsqrt, sin, cos, ex2, lg2 and tanh of floating-point numbers",
    ),
    _instructions("integer", "calculations and comparisons of integers and bits"),
    Count(
        "integer_divisions",
        "instructions",
        "warp",
        None,
        "of ptx_integer: divisions and remainders by what is not known when compiling",
    ),
    Count(
        "index_wraps",
        "instructions",
        "warp",
        None,
        "of ptx_integer: additions that bring a negative index to the end of an array",
    ),
    _instructions("float", "calculations and comparisons of floating-point numbers"),
    _instructions("move", "copies, choices and conversions of addresses"),
    _instructions("convert", "conversions of numbers"),
    Count(
        "float64_from_float32",
        "instructions",
        "warp",
        None,
        "of ptx_convert: conversions of float32 to float64",
    ),
    Count(
        "float64_from_integer",
        "instructions",
        "warp",
        None,
        "of ptx_convert: conversions of integers to float64",
    ),
    _instructions("control", "branches, calls and returns"),
    _instructions("memory", "loads, stores and atomic operations, of parameters and constants too"),
    _instructions("special", "special functions"),
    _instructions("other", "barriers, fences, operations between lanes, hints"),
)
"""Every number, once, in the order of tables."""


def format_reference() -> str:
    """Return the definitions as a table in Markdown, for ``docs/counts.md``."""
    head = "| count | level | meaning | at NVIDIA |\n| --- | --- | --- | --- |\n"
    rows = []
    for one in COUNTS:
        metric = f"`{one.nvidia}`" if one.nvidia else ""
        rows.append(f"| `{one.name}` | {one.level} | {one.meaning} | {metric} |\n")
    return head + "".join(rows)


# ---- from what the driver tells ----------------------------------------------------------------

_LEVELS = {one.name: one.level for one in COUNTS}
_SPACES = ("generic", "global", "shared", "local", "guard")
"""By the numbers that translation and driver use."""
_DESCRIPTIONS = 64
"""Modules whose descriptions are kept, since reading one takes longer than a small launch."""


def parse_launches(
    text: str, resources: Callable[[str, tuple[int, int]], Resources | None] = lambda *_: None
) -> list[LaunchCounts]:
    """Parse the driver's JSON lines.

    ``resources`` tells what a kernel, by its mangled name, takes on an architecture.
    """
    lines = (json.loads(line) for line in text.splitlines() if line.strip(" \0"))
    return [_launch(line, resources) for line in lines]


def work_on_host(call: str) -> LaunchCounts:
    """Return what stands for a call of a library that the host did, where no launch was counted."""
    return LaunchCounts(
        kernel=call,
        grid=(0, 0, 0),
        block=(0, 0, 0),
        shared_bytes=0,
        architecture=(0, 0),
        missing=f"{call} ran on the host in place of NVIDIA's library, so it is not counted",
        counts={},
    )


@lru_cache(_DESCRIPTIONS)
def _describe(library: str) -> dict[str, Any]:
    """Read what the basic blocks of a module do, as ``translation/counting.py`` describes it."""
    text = description_of(Path(library)).read_text(encoding="utf-8")
    description: dict[str, Any] = json.loads(text)
    return description


def _launch(
    said: Mapping[str, Any], resources: Callable[[str, tuple[int, int]], Resources | None]
) -> LaunchCounts:
    missing = said.get("missing")
    of_lines: Mapping[tuple[int, int], Counter[str]] = {}
    lines: tuple[LineCounts, ...] = ()
    accesses: tuple[AccessCounts, ...] = ()
    grid, block = tuple(said["grid"]), tuple(said["block"])
    threads_of_block = block[0] * block[1] * block[2]
    blocks = grid[0] * grid[1] * grid[2]
    warps, threads = blocks * -(-threads_of_block // 32), blocks * threads_of_block
    counts: dict[str, int] = {}
    if missing is None:
        description = _describe(said["library"])
        executed = said.get("blocks")
        if executed is None:  # an empty kernel: nothing has run
            executed = [[description["kernels"][said["kernel"]], warps, threads, 0, 0]]
        of_lines = _sum_lines(description, executed, said)
        accesses = tuple(_accesses(description, said))
        counts = {one.name: 0 for one in COUNTS} | {"warps": warps, "threads": threads}
        counts["busiest_block_instructions"] = said.get("busiest", 0)
        for row in of_lines.values():
            for name, number in row.items():
                counts[name] += number
        lines = tuple(_lines(of_lines, description["files"]))
    architecture = divmod(said["capability"], 10)
    return LaunchCounts(
        kernel=readable_name(said["kernel"]),
        grid=grid,
        block=block,
        shared_bytes=said["shared_bytes"],
        architecture=architecture,
        missing=missing,
        counts=counts,
        lines=lines,
        accesses=accesses,
        loaded_block_sectors=said.get("loaded", 0),
        resources=None if missing else resources(said["kernel"], architecture),
        symbol=said["kernel"],
    )


def _sum_lines(
    description: Mapping[str, Any],
    executed: list[list[int]],
    said: Mapping[str, Any],
) -> dict[tuple[int, int], Counter[str]]:
    """Return what each line did, by the numbers of files and lines."""
    of_lines: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for number, warps, lanes, divergent, waited in executed:
        for file, line, row in description["rows"][number]:
            sums = of_lines[file, line]
            for name, each in row.items():
                sums[name] += each * (lanes if _LEVELS[name] == "thread" else warps)
        if divergent and (place := description["branches"][number]):
            of_lines[tuple(place)]["divergent_branches"] += divergent
            of_lines[tuple(place)]["waiting_lanes"] += waited
    for number, lanes in said.get("off", ()):
        _, _, _, file, line, *_ = description["accesses"][number]
        of_lines[file, line]["guarded_off_lanes"] += lanes
    for (number, space, requests, lanes, passes, ideal, same), _ in said.get("accesses", ()):
        _, kind, _, file, line, row, _ = description["accesses"][number]
        sums = of_lines[file, line]
        for name, each in row.items():
            sums[name] += each * (lanes if _LEVELS[name] == "thread" else requests)
        if _SPACES[space] == "guard":
            continue
        access = f"{_SPACES[space]}_{kind}"
        unit = "wavefronts" if _SPACES[space] == "shared" else "sectors"
        found = {
            f"{access}_requests": requests,
            f"{access}_{unit}": passes,
            f"{access}_ideal_{unit}": ideal,
            f"{access}_same_address": same,
        }
        for name, number_of in found.items():
            if name in _LEVELS:
                sums[name] += number_of
    return of_lines


def _accesses(description: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[AccessCounts]:
    """Yield the accesses to memory whose place is known."""
    for (number, space, *sums), facts in said.get("accesses", ()):
        _, kind, size, file, line, _, of_ptx = description["accesses"][number]
        path = description["files"].get(str(file), "")
        if _SPACES[space] != "guard" and path and line:
            counted = AccessCounts(path, line, _SPACES[space], kind, size, *sums, *facts)
            yield replace(counted, number=of_ptx)


def _lines(
    of_lines: Mapping[tuple[int, int], Counter[str]], files: Mapping[str, str]
) -> Iterator[LineCounts]:
    """Yield the lines whose place is known, by file and line."""
    places: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for (file, line), row in of_lines.items():
        places[files.get(str(file), ""), line].update(row)
    for place in sorted(places):
        if all(place):
            yield LineCounts(*place, {name: n for name, n in places[place].items() if n})


# ---- a table -----------------------------------------------------------------------------------


def sum_by_kernel(launches: Iterable[LaunchCounts]) -> dict[str, tuple[int, dict[str, int]]]:
    """Return how often each kernel was launched and the sums of its counts, in the order in which
    kernels came first. Launches without counts are left out."""
    kernels: dict[str, tuple[int, dict[str, int]]] = {}
    for one in launches:
        if one.missing is not None:
            continue
        times, sums = kernels.get(one.kernel, (0, {}))
        merged = {name: sums.get(name, 0) + number for name, number in one.counts.items()}
        kernels[one.kernel] = times + 1, merged
    return kernels


def format_table(launches: Sequence[LaunchCounts]) -> list[str]:
    """Return the lines of a table of what each kernel did in all its launches; below it, why
    launches have no counts."""
    rows = [list(_HEADINGS)]
    for kernel, (times, sums) in sum_by_kernel(launches).items():
        instructions = sums["ptx_instructions"]
        flops = sum(sums[f"flops_float{bits}"] for bits in (16, 32, 64))
        rows.append(
            [
                kernel,
                f"{times:,}",
                f"{instructions:,}",
                _ratio(sums["ptx_thread_instructions"], instructions),
                *(_ratio_of(sums, "global", kind, "sectors") for kind in ("load", "store")),
                *(_ratio_of(sums, "shared", kind, "wavefronts") for kind in ("load", "store")),
                f"{sums['divergent_branches']:,}",
                f"{flops:,}",
            ]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    missing = Counter((one.kernel, one.missing) for one in launches if one.missing is not None)
    for (kernel, why), times in missing.items():
        lines.append(f"{kernel}: {times:,} without counts: {why}")
    return lines


_HEADINGS = (
    "kernel",
    "launches",
    "PTX instructions",
    "lanes of 32",
    "sectors/load",
    "sectors/store",
    "wavefronts/load",
    "wavefronts/store",
    "divergent",
    "flops",
)
"""Sectors are those of global memory, wavefronts those of shared memory."""


def _ratio_of(sums: Mapping[str, int], space: str, kind: str, unit: str) -> str:
    return _ratio(sums[f"{space}_{kind}_{unit}"], sums[f"{space}_{kind}_requests"])


def _ratio(number: int, of: int) -> str:
    return f"{number / of:.2f}" if of else "-"
