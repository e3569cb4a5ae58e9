"""The devices of this machine, described without starting any of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpubench.backends.nvml import (
    Gpu,
    cuda_version,
    gpu_count,
    gpu_facts,
    gpus,
    known_gpus,
    no_gpu_reason,
)
from gpubench.backends.processor import Cpu, cpu, cpu_facts
from gpubench.names import Value

__all__ = [
    "Cpu",
    "Description",
    "Gpu",
    "cpu",
    "cpu_facts",
    "cuda_version",
    "describe",
    "gpu_count",
    "gpu_facts",
    "gpus",
    "known_gpus",
    "no_gpu_reason",
]


@dataclass(frozen=True, slots=True)
class Description:
    """One line of ``gpubench devices``."""

    device: str
    """``cpu``, ``cuda:0`` ...; ``cuda`` where there is no GPU."""
    name: str
    facts: Mapping[str, Value]
    unavailable: str | None = None
    """Why it cannot be used, with the next step."""


def describe() -> list[Description]:
    """The CPU, then every GPU, or one line that says why there is none."""
    here = cpu()
    lines = [Description("cpu", here.name, cpu_facts(here))]
    lines += [Description(f"cuda:{gpu.index}", gpu.name, gpu_facts(gpu)) for gpu in gpus()]
    reason = no_gpu_reason()
    return [*lines, Description("cuda", "NVIDIA GPU", {}, reason)] if reason else lines
