"""``make bench``: asv measures commits, and the report is written; a summary in place of its log.

    python scripts/bench.py 'HEAD^!'

All that asv prints goes to ``.asv/bench.log``. A terminal shows one line of progress; a file or a
pipe gets the summary alone. It ends with asv's exit code: 2 where a benchmark failed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import TextIO

import gpu_here
import softcuda_here

LOG = Path(".asv/bench.log")
SUMMARY = "gpubench: "
"""What begins the lines of ``gpubench.asv_plugin``, the summary among them."""
NEXT = f"{SUMMARY}next: "
"""What begins its line with the next command, which writes the report: this program does that."""
PROGRESS = re.compile(r"^\[\s*(?P<percent>[\d.]+)%\]\W*(?P<what>\S.*)")
"""asv's lines: ``[ 12.50%] ··· suites.vector_add__numba.time_kernel   1/6 failed``."""
LAST_LINES = 15
"""Lines of asv that are shown where it failed without a summary."""
MAX_SUMMARY_LINES = 25
MAX_LINE_CHARACTERS = 400
FAILED_BENCHMARKS = 2
"""asv's exit code where it measured and a benchmark failed."""


def main() -> int:
    commits = sys.argv[1:] or ["HEAD^!"]
    prepare()
    LOG.parent.mkdir(exist_ok=True)
    print(f"$ asv run {' '.join(commits)}   (all that it says: {LOG})", flush=True)
    code, summary = run_asv(commits)
    if code not in (0, FAILED_BENCHMARKS):
        print(*LOG.read_text(encoding="utf-8").splitlines()[-LAST_LINES:], sep="\n")
        return code
    print(*shortened(summary), sep="\n", flush=True)
    return subprocess.run([program("gpubench"), "report"], check=False).returncode or code


def run_asv(commits: Iterable[str]) -> tuple[int, list[str]]:
    """Run asv to its end; return its exit code, and what gpubench says of the run."""

    def leave_to_asv(number: int, frame: FrameType | None) -> None:
        """Go on: Ctrl-C reaches asv too, which ends what it has started and says what there is."""

    before = signal.signal(signal.SIGINT, leave_to_asv)  # asv does not inherit it
    try:
        with (
            LOG.open("w", encoding="utf-8") as log,
            subprocess.Popen(
                [program("asv"), "run", *commits],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as process,
        ):
            assert process.stdout is not None
            summary = follow(process.stdout, log, sys.stdout if sys.stdout.isatty() else None)
    finally:
        signal.signal(signal.SIGINT, before)
    return process.returncode, summary


def prepare() -> None:
    """Name the machine to asv, once, and ask for CUDA in software where there is no GPU."""
    if not (Path.home() / ".asv-machine.json").exists():
        subprocess.run([program("asv"), "machine", "--yes"], check=True, stdout=subprocess.DEVNULL)
    is_smoke = os.environ.get("GPUBENCH_PRESET") == "smoke"
    if is_smoke and softcuda_here.SWITCH not in os.environ and gpu_here.why_none() is not None:
        if (reason := softcuda_here.why_none()) is None:
            os.environ[softcuda_here.SWITCH] = "1"
        else:
            print(f"CUDA is skipped: there is no GPU, and no CUDA in software: {reason}")


def program(name: str) -> str:
    """Return a program of the environment that runs this."""
    return str(Path(sys.executable).with_name(name))


def follow(lines: Iterable[str], log: TextIO, terminal: TextIO | None) -> list[str]:
    """Write asv's lines to a log, and how far it is to a terminal; return the lines of gpubench
    but for the next command."""
    said = []
    for line in lines:
        log.write(line)
        log.flush()
        if SUMMARY in line and NEXT not in line:
            said.append(line[line.index(SUMMARY) :].strip())
        if terminal is not None and (progress := PROGRESS.match(line)):
            show(f"{progress['percent']:>6} % {progress['what']}", terminal)
    if terminal is not None:
        show("", terminal)
    return said


def show(text: str, terminal: TextIO) -> None:
    """Replace the line of progress."""
    try:
        width = os.get_terminal_size(terminal.fileno()).columns
    except (OSError, ValueError):
        width = 80
    terminal.write(f"\r\x1b[K{text[: width - 1]}")
    terminal.flush()


def shortened(summary: Iterable[str]) -> Iterator[str]:
    """Return so many lines that a file or a pipe gets less than 40: each once, the last ones where
    there are more, as the end has the speedups."""
    lines = [line[:MAX_LINE_CHARACTERS] for line in dict.fromkeys(summary)]
    if (left := len(lines) - MAX_SUMMARY_LINES) > 0:
        yield f"{left} more lines: {LOG}"
    yield from lines[-MAX_SUMMARY_LINES:]


if __name__ == "__main__":
    sys.exit(main())
