"""Runs the tests of numba-cuda itself on the device in software.

They ship in its wheel (``numba.cuda.tests``) and were written for NVIDIA's devices, so that what
passes here is not only what we thought of. Prints passed, failed and skipped of each module, and
the first line of each failure.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from figures import add_option, record, recording

TIMEOUT = 600.0
"""Seconds of one module's tests."""
FOLDERS = ("cudapy", "cudadrv")


@dataclass(frozen=True)
class Result:
    """What became of one module's tests."""

    module: str
    counts: Counter[str]
    """By ``passed``, ``failed`` and ``skipped``."""
    failures: tuple[tuple[str, str], ...]
    """Test and the first line of what went wrong."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", help="test_atomics ...; absent: all")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    add_option(parser)
    given = parser.parse_args()
    if given.child:
        return _child(given.child[0], Path(given.child[1]))
    with recording(given, "numba-cuda", "cuda-bindings", "cuda-core"):
        modules = [
            m for m in test_modules() if not given.modules or m.rpartition(".")[2] in given.modules
        ]
        total: Counter[str] = Counter()
        with ThreadPoolExecutor(given.processes) as pool:
            for result in pool.map(run_module, modules):
                total += result.counts
                print(f"{result.module:44} {_counted(result.counts)}", flush=True)
                for test, line in result.failures:
                    print(f"    {test}: {line}", flush=True)
        print(f"\nin all {_counted(total)}")
        passed = f"{total['passed']:,} of {total['passed'] + total['failed']:,}"
        what = "numba-cuda's own tests that pass, of those that run"
        record("softcuda", what, {"figure": passed})
        return int(not total["passed"])


def test_modules() -> Iterator[str]:
    """``numba.cuda.tests.cudapy.test_atomics`` ... of the installed package."""
    spec = find_spec("numba.cuda.tests")
    if spec is None or spec.submodule_search_locations is None:
        sys.exit("numba.cuda.tests is not installed; pip install softcuda")
    for folder in FOLDERS:
        root = Path(spec.submodule_search_locations[0], folder)
        for path in sorted(root.glob("test_*.py")):
            yield f"numba.cuda.tests.{folder}.{path.stem}"


def run_module(module: str) -> Result:
    """Run each module in a process of its own, and then each test that failed in one: a fault on
    the device is answered to all calls after it, so that the tests that follow fail with it."""
    results, ended = _run(module)
    for test, (kind, _) in list(results.items()):
        if kind in ("failed", "started"):
            alone, end = _run(f"{module}.{test}")
            said = list(alone.values())[-1] if alone else ("failed", end or "no outcome")
            results[test] = said if said[0] != "started" else ("failed", end or "did not end")
    if not results and ended:
        results["all"] = ("failed", ended)
    counts = Counter(kind for kind, _ in results.values())
    failures = tuple((test, said) for test, (kind, said) in results.items() if kind == "failed")
    return Result(module.removeprefix("numba.cuda.tests."), counts, failures)


def _run(tests: str) -> tuple[dict[str, tuple[str, str]], str | None]:
    """Return what became of each test, by its name without the module, and how the process ended
    badly."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "results.jsonl")
        script = str(Path(__file__).resolve())
        command = [sys.executable, "-m", "softcuda", script, "--child", tests, str(told)]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, timeout=TIMEOUT, check=False
            )
            ended = None if done.returncode in (0, 1) else f"exit code {done.returncode}"
        except subprocess.TimeoutExpired:
            ended = f"no end within {TIMEOUT:g} s"
        lines = told.read_text(encoding="utf-8").splitlines() if told.is_file() else []
    return {test: (kind, said) for test, kind, said in map(json.loads, lines)}, ended


def _child(tests: str, told: Path) -> int:
    """Run a module's tests, or one, and write a line as each begins and ends."""
    with told.open("w", encoding="utf-8", buffering=1) as file:

        class Telling(unittest.TestResult):
            def _tell(self, test: unittest.TestCase, kind: str, said: str = "") -> None:
                name = ".".join(test.id().rsplit(".", 2)[1:])  # class and method
                print(json.dumps([name, kind, said]), file=file)

            def startTest(self, test: unittest.TestCase) -> None:
                self._tell(test, "started")

            def addSuccess(self, test: unittest.TestCase) -> None:
                self._tell(test, "passed")

            def addSkip(self, test: unittest.TestCase, reason: str) -> None:
                self._tell(test, "skipped", reason)

            def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
                self._tell(test, "passed")

            def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
                self._tell(test, "failed", "passes, and should not")

            def addError(self, test: unittest.TestCase, err: Any) -> None:
                kind = "skipped" if err[0].__name__ == "Skipped" else "failed"  # pytest's own way
                self._tell(test, kind, " ".join(f"{err[0].__name__}: {err[1]}".split())[:200])

            def addSubTest(self, test: unittest.TestCase, subtest: Any, err: Any) -> None:
                if err is not None:
                    self.addError(test, err)

            addFailure = addError

        unittest.defaultTestLoader.loadTestsFromName(tests).run(Telling())
    return 0


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "failed", "skipped"))


if __name__ == "__main__":
    sys.exit(main())
