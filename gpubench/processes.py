"""How processes end: together with their parent, and by which exit codes. Imports next to nothing:
the start of a pool pays for each import."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
"""Of Linux's prctl(2): "the signal that this process gets when its parent dies"."""


def end_with_parent(how: int | None = None, *, root: int | None = None) -> None:
    """Have a worker get a signal, on Linux, when the thread that started it ends, however it ends.

    ``root``: the process that all is done for, which may be gone already. Then the worker ends now.

    Where a process is killed or ends by ``os._exit``, as asv's do, no pool ends its workers. They
    would finish what they are doing first, and loky's would wait minutes for more.
    """
    if sys.platform == "linux":
        from ctypes import CDLL

        CDLL(None).prctl(PR_SET_PDEATHSIG, how or signal.SIGKILL)
        if root is not None and not Path(f"/proc/{root}").exists():
            os.kill(os.getpid(), how or signal.SIGKILL)


def how_it_ended(code: int) -> str:
    """Return how a process ended, by its exit code, negative for a signal: ``signal SIGKILL``."""
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # signals without a name
        name = str(-code)
    # Linux ends a process so where memory runs out (the manual of cgroups, "OOM").
    return f"signal {name}" + (", as where memory runs out" if name == "SIGKILL" else "")
