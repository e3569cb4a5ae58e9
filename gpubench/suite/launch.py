"""Launches: block and grid shapes as a person writes them, and in one normal form."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, model_validator

from gpubench.suite.expressions import Expression
from gpubench.suite.types import (
    LIST,
    SINGLE,
    Extent,
    GridExtent,
    LaunchExtent,
    Model,
    by_form,
    problem,
)

Shape = Annotated[
    Annotated[LaunchExtent, SINGLE]
    | Annotated[tuple[LaunchExtent, ...], Field(min_length=1, max_length=3), LIST],
    by_form("a whole number from 1, a formula, or a list of one to three of them"),
]
"""A grid or block: one extent, or up to three (x first)."""

GridShape = Annotated[
    Annotated[GridExtent, SINGLE]
    | Annotated[tuple[LaunchExtent, ...], Field(min_length=1, max_length=3), LIST],
    by_form("cover, a whole number from 1, a formula, or a list of one to three of them"),
]

Grid = Annotated[
    Annotated[GridExtent, SINGLE] | Annotated[tuple[GridShape, ...], Field(min_length=1), LIST],
    by_form("cover, a whole number from 1, a formula, or a list of shapes"),
]


class Launch(Model):
    """Shape of a launch on a device with blocks of threads."""

    block: tuple[Shape, ...] = Field(
        default=(),
        description="Block shapes to measure, each a number, a formula, or up to three of them.",
    )
    grid: Grid = Field(
        default="cover",
        description="Grid shapes to measure. `cover`: enough blocks to give every element of `over`"
        " a thread. A flat list with a formula in it is one shape; of numbers, several.",
    )
    over: Annotated[tuple[Extent, ...], Field(min_length=1, max_length=3)] | None = Field(
        default=None,
        description="What `cover` covers, x first; absent: the first `out` or `inout` array,"
        " its last dimension on x.",
    )
    shared_bytes: Extent = Field(
        default=0, description="Bytes of dynamic shared memory for each block."
    )
    cooperative: StrictBool = Field(
        default=False, description="Whether blocks wait for one another."
    )

    @model_validator(mode="after")
    def _check(self) -> Launch:
        if any(grid != "cover" and len(grid) > 3 for grid in self.grids()):
            raise problem(
                "a flat list with formulas is one grid of up to three extents;"
                " put each shape into a list of its own",
                ("grid",),
            )
        return self

    def blocks(self) -> tuple[tuple[int | Expression, ...], ...]:
        """Every block shape as a tuple of one to three extents, x first."""
        return tuple(_shape(block) for block in self.block)

    def grids(self) -> tuple[Literal["cover"] | tuple[int | Expression, ...], ...]:
        """Every grid shape: ``cover``, or a tuple of one to three extents, x first."""
        if not isinstance(self.grid, tuple):
            return (_grid(self.grid),)
        formula = any(isinstance(item, Expression) for item in self.grid)
        if formula and not any(item == "cover" or isinstance(item, tuple) for item in self.grid):
            return (self.grid,)  # type: ignore[return-value]  # the line above narrows it
        return tuple(_grid(item) for item in self.grid)


def _shape(shape: int | Expression | tuple[int | Expression, ...]) -> tuple[int | Expression, ...]:
    return shape if isinstance(shape, tuple) else (shape,)


def _grid(shape: Any) -> Literal["cover"] | tuple[int | Expression, ...]:
    return "cover" if shape == "cover" else _shape(shape)
