"""What the device in software has found, as sentences a person can act on."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

Index = tuple[int, int, int]


@dataclass(frozen=True)
class Report:
    """One fault. What is not known is ``None`` or empty."""

    kind: str
    """``out of bounds``, ``misaligned``, ``freed``, ``uninitialised``, ``race``, ``barrier`` ..."""
    text: str
    """One sentence that says what was found."""
    kernel: str = ""
    """``module.function``, read from the mangled name."""
    block: Index | None = None
    thread: Index | None = None
    other_block: Index | None = None
    other_thread: Index | None = None
    """The second thread of a race, or one that is missing at a barrier."""
    space: str = ""
    """``global``, ``shared`` or ``local``."""
    array: str = ""
    offset: int | None = None
    """Of the access in the array, bytes."""
    size: int | None = None
    """Of the access, bytes."""
    length: int | None = None
    """Of the array, bytes."""
    file: str = ""
    line: int | None = None
    other_line: int | None = None
    count: int = 1
    """How often it was found at this place."""

    def __str__(self) -> str:
        where = [f"in {self.kernel}" if self.kernel else ""]
        if self.block is not None and self.thread is not None:
            where.append(f"block {self.block}, thread {self.thread}")
        if self.file and self.line:
            where.append(f"{self.file}:{self.line}")
        parts = ", ".join(filter(None, where))
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.kind}: {self.text}{times}" + (f" [{parts}]" if parts else "")


def parse_reports(text: str) -> list[Report]:
    """Return the driver's JSON lines."""
    return [_report(json.loads(line)) for line in text.splitlines() if line.strip(" \0")]


def _report(said: dict[str, Any]) -> Report:
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in said.items()
    }
    fields["kernel"] = readable_name(fields.get("kernel") or "")
    return Report(**fields)


def readable_name(mangled: str) -> str:
    """``module.function`` of a kernel's name as Numba mangles it; other names stay as they are.

    Numba follows the Itanium C++ ABI (5.1.2, <nested-name>): ``_ZN`` and then each part behind its
    length; tags (``B``) and types come after the last part. What is no letter of a C identifier
    stands as ``_`` and two hexadecimal digits.
    """
    if not mangled.startswith("_ZN"):
        return mangled
    rest, parts = mangled.removeprefix("_ZN"), []
    while match := re.match(r"\d+", rest):
        begin, length = match.end(), int(match[0])
        parts.append(rest[begin : begin + length])
        rest = rest[begin + length :]
    return ".".join(re.sub(r"_3clocals_3e_?", "<locals>", part) for part in parts) or mangled
