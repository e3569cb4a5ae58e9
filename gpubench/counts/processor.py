"""Settings of processes that count: one thread, one named processor, nothing by chance."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

_ONE_THREAD = (
    *("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
)
_PROCESSORS = (
    # LLVM's names, the newest first, with what Linux calls the newest part of each. Valgrind shows
    # the compiler no AVX-512, so that none of these has it.
    ("haswell", ("avx2", "bmi2", "fma")),
    ("nehalem", ("sse4_2",)),
)


def counting_variables() -> Mapping[str, str]:
    """Return the environment variables of a process that counts, so that compilers make the same
    code on every machine."""
    return {
        **dict.fromkeys(_ONE_THREAD, "1"),
        "NUMBA_CPU_NAME": processor_to_compile_for(),
        # Empty: those of the processor that is named. Without it Numba adds what this one has.
        "NUMBA_CPU_FEATURES": "",
        "PYTHONHASHSEED": "0",
    }


def processor_to_compile_for() -> str:
    """Return LLVM's name of the newest processor that this one and valgrind can be."""
    try:
        has = set(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        has = set()
    fitting = (name for name, flags in _PROCESSORS if has.issuperset(flags))
    return next(fitting, "x86-64" if platform.machine() == "x86_64" else "generic")
