"""What the device in software sees of a kernel beside its results: faults, each with its place.

Nothing here does anything in a process that runs on devices, or has started none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gpubench.backends.software import NAME, running_device

if TYPE_CHECKING:
    from gpubench.softcuda import Report

ASCENDING = "ascending"
_MOST_SAID = 3
"""Faults that a reason has room for."""


def name_arrays(arrays: Mapping[str, Any]) -> None:
    """Name arrays on the device, so that faults say ``out`` and not a number."""
    device = running_device()
    if device is None:
        return
    for name, native in arrays.items():
        # What CUDA arrays of all libraries tell (the CUDA array interface of Numba's manual).
        interface = getattr(native, "__cuda_array_interface__", None)
        address = interface["data"][0] if interface else 0
        if address:
            device.name(address, name)


def set_order(order: str) -> None:
    """Threads and blocks of later launches run ``ascending``, ``descending`` or by a seed."""
    device = running_device()
    if device is not None:
        device.set("order", order)


def set_sanitize(on: bool) -> None:
    """Modules that are loaded later are watched at every access."""
    device = running_device()
    if device is not None:
        device.set("sanitize", "1" if on else "0")


def take_faults() -> tuple[Report, ...]:
    """What was found since this was asked last, oldest first."""
    device = running_device()
    return () if device is None else tuple(device.reports())


def with_faults(reason: str, faults: Iterable[Report]) -> str:
    """A reason, and the faults behind it."""
    said = list(map(str, faults))
    more = [f"and {len(said) - _MOST_SAID} more"] if len(said) > _MOST_SAID else []
    return "; ".join([reason, *(f"{NAME}: {one}" for one in said[:_MOST_SAID]), *more])
