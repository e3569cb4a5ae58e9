"""Folders for as long as a process needs them, removed also where that was killed."""

from __future__ import annotations

import shutil
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
"""Seconds that processes which are about to end may take for it: Ray's take about one."""

AGAIN_SECONDS = 0.01
"""Seconds between two tries to remove a folder into which processes still write."""

FOR_SOCKETS = 17
"""Most characters of the name of a temporary folder in which Ray's sockets fit: the path of one has
103 at most (107 on Linux), and Ray adds up to 86."""

SHORT_FOLDER = Path("/tmp")
"""Where folders for sockets are made where the name of the other one is longer."""


@contextmanager
def temporary_folder(system: str, *, for_sockets: bool = False) -> Iterator[Path]:
    """Make a folder for a system's files, for as long as the context. A process that is killed
    cannot remove its own: ``remove_abandoned`` does, for it finds it unlocked."""
    place = Path(tempfile.gettempdir())
    if for_sockets and len(str(place)) > FOR_SOCKETS:
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
