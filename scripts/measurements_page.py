"""Writes the tables of docs/measurements.md again, from docs/measurements.yaml.

Words of the page are written by hand. Between ``<!-- figures: GROUP -->`` and its end stand the
newest figures of a group, and below them the runs that measured them.
"""

from __future__ import annotations

import re

from figures import CHECKOUT, Cell, Figure, Run, newest, read_runs

PAGE = CHECKOUT / "docs/measurements.md"
END = "<!-- end of figures -->"
BLOCK = re.compile(rf"<!-- figures: (\w+) -->\n.*?{END}", re.DOTALL)


def main() -> None:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), read_runs()), encoding="utf-8")


def page(text: str, runs: list[Run]) -> str:
    """Return the page with its tables as the runs say; raise SystemExit where a group is in one of
    the two alone."""
    listed, measured = {block[1] for block in BLOCK.finditer(text)}, {run.group for run in runs}
    for group in sorted(measured - listed):
        raise SystemExit(f"figures of {group}: the page has no mark `<!-- figures: {group} -->`")
    for group in sorted(listed - measured):
        raise SystemExit(f"figures of {group}: docs/measurements.yaml has no run of them")
    return BLOCK.sub(lambda block: _block(block[1], newest(runs, block[1])), text)


def _block(group: str, figures: list[Figure]) -> str:
    columns = list(dict.fromkeys(figure.column for figure in figures))
    rows: dict[str, dict[str, Figure]] = {}
    for figure in figures:
        rows.setdefault(figure.what, {})[figure.column] = figure
    runs = list({id(figure.run): figure.run for figure in figures}.values())
    numbers = {id(run): number for number, run in enumerate(runs, 1)}
    several = len(runs) > 1
    lines = [["what", *columns, *(["run"] if several else [])]]
    lines.append(["---"] * len(lines[0]))
    for what, row in rows.items():
        cells = [_text(row[column].cell) if column in row else "" for column in columns]
        of = sorted({numbers[id(figure.run)] for figure in row.values()})
        lines.append([what, *cells, *([", ".join(map(str, of))] if several else [])])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    below = "\n".join(
        f"{f'{number}.' if several else '-'} {_said(run)}" for number, run in enumerate(runs, 1)
    )
    return f"<!-- figures: {group} -->\n\n{table}\n\n{below}\n\n{END}"


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else f"{cell[0]} ({cell[1]}\N{EN DASH}{cell[2]})"


def _said(run: Run) -> str:
    return f"{run.date}, {run.machine}, `{run.commit}`: `{run.command}`, {run.versions}"


if __name__ == "__main__":
    main()
