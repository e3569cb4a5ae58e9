"""Which files of a report need not be made again: those whose sources are what they were.

A history of thousands of commits makes hundreds of pages and thousands of data files, of which a
new commit changes few. What each was made from is kept as a digest beside the results.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from gpubench.kept import code_stamp, read_kept, write_kept

_Content = dict[str, tuple[bytes, int, int]]
"""By address: digest of the sources, and the file's size and time of change in ns."""


class Written:
    """Files of a report that an earlier one wrote."""

    def __init__(self, output_dir: Path, kept: Path | None, sources: str) -> None:
        """``kept`` is ``Results.kept``; ``sources`` is what all files are made from."""
        name = hashlib.sha256(str(output_dir.resolve()).encode()).hexdigest()[:16]
        self._folder = output_dir
        self._path = kept and kept.with_name(f"{kept.stem}-{name}.pages")
        self._sources = f"{code_stamp()}{sources}".encode()
        self._known: _Content = (read_kept(self._path, _Content) or {}) if self._path else {}
        self._used: _Content = {}

    def holds(self, address: str, sources: bytes) -> bool:
        """Whether the file is there, as it was written from these sources."""
        known = self._known.get(address)
        if known is None or known != (self._digest(sources), *self._stat(address)):
            return False
        self._used[address] = known
        return True

    def note(self, address: str, sources: bytes) -> None:
        """The file was written from these sources."""
        self._used[address] = self._digest(sources), *self._stat(address)

    def save(self) -> None:
        """Keep what was held and noted for the next report."""
        if self._path and self._used != self._known:
            write_kept(self._path, self._used)

    def _digest(self, sources: bytes) -> bytes:
        return hashlib.blake2b(self._sources + sources, digest_size=16).digest()

    def _stat(self, address: str) -> tuple[int, int]:
        try:
            found = (self._folder / address).stat()
        except OSError:
            return -1, -1
        return found.st_size, found.st_mtime_ns
