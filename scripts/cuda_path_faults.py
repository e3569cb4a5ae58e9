"""Breaks our own CUDA path in many ways, one at a time, and counts what a test notices.

Each mutation is a fault that somebody could make: a wait left out, a wrong stream, wrong units. The
tests of the scripted device come first, which take seconds; then those marked ``gpu``, on the
device in software. Prints a table; exit code 1 where fewer than nine of ten are found.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from figures import add_option, record, recording
from mutations import Outcome, broken, run_in, working_copy

TIMEOUT = 240.0
"""Seconds of one run of the tests; a test that hangs has found its fault."""
TARGET = 0.9

SCRIPTED = ("not gpu", {})
SOFTWARE = ("gpu and not gpu_time", {"GPUBENCH_SOFTCUDA": "1"})
FILES = (
    "test_cuda_clocks.py",
    "test_cuda_driver.py",
    "test_cuda_sampling.py",
    "test_cuda_session.py",
    "test_numba_cuda.py",
    "test_cuda_on_a_gpu.py",
    "test_conformance.py",
)


@dataclass(frozen=True)
class Mutation:
    """One fault: in ``file``, ``old`` becomes ``new``."""

    what: str
    file: str
    old: str
    new: str


SAMPLING, PROTOCOL = "cuda_sampling.py", "protocol.py"
DRIVER, SESSION, NUMBA = "cuda_driver.py", "cuda_session.py", "numba_cuda.py"

MUTATIONS = (
    Mutation(
        "events: no wait for the end",
        SAMPLING,
        "            checked(self._driver.cuEventSynchronize(end))\n",
        "",
    ),
    Mutation("events: milliseconds taken for seconds", SAMPLING, "* 1e-3", "* 1.0"),
    Mutation(
        "events: the two swapped",
        SAMPLING,
        "cuEventElapsedTime(begin, end)",
        "cuEventElapsedTime(end, begin)",
    ),
    Mutation(
        "events: recorded on the default stream",
        SAMPLING,
        "cuEventRecord(event, self._handle)",
        "cuEventRecord(event, 0)",
    ),
    Mutation(
        "to_native: no wait for the copy",
        NUMBA,
        "        self.synchronize()\n        return native\n",
        "        return native\n",
    ),
    Mutation(
        "to_host: copied before the kernels on the stream have run",
        NUMBA,
        "native.copy_to_host(stream=self.stream)",
        "native.copy_to_host(stream=self._cuda.stream())",
    ),
    Mutation(
        "copy: on another stream",
        NUMBA,
        "native.copy_to_device(pristine, stream=self.stream)",
        "native.copy_to_device(pristine, stream=self._cuda.stream())",
    ),
    Mutation(
        "copy: source and target swapped",
        NUMBA,
        "native.copy_to_device(pristine, stream=self.stream)",
        "pristine.copy_to_device(native, stream=self.stream)",
    ),
    Mutation(
        "kernels: launched on the default stream",
        NUMBA,
        "kernel[launch.grid, launch.block, self.stream, launch.shared_bytes]",
        "kernel[launch.grid, launch.block, 0, launch.shared_bytes]",
    ),
    Mutation(
        "kernels: dynamic shared memory left out",
        NUMBA,
        "kernel[launch.grid, launch.block, self.stream, launch.shared_bytes]",
        "kernel[launch.grid, launch.block, self.stream, 0]",
    ),
    Mutation(
        "kernels: grid and block swapped",
        NUMBA,
        "kernel[launch.grid, launch.block, self.stream, launch.shared_bytes]",
        "kernel[launch.block, launch.grid, self.stream, launch.shared_bytes]",
    ),
    Mutation(
        "launchers: get the default stream",
        SESSION,
        "stream=self.stream)\n            run: Call = partial(target.launcher",
        "stream=0)\n            run: Call = partial(target.launcher",
    ),
    Mutation(
        "devices: always the first",
        NUMBA,
        "self._cuda.select_device(ordinal)",
        "self._cuda.select_device(0)",
    ),
    Mutation(
        "devices: the one that was current before is forgotten",
        NUMBA,
        "            self._cleanup.callback(context.pop)\n",
        "            pass\n",
    ),
    Mutation(
        "capture: memory may be freed meanwhile",
        SAMPLING,
        "        with self._memory_stays():\n            return",
        "        if True:\n            return",
    ),
    Mutation(
        "gate: memory may be freed while it is shut",
        SAMPLING,
        "self._memory_stays(), self._gate.shut()",
        "self._gate.shut()",
    ),
    Mutation("gate: compares bits instead of order", DRIVER, "_VALUE_GEQ", "_VALUE_AND"),
    Mutation(
        "gate: never opened by hand",
        DRIVER,
        "            self._word.value = ticket\n",
        "            pass\n",
    ),
    Mutation(
        "gate: left shut when the work fails",
        DRIVER,
        "            yield release\n        finally:\n            release()",
        "            yield release\n        finally:\n            pass",
    ),
    Mutation("gate: the ticket stays", DRIVER, "(self._ticket + 1) % 2**32", "self._ticket"),
    Mutation("gate: never waits", DRIVER, "            self._wait_for(ticket)\n", ""),
    Mutation(
        "gate: its word is never given back", DRIVER, "self._api.cuMemFreeHost(self._host)", "pass"
    ),
    Mutation(
        "capture: goes on after a failed call",
        DRIVER,
        "        if failure is not None:\n"
        "            raise CannotCapture(str(failure)) from failure\n",
        "",
    ),
    Mutation(
        "capture: never ended",
        DRIVER,
        "            result, graph = api.cuStreamEndCapture(stream)",
        "            result, graph = 0, None",
    ),
    Mutation(
        "capture: only this thread's calls are refused",
        DRIVER,
        "CU_STREAM_CAPTURE_MODE_GLOBAL",
        "CU_STREAM_CAPTURE_MODE_RELAXED",
    ),
    Mutation("capture: one run too few", DRIVER, "in range(runs):", "in range(runs - 1):"),
    Mutation(
        "graphs: copies count as replayable",
        DRIVER,
        '"CU_GRAPH_NODE_TYPE_MEMSET")',
        '"CU_GRAPH_NODE_TYPE_MEMSET", "CU_GRAPH_NODE_TYPE_MEMCPY")',
    ),
    Mutation(
        "graphs: replayed on the default stream",
        DRIVER,
        "cuGraphLaunch(self._executable, self._stream)",
        "cuGraphLaunch(self._executable, 0)",
    ),
    Mutation(
        "graphs: the executable stays",
        DRIVER,
        "                handles.callback(api.cuGraphExecDestroy, self._executable)\n",
        "",
    ),
    Mutation(
        "graphs: the captured graph stays",
        DRIVER,
        "            handles.callback(api.cuGraphDestroy, graph)\n",
        "",
    ),
    Mutation(
        "graphs: launched once less",
        SAMPLING,
        "[self._graph(most, most).replay] * whole if whole else []",
        "[self._graph(most, most).replay] * (whole - 1) if whole else []",
    ),
    Mutation(
        "graphs: the rest of a batch is dropped",
        SAMPLING,
        "            replays.append(self._graph(rest, most).replay)",
        "            pass",
    ),
    Mutation(
        "graphs: nodes are not counted",
        SAMPLING,
        "graph.nodes != runs * self._launches or not",
        "not",
    ),
    Mutation(
        "held back: a batch's last part is dropped",
        SAMPLING,
        "[most] * whole + [rest] * bool(rest)",
        "[most] * whole",
    ),
    Mutation(
        "held back: no watch on a call that waits", SAMPLING, "            watch.start()\n", ""
    ),
    Mutation(
        "held back: more launches than a queue takes",
        SAMPLING,
        "MOST_HELD = 500",
        "MOST_HELD = 10**6",
    ),
    Mutation(
        "plain events: earlier work is in the time",
        SAMPLING,
        "        cuda, call = self._cuda, self._call\n        cuda.synchronize()\n",
        "        cuda, call = self._cuda, self._call\n",
    ),
    Mutation(
        "sampler: the first, compiling call is in the sample",
        SAMPLING,
        "        call()  # compiles and loads, which nothing below may do\n",
        "",
    ),
    Mutation(
        "sessions: nothing waited for at the end",
        PROTOCOL,
        "            if kind is None:\n                self.synchronize()\n",
        "            pass\n",
    ),
    Mutation(
        "flush: nothing is queued",
        SESSION,
        "            checked(self._driver.cuMemcpyDtoDAsync(target, source, size, self._handle))\n",
        "            pass\n",
    ),
    Mutation(
        "layout: Fortran order is lost",
        NUMBA,
        "array if array.flags.forc else",
        "array if array.flags.c_contiguous else",
    ),
    Mutation(
        "limits: a launch is not checked",
        SESSION,
        "if launch is not None and (fault := launch_fault(launch, self._limits)):",
        "if False:",
    ),
    Mutation(
        "errors: a lost device is an ordinary error",
        SESSION,
        '    "ILLEGAL_ADDRESS": "illegal memory access",\n',
        "",
    ),
    Mutation(
        "errors: out of memory is an ordinary error",
        SESSION,
        '_NO_MEMORY = ("out_of_memory"',
        '_NO_MEMORY = ("out-of-memory"',
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", help="mutations whose description contains this")
    add_option(parser)
    given = parser.parse_args()
    chosen = [one for one in MUTATIONS if not given.only or given.only in one.what]
    with recording(given, "numba-cuda", "cuda-bindings", "cuda-core"):
        found = 0
        with working_copy() as copy:
            _require_green(copy)
            for mutation in chosen:
                begin = time.perf_counter()
                by = noticed(copy, mutation)
                found += by is not None
                seconds = time.perf_counter() - begin
                print(f"{mutation.what:52} {by or 'NOT FOUND':60} {seconds:5.0f} s", flush=True)
        print(f"\n{found} of {len(chosen)} mutations found")
        what = "faults made in our own CUDA path, one at a time, that a test notices"
        record("softcuda", what, {"figure": f"{found} of {len(chosen)}"})
        return int(found < TARGET * len(chosen))


def noticed(copy: Path, mutation: Mutation) -> str | None:
    """Return the first test that fails, or ``None``."""
    with broken(copy, f"gpubench/backends/{mutation.file}", mutation.old, mutation.new):
        for marks, environment in (SCRIPTED, SOFTWARE):
            outcome = run_tests(copy, marks, environment)
            if outcome.code != 0:
                return failing_test(outcome)
    return None


def run_tests(copy: Path, marks: str, environment: dict[str, str]) -> Outcome:
    files = [f"tests/backends/{name}" for name in FILES]
    command = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", marks, *files]
    return run_in(copy, command, TIMEOUT, **environment)


def failing_test(outcome: Outcome) -> str:
    if outcome.code is None:
        return "the tests hang"
    match = re.search(r"^(?:FAILED|ERROR) \S*?([^/\s]+::\S+)", outcome.output, re.MULTILINE)
    return match[1][:60] if match else f"exit code {outcome.code}"


def _require_green(copy: Path) -> None:
    """Mutations mean nothing where the tests fail without them."""
    for marks, environment in (SCRIPTED, SOFTWARE):
        outcome = run_tests(copy, marks, environment)
        if outcome.code != 0:
            sys.exit(f"the tests fail before anything is broken:\n{outcome.output[-3000:]}")


if __name__ == "__main__":
    sys.exit(main())
