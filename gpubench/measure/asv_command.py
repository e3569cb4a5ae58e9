"""The asv command that started this process, from asv's own command line.

asv tells the processes that it starts little: neither a ``--dry-run`` nor a ``--config``, to those
that it forks none of its ``--attribute``, and to those of an existing Python nothing at all. Its
command line has the rest, and ``/proc`` shows it (Linux; elsewhere the command is not known).
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROC = Path("/proc")

ANCESTORS = 4
"""Processes that are looked at: asv's own, before it the one that forks, perhaps a wrapper."""

FRONT = 6
"""Words of a command line among which ``asv`` stands: ``python -m asv``, a tool that runs it."""

PARENT = 1
"""Place of the parent among what follows a process's name in ``/proc/PID/stat`` (man 5 proc)."""

TELLING = re.compile(r"--(a|b|c|d|q|se|sk)|-\w*[abnq]")
"""Begins the options that decide something here, as asv lets them be shortened, and some others."""

QUICK: Mapping[str, Any] = {"number": 1, "repeat": 1, "warmup_time": 0.0, "rounds": 1}
"""What asv's ``--quick`` stands for (``asv.runner.run_benchmarks``)."""


@dataclass(frozen=True, slots=True)
class AsvCommand:
    """A command of asv, as far as it decides what is kept and how samples are taken."""

    name: str
    """``run``, ``continuous`` ..."""
    folder: Path
    """Where asv works: that of its configuration."""
    config: str | None = None
    """File name of its configuration where that is not the usual one."""
    commit: str | None = None
    """Commit, tag or branch under which results are kept, whatever is measured."""
    discards: bool = False
    """Whether asv was asked to keep no results."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Attributes of benchmarks that were set, as numbers."""
    benchmarks: tuple[str, ...] = ()
    """Regular expressions of the benchmarks that were asked for; none are all."""


def asv_command() -> AsvCommand | None:
    """The nearest command of asv among the processes above this one; ``None`` where none shows."""
    for process in _ancestors():
        with suppress(OSError):
            words = (PROC / str(process) / "cmdline").read_bytes().decode(errors="replace")
            arguments = _of_asv(words.split("\0")[:-1])
            if arguments is not None:
                return parsed(arguments, (PROC / str(process) / "cwd").readlink())
    return None


def started_by_asv(arguments: Sequence[str] | None = None) -> bool:
    """Whether this process is one that asv starts to measure, by its own arguments."""
    words = sys.argv if arguments is None else arguments
    return list(words[1:2]) in (["run"], ["run_server"])


def asv_attributes(arguments: Sequence[str] | None = None) -> Mapping[str, Any]:
    """Attributes that the command line of asv set, for this process or for all of them."""
    words = sys.argv if arguments is None else arguments
    match words:
        case [_, "run", _, _, text, *_]:
            given: Mapping[str, Any] = json.loads(text)
            return given
        case [_, "run_server", *_]:
            command = asv_command()
            return {} if command is None else command.attributes
    return {}


def asked_benchmarks() -> tuple[str, ...]:
    """Regular expressions of the benchmarks that asv's command line asks for; none are all."""
    command = asv_command()
    return () if command is None else command.benchmarks


def parsed(arguments: Sequence[str], folder: Path) -> AsvCommand | None:
    """What asv makes of its arguments in that folder; ``None`` of no command."""
    if not any(map(TELLING.match, arguments)):
        name = next((word for word in arguments if not word.startswith("-")), None)
        return None if name is None else AsvCommand(name, folder)
    from argparse import ArgumentParser  # takes milliseconds, in a process for every case

    parser = ArgumentParser(add_help=False)
    parser.add_argument("command")
    parser.add_argument("--config")
    parser.add_argument("--set-commit-hash")
    parser.add_argument("--dry-run", "-n", action="store_true")
    parser.add_argument("--skip-save", action="store_true")
    parser.add_argument("--quick", "-q", action="store_true")
    parser.add_argument("--attribute", "-a", action="append", default=[])
    parser.add_argument("--bench", "-b", action="append", default=[])
    for value in ("-E --environment", "-m --machine", "--python"):
        parser.add_argument(*value.split(), dest="other", action="append")
    for flag in ("-e --show-stderr", "-k --skip-existing", "-p --profile", "-v --verbose"):
        parser.add_argument(*flag.split(), dest="other", action="store_true")
    try:
        told, _ = parser.parse_known_args(list(arguments))
    except SystemExit:
        return None
    return AsvCommand(
        name=told.command,
        folder=folder,
        config=Path(told.config).name if told.config else None,
        commit=told.set_commit_hash,
        discards=told.dry_run or told.skip_save,
        attributes={**_attributes(told.attribute), **(QUICK if told.quick else {})},
        benchmarks=tuple(told.bench),
    )


def _ancestors() -> Iterator[int]:
    process = os.getppid()
    for _ in range(ANCESTORS):
        if process <= 1:
            return
        yield process
        try:
            status = (PROC / str(process) / "stat").read_text(errors="replace")
        except OSError:
            return
        process = int(status.rpartition(")")[2].split()[PARENT])


def _of_asv(words: Sequence[str]) -> Sequence[str] | None:
    """The arguments where a command line is asv's; ``None`` where it is another program's."""
    for place, word in enumerate(words[:FRONT]):
        if Path(word).name == "asv":
            return words[place + 1 :]
    return None


def _attributes(written: Sequence[str]) -> dict[str, Any]:
    """``NAME=VALUE`` as asv reads it (``asv.commands.common_args``)."""
    pairs = (text.partition("=") for text in written)
    return {_RENAMED.get(name, name): _value(text) for name, _, text in pairs}


_RENAMED = {"processes": "rounds"}


def _value(text: str) -> Any:
    """A number, or the several of ``repeat``; other words stay."""
    with suppress(ValueError):
        numbers = json.loads(f"[{text.strip().strip('()')}]")
        return numbers[0] if len(numbers) == 1 else numbers
    return text
