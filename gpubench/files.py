"""Reads files that may be anything: a pipe, a device, larger than memory; appends whole lines, and
writes whole files."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TOUCHED_SECONDS = 2.0
"""A file that was touched since may be touched again without another moment: FAT counts in steps of
two seconds, others in milliseconds (git's documentation, racy-git)."""

MAX_BYTES = 2**26
"""A result file has some hundred bytes for each case, a record some thousand: a larger one is
something else. Reading 64 MiB takes some 300 MB of memory."""


class TooLarge(ValueError):
    """A file of more bytes than what is expected in it could have."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__(f"it has {size:,} bytes; at most {most:,} are read")


def read_regular(path: Path, most: int) -> bytes:
    """Content of a regular file of at most so many bytes; nothing else is opened.

    Raises ``OSError`` and ``TooLarge``.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        # Reading it may wait for ever, or never come to an end.
        raise OSError("it is no regular file (a folder, a pipe or a device)")
    if status.st_size > most:
        raise TooLarge(status.st_size, most)
    with path.open("rb") as file:
        # Memory for the most that is read, each time, would take longer than to read the file.
        content = file.read(status.st_size + 1)
        if len(content) > status.st_size:  # it grew, or is one of /proc, which have a size of 0
            content += file.read(most + 1 - len(content))
    if len(content) > most:
        raise TooLarge(len(content), most)
    return content


def append_lines(path: Path, lines: bytes) -> None:
    """Append lines in one system call, so that who is killed leaves no half of one; after half a
    line that something else left (a machine without power), on a new one.

    Raises ``OSError``; where the disk is full, what was written is taken back.
    """
    with path.open("a+b", buffering=0) as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            lines = lines if file.read(1) == b"\n" else b"\n" + lines
        written = file.write(lines) or 0
        if written != len(lines):
            file.truncate(file.tell() - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there yet, whole or not at all: also where the disk is full, or who
    writes is killed.

    Raises ``FileExistsError`` for anything in its place, a link that leads nowhere too, else
    ``OSError``.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    with _part_of(path) as part:
        with part.open("xb") as file:
            file.write(content)
        try:
            path.hardlink_to(part)  # which replaces nothing, unlike rename
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            part.rename(path)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, in place of what stood there, whose permissions it keeps.
    Raises ``OSError`` with the file's own name."""
    with _part_of(path) as part:
        part.write_bytes(content)
        with suppress(FileNotFoundError):  # a new file
            part.chmod(stat.S_IMODE(path.stat().st_mode))
        part.replace(path)


def replace_text(path: Path, text: str) -> None:
    """Replace the text of a file, and keep its line ends. Raises ``OSError`` with the file's name.

    ``text`` ends its lines by line feeds alone, as ``Path.read_text`` does.
    """
    content = text.encode()
    with suppress(FileNotFoundError):  # a new file
        first_line = path.read_bytes().partition(b"\n")[0]
        if first_line.endswith(b"\r"):
            content = content.replace(b"\n", b"\r\n")
    replace_file(path, content)


@contextmanager
def _part_of(path: Path) -> Iterator[Path]:
    """Name a new file beside another one; remove it at the end, and name the other in errors."""
    part = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        yield part
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
