"""What every session does when it is entered and left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class ManagedSession(ABC):
    """A context manager: leaving it waits for what is queued, unless something has gone wrong, and
    cleans up whatever happened."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.synchronize()
        finally:
            self.close()

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until everything queued has run; raises what went wrong on the device."""

    @abstractmethod
    def close(self) -> None:
        """Give back what the session took. Silent, and allowed twice."""
