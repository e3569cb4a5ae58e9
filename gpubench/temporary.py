"""Folders for as long as a process needs them, removed also where that was killed."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: folders of processes that were killed stay there
    fcntl = None  # type: ignore[assignment]

SHUTDOWN_SECONDS = 5.0
"""Seconds that processes which are about to end may take for it: those of a cluster take about
one."""

AGAIN_SECONDS = 0.01
"""Seconds between two tries to remove a folder into which processes still write."""

SHORT_FOLDER = Path("/tmp")
"""Where folders are made for paths that may not be long, as those of sockets."""


@contextmanager
def temporary_folder(system: str, *, max_characters: int = sys.maxsize) -> Iterator[Path]:
    """Make a folder for a system's files, for as long as the context: in ``SHORT_FOLDER`` where the
    system's own one for temporary files has a name of more than ``max_characters``. A process that
    is killed cannot remove its own: ``remove_abandoned`` does, for it finds it unlocked."""
    place = Path(tempfile.gettempdir())
    if len(str(place)) > max_characters:
        place = SHORT_FOLDER
    remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=f"gpubench-{system}-", dir=place))
    try:
        with (folder / "locked").open("w") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / "locked").rename(folder / "in-use")  # seen by others now that it is locked
            yield folder
    finally:
        _remove(folder)


def remove_abandoned() -> None:
    """Remove such folders of processes that are gone."""
    if fcntl is None:
        return
    for place in {Path(tempfile.gettempdir()), SHORT_FOLDER}:
        for path in place.glob("gpubench-*/in-use"):
            # Not where it is somebody else's, in use, or gone meanwhile.
            with suppress(OSError), path.open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path.parent)


def _remove(folder: Path) -> None:
    """Again where processes that are about to end still write into it."""
    deadline = time.monotonic() + SHUTDOWN_SECONDS
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
        if time.monotonic() > deadline:
            return
        time.sleep(AGAIN_SECONDS)
