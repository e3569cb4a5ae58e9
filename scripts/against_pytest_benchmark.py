"""Whole time and medians of ``gpubench time`` over those of pytest-benchmark, for the same kernels.

Each kernel has two implementations. It is measured by ``gpubench time`` and by pytest-benchmark,
each a command of its own, in turn. Both find out how many runs fill a sample, and take as many
samples of the same least time. The tests compare results once, as those of a careful user do;
gpubench compares two runs before the samples and one after. ``--pairs`` adds what gpubench takes
by default besides: samples in turn with the baseline's. Targets: no more whole time, and medians
within 2 %.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from conditions import progress, scratch_project
from figures import add_option, record, recording

FUNCTIONS = """\
import numba
import numpy as np

def add(a, out):
    np.add(a, a, out=out)

@numba.njit(cache=True)
def add_in_a_loop(a, out):
    for i in range(a.size):
        out[i] = a[i] + a[i]

def sort(a, out):
    out[:] = np.sort(a)

@numba.njit
def sort_uncached(a, out):
    out[:] = np.sort(a)

def distances(a, out):
    for i in range(a.size):
        out[i] = np.abs(a - a[i]).sum(dtype=np.float64)

@numba.njit(cache=True)
def distances_in_a_loop(a, out):
    for i in range(a.size):
        total = 0.0
        for j in range(a.size):
            total += abs(a[j] - a[i])
        out[i] = total

def slow(a, out):
    for i in range(a.size):
        out[i] = a[i] * 2

def slow_too(a, out):
    for i, value in enumerate(a):
        out[i] = value * 2
"""

KERNELS = {
    "add": ("add_in_a_loop", 2**20),
    "sort": ("sort_uncached", 2**16),
    "distances": ("distances_in_a_loop", 2**12),
    "slow": ("slow_too", 2**22),
}
"""The other implementation of each, and a size: of µs, of ms, and of about a second."""

SUITE = """\
version: 1
suite: {name}
kernels:
  {name}:
    sizes: {{n: [{size}]}}
    arrays:
      a: {{shape: [n], dtype: float32, fill: uniform}}
      out: {{shape: [n], dtype: float32, intent: out}}
    call: [a, out]
    baseline: numpy
    check: {{rtol: 0.0001}}
    sampling: {{repeat: {samples}, rounds: 1, timeout: 600, sample_time: 0.01{paired}}}
    implementations:
      numpy: {{function: "compared_functions:{name}", backend: numpy}}
      numba: {{function: "compared_functions:{other}", backend: {backend}}}
"""

TESTS = """\
import json
import os
import numpy as np
import pytest
import compared_functions

@pytest.mark.parametrize("implementation", ["numpy", "numba"])
def test_time(benchmark, implementation):
    asked = json.loads(os.environ["ASKED"])
    a = np.random.default_rng(0).random(asked["n"], dtype=np.float32)
    out, expected = np.empty_like(a), np.empty_like(a)
    benchmark(getattr(compared_functions, asked[implementation]), a, out)
    if implementation != "numpy":
        getattr(compared_functions, asked["numpy"])(a, expected)
        np.testing.assert_allclose(out, expected, rtol=1e-4)
"""


class Taken(NamedTuple):
    """One command: its whole seconds, and the median of each implementation."""

    whole: float
    medians: dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="runs of both over all kernels")
    parser.add_argument("--samples", type=int, default=20, help="samples of each implementation")
    parser.add_argument("--pairs", action="store_true", help="with samples in turn, as by default")
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    add_option(parser)
    given = parser.parse_args()
    with recording(given, "pytest", "pytest-benchmark"):
        paired = "" if given.pairs else ", paired: false"
        suites = {
            f"suites/{name}.yaml": suite(name, given.samples, paired) for name in given.kernels
        }
        sources = {"compared_functions.py": FUNCTIONS, "test_compared.py": TESTS}
        found: dict[str, list[tuple[Taken, Taken]]] = {name: [] for name in given.kernels}
        with scratch_project({**suites, **sources}) as folder:
            show = progress(given.runs * len(found), "measuring")
            for done in range(given.runs * len(found)):
                name = given.kernels[done % len(found)]
                found[name].append(both(name, folder, given.samples))
                show(done + 1)
        report(found)


def suite(name: str, samples: int, paired: str) -> str:
    other, size = KERNELS[name]
    backend = "numpy" if name == "slow" else "numba"
    sampling = {"samples": samples, "paired": paired}
    return SUITE.format(name=name, other=other, size=size, backend=backend, **sampling)


def both(name: str, folder: Path, samples: int) -> tuple[Taken, Taken]:
    """Measure the kernel by gpubench, and as often by pytest-benchmark."""
    seconds, output = timed([sys.executable, "-m", "gpubench", "time", name, "--json"], folder, {})
    cases = {case["implementation"]: case for case in json.loads(output)["cases"]}
    failed = [case for case in cases.values() if case["seconds"] is None]
    if failed:
        raise SystemExit(f"{name}: {failed[0]['implementation']}: {failed[0]['reason']}")
    own = Taken(seconds, {one: case["seconds"]["median"] for one, case in cases.items()})

    asked = {"numpy": name, "numba": KERNELS[name][0], "n": KERNELS[name][1]}
    results = folder / "results.json"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["--benchmark-min-time=0.01", f"--benchmark-min-rounds={samples}"]
    command += ["--benchmark-max-time=0.000001", f"--benchmark-json={results}", "test_compared.py"]
    seconds, _ = timed(command, folder, {"ASKED": json.dumps(asked)})
    benchmarks = json.loads(results.read_text(encoding="utf-8"))["benchmarks"]
    medians = {one["params"]["implementation"]: one["stats"]["median"] for one in benchmarks}
    return own, Taken(seconds, medians)


def timed(command: list[str], folder: Path, variables: dict[str, str]) -> tuple[float, str]:
    """Whole seconds of a command and its standard output."""
    environment = {**os.environ, "PYTHONPATH": str(folder), **variables}
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return seconds, done.stdout


def report(found: dict[str, list[tuple[Taken, Taken]]]) -> None:
    """Print a line for each kernel's whole time, and for each implementation's median."""
    print(f"{'':28} {'gpubench':>12} {'pytest-benchmark':>17} {'ratio':>7}")
    middle = statistics.median
    for name, runs in found.items():
        own, other = (middle(run[place].whole for run in runs) for place in (0, 1))
        print(f"{name + ', whole':28} {own:10.2f} s {other:15.2f} s {own / other:7.2f}")
        record("pytest_benchmark", f"whole time, {name}", {"ratio": f"{own / other:.2f}"})
        for one in runs[0][0].medians:
            own, other = (middle(run[place].medians[one] for run in runs) for place in (0, 1))
            title = f"{name}, {one}"
            print(f"{title:28} {own * 1e3:9.3f} ms {other * 1e3:14.3f} ms {own / other:7.3f}")
    wholes = [run[0].whole / run[1].whole for runs in found.values() for run in runs]
    print(f"whole time: median ratio {middle(wholes):.2f}   target: at most 1")
    medians = [
        run[0].medians[one] / run[1].medians[one]
        for runs in found.values()
        for run in runs
        for one in run[0].medians
    ]
    print(f"medians: median ratio {middle(medians):.3f}   target: within 2 % of 1")
    record("pytest_benchmark", "medians, median", {"ratio": f"{middle(medians):.3f}"})


if __name__ == "__main__":
    main()
