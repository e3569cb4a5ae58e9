"""``python -m gpubench`` is ``gpubench``."""

from __future__ import annotations

from gpubench.cli import main

main(prog_name="gpubench")
