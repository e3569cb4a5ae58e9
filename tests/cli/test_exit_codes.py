"""Exit codes are one table in the documents and one enum in code."""

from __future__ import annotations

import re
from pathlib import Path

from gpubench.errors import Exit

CHECKOUT = Path(__file__).resolve().parents[2]


def test_the_documents_have_every_exit_code() -> None:
    table = (CHECKOUT / "docs/command-line.md").read_text(encoding="utf-8")
    section = table.partition("## Exit codes")[2].partition("\n## ")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)] == [*Exit]


def test_no_command_ends_with_a_number_of_its_own() -> None:
    for path in (CHECKOUT / "gpubench/cli").glob("*.py"):
        assert not re.findall(r"(?:sys\.exit|Exit)\(\d", path.read_text(encoding="utf-8")), path
