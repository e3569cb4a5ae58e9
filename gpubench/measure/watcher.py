"""The process that watches how much memory another one holds, with all that it started.

``python -I -S watcher.py PID`` says ``ready`` when that one gives no more memory back. When its
standard input ends it says the most bytes that were held meanwhile beyond those held before. It is
a process because what is watched may hold the interpreter's lock, as Numba's functions do: no
thread beside them would run. So it imports nothing but the standard library.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from select import select
from time import sleep

READY = "ready"

PERIOD = 0.001
"""Seconds between two looks, beside those that a look takes: the system goes through all pages of a
process for one."""

SETTLES = 0.6
"""Seconds in which an allocator that gives back by itself gives back something: jemalloc in Polars
does after 0.5 (``dirty_decay_ms``)."""

NEGLIGIBLE_BYTES = 2**20
"""Bytes that count as none: pages of libraries that are needed for the first time."""


def fields(file: str) -> dict[str, int]:
    """Bytes by name, of a file of ``/proc`` with lines like ``VmHWM: 2212 kB``."""
    lines = (line.split() for line in Path(file).read_text().splitlines() if line.endswith(" kB"))
    return {line[0].rstrip(":"): 1024 * int(line[-2]) for line in lines}


def family(process: int) -> Iterator[int]:
    """Yield a process, and all that it started and that those started."""
    pending = [process]
    while pending:
        yield (one := pending.pop())
        with suppress(OSError):  # it has just ended
            for thread in Path(f"/proc/{one}/task").iterdir():
                with suppress(FileNotFoundError, ProcessLookupError):
                    pending += map(int, (thread / "children").read_text().split())


def held(process: int) -> int | None:
    """Return the bytes that a process and its descendants hold together, without this process;
    ``None`` where a process began or ended during the count: shared pages would count twice.

    What several share is counted once (PSS). Pages of files do not count, which the system drops
    where it needs room, nor does what an allocator has offered it back (``LazyFree``). Raises
    ``OSError`` where the system does not tell.
    """
    total, members = 0, list(family(process))
    for one in members:
        if one == os.getpid():
            continue
        try:
            sizes = fields(f"/proc/{one}/smaps_rollup")
            total += sizes["Pss_Anon"] + sizes["Pss_Shmem"] + sizes["SwapPss"] - sizes["LazyFree"]
        except (OSError, KeyError):
            if one == process:
                raise
    return total if list(family(process)) == members else None


def held_at_rest(process: int) -> int:
    """Return the same, looked at until no process comes or goes."""
    while (found := held(process)) is None:
        sleep(PERIOD)
    return found


def main() -> None:
    process = int(sys.argv[1])
    status = f"/proc/{process}/status"
    settled = held_at_rest(process)
    while True:
        sleep(SETTLES)
        if (before := held_at_rest(process)) >= settled - NEGLIGIBLE_BYTES:
            break
        settled = before
    Path(f"/proc/{process}/clear_refs").write_text("5")  # VmHWM begins anew (proc(5))
    most, first = 0, fields(status)
    mapped = first["RssFile"]
    print(READY, flush=True)
    while not select([sys.stdin], [], [], PERIOD)[0]:
        most = max(most, (held(process) or before) - before)
        mapped = max(mapped, fields(status)["RssFile"])
    last = fields(status)
    if max(mapped, last["RssFile"]) - first["RssFile"] < NEGLIGIBLE_BYTES:
        # The system's own count misses no peak; it has pages of files in it, and is off by some
        # pages for each processor (0.2 MiB on two).
        most = max(most, last["VmHWM"] - first["VmRSS"])
    print(most)


if __name__ == "__main__":
    main()
