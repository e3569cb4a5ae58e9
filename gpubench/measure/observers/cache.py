"""Warns of a time on a device that its cache alone explains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpubench.measure.observers.protocol import Observer
from gpubench.names import Value

if TYPE_CHECKING:
    from gpubench.measure.case_run import CaseRun


class CacheObserver(Observer):
    """Warn of a case whose arrays stay in the device's cache between runs."""

    def on_prepare(self, run: CaseRun) -> None:
        """Compare the arrays with the cache that the session tells of."""
        run.put(warnings=fits_in_cache(run.time, run.nbytes, run.facts))


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
