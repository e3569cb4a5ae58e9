"""Entry points of installed packages: commands, backends, observers and pages are found there.

What stands at the edge (``gpubench.edge``) is declared in the same way as what another package
brings. An entry of the edge whose folder was taken out counts as not declared.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Any

from gpubench.distribution import describe_damage
from gpubench.errors import GpubenchError

OBSERVERS = "gpubench.observers"
"""The group of observers of other packages."""

COMMANDS = "gpubench.commands"
"""The group of commands: gpubench's own, those of its edge, and those of other packages."""

PAGES = "gpubench.pages"
"""The group of pages of the report that stand at the edge or come from other packages."""


@cache
def _installed() -> Any:  # of another type in Python 3.11
    # Each time, all distributions of the environment are read: 3 to 13 ms.
    return entry_points()


@cache
def declared(group: str) -> EntryPoints:
    """Return the entry points of a group; the environment is read once in a process."""
    return EntryPoints(filter(_is_there, _installed().select(group=group)))


def _is_there(entry: EntryPoint) -> bool:
    """Return whether the folder of an entry of the edge is there; of others it is not asked."""
    parts = entry.value.partition(":")[0].split(".")
    if parts[:2] != ["gpubench", "edge"]:
        return True
    return (Path(__file__).parent / "edge" / parts[2]).is_dir()


def load_one(group: str, kind: str, name: str) -> Any:
    """Return what the entry point of this name stands for; raises ``GpubenchError`` where two
    packages declare it, or where it cannot be imported."""
    # A distribution that was renamed may be installed under both names: that is one entry.
    entries = {entry.value: entry for entry in declared(group).select(name=name)}
    if len(entries) > 1:
        raise GpubenchError(
            f"{kind} {name!r} is declared {len(entries)} times: {', '.join(sorted(entries))}; "
            "uninstall all packages with one but one"
        )
    (entry,) = entries.values()
    try:
        return entry.load()
    except Exception as error:
        if damage := describe_damage(error):
            raise GpubenchError(damage) from error
        distribution = entry.dist.name if entry.dist is not None else "an unnamed distribution"
        raise GpubenchError(
            f"{kind} {name!r} of {distribution} cannot be loaded from {entry.value}: "
            f"{type(error).__name__}: {error}; fix or uninstall {distribution}"
        ) from error
