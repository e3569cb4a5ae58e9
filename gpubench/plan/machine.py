"""What ``cuda:*`` stands for: all that a plan depends on beside the files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_CUDA = re.compile(r"cuda:(\*|\d+)")


def is_cuda(device: str) -> bool:
    """Whether it is a CUDA device, one or all of them."""
    return _CUDA.fullmatch(device) is not None


@dataclass(frozen=True, slots=True)
class Machine:
    """How many CUDA devices there are."""

    gpu_count: int

    def devices(self, names: Iterable[str]) -> tuple[str, ...]:
        """Devices behind the names of a suite, each once.

        ``cuda:*`` is every device, and ``cuda:0`` where there is none, so that its cases are seen
        and say why they do not run.
        """
        return tuple(dict.fromkeys(device for name in names for device in self._expand(name)))

    def _expand(self, name: str) -> Iterator[str]:
        if name == "cuda:*":
            yield from (f"cuda:{ordinal}" for ordinal in range(max(self.gpu_count, 1)))
        else:
            yield name
