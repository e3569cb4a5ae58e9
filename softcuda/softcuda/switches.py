"""The switches of the command and of the pytest plugin, as environment variables: processes that a
program starts run on the device in software too."""

from __future__ import annotations

import os
from pathlib import Path

SWITCH = "SOFTCUDA"
"""The environment variable of processes that run on it; empty and ``0`` do not ask for it."""
CHILDREN = Path(__file__).parent / "children"
"""A folder on the path of such processes, whose module starts the device in them."""


def is_on(name: str) -> bool:
    """Return whether an environment variable is set, and not to ``0``."""
    return os.environ.get(name, "") not in ("", "0")


def switch_on(*, sanitize: bool = False, count: bool = False, order: str | None = None) -> None:
    """Run this process, once it starts the device, and its child processes with these options.
    Options that are left out stay as the environment says."""
    os.environ[SWITCH] = "1"
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(CHILDREN) not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(CHILDREN), *filter(None, path)])
    if sanitize:
        os.environ["SOFTCUDA_SANITIZE"] = "1"
    if count:
        os.environ["SOFTCUDA_COUNT"] = "1"
    if order:
        os.environ["SOFTCUDA_ORDER"] = order
