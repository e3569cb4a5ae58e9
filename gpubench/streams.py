"""Standard streams as a command needs them: all three are there, and no write is cut short."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import cast


def prepare_streams() -> None:
    """Open the standard streams that a process was started without, and have a short write be
    finished or fail.

    What is printed to a closed standard output fails (``EBADF``), as the output would be lost
    without a word. Its number is taken all the same: else the next file that is opened would get
    it, and with it what processes print.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _open_closed(number, name)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(getattr(stream, "buffer", None), io.RawIOBase):
            setattr(sys, name, _buffered(stream))
    # A character that a terminal cannot show becomes its number, and ends no command.
    with suppress(AttributeError, ValueError):
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _open_closed(number: int, name: str) -> None:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        os.set_inheritable(number, True)
    if number:
        # Beneath is what cannot be written; Python would ask for it as it makes a buffer.
        raw = io.FileIO(number, "w", closefd=False)
        setattr(sys, name, io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", line_buffering=True))
    else:
        sys.stdin = io.TextIOWrapper(io.FileIO(number, closefd=False), "utf-8")


def _buffered(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """Return an unbuffered stream (``PYTHONUNBUFFERED``) with a buffer that is emptied after each
    line. Without one Python drops what the system did not take of a write (io.RawIOBase.write)."""
    encoding, errors = stream.encoding, stream.errors or "strict"
    writer = io.BufferedWriter(cast(io.RawIOBase, stream.detach()))
    return io.TextIOWrapper(writer, encoding, errors, line_buffering=True)
