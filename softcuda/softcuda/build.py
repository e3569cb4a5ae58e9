"""Builds shared libraries with the C compiler at hand, into a cache: those that stand in for
NVIDIA's, and one for each PTX module.

What is built is kept under a name that tells all that it was built from, so that a change builds
anew and nothing is ever stale.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

NATIVE = Path(__file__).parent / "native"
CACHE = "SOFTCUDA_CACHE"
"""The environment variable that names another folder for what is built."""
INSTALL_CUDA = "pip install 'numba-cuda[cu13]'"
"""What brings numba-cuda with ``cuda.h``, NVVM and nvJitLink."""

MIN_HEADER_VERSION = 13000
"""``CUDA_VERSION`` of the oldest ``cuda.h`` that the device in software is built with."""

_SHARED = ("-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden")
_FLAGS = (*_SHARED, "-O2", "-g", "-Wall", "-Wextra")
# -ffp-contract=off: a*b+c is one fma only where PTX says so. -O1: compiling takes most of the time
# that a small kernel takes. -w: generated code sets variables that nothing reads.
_MODULE_FLAGS = (
    *(*_SHARED, "-O1", "-g0", "-w"),
    *("-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv", "-fno-math-errno"),
)
_DEVICE_HEADERS = ("device.h", "runtime.h", "arithmetic.h")


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
    """Return ``$CC``, ``cc``, ``gcc`` or ``clang``; raise ``UnavailableError`` without any."""
    for name in filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")):
        if path := shutil.which(name):
            return path
    raise UnavailableError(
        "the CUDA device in software needs a C compiler, and none of cc, gcc and clang is on the "
        "PATH; install one (Debian: apt install gcc libc6-dev) or name it in CC"
    )


def compile_to(library: Path, arguments: Iterable[str], text: str | None = None) -> None:
    """Run the C compiler, on ``text`` where that is given; raises ``UnavailableError`` with what it
    said where it fails."""
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder, library.name)
        command = [find_compiler(), *arguments, "-o", str(made)]
        code, said = run_compiler(command, Path(folder), text)
        if code:
            said = said.strip()[-2000:] or f"exit code {code}"
            raise UnavailableError(f"{command[0]} cannot build the device in software:\n{said}")
        made.replace(library)  # at once, so that nobody reads half of it


def run_compiler(command: Sequence[str], folder: Path, text: str | None = None) -> tuple[int, str]:
    """Run the C compiler, whose temporary files go into ``folder``. Return its exit code and what
    it said.

    Whatever interrupts this, as Ctrl-C does, ends the compiler with the programs that it started.
    """
    # Libraries that a caller preloads or puts in place are not meant for the compiler.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LD_")}
    environment["TMPDIR"] = str(folder)
    with ExitStack() as running:
        compiler = None
        try:
            with _without_ctrl_c():
                # A group of its own: Ctrl-C reaches this process alone, and the whole group ends
                # at once.
                compiler = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env=environment,
                    start_new_session=True,
                )
                running.enter_context(compiler)
                _COMPILERS.add(compiler)
            _, said = compiler.communicate(text)
        except BaseException:
            if compiler is not None:
                _kill(compiler)
            raise
        finally:
            if compiler is not None:
                _COMPILERS.discard(compiler)
    return compiler.returncode, said


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Hold Ctrl-C back until the block ends: a compiler that is being started is nobody's yet.

    Python handles signals in its main thread alone, and what is no handler of Python's stays.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    held: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            signal.raise_signal(signal.SIGINT)


_COMPILERS: set[subprocess.Popen[str]] = set()
"""Compilers that run now, of all threads."""


def _kill(compiler: subprocess.Popen[str]) -> None:
    """End a compiler with the programs that it started."""
    with suppress(ProcessLookupError):
        os.killpg(compiler.pid, signal.SIGKILL)


@cache
def cache_folder() -> Path:
    """Return a folder of this user's alone: what lies in it is loaded and run.

    ``$SOFTCUDA_CACHE``, else ``softcuda`` in ``$XDG_CACHE_HOME`` or ``~/.cache``, else one for this
    process where those cannot be written.
    """
    given = os.environ.get(CACHE)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        folder = Path(given or Path(base, "softcuda")).expanduser()
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
    """Return the folders where something of NVIDIA's may lie: in wheels, then in a toolkit."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(folder) for folder in (spec.submodule_search_locations if spec else None) or ()]
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    return [*(root / name for root in roots for name in of_wheels), Path(home, of_toolkit)]


@cache
def find_cuda_header() -> Path:
    """Return the folder of ``cuda.h``: of NVIDIA's wheels, which numba-cuda brings, or a toolkit.

    Raises ``UnavailableError`` where there is none of CUDA 13: functions of CUDA 12 have other
    parameters.
    """
    older = None
    for place in nvidia_folders(("cu13/include", "cuda_runtime/include"), "include"):
        if (place / "cuda.h").is_file():
            version = header_version(place / "cuda.h")
            if version >= MIN_HEADER_VERSION:
                return place
            older = f"{place / 'cuda.h'} is of CUDA {version // 1000}.{version % 1000 // 10}"
    raise UnavailableError(
        f"the CUDA device in software is built with cuda.h of CUDA 13, "
        f"{f'and {older}' if older else 'which was not found'}; {INSTALL_CUDA} brings it"
    )


def header_version(header: Path) -> int:
    """Return the version that a ``cuda.h`` defines, 13050 for 13.5; 0 without one."""
    found = re.search(r"^#define CUDA_VERSION (\d+)$", header.read_text(errors="replace"), re.M)
    return int(found[1]) if found else 0


def kept(name: str, made_from: Iterable[bytes]) -> Path:
    """Return where in the cache a library of this name lies that was made from these."""
    digest = hashlib.sha256()
    for part in (find_compiler().encode(), *made_from):
        digest.update(len(part).to_bytes(8, "little") + part)
    return cache_folder() / f"{digest.hexdigest()[:32]}-{name}"


Told = Callable[[int, int], object]
"""Is called with the files that are compiled, and with all of them."""


def show_on_terminal(done: int, total: int) -> None:
    """Show how far compiling is in a line of the terminal, which disappears at the end."""
    if sys.stderr.isatty():
        words = f"compiling softcuda, once: {done} of {total} files" if done < total else ""
        sys.stderr.write(f"\r\x1b[K{words}")
        sys.stderr.flush()


@cache
def build_libraries(told: Told = show_on_terminal) -> Libraries:
    """Return the three libraries, built now where their sources have changed."""
    header = find_cuda_header()
    sources = sorted(NATIVE.glob("*.c"))
    texts = [path.read_bytes() for path in [*sources, *sorted(NATIVE.glob("*.h"))]]
    made_from = [*texts, (header / "cuda.h").read_bytes()]

    nvml, linker = NATIVE / "nvml.c", NATIVE / "jitlink.c"
    parts = {
        "libcuda.so.1": [path for path in sources if path not in (nvml, linker)],
        "libnvidia-ml.so.1": [nvml],
        "libnvJitLink.so.13": [linker],
    }
    libraries = Libraries(*(kept(soname, made_from) for soname in parts))
    built = (libraries.driver, libraries.nvml, libraries.linker)
    with building(*built) as is_missing:
        if is_missing:
            with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
                objects = compile_each(sources, Path(folder), [*_FLAGS, f"-I{header}"], told)
                for (soname, of_library), library in zip(parts.items(), built, strict=True):
                    # -z defs: a function that is missing shows here, not when it is loaded.
                    named = f"-Wl,-soname,{soname},-z,defs"
                    linked = [str(objects[part]) for part in of_library]
                    compile_to(library, [*_FLAGS, named, *linked, "-lpthread", "-ldl", "-lm"])
    return libraries


def compile_each(
    sources: Iterable[Path],
    folder: Path,
    flags: Sequence[str],
    told: Told = lambda done, total: None,
) -> dict[Path, Path]:
    """Compile each source to an object file in a folder, side by side on all processors; return
    the objects by source."""
    objects = {source: folder / f"{source.stem}.o" for source in sources}
    # Threads that wait for the compiler's processes.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        made = [
            pool.submit(compile_to, target, [*flags, "-c", str(source)])
            for source, target in objects.items()
        ]
        try:
            told(0, len(made))
            for done, one in enumerate(as_completed(made), 1):
                one.result()
                told(done, len(made))
        except BaseException:  # Ctrl-C is this thread's alone: the others would compile to the end
            pool.shutdown(wait=False, cancel_futures=True)
            for compiler in [*_COMPILERS]:
                _kill(compiler)
            raise
    return objects


@contextmanager
def building(*libraries: Path) -> Iterator[bool]:
    """Give whether a library is missing, and keep other processes from building these libraries
    until the block ends. A process that waited finds them built."""
    if all(library.is_file() for library in libraries):
        yield False
        return
    import fcntl  # not on Windows, where nothing is built

    lock = libraries[0].with_suffix(".lock")
    with lock.open("wb") as held:
        with suppress(OSError):  # a file system without locks: what is built twice is the same
            fcntl.flock(held, fcntl.LOCK_EX)
        yield not all(library.is_file() for library in libraries)
        lock.unlink(missing_ok=True)  # whoever waits for it finds the libraries


def build_for_cupy(source: Path, includes: Sequence[Path]) -> Path:
    """Return the library of one C source that calls the driver, built now where it has changed."""
    library = kept("cupy.so", [source.read_bytes(), *(str(path).encode() for path in includes)])
    with building(library) as is_missing:
        if is_missing:
            compile_to(library, [*_FLAGS, *(f"-I{folder}" for folder in includes), str(source)])
    return library


def build_in_place(soname: str, source: str) -> Path:
    """Return a library with a soname of NVIDIA's, built of C now where that has changed.

    Its functions have versions, named by the soname, as NVIDIA's have.
    """
    library = kept(soname, [source.encode()])
    with building(library) as is_missing:
        if not is_missing:
            return library
        versions = library.with_suffix(".map")
        write_at_once(versions, f"{soname} {{ global: *; }};\n")
        named = f"-Wl,-soname,{soname},--version-script={versions}"
        compile_to(library, [*_SHARED, "-O1", named, "-x", "c", "-"], source)
    return library


def compile_ptx(ptx: str, *, sanitize: bool, count: bool = False) -> Path:
    """Return the shared library of a module, compiled for plain runs, for the sanitizer, or to
    count.

    Beside one that counts lies the description of its basic blocks (``description_of``). Raises
    ``UnavailableError`` for PTX that the translation does not know.
    """
    from softcuda.resources import strip_origin

    ptx = strip_origin(ptx)
    flags = [*_MODULE_FLAGS, *_machine_flags(), *(["-DSC_SANITIZE"] if sanitize else [])]
    flags += ["-DSC_COUNT"] if count else []
    library = kept("module.so", [ptx.encode(), " ".join(flags).encode(), *_translator()])
    description = description_of(library)
    with building(library, *([description] if count else [])) as is_missing:
        if not is_missing:
            return library
        # Imported here: a module that is in the cache needs no translation.
        from softcuda.translation.translate import (
            TranslationError,
            describe_counts,
            translate,
        )

        try:
            text = translate(ptx, count=count)
            if count:
                write_at_once(description, describe_counts(ptx))
        except TranslationError as error:
            raise UnavailableError(f"cannot translate this PTX: {error}") from error
        compile_to(library, [*flags, f"-I{NATIVE}", "-x", "c", "-", "-lm"], text)
    return library


def description_of(library: Path) -> Path:
    """Return where what the basic blocks of a module do is described, as JSON."""
    return library.with_suffix(".json")


def write_at_once(path: Path, text: str) -> None:
    """Write a file that nobody reads half of."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder, path.name)
        made.write_text(text, encoding="utf-8")
        made.replace(path)


@cache
def _translator() -> tuple[bytes, ...]:
    """Return what makes C of PTX, and what that C includes."""
    modules = sorted((Path(__file__).parent / "translation").glob("*.py"))
    headers = [NATIVE / name for name in _DEVICE_HEADERS]
    return tuple(path.read_bytes() for path in [*modules, *headers])


@cache
def _machine_flags() -> tuple[str, ...]:
    """Return what makes a fused multiply-add one instruction, where this processor has it.

    Only that, instead of ``-march=native``: the cache may be shared by machines that differ.
    """
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return ()
    return ("-mfma", "-mavx") if "fma" in flags and "avx" in flags else ()
