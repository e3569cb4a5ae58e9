"""What worker processes have in common, imported once: in the process that they are forked from.

Starts no device and no thread, which would not survive the fork.
"""

from __future__ import annotations

import atexit
import os
from contextlib import suppress

import gpubench.measure.direct
import gpubench.measure.verify_cases  # noqa: F401  (imported for those who are forked)
from gpubench.backends import registry
from gpubench.measure.worker import PRELOADED

if PRELOADED in os.environ:
    # Else Python takes all that apart, Numba in half a second: who reads our output would wait.
    atexit.register(os._exit, 0)

for name in os.environ.get(PRELOADED, "").split():
    with suppress(Exception):  # its cases say what is wrong
        registry.get(name).preload()
