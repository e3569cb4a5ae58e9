"""Builds the libraries that stand in for NVIDIA's, with the C compiler at hand, into a cache.

What is built is kept under a name that tells all that it was built from, so that a change builds
anew and nothing is ever stale.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

NATIVE = Path(__file__).parent / "native"
CACHE = "SOFTCUDA_CACHE"
"""The environment variable that names another folder for what is built."""

_FLAGS = ("-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden")
_OWN_LIBRARIES = {"nvml.c": "libnvidia-ml.so.1", "jitlink.c": "libnvJitLink.so.13"}
"""Sources that are a library of their own, and its soname; all others are the driver."""


class UnavailableError(Exception):
    """Why the device in software cannot be had here, and what to do."""


@dataclass(frozen=True)
class Libraries:
    """Where the built libraries lie."""

    driver: Path
    nvml: Path
    linker: Path


@cache
def find_compiler() -> str:
    """``$CC``, ``cc``, ``gcc`` or ``clang``; raises ``UnavailableError`` where there is none."""
    for name in filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")):
        if path := shutil.which(name):
            return path
    raise UnavailableError(
        "the CUDA device in software needs a C compiler, and none of cc, gcc and clang is on the "
        "PATH; install one (Debian: apt install gcc libc6-dev) or name it in CC"
    )


def run_compiler(arguments: list[str]) -> None:
    """Run the C compiler; raises ``UnavailableError`` with what it said where it fails."""
    # Libraries that a caller preloads or puts in place are not meant for the compiler.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LD_")}
    done = subprocess.run(
        [find_compiler(), *arguments], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        said = done.stderr.strip()[-2000:] or f"exit code {done.returncode}"
        raise UnavailableError(f"{find_compiler()} cannot build the device in software:\n{said}")


@cache
def cache_folder() -> Path:
    """A folder of this user's alone: what lies in it is loaded and run.

    ``$SOFTCUDA_CACHE``, else ``gpubench/softcuda`` in ``$XDG_CACHE_HOME`` or ``~/.cache``, else one
    for this process where those cannot be written.
    """
    given = os.environ.get(CACHE)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        folder = Path(given or Path(base, "gpubench", "softcuda")).expanduser()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(folder)
    except (OSError, RuntimeError):  # RuntimeError: no home folder
        return Path(tempfile.mkdtemp(prefix="softcuda-"))
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnavailableError(
            f"{folder}: others can write here, and what lies here is run; "
            f"chmod go-w it, or name another folder in {CACHE}"
        )
    return folder


def nvidia_folders(of_wheels: Sequence[str], of_toolkit: str) -> list[Path]:
    """Folders where something of NVIDIA's may lie: in its wheels, then in a toolkit."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(folder) for folder in (spec.submodule_search_locations if spec else None) or ()]
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    return [*(root / name for root in roots for name in of_wheels), Path(home, of_toolkit)]


@cache
def find_cuda_header() -> Path:
    """The folder of ``cuda.h``: in NVIDIA's wheels, which numba-cuda brings, or in a toolkit."""
    for place in nvidia_folders(("cu13/include", "cuda_runtime/include"), "include"):
        if (place / "cuda.h").is_file():
            return place
    raise UnavailableError(
        "the CUDA device in software is built with cuda.h, which was not found; "
        "pip install 'gpubench[cuda]' brings it"
    )


def fingerprint(*parts: bytes) -> str:
    """A name for what is made from these: the same parts, the same name."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:32]


@cache
def build_libraries() -> Libraries:
    """The three libraries, built now where their sources have changed."""
    sources = sorted(NATIVE.glob("*.c"))
    header = find_cuda_header()
    texts = [path.read_bytes() for path in sorted(NATIVE.glob("*.[ch]"))]
    stamp = fingerprint(*texts, (header / "cuda.h").read_bytes(), find_compiler().encode())
    folder = cache_folder() / f"driver-{stamp}"
    made = Libraries(*(folder / name for name in ("libcuda.so.1", *_OWN_LIBRARIES.values())))
    if not folder.is_dir():
        _build_all(folder, sources, header)
    return made


def _build_all(folder: Path, sources: list[Path], header: Path) -> None:
    """Build in a folder beside and rename it, so that two processes may build at once."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
        work = Path(beside, "made")
        work.mkdir()
        driver = [path for path in sources if path.name not in _OWN_LIBRARIES]
        _build(work / "libcuda.so.1", driver, header)
        for name, soname in _OWN_LIBRARIES.items():
            _build(work / soname, [NATIVE / name], header)
        try:
            work.rename(folder)
        except OSError:  # another process was first, and has made the same
            if not folder.is_dir():
                raise


def _build(library: Path, sources: list[Path], header: Path) -> None:
    # -z defs: a function that is missing shows here, not when the library is loaded.
    named = [f"-Wl,-soname,{library.name},-z,defs", f"-I{header}", "-o", str(library)]
    run_compiler([*_FLAGS, *named, *map(str, sources), "-lpthread", "-ldl", "-lm"])


def build_library(source: Path, includes: Sequence[Path]) -> Path:
    """The library of one C source that calls the driver, built now where it has changed."""
    stamp = fingerprint(source.read_bytes(), *(str(folder).encode() for folder in includes))
    library = cache_folder() / f"{source.parent.name}-{stamp}.so"
    if not library.is_file():
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            made = Path(folder, "made.so")
            named = [f"-I{folder}" for folder in includes] + ["-o", str(made)]
            run_compiler([*_FLAGS, *named, str(source)])
            made.replace(library)  # at once, so that nobody reads half of it
    return library
