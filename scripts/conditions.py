"""What every script of figures prints first: the machine, the versions, the command, the load."""

from __future__ import annotations

import json
import os
import pickle
import shlex
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory

from gpubench.measure.recorder import run_facts
from gpubench.plan.case import Case

# As where people measure: without bytecode on disk every process of an editable install compiles
# all our modules again, and those of asv, which pip compiled, not.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def print_conditions(*distributions: str) -> None:
    """Machine, versions and command on standard output; other distributions by name too."""
    facts = run_facts()
    print(f"machine   {facts['cpu']}, {facts['cpu_threads']} threads, {facts['os']}")
    print(f"load      {', '.join(f'{load:.2f}' for load in os.getloadavg())} (1, 5, 15 minutes)")
    names = ("gpubench", "numpy", "numba", "asv", *distributions)
    print(f"versions  Python {facts['python']}, {', '.join(map(_version, names))}")
    print(f"command   python {shlex.join(sys.argv)}\n", flush=True)


@contextmanager
def scratch_project(files: dict[str, str]) -> Iterator[Path]:
    """A temporary folder with these files, importable from."""
    with TemporaryDirectory(prefix="gpubench-figures-") as name:
        folder = Path(name)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        sys.path.insert(0, name)
        yield folder


def in_fresh_processes(
    script: str, cases: Sequence[Case], folder: Path, given: Namespace
) -> dict[str, list[list[float]]]:
    """What a script prints as JSON for each case, in every one of ``given.runs`` in a process of
    its own, which it begins with ``--in-turn``: it finds the modules of ``folder`` and, on standard
    input, the case pickled."""
    command = [sys.executable, script, "--in-turn", "--samples", str(given.samples)]
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    show, found = progress(given.runs * len(cases), "measuring"), dict[str, list[list[float]]]()
    for done, case in enumerate(given.runs * list(cases)):
        process = subprocess.run(
            command, input=pickle.dumps(case), capture_output=True, cwd=folder, env=environment
        )
        if process.returncode:
            raise SystemExit(f"{shlex.join(command)} failed:\n{process.stderr.decode()}")
        name = f"{case.kernel_name} {case.identity}"
        found.setdefault(name, []).append(json.loads(process.stdout.splitlines()[-1]))
        show(done + 1)
    return found


def turn(ways: Sequence[Callable[[], float]], number: int) -> list[float]:
    """A sample each way; another begins each time."""
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
