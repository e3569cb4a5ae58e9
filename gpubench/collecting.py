"""Work that Python's search for cycles of garbage would disturb, or take long for."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """Put off the search for garbage, which takes a tenth of a report and a sixth of ``gpubench
    check``, and gets between two samples."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
