"""Whether other work took the cores while a sample was taken, by the kernel's own account.

Linux says of each thread how long it had to wait for a core although it could run (``schedstat``).
That tells a sample that neighbours made long from one whose kernel is slow. Threads of one process
may wait for each other, for example where the process has more threads than cores. Such waiting
counts only while other processes are at work, which ``/proc/stat`` says.

Other systems do not tell of waiting, and no sample is called disturbed there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from gpubench.measure import watcher
from gpubench.parallel import processors

WAITED = 0.02
"""Share of a sample's time from which its waiting disturbs it: two commits whose medians are so far
apart were called changed when it was chosen."""

OTHERS = 0.1
"""Share of the cores' time from which others are at work. The ticks that they are counted in are
10 ms: at the end of 0.1 s on each core one more or less is as much as this."""

CROWDED = 0.25
"""Share of the cores' time from which others disturb all samples, also those that never waited:
they share caches, memory and the halves of a core. On two cores a neighbour that came and went
made a kernel 1.5 times as slow as itself, and 2 of 5 comparisons called it so."""

QUEUED = 0.25
"""Share of the time for which threads wait for cores that others keep busy. Beside 1, 2 and 4
neighbours on two cores a kernel on both waited for 0.65, 1.0 and 1.3 of it at least, threads added
up, and without any for 0.06 at most, where the ticks of a tenth of a second tell of none either."""

WINDOW = 0.1
"""Seconds from which ticks tell something."""


class Thread(NamedTuple):
    """Of one thread, so far."""

    running: float
    """Seconds on a core. The kernel brings it up to date a few times in a hundredth of a second."""
    waiting: float
    """Seconds for which it could run and had no core."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Of this process, so far."""

    at: float
    """Seconds, ``time.perf_counter``."""
    threads: Mapping[str, Thread] | None
    """By number; ``None`` where the system does not tell of waiting."""


@dataclass(frozen=True, slots=True)
class CoreUse:
    """Of the cores that this process may use, so far; ``None`` where the system does not say."""

    at: float
    """Seconds, ``time.perf_counter``."""
    cores: int
    busy: float | None
    """Seconds of all cores together, with what the hypervisor gave to other guests."""
    own: float
    """Seconds of all cores that this process used, with those that it started."""


def counters() -> Counters:
    """Read those of this process: some 20 µs for each thread; ``pathlib`` takes twice as long."""
    threads: dict[str, Thread] = {}
    with suppress(OSError, ValueError):  # on another system, or in a sandbox
        for thread in os.scandir("/proc/self/task"):
            try:
                file = os.open(f"{thread.path}/schedstat", os.O_RDONLY)
                try:
                    running, waiting, _ = os.read(file, 100).split()
                finally:
                    os.close(file)
            except (FileNotFoundError, ProcessLookupError):  # it has just ended
                continue
            threads[thread.name] = Thread(int(running) / 1e9, int(waiting) / 1e9)
    return Counters(time.perf_counter(), threads or None)


def core_use() -> CoreUse:
    """Read how the cores are used."""
    cores = [f"cpu{core}" for core in getattr(os, "sched_getaffinity", lambda _: ())(0)]
    busy = None
    with suppress(OSError, ValueError, KeyError):  # on another system, or in a sandbox
        lines = map(str.split, Path("/proc/stat").read_text().splitlines())
        ticks = {line[0]: [*map(int, line[1:9])] for line in lines if line[0].startswith("cpu")}
        # user, nice, system, idle, iowait, irq, softirq, steal (proc(5))
        seconds = 1 / os.sysconf("SC_CLK_TCK")
        busy = sum(sum(ticks[c]) - ticks[c][3] - ticks[c][4] for c in cores) * seconds
    now, own = time.perf_counter(), time.process_time() + _started_seconds()
    return CoreUse(now, processors(), busy, own)


def _started_seconds() -> float:
    """Return the processor seconds of this process's descendants, such as workers of a pool. Linux
    adds the time of a process that ended to its parent."""
    ended, ticks = os.times(), 0
    for one in watcher.family(os.getpid()):
        with suppress(OSError):  # it has just ended
            if one != os.getpid():
                # utime, stime, cutime, cstime
                ticks += sum(map(int, _stat(f"/proc/{one}/stat")[11:15]))
    seconds = ended.children_user + ended.children_system
    return seconds + (ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0)


def _stat(file: str) -> list[str]:
    """Fields of a process or a thread that follow its name, which may have spaces (proc(5))."""
    return Path(file).read_text().rpartition(")")[2].split()


def waited(before: Counters, after: Counters) -> float | None:
    """Seconds for which the threads of this process together had no core between two readings;
    ``None`` where the system does not say."""
    if before.threads is None or after.threads is None:
        return None
    seconds, old = 0.0, before.threads
    for number, thread in after.threads.items():
        seconds += thread.waiting - (old[number].waiting if number in old else 0.0)
    return seconds


def ran(before: Counters, after: Counters) -> list[int]:
    """Threads of this process, by number, that had a core between two readings."""
    then, now = before.threads or {}, after.threads or {}
    return [
        int(number)
        for number, thread in now.items()
        if number not in then or thread.running > then[number].running
    ]


def others(before: CoreUse, after: CoreUse) -> float | None:
    """Cores that others kept busy between two readings, ``1.8``; ``None`` where the system does not
    say, or where the readings are too close."""
    seconds = after.at - before.at
    if before.busy is None or after.busy is None or seconds < WINDOW:
        return None
    return max(0.0, (after.busy - before.busy - (after.own - before.own)) / seconds)


def busy_since(before: CoreUse, seconds: float = 0.2) -> str | None:
    """Return a warning where other work has kept the cores busy since then; ``None`` where it has
    not, or where the system does not say. Waits until that is so many seconds ago."""
    time.sleep(max(0.0, before.at + seconds - time.perf_counter()))
    after = core_use()
    busy = others(before, after)
    if busy is None or busy <= OTHERS * after.cores:
        return None
    return (
        f"{busy:.1f} of {after.cores} cores are busy with other work: "
        "cases that have to wait for it get no verdict; end it, or measure later"
    )


class Crowding:
    """Whether runs have to wait for cores that others keep busy, from when this is made until
    somebody asks."""

    def __init__(self) -> None:
        self.core_use = core_use()
        """How the cores were used when this was made."""
        self._counters = counters()

    @cached_property
    def is_crowded(self) -> bool:
        """Whether threads waited for long, for others. It stays what it was at first."""
        before, now = self._counters, counters()
        if (waited(before, now) or 0.0) <= QUEUED * (now.at - before.at):
            return False
        return busy_since(self.core_use, WINDOW) is not None
