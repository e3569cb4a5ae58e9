"""``docs/command-line.md`` says of every option who needs it, and names no other."""

from __future__ import annotations

import re
from pathlib import Path

from test_selecting import commands

from gpubench.cli import main

PAGE = Path(__file__).parents[2] / "docs/command-line.md"
SHORT = {"-k": "--skip-existing", "-f": "--factor"}


def test_every_option_has_a_reader_in_the_documents() -> None:
    page = PAGE.read_text(encoding="utf-8")
    _, _, rest = page.partition("## Who needs which option\n")
    table, _, _ = rest.partition("\n## ")
    named = {*re.findall(r"`(--?[a-z][\w-]*)`", table)}

    offered = {
        text
        for _, command in commands(main)
        for each in command.params
        for text in each.opts
        if text.startswith("-") and text not in SHORT
    }

    assert offered - named == set()
    assert named - offered == set()
