"""Putting the device in software in place, and what is said where that cannot be."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from softcuda import build
from softcuda.reports import Report, parse_reports, readable_name

STRAY = """
import sys
import numpy as np
from numba import cuda

@cuda.jit(lineinfo=True)
def stray(a):
    a[cuda.grid(1)] = 1

print("runs")
array = cuda.to_device(np.zeros(10))
try:
    stray[1, int(sys.argv[1])](array)
    cuda.synchronize()
except Exception as error:
    print(type(error).__name__)
"""


def python(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )


def started(**environment: str) -> str:
    """Return what starting says: nothing, or why it cannot be."""
    program = (
        "import softcuda\n"
        "try: softcuda.start()\n"
        "except softcuda.UnavailableError as error: print(error)"
    )
    done = python("-c", program, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path) -> None:
    said = started(PATH=str(tmp_path), SOFTCUDA_CACHE=str(tmp_path / "cache"), CC="")
    assert said.startswith("the CUDA device in software needs a C compiler")
    assert "apt install gcc" in said


def test_a_compiler_that_fails_is_quoted(tmp_path: Path) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho no space left >&2\nexit 1\n")
    broken.chmod(0o755)
    said = started(CC=str(broken), SOFTCUDA_CACHE=str(tmp_path / "cache"))
    assert said.endswith("cannot build the device in software:\nno space left")


def test_a_cache_that_others_can_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    said = started(SOFTCUDA_CACHE=str(tmp_path))
    assert said.startswith(f"{tmp_path}: others can write here, and what lies here is run")


NEWER_NAMES = re.compile(
    r"^\s*CU_(MEMPOOL_ATTR_(ALLOCATION_TYPE|EXPORT_HANDLE_TYPES|LOCATION_ID|LOCATION_TYPE"
    r"|MAX_POOL_SIZE)|DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE)\b.*$",
    re.M,
)
"""Enumerators that ``cuda.h`` of CUDA 13.0 does not have; PyTorch's wheels bring that one."""


def header_of(version: int, folder: Path) -> Path:
    """Write ``cuda.h`` as the one that is installed, without newer names, into a folder."""
    text = (build.find_cuda_header() / "cuda.h").read_text()
    text, removed = NEWER_NAMES.subn("", text)
    assert removed == 6 and build.header_version(build.find_cuda_header() / "cuda.h")
    folder.mkdir(parents=True)
    older = re.sub(
        r"^#define CUDA_VERSION \d+$", f"#define CUDA_VERSION {version}", text, flags=re.M
    )
    (folder / "cuda.h").write_text(older)
    return folder


@pytest.mark.parametrize("file", ["pools.c", "devices.c"])
def test_the_driver_is_built_with_the_oldest_header_of_cuda_13(file: str, tmp_path: Path) -> None:
    header = header_of(build.MIN_HEADER_VERSION, tmp_path / "include")
    checking = [build.find_compiler(), "-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra"]
    done = subprocess.run(
        [*checking, f"-I{header}", build.NATIVE / file], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_older_header_is_named_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = header_of(12090, tmp_path / "toolkit" / "include")
    newer = header_of(13000, tmp_path / "wheels" / "include")
    find = build.find_cuda_header.__wrapped__
    monkeypatch.setattr(build, "nvidia_folders", lambda *_: [older])
    with pytest.raises(build.UnavailableError) as refused:
        find()
    assert f"{older / 'cuda.h'} is of CUDA 12.9; pip install" in str(refused.value)
    monkeypatch.setattr(build, "nvidia_folders", lambda *_: [older, newer])
    assert find() == newer


def test_a_driver_that_is_loaded_already_is_not_replaced() -> None:
    program = (
        "import os\n"
        "import softcuda\n"
        "softcuda.start()\n"
        "softcuda.start.cache_clear()\n"
        "try: softcuda.start()\n"
        "except softcuda.UnavailableError as error: print(error)"
    )
    assert "libcuda.so.1 is loaded already" in python("-c", program).stdout


RACE = """
import numpy as np
from numba import cuda, int32

@cuda.jit(device=True)
def put(s, value):
    s[0] = value

@cuda.jit(OPTIONS)
def race(out):
    s = cuda.shared.array(1, int32)
    put(s, cuda.threadIdx.x)
    x = out[1]
    cuda.syncthreads()
    out[2 + cuda.threadIdx.x] = s[0] + x

race[1, 2](np.zeros(4, np.int64))
"""


@pytest.mark.parametrize(
    "options",
    [
        "",
        *(
            pytest.param(one, marks=pytest.mark.ci)
            for one in ("cache=True", "lineinfo=True", "debug=True, opt=False")
        ),
    ],
)
def test_the_sanitizer_names_the_lines_of_both_writes_of_any_program(
    tmp_path: Path, options: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(RACE.replace("OPTIONS", options))
    done = python("-m", "softcuda", "--sanitize", program)
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("softcuda: race"))
    assert "that thread (0, 0, 0) writes (line 7)" in said
    assert said.endswith(f"thread (1, 0, 0), {program}:7]")


ENDLESS = """
import os, signal, sys, threading
import numpy as np
from numba import cuda

@cuda.jit
def endless(a):
    while a[0] == 0:
        a[1] += 1

@cuda.jit
def endless_with_barriers(a):
    while a[0] == 0:
        cuda.syncthreads()

array = cuda.to_device(np.zeros(32))
kernel, wait = sys.argv[1:]
event = cuda.event()
globals()[kernel][1, 64](array)
event.record()
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    {"context": cuda.synchronize, "event": event.synchronize, "copy": array.copy_to_host}[wait]()
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    "wait", ["context", *(pytest.param(one, marks=pytest.mark.ci) for one in ("event", "copy"))]
)
@pytest.mark.parametrize(
    "kernel", ["endless", pytest.param("endless_with_barriers", marks=pytest.mark.ci)]
)
def test_ctrl_c_ends_a_kernel_that_the_program_waits_for(
    tmp_path: Path, kernel: str, wait: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(ENDLESS)
    done = python("-m", "softcuda", program, kernel, wait)
    assert done.stdout == "interrupted\n", done.stderr
    assert "softcuda: interrupted: Ctrl-C has ended the kernel; this thread was" in done.stderr


INTERRUPTED_WHILE_COMPILING = """
import os, signal, sys, threading, time
from pathlib import Path
from softcuda import build
from kernels_in_ptx import KERNELS
from softcuda_process import error, use_device
from cuda.bindings import driver

use_device()
build.find_compiler = lambda: sys.argv[1]
started = Path(sys.argv[1]).with_name("started")

def press():
    while not started.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

class Starting(build.subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        press()

if sys.argv[2] == "starting":
    build.subprocess.Popen = Starting
else:
    threading.Thread(target=press).start()
try:
    refused = error(driver.cuModuleLoadData(KERNELS.encode() + b"\\0"))
    for _ in range(100):
        time.sleep(0.01)
    print("lost", refused)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("moment", ["starting", "compiling"])
def test_ctrl_c_while_softcuda_compiles_ends_the_program_and_the_compiler(
    tmp_path: Path, moment: str
) -> None:
    program, compiler = tmp_path / "program.py", tmp_path / "cc"
    program.write_text(INTERRUPTED_WHILE_COMPILING)
    # As gcc does, it starts a program of its own, and both would go on for ever.
    compiler.write_text("#!/bin/sh\nsleep 1000 & echo $! > $0.child\ntouch ${0%cc}started\nwait\n")
    compiler.chmod(0o755)
    folder = str(Path(__file__).parent)
    done = python("-m", "softcuda", program, compiler, moment, PYTHONPATH=folder)
    assert done.stdout == "interrupted\n", done.stderr
    assert "ignored" not in done.stderr
    child = int((tmp_path / "cc.child").read_text())
    with suppress(ProcessLookupError):  # it has ended, and somebody has seen it
        ended, _, _ = select.select([os.pidfd_open(child)], [], [], 60)  # a busy machine is slow
        assert ended


def test_a_program_that_ignores_ctrl_c_goes_on(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    ignoring = "signal.signal(signal.SIGINT, signal.SIG_IGN)\narray ="
    program.write_text(ENDLESS.replace("array =", ignoring, 1))
    done = python("-m", "softcuda", program, "endless", "context", SOFTCUDA_TIMEOUT="2")
    assert "softcuda: time-out: the kernel has not ended after 2 s" in done.stderr


def test_a_program_without_a_fault_exits_with_its_own_code(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(STRAY)
    done = python("-m", "softcuda", program, "10")
    assert (done.returncode, done.stdout) == (0, "runs\n"), done.stderr
    assert "softcuda:" not in done.stderr


def test_a_fault_is_printed_with_its_line_and_is_the_exit_code(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(STRAY)
    done = python("-m", "softcuda", program, "11")
    assert (done.returncode, done.stdout) == (1, "runs\nCudaAPIError\n")
    assert "softcuda: out of bounds: a write of 8 bytes just past the end of" in done.stderr
    assert "in __main__.stray, block (0, 0, 0), thread (10, 0, 0)" in done.stderr
    assert "program.py:8" in done.stderr


@pytest.mark.parametrize(
    ("blocks", "end", "code", "said"),
    [
        ("10", "sys.exit(3)", 3, ""),
        pytest.param("10", "sys.exit('no more')", 1, "no more", marks=pytest.mark.ci),
        pytest.param(
            "10", "raise ValueError('wrong')", 1, "ValueError: wrong", marks=pytest.mark.ci
        ),
        ("11", "sys.exit(0)", 1, "softcuda: out of bounds"),
        ("11", "raise ValueError('wrong')", 1, "softcuda: out of bounds"),
    ],
)
def test_however_a_program_ends_its_faults_are_printed(
    tmp_path: Path, blocks: str, end: str, code: int, said: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"{STRAY}\n{end}\n")
    done = python("-m", "softcuda", program, blocks)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert ("softcuda: out of bounds" in done.stderr) == (blocks == "11")


def test_processes_that_a_program_starts_run_on_it_too(tmp_path: Path) -> None:
    program, child = tmp_path / "program.py", tmp_path / "child.py"
    child.write_text("from numba import cuda; print(cuda.get_current_device().name)")
    program.write_text(
        "import subprocess, sys\n"
        f"print(subprocess.check_output([sys.executable, {str(child)!r}], text=True))"
    )
    done = python("-m", "softcuda", program)
    assert "softcuda" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_ZN8__main__1kB2v1B106cw51E5ArrayIfLi1E1C7mutable7alignedE", "__main__.k"),
        ("_ZN7library7kernels3addEPf", "library.kernels.add"),
        ("plain", "plain"),
    ],
)
def test_a_kernel_has_the_name_that_its_author_gave_it(mangled: str, name: str) -> None:
    assert readable_name(mangled) == name


def test_a_report_reads_as_one_line() -> None:
    line = (
        '{"kind": "race", "text": "write/read race", "kernel": "_ZN1m1kE", "block": [1, 0, 0], '
        '"thread": [2, 0, 0], "file": "k.py", "line": 7, "count": 3}'
    )
    (report,) = parse_reports(line + "\n")
    assert report == Report(
        "race", "write/read race", "m.k", (1, 0, 0), (2, 0, 0), file="k.py", line=7, count=3
    )
    place = "in m.k, block (1, 0, 0), thread (2, 0, 0), k.py:7"
    assert str(report) == f"race: write/read race (3 times) [{place}]"


def test_no_line_of_the_driver_is_over_a_hundred_columns() -> None:
    """Ruff sees to that for Python; nothing else does for C."""
    native = Path(build.__file__).parent / "native"
    long = [
        f"{path.name}:{number}"
        for path in sorted(native.glob("*.[ch]"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 100
    ]
    assert long == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.py"], "there is no file gone.py; a module needs -m before it"),
        (["."], ". is a folder without __main__.py; name a file of it"),
        (["-m", "gone"], "there is no module gone that can be run"),
        (["-m", "gone.module"], "there is no module gone"),
        (["-m", "package"], "there is no module package that can be run"),
    ],
)
def test_a_program_that_is_not_there_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    done = python("-m", "softcuda", *arguments)
    assert (done.returncode, done.stderr) == (2, f"python -m softcuda: {said}\n")


def test_a_program_has_the_arguments_and_the_path_that_python_gives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    program = folder / "program.py"
    program.write_text("import sys; print(__name__, sys.argv[1:], sys.path[0]); sys.exit(7)")
    monkeypatch.chdir(tmp_path)
    expected = "__main__ ['--count', '-m']"
    for command, path in (([program], folder), (["-m", "folder.program"], tmp_path)):
        done = python("-m", "softcuda", *command, "--count", "-m")
        assert (done.returncode, done.stdout) == (7, f"{expected} {path}\n"), done.stderr
