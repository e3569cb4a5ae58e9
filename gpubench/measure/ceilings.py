"""What the device's memory reaches with kernels of its own kind, measured once for a run.

A session that can tell has a method ``ceilings()``. asv runs every case in a process of its own, so
the figures go on record with each case, and a later process takes them from the record. Without a
record the process itself keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from gpubench.backends.device_errors import DeviceMemoryError
from gpubench.backends.protocol import Session
from gpubench.errors import GpubenchError
from gpubench.measure.recorder import Recorder
from gpubench.names import Value
from gpubench.record import CaseRecord, parse_line

if TYPE_CHECKING:  # what runs on the CPU alone loads nothing of devices
    from gpubench.backends.ceilings import Ceilings

NAMES = ("copy_bytes_per_second", "triad_bytes_per_second")
TIMES = ("kernel", "cold")
"""Times that are compared with the device's bandwidth."""


@runtime_checkable
class TellsCeilings(Protocol):
    """A session of a device whose bandwidth can be measured."""

    def ceilings(self) -> Ceilings: ...


def device_ceilings(
    session: Session, device: str, time: str, recorder: Recorder
) -> Mapping[str, Value]:
    """Conditions ``copy_bytes_per_second`` and ``triad_bytes_per_second``; empty where the device
    does not tell, has no room, or the time is not compared with them."""
    if time not in TIMES or not isinstance(session, TellsCeilings):
        return {}
    if recorder.path is not None:
        return _on_record(device, recorder) or _measured(session)
    kept = type(session), device
    if kept not in _of_process:
        _of_process[kept] = _measured(session)
    return _of_process[kept]


_of_process: dict[tuple[type, str], Mapping[str, Value]] = {}


def _measured(session: TellsCeilings) -> Mapping[str, Value]:
    try:
        measured = asdict(session.ceilings())
    except DeviceMemoryError:
        return {}
    return {name: measured[name] for name in NAMES}


def _on_record(device: str, recorder: Recorder) -> Mapping[str, Value]:
    """What an earlier case of this run told about the device."""
    if recorder.path is None or not recorder.path.exists():
        return {}
    lines = recorder.path.read_text(encoding="utf-8").splitlines()
    for record in map(_case, reversed(_of_this_run(lines))):
        if record is not None and record.device == device and NAMES[0] in record.conditions:
            return {name: record.conditions[name] for name in NAMES}
    return {}


def _of_this_run(lines: Sequence[str]) -> Sequence[str]:
    """Lines after the last that tells new facts about the machine, and that tell of a copy."""
    starts = [index for index, line in enumerate(lines) if '"kind": "run"' in line]
    recent = lines[starts[-1] if starts else 0 :]
    return [line for line in recent if NAMES[0] in line]


def _case(line: str) -> CaseRecord | None:
    try:
        record = parse_line(line)
    except GpubenchError:
        return None
    return record if isinstance(record, CaseRecord) else None
