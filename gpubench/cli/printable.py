"""Texts of others without what a terminal obeys."""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but for tabs and ends of lines, marks that reverse the direction of what
follows, and halves of characters, which no encoding has."""


def printable(text: str) -> str:
    """Return the text without what a terminal obeys: names and formulas come from files of
    others."""
    return _UNPRINTABLE.sub("?", text)
