"""What is wrong with Numba here: its compilers are off, so that Python's time would pass for
Numba's, or its cache is damaged."""

from __future__ import annotations

import dis
import gc
import inspect
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Literal

import numpy as np

Setting = Literal["DISABLE_JIT", "ENABLE_CUDASIM"]
"""The name of a setting in ``numba.config``."""
EFFECTS: dict[Setting, str] = {
    "DISABLE_JIT": "so that nothing would be compiled",
    "ENABLE_CUDASIM": "so that Numba's simulator runs kernels as Python",
}
SETTINGS_FILE = ".numba_config.yaml"
"""The file of settings that Numba reads in the working folder (Numba's manual, *Environment
variables*)."""
MAX_FOLLOWED = 5_000
"""Objects that are looked at for one that is compiled: a hundred times what a kernel of some
modules names."""
_DATA = (str, bytes, int, float, complex, np.ndarray, type(None), ModuleType)
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
    ``function``, or a function of the same module that ``function`` calls. ``None`` where all are
    compiled."""
    return next((each.__qualname__ for each in _named(function) if _is_decorated(each)), None)


def _named(function: Any) -> Iterator[FunctionType]:
    if isinstance(function, FunctionType):
        yield function
        named = map(function.__globals__.get, function.__code__.co_names)
        yield from (each for each in named if isinstance(each, FunctionType))


def runs_as_python(function: Any) -> bool:
    """Return whether a function is Python's and nothing that it names is compiled by Numba.

    Code is followed by the names in it, through other functions and modules; what else a function
    holds is followed whole. Where that is too much to follow, or the code imports when it runs,
    something may be compiled.
    """
    pending, seen = [function], dict[int, object]()
    while pending:
        one = pending.pop()
        if id(one) in seen or isinstance(one, _DATA):
            continue
        if _compiles(one) or len(seen) > MAX_FOLLOWED:
            return False
        seen[id(one)] = one
        if _is_of(one, "numpy") or (isinstance(one, type) and _is_of(one, "builtins")):
            continue
        if isinstance(one, FunctionType):
            if any(step.opname == "IMPORT_NAME" for step in dis.get_instructions(one)):
                return False
            pending += _used_by(one)
        else:
            pending += gc.get_referents(one)
    return not isinstance(function, BuiltinFunctionType)  # compiled ahead of time


def _compiles(one: Any) -> bool:
    """Return whether an object was compiled by Numba, or compiles."""
    waits = "gpubench.kernels.lazy_numba"
    return _is_of(type(one), "numba", waits) or _is_of(one, "numba.core.decorators")


def _is_of(one: Any, *packages: str) -> bool:
    """Return whether an object is defined in one of these packages or modules."""
    # Of instances the type is asked: an object may open a device when it is asked itself.
    named = one if isinstance(one, type | FunctionType | BuiltinFunctionType) else type(one)
    module = str(getattr(named, "__module__", ""))
    return any(module == each or module.startswith(f"{each}.") for each in packages)


def _used_by(function: FunctionType) -> Iterator[Any]:
    """Yield what the code of a function can name: globals, modules and what it takes from them,
    what it closes over, and defaults."""
    codes, names = [function.__code__], set[str]()
    for code in codes:
        codes += (each for each in code.co_consts if isinstance(each, CodeType))
        names |= {*code.co_names, *(each for each in code.co_consts if isinstance(each, str))}
    values = [*map(function.__globals__.get, names), *map(sys.modules.get, names)]
    for value in values:
        if isinstance(value, ModuleType):
            values += (
                each for each in map(vars(value).get, names) if all(each is not v for v in values)
            )
        else:
            yield value
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # it is empty yet
            yield cell.cell_contents


def _is_decorated(function: FunctionType) -> bool:
    """Return whether a decorator that compiles stands above the function in its file. Of one that
    is compiled the module has another object."""
    with suppress(OSError, TypeError):
        lines, _ = inspect.getsourcelines(function.__code__)
        decorators = (line.strip() for line in lines if line.lstrip().startswith("@"))
        return any(map(_DECORATED.match, decorators))
    return False


def describe_damaged_cache(error: BaseException) -> str | None:
    """Return what to do about an error that came as Numba read its cache; ``None`` for another.

    Numba reads a file that is cut or damaged as it is, and neither names nor replaces it.
    """
    for frame, _ in walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        is_reading = frame.f_code.co_name in ("_load_index", "_load_data")
        if is_reading and module.startswith("numba.") and module.endswith(".caching"):
            folder = os.environ.get("NUMBA_CACHE_DIR") or "__pycache__ beside the kernels"
            return f"a file of Numba's cache is damaged: remove the folder {folder}"
    return None
