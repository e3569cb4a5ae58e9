"""A console of rich for texts of others, in a module of its own: rich takes half of the time until
``--help`` answers."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from gpubench.cli.printable import printable


class SafeConsole(Console):
    """A console on which only its own styles are escape sequences."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield segment._replace(text=printable(segment.text))
