"""Where the table of results is kept, for those who do not open it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

CACHE_FOLDER = ".gpubench-cache"
"""Beside the results directory, with a ``.gitignore`` of its own."""


def table_path(results_dir: Path) -> Path:
    """Return where the table of a results directory is kept."""
    place = Path(os.path.realpath(results_dir))  # which ``resolve`` refuses of a looped link
    name = hashlib.sha256(os.fsencode(place)).hexdigest()[:16]
    return place.parent / CACHE_FOLDER / f"{name}.duckdb"
