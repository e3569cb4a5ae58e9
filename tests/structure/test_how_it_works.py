"""``docs/how-it-works.md`` names files that exist, and each step of its table once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-it-works.md").read_text(encoding="utf-8")
PATH = re.compile(r"`([\w./]+\.(?:py|js|html|yaml|c)|(?:gpubench|softcuda|tests|scripts)/[\w/]+)`")


def steps() -> Iterator[tuple[str, str]]:
    """Yield the name of each step from a line of YAML to a number, and its row."""
    table = PAGE.partition("| step | file |")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        yield line.split("|")[1].strip(), line


def missing_files(text: str) -> Iterator[str]:
    """Yield paths that do not exist; a name alone lies in the folder of the path before it."""
    folder = ROOT
    for name in PATH.findall(text):
        path = ROOT / name if "/" in name and (ROOT / name).exists() else folder / name
        path = ROOT / "gpubench" / name if not path.exists() and "/" in name else path
        if not path.exists():
            yield name
        elif "/" in name:
            folder = path if path.is_dir() else path.parent


def test_every_file_of_a_step_exists() -> None:
    assert [(name, file) for name, row in steps() for file in missing_files(row)] == []


def test_a_step_stands_once() -> None:
    names = [name for name, _ in steps()]
    assert len(names) > 40
    assert [name for name in {*names} if names.count(name) > 1] == []


def test_every_path_of_the_text_exists() -> None:
    text, _, rest = PAGE.partition("| step | file |")
    paths = [path for path in PATH.findall(text + rest.partition("\n\n")[2]) if "/" in path]
    assert len(paths) > 10
    known = (ROOT, ROOT / "gpubench", ROOT / "softcuda/softcuda")
    assert [path for path in paths if not any((folder / path).exists() for folder in known)] == []


def test_a_file_that_does_not_exist_is_seen() -> None:
    assert [*missing_files("`gpubench/plan/axes.py`, `group.py`, `gone.py`, `plan/gone.py`")] == [
        "gone.py",
        "plan/gone.py",
    ]
