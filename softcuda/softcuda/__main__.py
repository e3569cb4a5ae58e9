"""Runs a Python program on the device in software and prints what it found.

``python -m softcuda program.py ...`` or ``python -m softcuda -m module ...``
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path

import softcuda
from softcuda.counts import format_table
from softcuda.hints import format_hints

CHILDREN = Path(__file__).parent / "children"


def main() -> int:
    """Return the program's exit code, or 1 where it ended well and faults were found."""
    parser = argparse.ArgumentParser(
        prog="python -m softcuda",
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
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is a module")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    os.environ[softcuda.SWITCH] = "1"  # for processes that the program starts
    path = [str(CHILDREN), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)
    if given.sanitize:
        os.environ["SOFTCUDA_SANITIZE"] = "1"
    if is_counting := given.count or given.hints:
        os.environ["SOFTCUDA_COUNT"] = "1"
    if given.order:
        os.environ["SOFTCUDA_ORDER"] = given.order
    try:
        device = softcuda.start()
    except softcuda.UnavailableError as error:
        parser.exit(2, f"{error}\n")
    sys.argv = [given.program, *given.arguments]
    try:
        if given.module:
            runpy.run_module(given.program, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(given.program).resolve().parent))
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


if __name__ == "__main__":
    sys.exit(main())
