"""Runs cases so that the instructions of their calls are counted: the program of a child process.

``python -m gpubench.measure.counted_calls FOLDER COUNTER`` reads the cases from FOLDER and writes
the counts there. ``gpubench.measure.instructions`` starts it. COUNTER is ``callgrind`` under
valgrind, ``hardware`` for a counter of the processor, and ``none`` for a run that only compiles.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import pickle
import platform
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from gpubench.backends.protocol import Call
from gpubench.collecting import without_collecting
from gpubench.measure.bound_case import BoundCase, opened
from gpubench.measure.conditions import why_not
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.outcomes import cause
from gpubench.plan.case import Case

CASES, ANSWERS = "cases.pickle", "answers.json"
EMPTY, WORK = "empty", "case"
"""Calls that are counted of a case."""
CALLGRIND, HARDWARE, NONE = "callgrind", "hardware", "none"

WARM_CALLS = 12
"""Calls before the first that is counted: Python specializes its bytecode within eight of them (PEP
659), and memory is taken from the system."""
COUNTED_CALLS = 5
"""Of these the least counts: others hold work that Python does now and then."""


class Counter(Protocol):
    """Counts instructions of this thread between ``start`` and ``stop``."""

    def prepare(self) -> None:
        """Get ready to count; what follows may run slower until ``finish``."""

    def start(self) -> None: ...

    def stop(self, label: str) -> int | None:
        """Return what was counted; ``None`` where it is written under the label instead."""

    def finish(self) -> None: ...


def label(case: int, call: str, turn: int) -> str:
    """Return the name of one count: of its empty call or of its own."""
    return f"{case}.{call}.{turn}"


def main(folder: Path, counter_name: str) -> None:
    cases: list[Case] = pickle.loads((folder / CASES).read_bytes())
    counter = _COUNTERS[counter_name]()
    answers = [_answer(case, index, counter) for index, case in enumerate(cases)]
    (folder / ANSWERS).write_text(json.dumps(answers), encoding="utf-8")


def _answer(case: Case, index: int, counter: Counter) -> dict[str, Any]:
    try:
        if reason := why_not(case):
            return {"missing": reason}
        with opened(case, draw_inputs(case)) as bound:
            return _count(bound, index, counter)
    except (Exception, SystemExit) as error:  # a kernel may call sys.exit()
        return {"missing": cause(error, case)}


def _count(bound: BoundCase, index: int, counter: Counter) -> dict[str, Any]:
    if (empty := bound.session.empty()) is None:
        return {"missing": "its backend has no empty call to subtract"}
    calls = {EMPTY: empty, WORK: bound.call}
    counts: dict[str, int] = {}
    for call in calls.values():
        for _ in range(WARM_CALLS):
            _call(bound, call)
    before = _switches_of_other_threads()
    for _ in range(COUNTED_CALLS):
        _call(bound, bound.call)
    if _switches_of_other_threads() != before:
        return {"missing": "another thread does part of its work"}
    with without_collecting():
        counter.prepare()
        for name, call in calls.items():
            for turn in range(COUNTED_CALLS):
                bound.restore()
                counter.start()
                call()
                bound.session.synchronize()
                counted = counter.stop(label(index, name, turn))
                if counted is not None:
                    counts[label(index, name, turn)] = counted
        counter.finish()
    return {"counts": counts}


def _call(bound: BoundCase, call: Call) -> None:
    bound.restore()
    call()
    bound.session.synchronize()


def _switches_of_other_threads() -> int:
    """Return how often the other threads of this process gave up or lost a core (``proc(5)``,
    ``/proc/pid/status``): a thread that works on a call is woken for it."""
    switches = 0
    for task in Path("/proc/self/task").glob("*"):
        if task.name != str(os.getpid()):  # the main thread's number is that of the process
            with suppress(OSError):  # a thread that ends
                status = (task / "status").read_text(encoding="ascii", errors="replace")
                fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
                switches += 1 + int(fields["voluntary_ctxt_switches"])
    return switches


class NoCounter:
    """Counts nothing: a run that compiles, and looks for other threads."""

    def prepare(self) -> None: ...

    def start(self) -> None: ...

    def stop(self, label: str) -> int | None:
        return None

    def finish(self) -> None: ...


# Client requests (valgrind.h, "The following defines the magic code sequences", and the enumeration
# in callgrind.h). Written out, they need neither headers nor a compiler where cases are counted.
_REQUEST_BASE = ord("C") << 24 | ord("T") << 16
_ZERO_STATS, _TOGGLE_COLLECT, _DUMP_STATS_AT, _START, _STOP = range(
    _REQUEST_BASE + 1, _REQUEST_BASE + 6
)
_REQUEST_CODE = {
    "x86_64": bytes.fromhex(
        "4889fa"  # mov rdx, rdi: the answer where no valgrind runs
        "4889f0"  # mov rax, rsi: the request and five arguments
        "48c1c703 48c1c70d 48c1c73d 48c1c733"  # rol rdi, 3; 13; 61; 51: nothing but a sign
        "4887db"  # xchg rbx, rbx
        "4889d0"  # mov rax, rdx
        "c3"  # ret
    )
}
_READ_WRITE_RUN = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC if os.name == "posix" else 0
CAN_COUNT_WITH_CALLGRIND = platform.machine() in _REQUEST_CODE


class Callgrind:
    """Callgrind's counts, which it writes to files by their label."""

    def __init__(self) -> None:
        code = _REQUEST_CODE[platform.machine()]
        self._page = mmap.mmap(-1, mmap.PAGESIZE, prot=_READ_WRITE_RUN)
        self._page.write(code)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._page))
        self.page = address, address + mmap.PAGESIZE
        """Where the code of requests lies: the first address and the one behind the last."""
        types = ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p
        self._request = ctypes.PYFUNCTYPE(*types)(address)
        self._toggle = self._packed(_TOGGLE_COLLECT)

    @staticmethod
    def _packed(request: int, argument: int = 0) -> Any:
        return (ctypes.c_size_t * 6)(request, argument, 0, 0, 0, 0)

    def prepare(self) -> None:
        self._request(0, self._packed(_START))

    def start(self) -> None:
        self._request(0, self._packed(_ZERO_STATS))
        self._request(0, self._toggle)

    def stop(self, label: str) -> int | None:
        self._request(0, self._toggle)
        name = ctypes.create_string_buffer(label.encode())
        self._request(0, self._packed(_DUMP_STATS_AT, ctypes.addressof(name)))
        return None

    def finish(self) -> None:
        self._request(0, self._packed(_STOP))


# perf_event_open(2), and linux/perf_event.h.
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
_ATTRIBUTE_BYTES = 112
_EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR, _DISABLED = 1 << 5, 1 << 6, 1 << 0
_COUNT_INSTRUCTIONS = 1
_ENABLE, _DISABLE, _RESET = 0x2400, 0x2401, 0x2403


class Hardware:
    """The processor's counter of retired instructions outside the kernel, of this thread.

    Raises ``OSError`` with the system's reason where it offers none.
    """

    def __init__(self) -> None:
        number = _PERF_EVENT_OPEN.get(platform.machine())
        if number is None or sys.platform != "linux":
            raise OSError(f"no hardware counter is known for {platform.machine()}")
        import fcntl  # Windows has none

        self._control = fcntl.ioctl
        flags = _DISABLED | _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR
        # type (hardware), size, config, sample_period, sample_type, read_format, flags
        attribute = struct.pack("IIQQQQQ", 0, _ATTRIBUTE_BYTES, _COUNT_INSTRUCTIONS, 0, 0, 0, flags)
        library = ctypes.CDLL(None, use_errno=True)
        room = ctypes.create_string_buffer(attribute, _ATTRIBUTE_BYTES)
        arguments = (ctypes.c_long(one) for one in (0, -1, -1, 0))
        self._file = library.syscall(ctypes.c_long(number), room, *arguments)
        if self._file < 0:
            error = ctypes.get_errno()
            raise OSError(error, f"the system offers no hardware counter: {os.strerror(error)}")

    def prepare(self) -> None: ...

    def start(self) -> None:
        self._control(self._file, _RESET, 0)
        self._control(self._file, _ENABLE, 0)

    def stop(self, label: str) -> int | None:
        self._control(self._file, _DISABLE, 0)
        (counted,) = struct.unpack("Q", os.read(self._file, 8))
        return int(counted)

    def finish(self) -> None: ...


_COUNTERS: dict[str, Callable[[], Counter]] = {
    CALLGRIND: Callgrind,
    HARDWARE: Hardware,
    NONE: NoCounter,
}

if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
