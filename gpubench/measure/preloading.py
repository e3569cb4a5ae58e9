"""What the processes that asv forks for single cases would otherwise each import again."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol, runtime_checkable

from gpubench.backends import registry


@runtime_checkable
class Preloads(Protocol):
    """A backend that has something to import once for all processes."""

    def preload(self) -> None:
        """Import it; starts no device and no thread, because these do not survive a fork."""


def preload(backends: Iterable[str]) -> None:
    """Let each of the backends import what its cases need, in the process that is forked.

    A backend that cannot says nothing here: its cases say what is wrong.
    """
    for name in sorted(set(backends)):
        with suppress(Exception):
            backend = registry.get(name)
            if isinstance(backend, Preloads):
                backend.preload()
