"""Compiles a PTX module to a shared library, and keeps it for the next time."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from gpubench.softcuda.build import (
    NATIVE,
    UnavailableError,
    cache_folder,
    find_compiler,
    fingerprint,
    run_compiler,
)

# -ffp-contract=off: a*b+c is one fma only where PTX says so. -O1: compiling takes most of the time
# that a small kernel takes. -w: generated code sets variables that nothing reads.
_FLAGS = (
    *("-std=gnu11", "-O1", "-g0", "-w", "-fPIC", "-shared", "-fvisibility=hidden"),
    *("-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv", "-fno-math-errno"),
)
_DEVICE_HEADERS = ("device.h", "runtime.h", "arithmetic.h")


class CompilerError(Exception):
    """A module that cannot be translated or compiled, and why."""


def compile_ptx(ptx: str, *, sanitize: bool) -> Path:
    """The shared library of a module, compiled for plain runs or for the sanitizer.

    Raises ``CompilerError`` for PTX that the translation does not know.
    """
    variant = "sanitize" if sanitize else "plain"
    name = fingerprint(ptx.encode(), variant.encode(), *_made_with())
    library = cache_folder() / f"{name}.so"
    if not library.is_file():
        _compile(ptx, library, sanitize)
    return library


def _compile(ptx: str, library: Path, sanitize: bool) -> None:
    # Imported here: a module that is in the cache needs no translation.
    from gpubench.softcuda.translation.translate import TranslationError, translate

    try:
        text = translate(ptx)
    except TranslationError as error:
        raise CompilerError(f"cannot translate this PTX: {error}") from error
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        source, made = Path(folder, "module.c"), Path(folder, "module.so")
        source.write_text(text, encoding="utf-8")
        variant = ["-DSC_SANITIZE"] if sanitize else []
        arguments = [*_FLAGS, *_machine_flags(), *variant, f"-I{NATIVE}", str(source)]
        try:
            run_compiler([*arguments, "-o", str(made), "-lm"])
        except UnavailableError as error:
            raise CompilerError(str(error)) from error
        made.replace(library)  # at once, so that nobody reads half of it


@cache
def _made_with() -> tuple[bytes, ...]:
    """All that a compiled module depends on besides its PTX."""
    folder = Path(__file__).parent / "translation"
    translator = [path.read_bytes() for path in sorted(folder.glob("*.py"))]
    headers = [(NATIVE / name).read_bytes() for name in _DEVICE_HEADERS]
    flags = " ".join([find_compiler(), *_FLAGS, *_machine_flags()])
    return (*translator, *headers, flags.encode())


@cache
def _machine_flags() -> tuple[str, ...]:
    """Fused multiply-add as one instruction, where this processor has it.

    Only that, instead of ``-march=native``: the cache may be shared by machines that differ.
    """
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return ()
    return ("-mfma", "-mavx") if "fma" in flags and "avx" in flags else ()
