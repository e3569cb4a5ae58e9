"""Why a case cannot run here, known before anything is launched."""

from __future__ import annotations

import importlib.util
from typing import Protocol, runtime_checkable

from gpubench.backends import registry
from gpubench.backends.limits import launch_fault
from gpubench.backends.protocol import DeviceFacts
from gpubench.plan.case import Case
from gpubench.plan.rules import skip_reason


@runtime_checkable
class CountsThreads(Protocol):
    """A backend of the CPU, where ``threads`` has a limit."""

    def too_many_threads(self, threads: int) -> str | None:
        """Why so many threads cannot be measured here; ``None`` when they can."""


def why_not(case: Case) -> str | None:
    """Reason to skip the case, with the next step; ``None`` when it can run. Starts nothing.

    An impossible launch is named first: it is impossible on every machine, whatever this one lacks.
    """
    backend = registry.get(case.backend)
    facts = backend.device_facts(case.device)
    return (
        _impossible_launch(case, facts)
        or skip_reason(case, facts.scope)
        or _missing_requirement(case)
        or backend.unavailable(case.device)
        or _too_many_threads(case)
    )


def _impossible_launch(case: Case, facts: DeviceFacts) -> str | None:
    if case.launch is None or facts.limits is None:
        return None
    return launch_fault(case.launch, facts.limits)


def _too_many_threads(case: Case) -> str | None:
    """A time with fewer threads than the case says would be another case's time."""
    for one in filter(None, (case, case.baseline())):
        backend = registry.get(one.backend)
        if one.threads is None or not isinstance(backend, CountsThreads):
            continue
        if reason := backend.too_many_threads(one.threads):
            return reason if one is case else f"the baseline cannot run: {reason}"
    return None


def _missing_requirement(case: Case) -> str | None:
    for name in case.implementation.requires:
        if importlib.util.find_spec(name) is None:
            return f"needs the module {name!r}, which is not installed here: pip install {name}"
    return None
