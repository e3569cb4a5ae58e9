"""Work that Python's search for cycles of garbage would disturb, or take long for."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting(*, is_kept: bool = False) -> Iterator[None]:
    """Put off the search for garbage, which takes a tenth of a report and a sixth of ``gpubench
    check``, and gets between two samples.

    ``is_kept``: what was made inside is not searched afterwards either, before all of the process
    is.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_kept and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # among the old objects, where they came from is forgotten
        if collecting:
            gc.enable()
