"""Ranges of NVTX, by which NVIDIA's profilers tell the runs of a case from all else."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

RANGE = "gpubench"
"""Name of the range around each run, in NVTX's default domain."""

LIBRARIES = ("libnvtx3interop.so.1", "libnvToolsExt.so.1")
"""Of NVTX 3 and 2, with functions that need no compiler."""

LIBRARY_FOLDERS = ("nvidia/nvtx/lib", "nvidia/cu13/lib")
"""Where NVIDIA's packages for Python put them, below a folder of ``sys.path``."""

Mark = tuple[Callable[[bytes], object], Callable[[], object]]
"""Opens a range of a name, and closes the last one."""


def find_nvtx() -> Mark | None:
    """Return what opens and closes a range: of the package ``nvtx``, else of NVIDIA's library;
    ``None`` where neither is installed."""
    try:
        import nvtx
    except ImportError:
        return _library_mark()
    return (lambda name: nvtx.push_range(name.decode()), nvtx.pop_range)


def _library_mark() -> Mark | None:
    folders = [Path(entry, folder) for entry in sys.path if entry for folder in LIBRARY_FOLDERS]
    installed = [folder / name for folder in folders for name in LIBRARIES]
    places = [str(path) for path in installed if path.is_file()]
    for place in (*places, *LIBRARIES):  # the last are looked for where the system keeps libraries
        try:
            library = ctypes.CDLL(place)
            push, pop = library.nvtxRangePushA, library.nvtxRangePop
        except (OSError, AttributeError):
            continue
        push.argtypes = [ctypes.c_char_p]
        return push, pop
    return None


@contextmanager
def nvtx_range(mark: Mark | None) -> Iterator[None]:
    """Open the range around the block; nothing without NVTX."""
    if mark is None:
        yield
        return
    push, pop = mark
    push(RANGE.encode())
    try:
        yield
    finally:
        pop()
