"""What commands print with: consoles, progress on standard error, errors as text and exit codes."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from gpubench.errors import Fault, GpubenchError, SuiteError

OUT = Console(soft_wrap=True, highlight=False)
ERR = Console(stderr=True, soft_wrap=True, highlight=False)

INTERRUPTED = 130
"""Exit code after Ctrl-C, as of shells: 128 and the number of the signal."""


class Commands(click.Group):
    """Commands whose errors, where they are ours, become text on standard error and exit code 2,
    and Ctrl-C its own exit code; never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
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


@contextmanager
def interruptible() -> Iterator[list[str]]:
    """Ctrl-C ends what is inside, and so does SIGTERM, with which others end a command; the list is
    then not empty."""
    interrupted: list[str] = []
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield interrupted
    except KeyboardInterrupt:
        interrupted.append("interrupted")
        ERR.print("interrupted: this is what there is")
    finally:
        signal.signal(signal.SIGTERM, before)


def print_faults(faults: Iterable[Fault], prefix: str = "") -> None:
    for fault in faults:
        ERR.print(str(replace(fault, message=prefix + fault.message)), markup=False)


def print_warned(warned: Mapping[str, int]) -> None:
    """Print each of Python's warnings once on standard error, with how many cases raised it."""
    for words, count in warned.items():
        ERR.print(f"{words} ({count} case{'' if count == 1 else 's'})", markup=False)


def print_json(content: object) -> None:
    """Print it on standard output; what JSON has no kind for (a path) as text."""
    click.echo(json.dumps(content, indent=2, default=str))


@contextmanager
def bar(total: int, what: str = "measuring") -> Iterator[Callable[[str | None, int], None]]:
    """A progress bar on standard error; call what it gives with what is done, absent where that is
    as before, and how many steps came to their end."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=ERR, transient=True, disable=not ERR.is_terminal
    ) as shown:
        task = shown.add_task(what, total=total)
        yield lambda what, steps: shown.update(task, advance=steps, description=what)
