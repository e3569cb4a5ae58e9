"""Which way a value went, in words."""

from __future__ import annotations

import re

from gpubench.analysis.changes import Change
from gpubench.names import SECONDS

_BYTES_UNIT = re.compile(r"([kmgtp]i?)?b(ytes?)?", re.IGNORECASE)


def direction_word(change: Change, unit: str) -> str:
    """Return ``slower`` or ``faster`` of a time, ``larger`` or ``smaller`` of bytes, ``higher`` or
    ``lower`` of anything else."""
    if unit == SECONDS:
        return "slower" if change.slower else "faster"
    words = ("smaller", "larger") if _BYTES_UNIT.fullmatch(unit) else ("lower", "higher")
    return words[change.new > change.old]
