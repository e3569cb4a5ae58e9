"""Shared libraries in place of NVIDIA's, whose functions are Python's or refused by name.

CuPy's modules are linked against libraries by their sonames, and look for one that is loaded
already. ``load`` builds a library with the soname and every function that the module names, from a
few lines of C, and loads it. A function that a ``Library`` has calls Python. Each other one is
refused with its name: the status says so, and the message of CuPy's exception is ours.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib.util
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from softcuda.build import build_in_place
from softcuda.importing import change_on_import
from softcuda.on_host.work import AddressError

SUCCESS = 0
"""The status of all of them for a call that did its work."""

_INTERRUPTED = -1
"""In place of a status: Ctrl-C came while Python did the call."""

_TYPES: dict[str, tuple[str, Any]] = {
    "p": ("void *", ctypes.c_size_t),
    "i": ("int", ctypes.c_int),
    "l": ("long long", ctypes.c_longlong),
    "f": ("float", ctypes.c_float),
    "d": ("double", ctypes.c_double),
}
"""Types of arguments by their letters: in C, and for Python, where an address is a number."""


class RefusedError(Exception):
    """What of a call softcuda has not; the call's name goes before."""


@dataclass(frozen=True)
class Library:
    """One library of NVIDIA's, as far as it is there."""

    name: str
    """``cublas``: its functions begin so, and its soname is ``libcublas.so.13``."""
    module: str
    """The module of CuPy's that is linked against it."""
    error: str
    """The exception of that module, made of a status."""
    not_supported: int
    """The status of a function that is not there."""
    failed: int
    """The status of a call whose addresses are not the device's, or which failed."""
    functions: Mapping[str, tuple[str, Callable[..., int | None]]] = field(default_factory=dict)
    """By name: the types of the arguments as letters, and what does the work. That returns a
    status, or ``None`` for ``SUCCESS``."""
    beside: tuple[str, ...] = ()
    """Libraries that CuPy looks for beside this one, and calls nothing of."""


_kept: list[Any] = []
"""Functions that C calls until Python ends."""
_reasons: dict[str, str] = {}
"""By library: why its last call gave an error, until CuPy's exception takes it."""


def load(library: Library) -> None:
    """Load what stands in place of a library, where CuPy has the module that is linked to it."""
    file = _file_of(library.module)
    if file is None:
        return
    image = file.read_bytes()
    version = re.search(rb"\0lib%s\.so\.(\d+)\0" % library.name.encode(), image)
    if version is None:
        return  # a CuPy that looks for it in another way: it says itself what is missing
    called = sorted(set(re.findall(rb"\0(%s[A-Z]\w*)(?=\0)" % library.name.encode(), image)))
    names = [name.decode() for name in called]
    for name in (*library.beside, library.name):
        soname = f"lib{name}.so.{version[1].decode()}"
        source = _source(library, names if name == library.name else ())
        loaded = ctypes.CDLL(str(build_in_place(soname, source)))
    _connect(loaded, library)
    change_on_import(library.module, partial(_explain_errors, library))
    # CuPy gives handles back after Python has forgotten its modules.
    atexit.register(loaded.softcuda_end)


def _file_of(module: str) -> Path | None:
    """Return the file of a module, without importing the packages that it is in."""
    package, *folders, _ = module.split(".")
    spec = importlib.util.find_spec(package)
    places = (spec.submodule_search_locations if spec else None) or ()
    inner = PathFinder.find_spec(module, [str(Path(place, *folders)) for place in places])
    return Path(inner.origin) if inner is not None and inner.origin else None


def _source(library: Library, names: Sequence[str]) -> str:
    """Return the C of a library with these functions."""
    lines = [
        "#include <signal.h>",
        '#define API __attribute__((visibility("default")))',
        "static int ended;  /* Python is gone, or nearly */",
        "API void softcuda_end(void) { ended = 1; }",
        "static int (*refuse)(const char *);",
        "static int answer(int status) {",
        f"  if (status != {_INTERRUPTED}) return status;",
        f"  raise(SIGINT); return {library.failed};",
        "}",
        "API void softcuda_set_refuse(void *to) { refuse = (int (*)(const char *))to; }",
    ]
    for name in names:
        if name not in library.functions:
            lines.append(_refused(name))
            continue
        letters = library.functions[name][0]
        types = [_TYPES[letter][0] for letter in letters]
        declared = ", ".join(f"{type_} a{place}" for place, type_ in enumerate(types))
        given = ", ".join(f"a{place}" for place in range(len(types)))
        function = f"int (*)({', '.join(types)})"
        lines += [
            f"static {function.replace('*', f'*to_{name}', 1)};",
            f"API void softcuda_set_{name}(void *to) {{ to_{name} = ({function})to; }}",
            f"API int {name}({declared}) {{ return ended ? 0 : answer(to_{name}({given})); }}",
        ]
    return "\n".join(lines) + "\n"


def _refused(name: str) -> str:
    if re.search(r"(Error|Status)(Name|String)$", name):  # the name or text of a status
        return f'API const char *{name}(void) {{ return "refused by softcuda"; }}'
    return f'API int {name}(void) {{ return ended ? 0 : refuse("{name}"); }}'


def _connect(loaded: ctypes.CDLL, library: Library) -> None:
    """Have the functions of a loaded library call Python."""

    def refuse(name: bytes) -> int:
        _reasons[library.name] = _no_such(name.decode())
        return library.not_supported

    _set(loaded, "refuse", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(refuse))
    for name, (letters, function) in library.functions.items():
        if hasattr(loaded, f"softcuda_set_{name}"):  # else CuPy calls no such function
            types = (_TYPES[letter][1] for letter in letters)
            called = ctypes.CFUNCTYPE(ctypes.c_int, *types)(_checked(library, name, function))
            _set(loaded, name, called)


def _set(loaded: ctypes.CDLL, name: str, function: Any) -> None:
    _kept.append(function)
    setter = getattr(loaded, f"softcuda_set_{name}")
    setter.argtypes, setter.restype = [ctypes.c_void_p], None
    setter(ctypes.cast(function, ctypes.c_void_p))


def _checked(
    library: Library, name: str, function: Callable[..., int | None]
) -> Callable[..., int]:
    """Return the function for C: whatever it raises becomes a status and the reason for it."""

    def call(*arguments: Any) -> int:
        _reasons.pop(library.name, None)
        try:
            return function(*arguments) or SUCCESS
        except RefusedError as error:
            _reasons[library.name] = _no_such(f"{name} {error}")
            return library.not_supported
        except AddressError as error:
            _reasons[library.name] = f"softcuda: {name}: {error}"
        except Exception as error:  # none may leave a function that C calls
            traceback.print_exc()
            _reasons[library.name] = f"softcuda: {name}: {type(error).__name__}: {error}"
        except BaseException:  # Ctrl-C: C sends the signal again, for where its call has returned
            _reasons[library.name] = f"softcuda: {name} was interrupted"
            return _INTERRUPTED
        return library.failed

    return call


def _no_such(what: str) -> str:
    return (
        f"softcuda, the CUDA device in software, has no {what}; use a GPU for this call, or do "
        "without it"
    )


def _explain_errors(library: Library, module: Any) -> None:
    """Have the exception of a module of CuPy's say why a call was refused."""
    error: Any = getattr(module, library.error)
    before = error.__init__

    def explained(self: Any, status: int) -> None:
        reason = _reasons.pop(library.name, None)
        if reason is None:
            before(self, status)
        else:
            self.status = status
            self.args = (reason,)

    error.__init__ = explained
