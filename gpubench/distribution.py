"""The name, version and extras of gpubench for pip, where it and softcuda were installed from, and
another distribution of its files.

The package index has a ``gpubench`` of other people, so that this one is ``gpubench-suite``. The
package to import and the command are called ``gpubench`` all the same.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.errors import GpubenchError

if TYPE_CHECKING:
    from importlib import metadata

DISTRIBUTION = "gpubench-suite"
DEVICE_DISTRIBUTION = "softcuda"
"""The CUDA device in software, which the extra ``cuda`` asks for."""

VERSION = "0.1.0"

REINSTALL = (
    f"pip install --force-reinstall --no-deps {DISTRIBUTION} "
    "(in a checkout: pip install --editable .)"
)

OTHER_DISTRIBUTION = "gpubench"
"""Distribution of other people with a package of our name. Ours bore that name once too."""


def require_extra(*extras: str) -> str:
    """Return the requirement for gpubench with these extras, ``gpubench-suite[array-api]``.

    pip before 23.3 installs nothing for an extra that is written with an underscore (PEP 685).
    """
    return f"{DISTRIBUTION}[{','.join(extra.replace('_', '-') for extra in extras)}]"


def find_installed() -> metadata.Distribution:
    """Return the installed gpubench-suite; raises ``GpubenchError`` where there is none."""
    from importlib import metadata

    try:
        return metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError as error:
        raise GpubenchError(
            describe_conflict()
            or f"{DISTRIBUTION} is not installed in this Python, {sys.executable}: "
            f"pip install {DISTRIBUTION} (in a checkout: pip install --editable .)"
        ) from error


LOCAL_REQUIREMENTS = {
    DISTRIBUTION: Path(".asv/gpubench.txt"),
    DEVICE_DISTRIBUTION: Path(".asv/softcuda.txt"),
}
"""Beside ``asv.conf.json``: what pip installs where a distribution came from a folder or a file of
this machine. No path of it stands in the configuration, which others use too."""


def local_url(installed: metadata.Distribution) -> str | None:
    """Return the ``file:`` address that a distribution was installed from; ``None`` for any other
    origin, and where nothing is there any more.

    See https://packaging.python.org/en/latest/specifications/direct-url/.
    """
    import json
    from urllib.parse import urlsplit
    from urllib.request import url2pathname  # which brings http: only where it is needed

    url: str = json.loads(installed.read_text("direct_url.json") or "{}").get("url", "")
    is_there = url.startswith("file:") and Path(url2pathname(urlsplit(url).path)).exists()
    return url if is_there else None


def write_local_requirements(folder: Path = Path()) -> None:
    """Write ``LOCAL_REQUIREMENTS`` in the folder of asv's configuration, where they are needed."""
    from importlib import metadata

    for name, inside in LOCAL_REQUIREMENTS.items():
        try:
            url = local_url(metadata.distribution(name))
            path, text = folder / inside, f"{name} @ {url}\n"
            if url and not (path.is_file() and path.read_text(encoding="utf-8") == text):
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
        except (OSError, metadata.PackageNotFoundError):  # pip says what it misses
            continue


def describe_conflict() -> str | None:
    """Say that a distribution ``gpubench`` is installed here, and what to do; ``None`` without one.

    It and ours write the same files, and the one that was installed last wins.
    """
    if not any(map(_may_hold_other, sys.path)):
        return None
    from importlib import metadata

    for other in metadata.distributions(name=OTHER_DISTRIBUTION):
        if other.read_text("RECORD") is not None:  # a build folder of a checkout has none
            return (
                f"the distribution {OTHER_DISTRIBUTION!r} {other.version} in "
                f"{str(other.locate_file(''))!r} writes the same files as {DISTRIBUTION}, which is "
                f"another: pip uninstall {OTHER_DISTRIBUTION}, then {REINSTALL}"
            )
    return None


def _may_hold_other(folder: str) -> bool:
    """Return whether a folder has metadata of the other distribution, by its name alone: the
    library's own search takes a third of the time until ``--help`` answers."""
    try:
        names = os.listdir(folder or ".")  # noqa: PTH208 (a tenth of the time of Path.iterdir)
    except OSError:
        return False  # an archive is no place where pip writes metadata
    return any(
        name.lower().startswith(f"{OTHER_DISTRIBUTION}-") and name.endswith(".dist-info")
        for name in names
    )


def describe_loss() -> str:
    """Say that files of this distribution are not there or not ours, and what to do."""
    return f"files of {DISTRIBUTION} are missing or overwritten: {REINSTALL}"


def describe_damage(error: BaseException | None) -> str | None:
    """Name the file of Python's bytecode cache whose reading raised an error, and what to do;
    ``None`` for an error of another kind.

    A machine that lost power leaves such files. Python compares only the source's date, and never
    replaces them.
    """
    trace = error.__traceback__ if error else None
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        # importlib's function, which has the path among its arguments.
        if frame.f_code.co_name == "_compile_bytecode":
            path = frame.f_locals.get("bytecode_path")
            return f"{path}, which Python has compiled, is damaged ({error}): remove it"
    return None
