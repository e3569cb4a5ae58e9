"""What a worker process does first, so that it does not outlive who started it. Imports next to
nothing: it is part of the time that a pool takes to start."""

from __future__ import annotations

import signal
import sys

PR_SET_PDEATHSIG = 1
"""Of Linux's prctl(2): "the signal that this process gets when its parent dies"."""


def end_with_parent(how: int | None = None) -> None:
    """In a worker, on Linux: get a signal when the thread that started it ends, however that ends.

    Where a process is killed or ends by ``os._exit``, as asv's do, no pool ends its workers. They
    would finish what they are doing first, and loky's would wait minutes for more.
    """
    if sys.platform == "linux":
        from ctypes import CDLL

        CDLL(None).prctl(PR_SET_PDEATHSIG, how or signal.SIGKILL)
