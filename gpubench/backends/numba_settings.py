"""What turned Numba's compilers off: then Python runs, and its time would pass for Numba's."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, Literal

Setting = Literal["DISABLE_JIT", "ENABLE_CUDASIM"]
"""The name of a setting in ``numba.config``."""
EFFECTS: dict[Setting, str] = {
    "DISABLE_JIT": "so that nothing would be compiled",
    "ENABLE_CUDASIM": "so that Numba's simulator runs kernels as Python",
}
SETTINGS_FILE = ".numba_config.yaml"
"""The file of settings that Numba reads in the working folder (Numba's manual, *Environment
variables*)."""
_DECORATED = re.compile(r"@(\w+\.)*n?jit\s*(\(|#|$)")


def why_off(setting: Setting) -> str | None:
    """Return what switched a compiler off, with the next step; ``None`` where it is on.

    Numba takes the environment, then the file of the working folder, and programs may set
    ``numba.config``. Numba is imported only where the file is there.
    """
    variable, effect = f"NUMBA_{setting}", EFFECTS[setting]
    if os.environ.get(variable, "0") not in ("", "0"):
        return f"{variable} is set, {effect}: unset it"
    file = Path(SETTINGS_FILE)
    if "numba" not in sys.modules and not file.exists():
        return None
    with suppress(ImportError):  # without Numba nothing is compiled anyway, and others say so
        if getattr(import_module("numba").config, setting, 0):
            name = setting.lower()
            with suppress(OSError):
                if name in file.read_text("utf-8", "replace").lower():
                    return f"{name} is set in {file.absolute()}, {effect}: take it out there"
            return f"numba.config.{setting} was set by imported code, {effect}: take that out"
    return None


def find_plain(function: Any) -> str | None:
    """Return the name of a function that its source decorates for Numba and that Python would run:
    this one, or one of its module that it names. ``None`` where all are compiled."""
    return next((each.__qualname__ for each in _named(function) if _is_decorated(each)), None)


def _named(function: Any) -> Iterator[FunctionType]:
    if isinstance(function, FunctionType):
        yield function
        named = map(function.__globals__.get, function.__code__.co_names)
        yield from (each for each in named if isinstance(each, FunctionType))


def _is_decorated(function: FunctionType) -> bool:
    """Return whether a decorator that compiles stands above the function in its file. Of one that
    is compiled the module has another object."""
    with suppress(OSError, TypeError):
        lines, _ = inspect.getsourcelines(function.__code__)
        decorators = (line.strip() for line in lines if line.lstrip().startswith("@"))
        return any(map(_DECORATED.match, decorators))
    return False
