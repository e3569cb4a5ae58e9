"""What every script of figures prints first: the machine, the versions, the command, the load."""

from __future__ import annotations

import json
import os
import pickle
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gpubench.measure.recorder import run_facts


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


def in_fresh_process(script: str, work: object, folder: Path, *options: str) -> Any:
    """What the script prints as JSON in a process of its own, where it finds the modules of
    ``folder`` and, on standard input, ``work`` pickled."""
    command = [sys.executable, script, *options]
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        command,
        input=pickle.dumps(work),
        capture_output=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
    )
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)} failed:\n{done.stderr.decode()}")
    return json.loads(done.stdout.splitlines()[-1])


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
