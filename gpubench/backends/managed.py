"""What every session does when it is entered and left, and how it copies unless it knows better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

import numpy as np

from gpubench.backends.protocol import Native


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

    def pristine(self, array: np.ndarray[Any, Any]) -> Native:
        """What ``restore`` brings back: a copy on the device, which no transfer slows down."""
        return self.to_native(array)

    def view(self, native: Native) -> np.ndarray[Any, Any]:
        """Values to be read before anything else runs: a copy from memory of its own."""
        return self.to_host(native)

    @abstractmethod
    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        """Copy a host array to the device."""

    @abstractmethod
    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        """Copy back to a new host array."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until everything queued has run; raises what went wrong on the device."""

    @abstractmethod
    def close(self) -> None:
        """Give back what the session took. Silent, and allowed twice."""
