"""Symbolic links of a project that lead out of it: who reads a repository of others follows none.

Without that, a repository could have any file of its reader's shown in a report, or written over.
"""

from __future__ import annotations

import os
from pathlib import Path

from gpubench.errors import GpubenchError

LEADS_OUT = "it is a symbolic link that leads out of this folder; copy the file here"


def leads_out(path: Path, folder: Path) -> bool:
    """Return whether a path lies, all links followed, outside of a folder."""
    try:
        # Unlike Path.resolve, realpath takes a circle of links, which ends at one of them.
        return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except ValueError:  # a NUL: there is no such file
        return False


PROJECT = (".git", "asv.conf.json")
"""What tells the folder of a project to those who do not work in it: one of git, or asv's."""


def project_of(suite: Path) -> Path:
    """Return the folder in which all files that a suite names have to lie. For a suite in the
    working folder that is the working folder, as for other paths of a command.

    For another suite, as in asv's processes, that is the nearest project's folder above the suite,
    else the folder that has ``suites``, else the suite's own folder.
    """
    folder = Path(os.path.normpath(Path.cwd() / suite)).parent
    if folder.is_relative_to(Path.cwd()):
        return Path.cwd()
    above = (folder, *folder.parents)
    for name in PROJECT:
        for candidate in above:
            if (candidate / name).exists():
                return candidate
    return next((each.parent for each in above if each.name == "suites"), folder)


def stay_inside(path: Path) -> None:
    """Raise ``GpubenchError`` for a path below the working folder that leads out of it.

    A path that is given from elsewhere is somebody's choice.
    """
    here = Path.cwd()
    written = Path(os.path.normpath(here / path))  # its links not followed
    if written.is_relative_to(here) and leads_out(path, here):
        target = os.path.realpath(path)
        raise GpubenchError(
            f"{path} is or has a symbolic link that leads out of this folder, to {target}; links "
            f"of a project are not followed out of it: name {target} itself if it is meant"
        )
