"""What commands print with: consoles, progress on standard error, errors as text and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from gpubench.errors import Fault, GpubenchError, SuiteError

OUT = Console(soft_wrap=True, highlight=False)
ERR = Console(stderr=True, soft_wrap=True, highlight=False)

INTERRUPTED = 130
"""Exit code after Ctrl-C, as of shells: 128 and the number of the signal."""

P = ParamSpec("P")


def reporting_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Errors of ours become text on standard error and exit code 2, Ctrl-C its own exit code; never
    a traceback."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except SuiteError as error:
            print_faults(error.faults)
            count = len(error.faults)
            ERR.print(f"{count} fault{'' if count == 1 else 's'}", markup=False)
            sys.exit(2)
        except GpubenchError as error:
            ERR.print(f"gpubench: {error}", markup=False)
            sys.exit(2)
        except KeyboardInterrupt:
            ERR.print("interrupted")
            sys.exit(INTERRUPTED)

    return wrapped


@contextmanager
def interruptible() -> Iterator[list[str]]:
    """Ctrl-C ends what is inside; the list is then not empty."""
    interrupted: list[str] = []
    try:
        yield interrupted
    except KeyboardInterrupt:
        interrupted.append("interrupted")
        ERR.print("interrupted: this is what there is")


def print_faults(faults: Any, prefix: str = "") -> None:
    for fault in faults:
        text = str(fault)
        if prefix and isinstance(fault, Fault):
            text = str(Fault(fault.path, fault.line, fault.column, prefix + fault.message))
        ERR.print(text, markup=False)


@contextmanager
def progress(what: str) -> Iterator[None]:
    """A spinner on standard error while something may take longer than a second."""
    if not ERR.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=ERR, transient=True) as shown:
        shown.add_task(what, total=None)
        yield


@contextmanager
def bar(total: int, what: str = "measuring") -> Iterator[Callable[[str], None]]:
    """A progress bar on standard error; call what it gives after each step, with what was done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=ERR, transient=True, disable=not ERR.is_terminal
    ) as shown:
        task = shown.add_task(what, total=total)
        yield lambda done: shown.update(task, advance=1, description=done)
