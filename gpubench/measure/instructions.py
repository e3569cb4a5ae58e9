"""How many instructions a case's call takes on the processor: the same number in every run.

Callgrind counts where valgrind is installed, else a counter of the processor where the kernel of
the system offers one. Cases run in processes of their own, with one thread and for one named
processor, so that compilers make the same code on every machine. Two processes have to agree.
``docs/occupancy-and-bounds.md`` says what the number means.
"""

from __future__ import annotations

import json
import os
import pickle
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gpubench.backends import registry
from gpubench.counts.processor import counting_variables
from gpubench.measure.caches import caches_of_sources
from gpubench.measure.counted_calls import (
    ANSWERS,
    CALLGRIND,
    CAN_COUNT_WITH_CALLGRIND,
    CASES,
    COUNTED_CALLS,
    EMPTY,
    HARDWARE,
    NONE,
    WORK,
    Hardware,
    label,
)
from gpubench.plan.case import Case

MAX_SECONDS = 600.0
"""Of one process; callgrind takes some 50 times as long as the processor."""
_SHOWN_CHARACTERS = 300

ENDED = "ended"
_Answers = list[dict[str, Any]]
"""Of each case: ``missing``, why it has no counts, or ``counts``; ``ENDED`` where its process gave
no answer."""


@dataclass(frozen=True)
class Instructions:
    """What was counted of one case."""

    count: int | None
    """Of one call, less an empty call; ``None`` where there is no number."""
    missing: str | None
    """Why there is none; ``None`` where there is."""
    counter: str | None = None
    """``callgrind``, or ``hardware`` for the processor's own; ``None`` where nothing was run."""
    processor: str | None = None
    """That Numba compiled for, by LLVM's name."""
    empty_call: int | None = None
    """Instructions of the empty call, which were subtracted."""


def count_instructions(case: Case, seconds: float = MAX_SECONDS) -> Instructions:
    """Return the instructions of one call of a case, or why there is no number."""
    return count_instructions_of([case], seconds)[0]


def count_instructions_of(
    cases: Sequence[Case], seconds: float = MAX_SECONDS
) -> list[Instructions]:
    """Return the instructions of each case, in the order given; each process runs all of them.

    ``seconds``: after which a process is ended, and its cases have no number.
    """
    counter, no_counter = find_counter()
    missing = {
        index: reason
        for index, case in enumerate(cases)
        if (reason := no_counter or _why_not(case)) is not None
    }
    found: dict[int, Instructions] = {}
    asked = [index for index in range(len(cases)) if index not in missing]
    if asked and counter is not None:
        counted = _count_twice([cases[index] for index in asked], counter, seconds)
        found = dict(zip(asked, counted, strict=True))
    return [
        found[index] if index in found else Instructions(None, missing[index])
        for index in range(len(cases))
    ]


def find_counter() -> tuple[str | None, str | None]:
    """Return what counts on this machine, ``callgrind`` or ``hardware``, or ``None`` and why."""
    if sys.platform != "linux":
        return None, f"instructions are counted on Linux; this is {platform.system()}"
    if shutil.which("valgrind") and CAN_COUNT_WITH_CALLGRIND:
        return CALLGRIND, None
    try:
        Hardware()
    except OSError as error:
        offered = "valgrind is not installed (Debian: apt install valgrind)"
        if shutil.which("valgrind"):
            offered = f"callgrind is used on x86-64, and this is {platform.machine()}"
        return None, f"{offered}, and {error.strerror or error}"
    return HARDWARE, None


def _why_not(case: Case) -> str | None:
    if not registry.get(case.backend).runs_in_caller:
        counted = " and ".join(one.name for one in registry.usable() if one.runs_in_caller)
        return f"instructions are counted of {counted}, and this is {case.backend}"
    if case.threads not in (None, 1):
        return f"it runs with {case.threads} threads, and instructions are counted with one"
    return None


def _count_twice(cases: Sequence[Case], counter: str, seconds: float) -> list[Instructions]:
    """Count in two processes side by side, after one that fills the caches of compiled code."""
    settings = counting_variables()
    processor = settings["NUMBA_CPU_NAME"]
    with ExitStack() as stack:
        stack.enter_context(caches_of_sources())
        variables = {**os.environ, **settings}

        def start(asked: Sequence[Case], counter: str) -> Callable[[], _Answers]:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            (folder / CASES).write_bytes(pickle.dumps(list(asked)))
            process = _start(folder, counter, variables)
            stack.callback(process.kill)  # where this one is interrupted
            return partial(_finish, process, folder, seconds, len(asked))

        compiled = start(cases, NONE)()
        ready = [index for index, one in enumerate(compiled) if "missing" not in one]
        started = [
            start([cases[index] for index in ready], counter) for _ in range(2 * bool(ready))
        ]
        runs = [finish() for finish in started]
    if len(cases) > 1 and any(ENDED in one for run in (compiled, *runs) for one in run):
        # One of them ended the process of all; alone, each of the others has its number.
        return [_count_twice([case], counter, seconds)[0] for case in cases]
    counted = {
        index: _agree([run[place] for run in runs], counter, processor)
        for place, index in enumerate(ready)
    }
    return [
        counted.get(index) or Instructions(None, one["missing"], counter, processor)
        for index, one in enumerate(compiled)
    ]


# Addresses that are drawn by chance change how memory is aligned. A sandbox may refuse this.
_WITHOUT_CHANCE = (
    "import ctypes, os, sys; ctypes.CDLL(None).personality(0x0040000); "  # ADDR_NO_RANDOMIZE
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def _start(folder: Path, counter: str, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    program = [sys.executable, "-m", "gpubench.measure.counted_calls", str(folder), counter]
    if counter == CALLGRIND:
        program = [
            *(shutil.which("valgrind") or "valgrind", "--tool=callgrind", "--quiet", "--vgdb=no"),
            *("--instr-atstart=no", "--collect-atstart=no", "--dump-line=no"),
            *("--smc-check=all-non-file", f"--callgrind-out-file={folder}/counts"),
            *program,
        ]
    with (folder / "errors").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-c", _WITHOUT_CHANCE, *program],
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
        )


def _finish(process: subprocess.Popen[bytes], folder: Path, seconds: float, cases: int) -> _Answers:
    """Return what a process answers for each of its cases, with its counts."""
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        reason = f"its process was ended after {seconds:g} seconds; take a smaller size"
        return [{"missing": reason, ENDED: True}] * cases
    try:
        answers: _Answers = json.loads((folder / ANSWERS).read_bytes())
    except (OSError, ValueError):
        said = (folder / "errors").read_text(encoding="utf-8", errors="replace").strip()
        shown = said[-_SHOWN_CHARACTERS:] or "it said nothing"
        reason = f"its process ended with status {status}: {shown}"
        return [{"missing": reason, ENDED: True}] * cases
    written = _read_dumps(folder)
    return [_pick(answer, written, index) for index, answer in enumerate(answers)]


def _read_dumps(folder: Path) -> dict[str, int]:
    """Return what callgrind wrote, by label."""
    counts: dict[str, int] = {}
    for file in folder.glob("counts*"):
        text = file.read_text(encoding="utf-8", errors="replace")
        trigger = re.search(r"^desc: Trigger: Client Request: (\S+)$", text, re.MULTILINE)
        total = re.search(r"^totals: (\d+)", text, re.MULTILINE)
        if trigger and total:
            counts[trigger[1]] = int(total[1])
    return counts


def _pick(answer: dict[str, Any], written: Mapping[str, int], index: int) -> dict[str, Any]:
    """Return the least count of each call of a case, or why there is none."""
    if "missing" in answer:
        return answer
    counts = {**answer["counts"], **written}
    turns = range(COUNTED_CALLS)
    least = {
        call: min(found)
        for call in (EMPTY, WORK)
        if (found := [counts[n] for turn in turns if (n := label(index, call, turn)) in counts])
    }
    return {"counts": least}


def _agree(runs: Sequence[dict[str, Any]], counter: str, processor: str) -> Instructions:
    """Return the number that two runs agree on, or why there is none."""
    reason = next((run["missing"] for run in runs if "missing" in run), None)
    if reason is None and any(len(run["counts"]) < 2 for run in runs):
        reason = f"{counter} wrote no counts"
    if reason is not None:
        return Instructions(None, reason, counter, processor)
    counts = [run["counts"][WORK] - run["counts"][EMPTY] for run in runs]
    if len(set(counts)) > 1:
        shown = " and ".join(f"{count:,}" for count in counts)
        reason = f"two runs took {shown} instructions: it has no number"
        return Instructions(None, reason, counter, processor)
    return Instructions(counts[0], None, counter, processor, runs[0]["counts"][EMPTY])
