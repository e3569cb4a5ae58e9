"""Why a case cannot run here, known before anything is launched."""

from __future__ import annotations

import importlib.util

from gpubench.backends import registry
from gpubench.backends.limits import launch_fault
from gpubench.backends.protocol import DeviceFacts
from gpubench.plan.case import Case
from gpubench.plan.rules import skip_reason


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
    )


def _impossible_launch(case: Case, facts: DeviceFacts) -> str | None:
    if case.launch is None or facts.limits is None:
        return None
    return launch_fault(case.launch, facts.limits)


def _missing_requirement(case: Case) -> str | None:
    for name in case.implementation.requires:
        if importlib.util.find_spec(name) is None:
            return f"needs the module {name!r}, which is not installed here: pip install {name}"
    return None
