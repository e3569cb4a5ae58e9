"""The figures of docs/measurements.md: rows that scripts measure and docs/measurements.yaml keeps.

A script adds its option ``--record`` with `add_option`, runs inside `recording`, and gives each
figure to `record`. Where the option is given, its rows are appended to the file as one run, with
what they need to be defended: machine, date, versions, commit and command. ``measurements_page.py``
makes the page of it.
"""

from __future__ import annotations

import subprocess
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import yaml
from conditions import command, machine, print_conditions, versions
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

CHECKOUT = Path(__file__).parent.parent
DATA = CHECKOUT / "docs/measurements.yaml"
GENERATED = ("docs/measurements.yaml", "docs/measurements.md")
"""What recording itself changes: a run that follows one is still of a commit's code."""

Cell = str | Annotated[list[str], Field(min_length=3, max_length=3)]
"""A figure, or ``[figure, low, high]`` where it has an interval, as a reader is to see them."""


class Run(BaseModel):
    """What one command measured of one group, which is a table of the page."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    group: str
    date: str = Field(pattern=r"^20\d\d-\d\d-\d\d$")
    commit: str = Field(pattern=r"^[0-9a-f]{7,}$")
    machine: str
    versions: str
    command: str
    rows: list[dict[str, Cell]] = Field(min_length=1)
    """Each with ``what`` was measured, and its figures by the titles of their columns."""


@dataclass(frozen=True)
class Figure:
    """One figure, the newest of its name, with the run that measured it."""

    what: str
    column: str
    cell: Cell
    run: Run


def add_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--record", action="store_true", help="append the figures to docs/measurements.yaml"
    )


_rows: dict[str, list[dict[str, Cell]]] = {}
"""By group, what this process has measured since `recording` began."""


def record(group: str, what: str, figures: Mapping[str, Cell]) -> None:
    """Keep one row of ``group``, with its figures by column, until `recording` writes it."""
    _rows.setdefault(group, []).append({"what": what, **figures})


@contextmanager
def recording(given: Namespace, *distributions: str, data: Path = DATA) -> Iterator[None]:
    """Print the conditions, and append to ``data`` what the block records if ``--record`` is given.

    Raise SystemExit before anything is measured where code differs from the commit. A block that
    ends in an error writes nothing.
    """
    _rows.clear()
    commit = _commit() if given.record else ""
    print_conditions(*distributions)
    yield
    if not given.record:
        return
    facts = {"date": date.today().isoformat(), "commit": commit, "machine": machine()}
    facts |= {"versions": versions(*distributions), "command": command()}
    append([Run(group=group, rows=rows, **facts) for group, rows in _rows.items()], data)
    print(f"\nrecorded in {data.name}; scripts/measurements_page.py writes the page of it")


def append(runs: list[Run], data: Path = DATA) -> None:
    with data.open("a", encoding="utf-8") as file:
        for run in runs:
            lines = run.model_dump() | {"rows": [_Line(row) for row in run.rows]}
            file.write("\n")
            yaml.dump([lines], file, _Dumper, sort_keys=False, allow_unicode=True, width=10_000)


def read_runs(data: Path = DATA) -> list[Run]:
    """Return all runs in the order of the file; raise SystemExit with the place of a fault."""
    # The base loader reads every scalar as the text that it is: 1.000 stays 1.000.
    content = yaml.load(data.read_text(encoding="utf-8"), yaml.BaseLoader)
    try:
        return TypeAdapter(list[Run]).validate_python(content)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        raise SystemExit(f"{data.name}: run {place}: {fault['msg']}") from None


def newest(runs: list[Run], group: str) -> list[Figure]:
    """Return the newest of each figure of a group, in the order in which the file has them."""
    found: dict[tuple[str, str], Figure] = {}
    for run in runs:
        if run.group == group:
            for row in run.rows:
                what = str(row["what"])
                for column, cell in row.items():
                    before = found.get((what, column))
                    if column != "what" and (before is None or before.run.date <= run.date):
                        found[what, column] = Figure(what, column, cell, run)
    return list(found.values())


def _commit() -> str:
    changed = [path for path in _git("diff", "--name-only", "HEAD") if path not in GENERATED]
    if changed:
        raise SystemExit(
            f"{changed[0]} differs from the commit: figures are of a commit's code; "
            "commit first, or measure without --record"
        )
    return _git("rev-parse", "--short", "HEAD")[0]


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(
        ["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


class _Line(dict[str, Any]):
    """A row, which is one line of the file."""


class _Dumper(yaml.SafeDumper):
    """Writes text plainly also where it looks like a number: all scalars are read as text."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


_Dumper.add_representer(
    _Line,
    lambda dumper, row: dumper.represent_mapping("tag:yaml.org,2002:map", row, flow_style=True),
)
