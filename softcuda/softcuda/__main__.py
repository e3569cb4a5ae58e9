"""Runs a Python program on the device in software and prints what it found.

``softcuda program.py ...`` or ``softcuda -m module ...``; ``python -m softcuda`` is the same.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import softcuda
from softcuda.counts import format_table
from softcuda.hints import format_hints
from softcuda.switches import switch_on


def main() -> int:
    """Return the program's exit code, or 1 where it ended well and faults were found."""
    parser = _parser()
    given = parser.parse_args()
    is_counting = given.count or given.hints
    switch_on(sanitize=given.sanitize, count=is_counting, order=given.order)
    try:
        device = softcuda.start()
    except softcuda.UnavailableError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    device.add_lines()
    _put_on_path(Path.cwd() if given.module else Path(given.program).resolve().parent)
    if (missing := _why_missing(given.program, given.module)) is not None:
        parser.exit(2, f"{parser.prog}: {missing}\n")
    sys.argv = [given.program, *given.arguments]
    try:
        if given.module:
            runpy.run_module(given.program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(given.program, run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    finally:
        if is_counting:
            device.wait()
        reports = device.reports()
        for report in reports:
            print(f"softcuda: {report}", file=sys.stderr)
        launches = device.counts() if is_counting else []
        if given.count:
            print(*format_table(launches), sep="\n", file=sys.stderr)
        if given.hints:
            print(*format_hints(launches), sep="\n", file=sys.stderr)
    return int(bool(reports))


def _parser() -> argparse.ArgumentParser:
    is_module = Path(sys.argv[0]).stem == "__main__"
    parser = argparse.ArgumentParser(
        prog="python -m softcuda" if is_module else "softcuda",
        usage="%(prog)s [options] PROGRAM [ARGUMENT ...]\n"
        "       %(prog)s [options] -m MODULE [ARGUMENT ...]",
        description="Run a program that uses CUDA on a CUDA device in software, and print the "
        "faults that were found, or what its kernels did. Times mean nothing there.",
    )
    parser.add_argument(
        "--sanitize",
        action="store_true",
        help="find races, reads of memory that "
        "nothing was written to, and barriers that threads miss",
    )
    parser.add_argument(
        "--count",
        action="store_true",
        help="print what the kernels of this process did: instructions, lanes, memory, operations",
    )
    parser.add_argument(
        "--hints",
        action="store_true",
        help="print which lines of the kernels cost more than they must, why, and what to change",
    )
    parser.add_argument("--order", help="of threads and blocks: ascending, descending or a seed")
    parser.add_argument("--version", action="version", version=f"softcuda {softcuda.__version__}")
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is a module")
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER)
    return parser


def _put_on_path(folder: Path) -> None:
    """Put the program's folder, with ``-m`` the working one, in place of that of this command, as
    Python does."""
    if not sys.flags.safe_path:
        sys.path[0] = str(folder)


def _why_missing(program: str, is_module: bool) -> str | None:
    """Return why there is nothing to run, with what to give; ``None`` where there is."""
    if not is_module:
        path = Path(program)
        if path.is_dir() and not (path / "__main__.py").is_file():
            return f"{program} is a folder without __main__.py; name a file of it"
        return None if path.exists() else f"there is no file {program}; a module needs -m before it"
    try:
        spec = find_spec(program)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = find_spec(f"{program}.__main__")
    except ModuleNotFoundError as error:
        return f"there is no module {error.name}"
    return None if spec is not None else f"there is no module {program} that can be run"


if __name__ == "__main__":
    sys.exit(main())
