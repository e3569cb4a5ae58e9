"""Identity of a case: readable, and the same however the file is ordered."""

from __future__ import annotations

from functools import lru_cache

from gpubench.names import Value, format_identity, format_shape
from gpubench.plan.launches import Shape
from gpubench.plan.point import Point
from gpubench.plan.subject import HOME


def identity(point: Point, shape: Shape, device: str) -> str:
    """``n=1048576 dtype=float32 block=256 device=cuda:0``.

    Sizes alphabetically, parameters alphabetically, then block, grid, threads and device. Left out
    are an axis at its default, a grid that covers, and the CPU.
    """
    return " ".join(filter(None, (point.identity, _where(shape, device))))


@lru_cache(maxsize=4096)
def _where(shape: Shape, device: str) -> str:
    """The part that many points share."""
    parts: dict[str, Value] = {}
    if shape.block is not None:
        parts["block"] = format_shape(shape.block)
    if isinstance(shape.grid, tuple):
        parts["grid"] = format_shape(shape.grid)
    if shape.threads is not None:
        parts["threads"] = shape.threads
    if device != HOME:
        parts["device"] = device
    return format_identity(parts)
