"""The machine panel: hardware and software that the numbers depend on, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpubench.analysis.history import SetupHistory
from gpubench.names import Value
from gpubench.report import text
from gpubench.results import Results

_LABELS = {
    "cpu": "Processor",
    "cpu_threads": "Threads available",
    "num_cpu": "Processors",
    "memory_bytes": "Memory",
    "ram": "Memory",
    "os": "System",
    "arch": "Architecture",
    "gpu": "GPU",
    "driver": "GPU driver",
    "no_gpu": "GPU",
    "cuda_runtime": "CUDA runtime",
    "python": "Python",
    "numpy": "NumPy",
    "numba": "Numba",
    "numba_cuda": "numba-cuda",
    "llvmlite": "llvmlite",
    "blas": "BLAS",
    "blas_threads": "BLAS threads",
    "gpubench": "gpubench",
    "asv_runner": "asv_runner",
}
_REPLACED = {"num_cpu": "cpu_threads", "ram": "memory_bytes"}
"""Facts of ``machine.json`` that the record tells better."""
_HIDDEN = {"host", "machine", "run", "version"}


@dataclass(frozen=True, slots=True)
class MachinePanel:
    """One machine and environment."""

    name: str
    environment: str
    facts: tuple[tuple[str, str], ...]
    """Label and value, the most telling first."""
    devices: tuple[str, ...]
    """Devices that cases were measured on or planned for."""
    measured_at: str
    """Time in words; empty when unknown."""


def machine_panel(results: Results, history: SetupHistory) -> MachinePanel:
    """Facts of the newest snapshot that has any, over asv's description of the machine."""
    snapshots = [s for s in history.snapshots if s.facts] or list(history.snapshots)
    newest = snapshots[-1]
    facts = {**results.machines.get(history.setup.machine, {}), **newest.facts}
    return MachinePanel(
        name=history.setup.machine,
        environment=history.setup.environment,
        facts=tuple(_in_words(facts)),
        devices=tuple(sorted(_devices(history))),
        measured_at=(newest.measured_at or "")[:16].replace("T", " "),
    )


def _in_words(facts: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    shown = {
        key: value
        for key, value in facts.items()
        if value not in (None, "", "unknown")
        and key not in _HIDDEN
        and not (key in _REPLACED and facts.get(_REPLACED[key]))
    }
    order = {key: index for index, key in enumerate(_LABELS)}
    for key in sorted(shown, key=lambda key: (order.get(key, len(order)), key)):
        yield _LABELS.get(key, key.replace("_", " ")), _value(key, shown[key])


def fact_words(key: str, value: Value | None) -> tuple[str, str]:
    """Label and value of one fact, wherever it is shown."""
    shown = "none" if value in (None, "") else _value(key, value)
    return _LABELS.get(key, key.replace("_", " ")), shown


def _value(key: str, value: Value | None) -> str:
    if key.endswith("_bytes") and isinstance(value, int | float):
        return f"{text.digits(value / 2**30)} GiB"
    if key == "ram" and str(value).isdigit():
        return f"{text.digits(int(str(value)) / 2**30)} GiB"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _devices(history: SetupHistory) -> set[str]:
    outcomes = history.snapshots[-1].outcomes.values()
    return {outcome.record.device for outcome in outcomes if outcome.record} - {""}
