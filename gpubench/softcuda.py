"""Forwards ``python -m gpubench.softcuda`` and its import to the package ``softcuda``."""

from __future__ import annotations

import sys

import softcuda
from softcuda.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
sys.modules[__name__] = softcuda
