"""What GPUs have room for and how fast they are at most, by NVIDIA's publications.

A bound has to lie below every time, so that of two published figures the faster one stands here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from gpubench.errors import Fault, SuiteError, did_you_mean
from gpubench.suite.reader import read_suite_file
from gpubench.suite.tree import Node

Architecture = tuple[int, int]
"""A compute capability: (9, 0) for Hopper."""

WARP_THREADS = 32
SUB_PARTITIONS = 4
"""Of a multiprocessor; each has a scheduler that issues one instruction a clock, from Volta on
(Programming Guide, "Compute Capabilities", section of each one)."""
SECTORS_PER_CLOCK = 4
"""Most sectors that the L1 cache of a multiprocessor gives in a clock: 128 bytes (Volta white
paper; Turing gives half of it)."""
WAVEFRONTS_PER_CLOCK = 1
"""Of shared memory: each of its 32 banks gives 4 bytes a clock (Programming Guide, "Shared Memory"
of compute capability 5.x and later)."""


@dataclass(frozen=True)
class Multiprocessor:
    """What a multiprocessor of an architecture holds, and does in a clock."""

    threads: int
    blocks: int
    shared_bytes: int
    shared_bytes_per_block: int
    """For a block that opts in."""
    float16_per_clock: int
    """Multiply-adds in a clock; each is 2 operations."""
    float32_per_clock: int
    float64_per_clock: int
    special_per_clock: int
    """Reciprocals, square roots, sines and their like."""
    registers: int = 65_536
    registers_per_block: int = 65_536


@dataclass(frozen=True)
class Gpu:
    """A GPU by name."""

    name: str
    architecture: Architecture
    multiprocessors: int
    clock_hz: float
    """The highest clock of its multiprocessors that is published."""
    memory_bytes_per_second: float
    l2_bytes: int
    limits: Multiprocessor
    source: str
    """Where the figures come from."""


_KIB = 1024
# What a multiprocessor holds: Programming Guide, "Technical Specifications per Compute Capability".
# What it does in a clock: there, "Throughput of Native Arithmetic Instructions"; for 10.0 and 12.0
# what the peak rates of B200 and RTX 5090 come to (HGX B200 data sheet; RTX Blackwell white paper).
MULTIPROCESSORS: dict[Architecture, Multiprocessor] = {
    (7, 0): Multiprocessor(2048, 32, 96 * _KIB, 96 * _KIB, 128, 64, 32, 16),
    (7, 5): Multiprocessor(1024, 16, 64 * _KIB, 64 * _KIB, 128, 64, 2, 16),
    (8, 0): Multiprocessor(2048, 32, 164 * _KIB, 163 * _KIB, 256, 64, 32, 16),
    (8, 6): Multiprocessor(1536, 16, 100 * _KIB, 99 * _KIB, 128, 128, 2, 16),
    (8, 9): Multiprocessor(1536, 24, 100 * _KIB, 99 * _KIB, 128, 128, 2, 16),
    (9, 0): Multiprocessor(2048, 32, 228 * _KIB, 227 * _KIB, 256, 128, 64, 16),
    (10, 0): Multiprocessor(2048, 32, 228 * _KIB, 227 * _KIB, 256, 128, 64, 16),
    (12, 0): Multiprocessor(1536, 24, 100 * _KIB, 99 * _KIB, 128, 128, 2, 16),
}

_MB = 1024 * 1024
GPUS: dict[str, Gpu] = {
    gpu.name: gpu
    for gpu in (
        Gpu(
            name="T4",
            architecture=(7, 5),
            multiprocessors=40,
            clock_hz=1.590e9,
            memory_bytes_per_second=320e9,
            l2_bytes=4 * _MB,
            limits=MULTIPROCESSORS[7, 5],
            # 40 x 64 x 2 x 1.59 GHz = 8.1 TFLOP/s of float32, as the data sheet has it.
            source="NVIDIA T4 product brief PB-09256-001; Turing white paper (SMs, L2)",
        ),
        Gpu(
            name="A100",
            architecture=(8, 0),
            multiprocessors=108,
            clock_hz=1.410e9,
            # The module with 80 GB; PCIe has 1,935 GB/s, and 40 GB have 1,555 GB/s.
            memory_bytes_per_second=2_039e9,
            l2_bytes=40 * _MB,
            limits=MULTIPROCESSORS[8, 0],
            # 108 x 64 x 2 x 1.41 GHz = 19.5 TFLOP/s.
            source="NVIDIA A100 data sheet (memory); A100 white paper (SMs, boost clock, L2)",
        ),
        Gpu(
            name="RTX 4090",
            architecture=(8, 9),
            multiprocessors=128,
            # Boards raise it beyond that where they stay cool.
            clock_hz=2.520e9,
            memory_bytes_per_second=1_008e9,
            l2_bytes=72 * _MB,
            limits=MULTIPROCESSORS[8, 9],
            # 128 x 128 x 2 x 2.52 GHz = 82.6 TFLOP/s.
            source="NVIDIA Ada white paper, appendix A",
        ),
        Gpu(
            name="H100",
            architecture=(9, 0),
            multiprocessors=132,
            # Of 66.9 TFLOP/s: 132 x 128 x 2 x 1.98 GHz.
            clock_hz=1.980e9,
            memory_bytes_per_second=3_350e9,
            l2_bytes=50 * _MB,
            limits=MULTIPROCESSORS[9, 0],
            source="NVIDIA H100 SXM5 data sheet (float32, memory); H100 white paper (SMs, L2)",
        ),
        Gpu(
            name="B200",
            architecture=(10, 0),
            multiprocessors=148,
            # Of 75 TFLOP/s: 148 x 128 x 2 x 1.98 GHz.
            clock_hz=1.980e9,
            memory_bytes_per_second=8_000e9,
            l2_bytes=126 * _MB,
            limits=MULTIPROCESSORS[10, 0],
            source="NVIDIA HGX B200 data sheet (float32, memory); SMs and L2 as the driver tells",
        ),
    )
}
"""GPUs that ``--gpu`` knows by name."""

_NUMBER_FACTORS = {
    "multiprocessors": 1.0,
    "clock_mhz": 1e6,
    "memory_gb_per_second": 1e9,
    "l2_mb": _MB,
}
"""Keys of a file that every GPU needs, and what one of their unit is inside."""
_LIMITS = tuple(field.name for field in fields(Multiprocessor))
_KEYS = ("name", "architecture", "source", *_NUMBER_FACTORS, *_LIMITS)


def load_gpu(name_or_file: str) -> Gpu:
    """Return the GPU of a name in ``GPUS``, whose case and spaces do not count, or of a YAML file.

    Raises ``SuiteError`` with file, line and every fault of a file, or with the names that exist.
    """
    if (gpu := {_plain(name): gpu for name, gpu in GPUS.items()}.get(_plain(name_or_file))) is None:
        if Path(name_or_file).suffix.lower() in (".yaml", ".yml"):
            return _read_gpu(name_or_file)
        raise SuiteError([Fault(name_or_file, 0, 0, _unknown_gpu(name_or_file))])
    return gpu


def _plain(name: str) -> str:
    return "".join(name.split()).lower()


def _unknown_gpu(name: str) -> str:
    return (
        f"no GPU of that name is described; the names are {', '.join(GPUS)}, and a file that ends "
        f"in .yaml describes another{did_you_mean(name, GPUS)}"
    )


def _read_gpu(path: str) -> Gpu:
    tree, faults = read_suite_file(path)
    if tree is None or faults:
        # The reader is that of suites, and what a file begins with differs.
        raise SuiteError(
            replace(fault, message="a GPU is described by a mapping; it starts with name: ...")
            if "version: 1" in fault.message
            else fault
            for fault in faults
        )
    found = [*_unknown_keys(tree), *_missing_keys(tree)]
    architecture = _read_architecture(tree, found)
    numbers = {
        key: _read_number(node, key, found)
        for key, node in tree.entries.items()
        if key in _NUMBER_FACTORS or key in _LIMITS
    }
    if architecture is not None and architecture not in MULTIPROCESSORS:
        absent = [key for key in _LIMITS if key not in tree.entries and "registers" not in key]
        if absent:
            found.append(
                tree.entries["architecture"].origin.fault(
                    f"the limits of compute capability {architecture[0]}.{architecture[1]} are not "
                    f"known; write {', '.join(absent)} too"
                )
            )
    if found or architecture is None:
        raise SuiteError(found)
    limits = {key: int(numbers[key]) for key in _LIMITS if key in numbers}
    known = MULTIPROCESSORS.get(architecture)
    return Gpu(
        name=str(tree.entries["name"].content),
        architecture=architecture,
        multiprocessors=int(numbers["multiprocessors"]),
        clock_hz=numbers["clock_mhz"] * _NUMBER_FACTORS["clock_mhz"],
        memory_bytes_per_second=numbers["memory_gb_per_second"]
        * _NUMBER_FACTORS["memory_gb_per_second"],
        l2_bytes=round(numbers["l2_mb"] * _NUMBER_FACTORS["l2_mb"]),
        limits=Multiprocessor(**(_as_numbers(known) | limits)),
        source=str(tree.entries["source"].content) if "source" in tree.entries else path,
    )


def _as_numbers(known: Multiprocessor | None) -> dict[str, Any]:
    return {} if known is None else {key: getattr(known, key) for key in _LIMITS}


def _unknown_keys(tree: Node) -> list[Fault]:
    return [
        node.key_fault(f"no such key of a GPU: {key!r}{did_you_mean(key, _KEYS)}")
        for key, node in tree.entries.items()
        if key not in _KEYS
    ]


def _missing_keys(tree: Node) -> list[Fault]:
    needed: Mapping[str, str] = {
        "name": "what tables call it",
        "architecture": "its compute capability, such as 8.6",
        **dict.fromkeys(_NUMBER_FACTORS, "a number"),
    }
    return [
        tree.origin.fault(f"a GPU needs the key {key}: {meaning}")
        for key, meaning in needed.items()
        if key not in tree.entries
    ]


def _read_architecture(tree: Node, faults: list[Fault]) -> Architecture | None:
    if (node := tree.entries.get("architecture")) is None:
        return None
    major, point, minor = str(node.content).partition(".")
    if not (point and major.isdecimal() and minor.isdecimal() and int(major) >= MIN_MAJOR):
        faults.append(
            node.origin.fault(
                f"architecture {node.content!r} is no compute capability from {MIN_MAJOR}.0 on; "
                "write one such as 8.6"
            )
        )
        return None
    return int(major), int(minor)


MIN_MAJOR = 7
"""Volta: the oldest architecture whose rules ``occupancy`` knows."""


def _read_number(node: Node, key: str, faults: list[Fault]) -> float:
    value = node.content
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    whole = key == "multiprocessors" or key in _LIMITS
    if not good or value <= 0 or (whole and value != int(value)):  # type: ignore[operator, arg-type]
        kind = "a whole number" if whole else "a number"
        faults.append(node.origin.fault(f"{key} is {value!r}; write {kind} above 0"))
        return 1.0
    return float(value)  # type: ignore[arg-type]
