"""What stands beside a time: whether it can run here, the floor under it, and what memory attains.

Everything about the device is asked of its backend.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from contextlib import suppress

from gpubench import arrow
from gpubench.backends import registry
from gpubench.backends.limits import launch_fault
from gpubench.backends.protocol import DeviceMemoryError, Session
from gpubench.errors import GpubenchError, KernelError
from gpubench.measure.memory import may_be_the_limit, why_no_limit
from gpubench.measure.recorder import Recorder
from gpubench.measure.sampling import CaseSampler
from gpubench.names import CPU, Value
from gpubench.plan.case import Case
from gpubench.plan.rules import skip_reason

NEAR = 10
"""A time of fewer empty calls than this is mostly the cost of a call: over a tenth of it."""
SHORT = 10e-6
"""Seconds of a run from which no floor is looked for: a hundred empty calls of Python or of Numba,
which cost 0.05 to 0.13 µs."""
FLOOR_CALLS = 2000
"""Calls in a batch: 0.1 ms, far more than the clock needs."""
FLOOR_BATCHES = 5

BANDWIDTHS = ("copy_bytes_per_second", "triad_bytes_per_second")
BANDWIDTH_TIMES = ("kernel", "cold")
"""Times that are compared with the device's bandwidth."""


def why_not(case: Case) -> str | None:
    """Reason to skip the case, with the next step; ``None`` when it can run. Starts nothing. Raises
    ``KernelError`` for a case that can run nowhere."""
    if case.fault is not None:
        raise KernelError(case.fault)
    backend = registry.get(case.backend)
    facts = backend.device_facts(case.device)
    launch, limits = case.launch, facts.limits
    # First what is impossible on every machine, whatever this one lacks.
    if launch is not None and limits is not None and (reason := launch_fault(launch, limits)):
        return reason
    if reason := skip_reason(case, facts.scope):
        return reason
    if case.kernel.tables and (reason := arrow.not_installed()):
        return reason
    for name in case.implementation.requires:
        if importlib.util.find_spec(name) is None:
            return f"needs the module {name!r}, which is not installed here: pip install {name}"
    if reason := why_no_limit(case) or backend.unavailable_with(case.device, case.options()):
        return reason
    for part in case.parts():
        if reason := why_not(part):
            return f"its part {part.implementation_name} on {part.device} cannot run: {reason}"
    # A time with fewer threads than the case says would be another case's time.
    for one in filter(None, (case, case.baseline())):
        too_many = registry.get(one.backend).too_many_threads
        if one.threads is not None and (reason := too_many(one.threads)):
            return reason if one is case else f"the baseline cannot run: {reason}"
    return None


def why_ended(case: Case) -> str:
    """Return what to add to the way in which a case's process ended: that its device is lost, or
    its memory limit; empty where neither is known."""
    lost = registry.get(case.backend).lost(case.device)
    return f"; {lost}" if lost else may_be_the_limit(case)


def why_stopped(seconds: float) -> str:
    """Return the reason that stands beside a case which its timeout of so many seconds ended."""
    return (
        f"stopped by its timeout of {seconds:g} s; "
        "raise `timeout` under `sampling`, or make the case smaller"
    )


def changes_process(case: Case) -> bool:
    """Return whether it leaves its process unfit for other cases; not where it fails before it
    runs."""
    with suppress(GpubenchError):
        cases = filter(None, (case, case.baseline(), *case.parts()))
        return any(registry.get(one.backend).changes_process(one.options()) for one in cases)
    return False


def floor(
    session: Session, measurement: CaseSampler, time: str
) -> tuple[Mapping[str, Value], tuple[str, ...]]:
    """Condition ``floor_seconds`` of one empty call, measured where a run is short; a warning where
    the run is near it.

    Only ``kernel`` is one call after another, as the floor is. The quickest of a few batches
    counts: what else runs on the machine only adds.
    """
    run = measurement.run_seconds
    if time != "kernel" or run is None or run >= SHORT or (empty := session.empty()) is None:
        return {}, ()
    sampler = session.sampler(empty)
    sampler.seconds(1)
    seconds = min(sampler.seconds(FLOOR_CALLS) for _ in range(FLOOR_BATCHES)) / FLOOR_CALLS
    if run >= NEAR * seconds:
        return {"floor_seconds": seconds}, ()
    runs, calls = f"{run * 1e6:.2f} µs", f"{seconds * 1e6:.2f} µs"
    near = f"near the floor: a run takes {runs} and an empty call {calls}"
    return {"floor_seconds": seconds}, (near,)


def fits_in_cache(time: str, nbytes: int, facts: Mapping[str, Value]) -> tuple[str, ...]:
    """Warning for a ``kernel`` time whose arrays, ``nbytes`` together, stay in L2 between runs,
    where a session's ``facts`` have ``l2_bytes``."""
    l2 = facts.get("l2_bytes")
    if time != "kernel" or not isinstance(l2, int) or not 0 < nbytes <= l2:
        return ()
    return (
        f"fits in L2: measured in cache, {nbytes / 1e6:.3g} MB of {l2 / 1e6:.3g} MB; "
        "`cold` shows the other",
    )


_measured: dict[tuple[type, str], Mapping[str, Value]] = {}
"""Bandwidths of this process, where there is no record; by kind of session and device."""


def bandwidth(session: Session, device: str, time: str, recorder: Recorder) -> Mapping[str, Value]:
    """Return what the device's memory reaches with kernels of its own kind, by the names
    ``BANDWIDTHS``.

    Empty where the device does not tell, has no room, or the time is not compared with it. asv runs
    every case in a process of its own. So the figures go on record with each case, and later cases
    of the run take them from there.
    """
    if time not in BANDWIDTH_TIMES or device == CPU:
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
