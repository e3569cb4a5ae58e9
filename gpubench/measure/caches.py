"""What a time means where the arrays fit into the device's cache."""

from __future__ import annotations

from collections.abc import Mapping

from gpubench.names import Value

MEGA = 1e6


def fits_in_cache(time: str, nbytes: int, facts: Mapping[str, Value]) -> tuple[str, ...]:
    """Warning for a ``kernel`` time whose arrays, ``nbytes`` together, stay in L2 between runs.

    ``facts`` are a session's; without ``l2_bytes`` among them nothing is known.
    """
    l2 = facts.get("l2_bytes")
    if time != "kernel" or not isinstance(l2, int) or not 0 < nbytes <= l2:
        return ()
    return (
        f"fits in L2: measured in cache, {nbytes / MEGA:.3g} MB of {l2 / MEGA:.3g} MB; "
        "`cold` shows the other",
    )
