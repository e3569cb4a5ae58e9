"""What every script of figures prints first: the machine, the versions, the command, the load."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory

from gpubench.distribution import DISTRIBUTION
from gpubench.measure.recorder import run_facts
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

# As where people measure: without bytecode on disk every process of an editable install compiles
# all our modules again, and those of asv, which pip compiled, not.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def print_conditions(*distributions: str) -> None:
    """Machine, versions and command on standard output; other distributions by name too."""
    print(f"machine   {machine()}")
    print(f"load      {', '.join(f'{load:.2f}' for load in os.getloadavg())} (1, 5, 15 minutes)")
    print(f"versions  {versions(*distributions)}")
    print(f"command   {command()}\n", flush=True)


def machine() -> str:
    """Return the processor, its threads and the system's version, as figures name them."""
    facts = run_facts()
    with suppress(OSError):  # another system than Linux
        if " avx512f " in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
            facts["cpu"] = f"{facts['cpu']} with AVX-512"
    release = ".".join(platform.release().split(".")[:2])
    return f"{facts['cpu']}, {facts['cpu_threads']} threads, {platform.system()} {release}"


def versions(*distributions: str) -> str:
    """Return the versions of Python, of ourselves, of what all figures need, and of others."""
    names = (DISTRIBUTION, "numpy", "numba", "asv", *distributions)
    return f"Python {platform.python_version()}, {', '.join(map(_version, names))}"


def command() -> str:
    """Return the command of this process; paths outside the checkout by their last name."""
    given = [Path(one).name if one.startswith("/") else one for one in sys.argv[1:]]
    listed = shlex.join(one for one in given if one != "--record")
    return f"python scripts/{Path(sys.argv[0]).name} {listed}".rstrip()


@contextmanager
def scratch_project(files: dict[str, str]) -> Iterator[Path]:
    """Yield a temporary folder with these files, importable from."""
    with TemporaryDirectory(prefix="gpubench-figures-") as name:
        folder = Path(name)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        sys.path.insert(0, name)
        yield folder


def cases_of(suite: Path) -> dict[str, Case]:
    """Return the cases of a suite by kernel and identity, which name them where each kernel has one
    implementation."""
    cases = build_plan(load_suites([suite]), gpu_count=0).cases()
    return {f"{case.kernel_name} {case.identity}": case for case in cases}


def in_fresh_processes(
    script: str, names: Sequence[str], folder: Path, given: Namespace
) -> dict[str, list[list[float]]]:
    """Return what a script prints as JSON for each case, in every one of ``given.runs`` in a
    process of its own, which is given the case's name as ``--in-turn``, works in ``folder`` and
    finds the modules there."""
    command = [sys.executable, script, "--samples", str(given.samples), "--in-turn"]
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    show, found = progress(given.runs * len(names), "measuring"), dict[str, list[list[float]]]()
    for done, name in enumerate(given.runs * list(names)):
        process = subprocess.run(
            [*command, name], capture_output=True, text=True, cwd=folder, env=environment
        )
        if process.returncode:
            raise SystemExit(f"{shlex.join(process.args)} failed:\n{process.stderr}")
        found.setdefault(name, []).append(json.loads(process.stdout.splitlines()[-1]))
        show(done + 1)
    return found


def turn(ways: Sequence[Callable[[], float]], number: int) -> list[float]:
    """Take a sample each way; another begins each time."""
    found: dict[int, float] = {}
    for place in range(len(ways)):
        way = (number + place) % len(ways)
        found[way] = ways[way]()
    return [found[way] for way in range(len(ways))]


def progress(total: int, what: str) -> Callable[[int], None]:
    """Prints ``what 3/10`` on standard error where that is a terminal."""

    def show(done: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if done == total else "\r"
            print(f"{what} {done}/{total}", end=end, file=sys.stderr, flush=True)

    return show


def _version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} is not installed"
