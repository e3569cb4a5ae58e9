"""The host's processor: its name, cores, threads, caches and memory."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from gpubench.names import Value


@dataclass(frozen=True, slots=True)
class Cpu:
    """The host's processor; ``None`` for what the system does not tell."""

    name: str
    cores: int | None
    """Physical cores of the machine."""
    threads: int
    """Hardware threads that this process may use (its affinity)."""
    memory_bytes: int | None
    caches: Mapping[str, str] = field(default_factory=dict)
    """``{"L1d": "48K", "L2": "2048K", "L3": "32M"}``, as the system writes them."""


@cache
def cpu() -> Cpu:
    """The host's processor, asked once in a process."""
    entries = _cpuinfo()
    return Cpu(
        name=next(filter(None, (e.get("model name") for e in entries)), None) or _platform_name(),
        cores=len({(e.get("physical id"), e.get("core id")) for e in entries if "core id" in e})
        or None,
        threads=_threads(),
        memory_bytes=_memory_bytes(),
        caches=_caches(Path("/sys/devices/system/cpu/cpu0/cache")),
    )


def last_level_cache_bytes() -> int:
    """Size of the largest cache; 64 MiB where the system does not tell."""
    sizes = [_bytes(size) for size in cpu().caches.values()]
    return max(sizes, default=0) or 64 * 2**20


def _bytes(size: str) -> int:
    """``32768K`` or ``32M`` in bytes; 0 for what is no such size."""
    unit = {"K": 2**10, "M": 2**20, "G": 2**30}.get(size[-1:], 1)
    digits = size.rstrip("KMG")
    return int(digits) * unit if digits.isdecimal() else 0


def _platform_name() -> str:
    return platform.processor() or platform.machine() or "unknown CPU"


def _threads() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _cpuinfo() -> list[dict[str, str]]:
    """Processors in ``/proc/cpuinfo``; empty where there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return []
    return [_fields(block) for block in text.strip().split("\n\n")]


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _caches(folder: Path) -> dict[str, str]:
    found = {}
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = (
                (index / name).read_text().strip() for name in ("level", "type", "size")
            )
        except OSError:
            continue
        found[f"L{level}" + {"Data": "d", "Instruction": "i"}.get(kind, "")] = size
    return found


def cpu_facts(here: Cpu) -> dict[str, Value]:
    """Flat facts for the record: ``cpu``, ``cpu_cores``, ``cpu_threads`` ...; unknown left out."""
    caches = " ".join(f"{level}={size}" for level, size in here.caches.items())
    facts: dict[str, Value | None] = {
        "cpu": here.name,
        "cpu_cores": here.cores,
        "cpu_threads": here.threads,
        "cpu_caches": caches or None,
        "memory_bytes": here.memory_bytes,
    }
    return {name: value for name, value in facts.items() if value is not None}
