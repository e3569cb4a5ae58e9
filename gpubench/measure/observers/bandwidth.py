"""The bandwidth that a device's memory reaches, which times are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from gpubench.backends.protocol import DeviceMemoryError, Session
from gpubench.measure.observers.protocol import Observer
from gpubench.measure.recorder import Recorder
from gpubench.names import BANDWIDTHS, CPU, RESIDENT_TIMES, Value

if TYPE_CHECKING:
    from gpubench.measure.case_run import CaseRun


class BandwidthObserver(Observer):
    """Measure what the device's memory reaches, once for a run of all cases."""

    def on_prepare(self, run: CaseRun) -> None:
        """Put the bandwidth on record."""
        device = run.case.device
        run.put(conditions=bandwidth(run.session, device, run.time, run.recorder))


_measured: dict[tuple[type, str], Mapping[str, Value]] = {}
"""Bandwidths of this process, where there is no record; by kind of session and device."""


def bandwidth(session: Session, device: str, time: str, recorder: Recorder) -> Mapping[str, Value]:
    """Return what the device's memory reaches with kernels of its own kind, by the names
    ``BANDWIDTHS``.

    Empty where the device does not tell, has no room, or the time is not compared with it. asv runs
    every case in a process of its own. So the figures go on record with each case, and later cases
    of the run take them from there.
    """
    if time not in RESIDENT_TIMES or device == CPU:
        return {}
    for record in recorder.cases_of_run(BANDWIDTHS[0]):
        if record.device == device:
            return {name: record.conditions[name] for name in BANDWIDTHS}
    kept = _measured if recorder.path is None else {}
    key = type(session), device
    if key not in kept:
        kept[key] = {}
        with suppress(DeviceMemoryError):
            kept[key] = {**session.ceilings()}
    return kept[key]
