"""What commands print with: consoles, progress on standard error, errors as text and exit codes."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from gpubench.cli.printable import printable
from gpubench.distribution import describe_damage, describe_loss
from gpubench.entry_points import COMMANDS, declared, load_one
from gpubench.errors import (
    DamagedTable,
    Exit,
    Fault,
    GpubenchError,
    SuiteError,
    did_you_mean,
    join_repeats,
)
from gpubench.streams import prepare_streams
from gpubench.waiting import heard_by, is_heard
from gpubench.waiting import say as say_there

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class LateConsole:
    """A console that is made when it prints first: ``--help`` answers without rich."""

    def __init__(self, *, stderr: bool = False) -> None:
        self.stderr = stderr
        self.printed = 0
        """How many times something was printed."""

    @cached_property
    def rich(self) -> Console:
        """The console of rich, which prints no escape sequences but those of its own styles."""
        from gpubench.cli.safe_console import SafeConsole

        # Of `file.yaml:100:3` rich would make an emoji, and obey a `[bold]` in a name.
        return SafeConsole(
            stderr=self.stderr, soft_wrap=True, highlight=False, emoji=False, markup=False
        )

    @property
    def is_terminal(self) -> bool:
        """Whether a person may be watching."""
        return self.rich.is_terminal

    def print(self, *parts: RenderableType, sep: str = " ", style: str | None = None) -> None:
        """Print texts and tables, and the end of a line."""
        self.printed += 1
        self.rich.print(*parts, sep=sep, style=style)


OUT = LateConsole()
ERR = LateConsole(stderr=True)

T = TypeVar("T")


def again_with_a_new_table(work: Callable[[], T]) -> T:
    """Do work, and once more where the table's file is damaged: then all results are read anew."""
    try:
        return work()
    except DamagedTable as damage:
        ERR.print(f"{damage}; all results are read anew")
    return work()


class DeclaredCommands(MutableMapping[str, click.Command]):
    """Commands by name, of all entry points; one is imported when it is asked for first."""

    def __init__(self) -> None:
        self._imported: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._imported:
            if name not in declared(COMMANDS).names:
                raise KeyError(name)
            self._imported[name] = load_one(COMMANDS, "command", name)
        return self._imported[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._imported[name] = command

    def __delitem__(self, name: str) -> None:
        del self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*declared(COMMANDS).names, *self._imported}))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._imported or name in declared(COMMANDS).names


class Commands(click.Group):
    """Commands whose errors, where they are ours, become text on standard error and exit code 2,
    and Ctrl-C its own exit code; never a traceback.

    So do errors of the system: a disk that is full, a name that is too long, memory that is not
    there."""

    def __init__(self, *args: Any, first: Sequence[str] = (), **more: Any) -> None:
        """Show in ``--help`` the commands of the first day in this order, then all others."""
        super().__init__(*args, **more)
        self.commands = DeclaredCommands()
        self._first = first

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        first = [name for name in self._first if name in self.commands]
        width = max(map(len, self.commands), default=0)
        limit = formatter.width - 6 - width
        for title, names in (
            ("The first day", first),
            ("More", sorted({*self.commands} - {*first})),
        ):
            lines = [(name.ljust(width), self._short_help(ctx, name, limit)) for name in names]
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)

    def _short_help(self, ctx: click.Context, name: str, limit: int) -> str:
        """Return the first sentence of a command, or why it cannot be had."""
        try:
            command = self.get_command(ctx, name)
        except GpubenchError as error:
            return str(error)
        return command.get_short_help_str(limit) if command else ""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        prepare_streams()
        try:
            try:
                return again_with_a_new_table(lambda: self._run(*args, **kwargs))
            finally:
                sys.stdout.flush()  # here a full disk can still be told
        except OSError as error:
            with suppress(OSError):  # what is left of the output would be tried again at the end
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno == errno.EPIPE:  # who read the output has seen enough of it
                sys.exit(Exit.FOUND)
            if error.errno == errno.EBADF and error.filename is None:
                ERR.print("gpubench: standard output is closed; send it to a file or to /dev/null")
                sys.exit(Exit.REFUSED)
            place = f": {error.filename}" if error.filename else ""
            ERR.print(f"gpubench: {error.strerror or error}{place}")
            sys.exit(Exit.REFUSED)
        except MemoryError:
            ERR.print("gpubench: there is not enough memory; give it fewer or smaller files")
            sys.exit(Exit.REFUSED)
        except DamagedTable as error:  # again
            ERR.print(f"gpubench: {error}; start it once more")
            sys.exit(Exit.REFUSED)

    def _refuse(self, error: click.UsageError) -> NoReturn:
        """Print what is wrong with a command line on one line, with where to read more."""
        if type(error).__name__ == "NoArgsIsHelpError":  # of click 8.2 and newer
            raise error
        command = error.ctx.command_path if error.ctx else "gpubench"
        words = error.format_message().rstrip(".")
        if isinstance(error, click.NoSuchOption):  # its words differ between versions of click
            hint = did_you_mean(error.option_name, error.possibilities or ())
            words = f"there is no option {error.option_name!r}{hint}"
        see = " See" if words.endswith("?") else "; see"
        ERR.print(f"gpubench: {words}{see} `{command} --help`")
        sys.exit(Exit.REFUSED)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return super().main(*args, **kwargs)

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        try:
            return super().make_context(*args, **more)
        except click.UsageError as error:
            self._refuse(error)
        except KeyboardInterrupt:  # while a command is imported, for its help
            ERR.print("interrupted")
            sys.exit(Exit.INTERRUPTED)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not self.commands:
            raise GpubenchError(describe_loss())
        if args[0] not in self.commands and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}{did_you_mean(args[0], self.commands)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            self._refuse(error)
        except SuiteError as error:
            count = len(join_repeats(error.faults))
            print_faults(error.faults)
            ERR.print(f"{count} fault{'' if count == 1 else 's'}")
            sys.exit(Exit.REFUSED)
        except DamagedTable:
            raise
        except GpubenchError as error:
            ERR.print(f"gpubench: {error}")
            sys.exit(Exit.REFUSED)
        except KeyboardInterrupt:
            ERR.print("interrupted")
            sys.exit(Exit.INTERRUPTED)
        except (EOFError, TypeError, ValueError) as error:
            if (damage := describe_damage(error)) is None:
                raise
            ERR.print(f"gpubench: {damage}")
            sys.exit(Exit.REFUSED)


@contextmanager
def interruptible() -> Iterator[list[str]]:
    """Let Ctrl-C end the block, and go on behind it with a list that is then not empty.

    So do SIGTERM, with which other programs end a command, and SIGHUP, with which a closing
    terminal does; a signal that is ignored, as under ``nohup``, stays ignored.
    """
    interrupted: list[str] = []
    numbers = (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP"))
    before = {
        number: signal.signal(number, signal.default_int_handler)
        for number in numbers
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield interrupted
    except KeyboardInterrupt:
        interrupted.append("interrupted")
        ERR.print("interrupted: this is what there is")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_held_back: list[list[str]] = []
"""Warnings that wait for the end of ``errors_first``, the innermost block last."""


@contextmanager
def errors_first() -> Iterator[None]:
    """Print an error of ours before the warnings of the same block, which are otherwise long past
    when it comes."""
    _held_back.append([])
    try:
        yield
    except (SuiteError, DamagedTable):
        raise
    except GpubenchError as error:
        ERR.print(f"gpubench: {error}")
        raise click.exceptions.Exit(Exit.REFUSED) from error
    finally:
        for line in _held_back.pop():
            ERR.print(line)


def print_faults(faults: Iterable[Fault], prefix: str = "") -> None:
    for fault in join_repeats(faults):
        line = str(replace(fault, message=prefix + fault.message))
        if _held_back and prefix:
            _held_back[-1].append(line)
        else:
            ERR.print(line)


def echo(text: str, *, nl: bool = True) -> None:
    """Print lines for other programs on standard output, as they are but for what is not
    printable."""
    click.echo(printable(text), nl=nl)


def print_json(content: object, indent: int | None = 2) -> None:
    """Print it on standard output; what JSON has no kind for (a path, NaN) as text."""
    try:
        text = json.dumps(content, indent=indent, default=str, allow_nan=False)
    except (TypeError, ValueError):  # a key that is no text; a number that is not finite
        text = json.dumps(_in_json(content), indent=indent, default=str, allow_nan=False)
    click.echo(text)


def print_json_fields(fields: Iterable[tuple[str, bytes]]) -> None:
    """Print an object on standard output, field by field, each on a line of its own: its name, and
    its value as JSON. It may be larger than what fits into memory."""
    separator = "{"
    for name, value in fields:
        text = f"{json.dumps(name)}: {value.decode()}"
        click.echo(f"{separator}\n{_NOT_ASCII.sub(_escaped, text)}", nl=False)
        separator = ","
    click.echo("{}" if separator == "{" else "\n}")


_NOT_ASCII = re.compile("[^ -~]")


def _escaped(match: re.Match[str]) -> str:
    """Return a character as JSON escapes it: a terminal may obey some beyond ASCII."""
    return json.dumps(match[0])[1:-1]


def _in_json(value: Any) -> Any:
    """Replace numbers that JSON has not by ``NaN``, ``Infinity`` and ``-Infinity``, the texts by
    which Protocol Buffers write them into JSON, and keys that are no texts by their texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): _in_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_in_json(item) for item in value]
    return value


def print_answer(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print the answer to a query as a table, its first line bold on a terminal."""
    from gpubench.tables.table import answer_lines

    header, *lines = answer_lines(columns, rows)
    OUT.print(header, style="bold")
    if lines:
        echo("\n".join(lines))


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()
) -> None:
    """Print a table, its header bold on a terminal. Cells are folded where it is wider than the
    terminal; what another program reads is not folded."""
    from gpubench.tables.table import UNLIMITED, lines_that_fit, table

    width = OUT.rich.width if OUT.is_terminal else UNLIMITED
    lines = lines_that_fit(columns, rows, right, width)
    if lines is None:
        OUT.print(table(columns, rows, right, folded=True))
        return
    OUT.print(lines[0], style="bold")
    echo("\n".join(lines[1:]))


NARRATION_SECONDS = 30.0
"""Between two lines of progress in a pipe: a log of CI stays readable, and its watcher sees that
work goes on."""


@contextmanager
def narrated(words: str) -> Iterator[Callable[..., None]]:
    """Say on standard error what is done inside the block, in one line that changes.

    Yields ``say(words, is_event=False)``; what the block says by ``gpubench.waiting`` shows too.
    What is no terminal gets plain lines: events, and what is said ``NARRATION_SECONDS`` after the
    last. Inside another such block the words go to the line of that one.
    """
    if is_heard():
        say_there(words)
        yield lambda words, **_: say_there(words)
        return
    with ERR.rich.status(words) if sys.stderr.isatty() else nullcontext() as status:
        last = monotonic()

        def say(words: str, *, is_event: bool = False) -> None:
            nonlocal last
            if status is not None:
                status.update(words)
            elif is_event or monotonic() - last >= NARRATION_SECONDS:
                last = monotonic()
                ERR.print(words)

        with heard_by(say):
            yield say


@dataclass
class Watched:
    """Work that takes long, while a person waits for it."""

    advance: Callable[[str | None, int], None]
    """Call it with what is done, absent where that is as before, and how many steps came to their
    end."""
    warned: Counter[str] = field(default_factory=Counter)
    """Python's warnings, with how many cases raised each: printed once at the end."""
    interrupted: bool = False


@contextmanager
def watched(total: int, what: str = "measuring") -> Iterator[Watched]:
    """Show a progress bar of so many steps on standard error around work that Ctrl-C and SIGTERM
    end, with what there is by then."""
    from rich import progress  # which most commands start without

    shown = progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
        console=ERR.rich,
        transient=True,
        disable=not ERR.is_terminal,
    )
    task = shown.add_task(what, total=total)
    work = Watched(lambda what, steps: shown.update(task, advance=steps, description=what))
    listen = heard_by(lambda words: shown.update(task, description=words))
    with interruptible() as interrupted, shown, listen:
        yield work
    work.interrupted = bool(interrupted)
    for words, count in work.warned.items():
        ERR.print(f"{words} ({count} case{'' if count == 1 else 's'})")
