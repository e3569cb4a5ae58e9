"""The CUDA device in software, where the environment puts it in place of devices.

The package ``softcuda``, a distribution of its own, knows nothing of the engine, which asks it
through this file alone. It is imported only where it is asked for: a process that measures does not
load it, and gpubench works without it where no kernel is for CUDA.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from gpubench.distribution import require_extra
from gpubench.environment import environment
from gpubench.errors import BackendError
from gpubench.names import CPU
from gpubench.waiting import progress_words, say

if TYPE_CHECKING:
    from softcuda import Report, SoftwareDevice
    from softcuda.counts import LaunchCounts
    from softcuda.sass import ModuleCode

NAME = "softcuda"
"""What NVML and the driver call it: a device of this name has no times."""
SWITCH = "GPUBENCH_SOFTCUDA"
"""The environment variable that asks for it; empty and ``0`` do not."""
PROCESS_SWITCH = "SOFTCUDA"
"""The environment variable of a process that runs on it already: ``python -m softcuda`` sets it."""
DEVICES_VARIABLE = "SOFTCUDA_DEVICES"
"""The environment variable that says how many devices it has; absent, one."""

TIMEOUT_VARIABLE = "SOFTCUDA_TIMEOUT"
"""The environment variable with the seconds after which it ends a kernel; absent, never."""

ORDER = "SOFTCUDA_ORDER"
"""The environment variable with the order of threads and blocks until a process sets another."""

COUNT_SWITCH = "GPUBENCH_COUNT"
"""The environment variable that turns counting off where cases are verified anyway: ``0``; with
``cpu``, Numba's code on the CPU is counted too, before asv measures."""


TRACK_SWITCH = "GPUBENCH_TRACK"
"""The environment variable that makes benchmarks of asv of what is counted: ``1``."""


def requested() -> bool:
    """Return whether this process runs the device in software in place of devices."""
    return any(os.environ.get(name, "") not in ("", "0") for name in (SWITCH, PROCESS_SWITCH))


def counts_wanted() -> bool:
    """Return whether launches are counted where cases are verified anyway."""
    return os.environ.get(COUNT_SWITCH, "") != "0"


def tracks_wanted(benchmarks: Iterable[str]) -> bool:
    """Return whether asv gets a benchmark for each count: the environment asks for them, or one of
    the patterns of ``asv run --bench`` names them. asv starts a process for each, to read a number
    that is on record already."""
    asked = os.environ.get(TRACK_SWITCH, "") not in ("", "0")
    return asked or any("track" in pattern for pattern in benchmarks)


def cpu_counts_wanted() -> bool:
    """Return whether Numba's code on the CPU is counted before asv measures."""
    return os.environ.get(COUNT_SWITCH, "") == CPU


_started: SoftwareDevice | None = None
_is_counting = False
_order = ""
"""As it was last set here; empty: that of the environment."""
_refused = ""
"""Why the first try failed: numba-cuda goes on without the device, and what it loads then would be
the reason of a second one."""


def software_device() -> SoftwareDevice | None:
    """Return the device in software, started where it is asked for; ``None`` where it is not.

    Raises ``BackendError`` with the reason where it cannot be had.
    """
    global _started, _refused
    if not requested():
        return None
    if _started is None and not _refused:
        try:
            import softcuda.build  # a clone of the repository has a folder of that name
        except ImportError:
            missing = (
                f"the package softcuda is not installed; pip install '{require_extra('cuda')}'"
            )
            raise BackendError(missing) from None
        try:
            _started = softcuda.start()
        except softcuda.DriverLoadedError as error:
            _refused = f"{error}, as `import gpubench` does where {SWITCH}=1 is set"
        except softcuda.UnavailableError as error:
            _refused = str(error)
    if _refused:
        raise BackendError(_refused)
    return _started


def start_early() -> None:
    """Put the device in place while the package is imported, before anybody decorates a kernel.

    numba-cuda looks for a driver when it is imported and for a linker when a kernel is decorated,
    and keeps what it finds. Why there is none is said when the device is asked for.
    """
    with suppress(BackendError):
        software_device()


def device_count() -> int:
    """Return how many devices a process has that is started with the switch."""
    said = os.environ.get(DEVICES_VARIABLE, "")
    return int(said) if said.isdecimal() and int(said) else 1


def build_ahead() -> None:
    """Compile the device in software where no process has done that yet, and say how far it is.

    Why it cannot be had is said where a process asks for it.
    """
    from softcuda.build import UnavailableError, build_libraries

    with suppress(UnavailableError):
        build_libraries(
            lambda done, total: say(progress_words("compiling softcuda, once", done, total))
        )


def switched_on() -> AbstractContextManager[None]:
    """Have processes that are started meanwhile run on the device in software."""
    return environment({SWITCH: "1"})


def is_running() -> bool:
    """Return whether this process has started it; starts nothing."""
    return _started is not None


def name_arrays(arrays: Mapping[str, Any]) -> None:
    """Name arrays on the device, so that faults say ``out`` and not a number. Does nothing in a
    process that has not started it."""
    if _started is None:
        return
    for name, native in arrays.items():
        # What CUDA arrays of all libraries tell (the CUDA array interface of Numba's manual).
        interface = getattr(native, "__cuda_array_interface__", None)
        if interface and (address := interface["data"][0]):
            _started.name(address, name)


def set_option(name: str, value: str) -> None:
    """``order``, of threads and blocks of later launches: ``ascending``, ``descending`` or a seed;
    ``sanitize``, ``0`` or ``1``: modules that are loaded later are watched at every access. Does
    nothing in a process that has not started it."""
    global _order
    if _started is not None:
        _started.set(name, value)
        if name == "order":
            _order = value


@contextmanager
def in_another_order() -> Iterator[None]:
    """Run threads and blocks of launches inside in another order than before. Does nothing in a
    process that has not started the device."""
    before = _order or os.environ.get(ORDER) or "ascending"
    set_option("order", "ascending" if before == "descending" else "descending")
    try:
        yield
    finally:
        set_option("order", before)


def add_lines() -> None:
    """Have faults name Python's lines in kernels that Numba compiles from now on. Does nothing in a
    process that has not started it."""
    if _started is not None:
        _started.add_lines()


def limit_kernels(seconds: float) -> float:
    """End kernels that run longer, and report the line that they were at. Return the limit that
    counts: the user's own ``SOFTCUDA_TIMEOUT`` goes before."""
    with suppress(ValueError):
        if (own := float(os.environ.get(TIMEOUT_VARIABLE, ""))) > 0:
            return own
    set_option("timeout", f"{seconds:g}")
    return seconds


def take_faults() -> tuple[Report, ...]:
    """Faults that it saw since this was asked last, oldest first."""
    return () if _started is None else tuple(_started.reports())


def count_launches(on: bool) -> None:
    """Count what launches do from now on, or no more.

    Only kernels whose modules are loaded while it counts can be counted later. Does nothing in a
    process that has not started it.
    """
    global _is_counting
    if _started is None or on == _is_counting:
        return
    set_option("count", str(int(on)))
    _is_counting = on
    if on:
        add_lines()


def is_counting() -> bool:
    """Return whether launches are counted at the moment."""
    return _is_counting


def take_counts() -> tuple[LaunchCounts, ...]:
    """Return what launches counted since this was asked last, oldest first."""
    return tuple(_started.counts()) if _started is not None and _is_counting else ()


def machine_code(launch: LaunchCounts) -> ModuleCode | None:
    """Return the machine code of a launch's module on its architecture; ``None`` in a process that
    has not started the device."""
    return None if _started is None else _started.code(launch.symbol, launch.architecture)


def counts_model() -> int:
    """Return the version of the rules by which launches are counted; 0 where softcuda is not
    installed, so that nothing is counted."""
    try:
        from softcuda.counts import MODEL
    except ImportError:
        return 0
    return MODEL
