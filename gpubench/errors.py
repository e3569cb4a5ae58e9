"""What can go wrong, as types. Only ``gpubench.cli`` prints them and chooses an exit code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command; the table of ``docs/command-line.md`` explains them."""

    DONE = 0
    """The command did what it was asked for, and found nothing wrong."""
    FOUND = 1
    """It did it, and found what it looks for: a wrong or failed case, a slower one, a share that is
    not measured. Also where the reader of its output has gone."""
    REFUSED = 2
    """It could not do it: a wrong command line, suite or file. The message says what to write."""
    INTERRUPTED = 130
    """Ctrl-C or SIGTERM ended it, as shells count signals: 128 + 2. What there is by then is
    printed."""


class GpubenchError(Exception):
    """Base of every error that gpubench raises on purpose.

    The message states the value found, what is allowed, and the next step.
    """


@dataclass(frozen=True, order=True, slots=True)
class Fault:
    """One thing wrong in a suite file, at a place in it."""

    path: str
    """The file as the user named it."""
    line: int
    """First line is 1; 0 when the fault is about the file as a whole."""
    column: int
    """First column is 1; 0 when the fault is about the file as a whole."""
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}" if self.line else self.path
        return f"{place}: {self.message}"


class SuiteError(GpubenchError):
    """A suite that cannot be used: every fault that was found, in the order of the file."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(sorted(set(faults)))
        super().__init__("\n".join(map(str, self.faults)))


class PlanError(GpubenchError):
    """A case that cannot be made or found: a formula without a value, an unknown name."""

    def __init__(self, problem: str | Fault) -> None:
        super().__init__(str(problem))
        self.fault = problem if isinstance(problem, Fault) else None
        """The problem with its place in a suite file, where it has one."""


class BackendError(GpubenchError):
    """A backend that is unknown, declared twice, or cannot be loaded."""


class KernelError(GpubenchError):
    """A function, factory, launcher or source named by a suite that cannot be loaded."""


class NoDeviceError(KernelError):
    """A module that needs a CUDA device to be imported, on a machine without one."""


class ResultsError(GpubenchError):
    """A results directory that cannot be read at all."""


class DamagedTable(ResultsError):
    """The table's file is damaged. The same work, done again, reads results without that file."""


MAX_PLACES = 6
"""Most other places that a joined fault lists."""


def join_repeats(faults: Iterable[Fault]) -> list[Fault]:
    """Return one fault for each message, with the places of the others: ten implementations of a
    missing module are one thing to fix."""
    alike: dict[str, list[Fault]] = {}
    for fault in faults:
        alike.setdefault(fault.message, []).append(fault)
    joined = []
    for first, *others in alike.values():
        lines = sorted({other.line for other in others if other.path == first.path} - {first.line})
        also = [f"line{'s' * (len(lines) > 1)} {_listed(map(str, lines))}"] if lines else []
        also += dict.fromkeys(f"{one.path}:{one.line}" for one in others if one.path != first.path)
        if len(also) > MAX_PLACES:
            also[MAX_PLACES:] = [f"{len(also) - MAX_PLACES} places more"]
        if also:
            first = replace(first, message=f"{first.message} (so in {_listed(also)})")
        joined.append(first)
    return joined


def _listed(items: Iterable[str]) -> str:
    *some, last = items
    return f"{', '.join(some)} and {last}" if some else last


def describe_error(error: BaseException) -> str:
    """Return what an error of another library says, with its kind: ``ValueError: bad``. Of a key
    that is missing Python says nothing but the key."""
    kind, words = type(error).__name__, str(error).strip()
    if isinstance(error, KeyError):
        words = f"there is no {error.args[0]!r}" if error.args else ""
    return f"{kind}: {words or 'no message'}"


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """For the end of a message: ``; did you mean 'norm_cuda'?``, or nothing where none is near."""
    near = get_close_matches(name, sorted(set(candidates)), n=1)
    return f"; did you mean {near[0]!r}?" if near and near[0] != name else ""
