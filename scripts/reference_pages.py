"""Writes docs/commands.md, from the commands themselves, and docs/columns.md, from the table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from gpubench.cli import main as commands
from gpubench.results import open_table

DOCS = Path(__file__).parent.parent / "docs"
WIDTH = 80
"""Columns of the terminal whose help is shown."""

COMMANDS_HEAD = """\
# Commands

What `--help` says of each command, written by `make docs`. [Environment variables](environment.md)
set what several of them read.
"""
COLUMNS_HEAD = """\
# Columns of a query

The views and columns of `gpubench query` and `gpubench.load_results()`, written by `make docs`.
`gpubench query --json` prints a list of objects with the names that a query selects, `--csv` the
same as CSV. `null` means that a value is not known, or has no meaning for that case.

`gpubench time --json` prints `facts` of the machine and a list `cases`. What a case has in common
with the view `results` has the column's name there. `seconds` and `speedup` are objects with the
median or ratio and its bounds. Times are in seconds, sizes in bytes.
"""


def main() -> None:
    (DOCS / "commands.md").write_text(commands_markdown(), encoding="utf-8")
    (DOCS / "columns.md").write_text(columns_markdown(), encoding="utf-8")


def commands_markdown() -> str:
    """Return the page of commands: a heading and the help of each, those of groups too."""
    return "\n".join([COMMANDS_HEAD, *_sections(commands, "gpubench", None)])


def _sections(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    settings = {"max_content_width": WIDTH, "terminal_width": WIDTH, **command.context_settings}
    context = click.Context(command, info_name=name, parent=parent, **settings)
    path = context.command_path
    help_text = re.sub(r"[ \t]+$", "", command.get_help(context), flags=re.MULTILINE)
    yield f"## {path}\n\n```text\n{help_text}\n```\n"
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            if (inner := command.get_command(context, each)) is not None and not inner.hidden:
                yield from _sections(inner, each, context)


def columns_markdown() -> str:
    """Return the page of columns: a table for each view."""
    _, rows = open_table(Path("no results")).described()
    lines = [COLUMNS_HEAD]
    view = None
    for name, column, kind, meaning in rows:
        if name != view:
            lines += [f"{'' if view is None else chr(10)}## {name}\n"]
            lines += ["| column | type | meaning |", "| --- | --- | --- |"]
            view = name
        cells = (f"`{column}`", f"`{kind}`", meaning)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
