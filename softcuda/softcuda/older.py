"""LTO-IR of a Numba kernel for a GPU that is older than the device in software.

nvJitLink refuses LTO-IR that was made for a newer architecture, and what LTO-IR holds is private to
NVIDIA's tools. Numba keeps the code that it was made from, and compiles that again.
"""

from __future__ import annotations

import base64
import gc
import sys
from typing import Any

from softcuda.resources import Architecture, replace_ltoir

_MODULE = "numba.cuda.codegen"
"""Where numba-cuda makes LTO-IR."""


def recompile_for(image: str, architecture: Architecture) -> str | None:
    """Return a module whose LTO-IR was made for an older architecture; ``None`` where Numba did not
    make it in this process, or cannot compile it for that architecture."""
    if (library := _find_library(image)) is None:
        return None
    try:
        ltoir = library.get_ltoir(cc=(*architecture, ""))
    except Exception:  # NVVM refuses what the architecture lacks; Numba's errors have no base
        return None
    return replace_ltoir(image, base64.b64encode(ltoir).decode())


def _find_library(image: str) -> Any | None:
    """Return the library of Numba that the module comes from.

    Numba has no list of them, and changing its class would come too late for those that exist.
    """
    kind = getattr(sys.modules.get(_MODULE), "CUDACodeLibrary", None)
    for one in gc.get_objects() if kind is not None else ():
        if type(one) is kind and any(
            _text(code) == image.strip() for code in one._cubin_cache.values()
        ):
            return one
    return None


def _text(code: Any) -> str:
    """Return linked code, which cuda-core wraps, as text."""
    code = getattr(code, "code", code)
    return bytes(code).decode(errors="replace").strip("\0\n ") if code else ""
