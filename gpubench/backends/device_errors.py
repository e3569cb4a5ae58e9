"""What goes wrong on a device, as types: what a case fails with, and whether others can go on."""

from __future__ import annotations

from gpubench.errors import GpubenchError


class DeviceError(GpubenchError):
    """The device refused or failed a call. The cause is the library's own exception."""


class DeviceMemoryError(DeviceError):
    """The device has no room for an allocation; the session is still usable."""


class DeviceLostError(DeviceError):
    """The work crashed on the device; only a fresh process can use the device again."""
