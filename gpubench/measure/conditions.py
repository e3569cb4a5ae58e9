"""Whether a case can run here, and what its device says of a process that ended.

Everything about the device is asked of its backend.
"""

from __future__ import annotations

import importlib.util
from contextlib import suppress

from gpubench import arrow
from gpubench.backends import registry
from gpubench.backends.limits import launch_fault
from gpubench.errors import GpubenchError, KernelError
from gpubench.measure.memory import may_be_the_limit, why_no_limit
from gpubench.plan.case import Case
from gpubench.plan.rules import skip_reason


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


def why_stopped(seconds: float, likely_cause: str | None = None) -> str:
    """Return the reason that stands beside a case which its timeout of so many seconds ended."""
    if likely_cause is not None:
        return f"stopped by its timeout of {seconds:g} s; {likely_cause}"
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
