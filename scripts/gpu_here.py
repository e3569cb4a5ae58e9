"""Whether this machine has an NVIDIA GPU: exit code 0, or 2 with the reason.

Any Python runs it, so that ``make gpu-check`` can tell before anything is installed.
"""

from __future__ import annotations

import ctypes
import sys

LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
"""NVIDIA's management library, which comes with the driver and starts no device."""


def main() -> int:
    reason = why_none()
    if reason is not None:
        print(f"gpu-check: nothing checked: {reason}")
    return 0 if reason is None else 2


def why_none() -> str | None:
    """Why there is no GPU to check, with the next step; ``None`` where there is one."""
    try:
        nvml = ctypes.CDLL(LIBRARY)
    except OSError:
        return (
            f"no NVIDIA driver: its management library ({LIBRARY}) is not on this machine; "
            "run it on a machine with an NVIDIA GPU"
        )
    count = ctypes.c_uint(0)
    error = nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    if error:
        return f"the NVIDIA driver does not answer (NVML error {error}); nvidia-smi says more"
    return None if count.value else "the NVIDIA driver is here and finds no GPU"


if __name__ == "__main__":
    sys.exit(main())
