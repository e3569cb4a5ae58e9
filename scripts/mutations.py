"""A copy of this repository in which one thing is broken at a time, for scripts that count what is
noticed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Outcome:
    """How a command ended in a broken copy."""

    code: int | None
    """Exit code; ``None`` where it ran out of time."""
    output: str


@contextmanager
def working_copy() -> Iterator[Path]:
    """The files that git knows, in a temporary folder."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    with TemporaryDirectory(prefix="gpubench-mutations-") as name:
        for path in filter(None, listed.stdout.split("\n")):
            if (ROOT / path).is_file():
                target = Path(name, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / path, target)
        yield Path(name)


@contextmanager
def broken(copy: Path, file: str, old: str, new: str) -> Iterator[None]:
    """Replace a text that occurs once; raises ``ValueError`` where it does not, so that a mutation
    does not stay in the list when the code it breaks has changed."""
    path = copy / file
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise ValueError(f"{file}: {text.count(old)} times in the file, expected once: {old!r}")
    path.write_text(text.replace(old, new), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")


def run_in(
    copy: Path, command: Sequence[str], timeout: float | None, **environment: str
) -> Outcome:
    """Run Python with these arguments on the copy's code, alone in a process group."""
    variables = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=copy,
        env=variables | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
        return Outcome(process.returncode, output)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        return Outcome(None, process.communicate()[0])
