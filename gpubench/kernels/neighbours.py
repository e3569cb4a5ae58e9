"""Who is near whom: lists of neighbours of many particles, found by sorting them into cells.

The particles are in a box that repeats itself in every direction; its side is ``box[0]``, and of
the images of a particle the nearest counts. Cells to find neighbours by are those of Hockney and
Eastwood ("Computer simulation using particles", 1981); list and cells lie as Anderson, Lorenz and
Travesset lay them out for a GPU (Journal of Computational Physics, 2008).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange

Positions = NDArray[Any]
"""Shape ``[3, n]``: x, y and z of all particles, one after another."""
Vector = NDArray[Any]
"""A contiguous one-dimensional array of numbers."""
Neighbours = NDArray[np.int32]
"""Shape ``[WIDTH, n]``: the neighbours of each particle in rising order, then the particle itself.
Neighbouring particles have theirs side by side, as a GPU's threads read them."""
Cells = NDArray[np.int32]

WIDTH = 96
"""Most neighbours that are listed. In the melt below a particle has fewer than 85."""
REACH = 2.75
"""Distance up to which neighbours are listed: a tenth more than forces reach, so that a list lasts
for some steps."""
CAPACITY = 128
"""Most particles in a cell on a GPU: in the melt a box of one cell has 108 at most."""
SPACING = 430 / 256
"""Side of a cube of four particles: 0.844 of them in a unit of volume, the density of the melt that
molecular dynamics is measured by (0.8442)."""
LANES = 16
"""Particles that a thread of the CPU takes together: a line of cache of each row of the list."""
_GRAIN = 512  # positions are multiples of its inverse, so that squares of short distances are exact
_JITTER = 0.05
_REACH_SQUARED = REACH**2


def melt(values: dict[str, Any], generator: np.random.Generator) -> tuple[Positions, Vector]:
    """Positions of ``n`` particles near the places of a face-centred cubic lattice, and the side of
    the box as an array ``[1]``. The places are all taken where ``n`` is four times a cube."""
    n = values["n"]
    side = math.ceil((n / 4) ** (1 / 3) - 1e-9)
    cubes = np.stack(np.unravel_index(np.arange(side**3), (side,) * 3)).astype(float)
    corners = np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]).T
    places = (cubes[:, :, None] + corners[:, None] + 0.25).reshape(3, -1)[:, :n] * SPACING
    places += _JITTER * generator.standard_normal(places.shape)
    grains = np.rint(places * _GRAIN) % round(side * SPACING * _GRAIN)
    box = np.array([side * SPACING], values["dtype"])
    return (grains / _GRAIN).astype(values["dtype"]), box


def neighbour_list_numpy(
    positions: Positions,
    box: Vector,
    members: Cells,
    filled: Cells,
    neighbours: Neighbours,
    counts: Vector,
) -> None:
    """List the neighbours of each particle up to ``REACH``, and count them; the rest of a column is
    the particle itself. ``members`` and ``filled`` are the GPU's.

    The particles of each cell are a row of a table. A cell's row is set against that of one of the
    cells around it, for all cells at a time, and so for every cell around.
    """
    n = counts.size
    table, placed = _table_of_cells(positions, box[0])
    apart = np.empty((3, *table.shape, table.shape[1]), positions.dtype)
    other_way = np.empty_like(apart)
    keys = []
    for around in _cells_around(round(len(table) ** (1 / 3))):
        np.subtract(placed[:, :, :, None], placed[:, around, None, :], out=apart)
        np.abs(apart, out=apart)
        np.subtract(box[0], apart, out=other_way)
        np.minimum(apart, other_way, out=apart)
        squares = np.einsum("acij,acij->cij", apart, apart, out=other_way[0])
        row, column = np.divmod(np.flatnonzero(squares < _REACH_SQUARED), table.shape[1])
        i, j = table.ravel()[row], table[around[row // table.shape[1]], column]
        keys.append((i * n + j)[i != j])
    i, j = np.divmod(np.sort(np.concatenate(keys)), n)
    found = np.bincount(i, minlength=n)
    neighbours[:] = np.arange(n)
    neighbours[np.arange(i.size) - (np.cumsum(found) - found)[i], i] = j
    counts[:] = found


def _table_of_cells(positions: Positions, box: Any) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return a row of particles for each cell, and their positions; the rest of a row is no
    number."""
    cells = max(1, int(box / positions.dtype.type(REACH)))
    along = (positions * (positions.dtype.type(cells) / box)).astype(np.intp)
    cell = np.ravel_multi_index(tuple(along), (cells,) * 3, mode="clip")
    order, inside = np.argsort(cell, kind="stable"), np.bincount(cell, minlength=cells**3)
    place = np.arange(cell.size) - np.repeat(np.cumsum(inside) - inside, inside)
    table = np.zeros((cells**3, inside.max()), np.intp)
    table[cell[order], place] = order
    placed = np.full((3, *table.shape), np.nan, positions.dtype)
    placed[:, cell[order], place] = positions[:, order]
    return table, placed


def _cells_around(cells: int) -> Any:
    """For each step to a cell around, itself included, where it leads to from every cell."""
    cell = np.stack(np.unravel_index(np.arange(cells**3), (cells,) * 3))
    for steps in np.ndindex((min(3, cells),) * 3):
        around = (cell + np.reshape(steps, (3, 1)) + (cells - 1)) % cells
        yield np.ravel_multi_index(tuple(around), (cells,) * 3)


@njit(cache=True)
def _cells_along(box: Vector) -> int:
    return max(1, int(box[0] / box.dtype.type(REACH)))


@njit(cache=True)
def _sort_by_cell(positions: Positions, box: Vector, starts: Cells, order: Cells) -> None:
    """Particles in the order of their cells, each cell's in rising order, and where it starts."""
    cells, n = _cells_along(box), order.size
    scale = positions.dtype.type(cells) / box[0]
    cell = np.zeros(n, np.int32)
    for axis in range(3):
        numbers = positions[axis]
        for i in range(n):
            cell[i] = cell[i] * cells + min(int(numbers[i] * scale), cells - 1)
    starts[:] = 0
    for i in range(n):
        starts[cell[i] + 2] += 1
    for one in range(2, starts.size):
        starts[one] += starts[one - 1]
    for i in range(n):
        order[starts[cell[i] + 1]] = i
        starts[cell[i] + 1] += 1  # in the end the start of the next cell


@njit(cache=True)
def _cell_around(cell: int, cells: int, step: int) -> int:
    """Return a cell around another one, itself included, for steps from 0 to ``min(3,
    cells)**3``."""
    around = min(3, cells)
    x = (cell // (cells * cells) + cells - 1 + step // (around * around)) % cells
    y = (cell // cells % cells + cells - 1 + step // around % around) % cells
    z = (cell % cells + cells - 1 + step % around) % cells
    return (x * cells + y) * cells + z


@njit(cache=True)
def _members_around(cell: int, cells: int, starts: Cells, order: Cells) -> Cells:
    """Return the members of the cells around, in rising order."""
    steps, count = min(3, cells) ** 3, 0
    for step in range(steps):
        one = _cell_around(cell, cells, step)
        count += starts[one + 1] - starts[one]
    members = np.empty(count, np.int32)
    for step in range(steps):
        one = _cell_around(cell, cells, step)
        for place in range(starts[one], starts[one + 1]):
            count -= 1
            members[count] = order[place]
    members.sort()
    return members


@njit(cache=True)
def fetch(near: Positions, positions: Positions, row: Vector, count: int) -> None:
    """Bring together what vector instructions then work on: they read neighbours only."""
    for axis in range(3):
        numbers, fetched = positions[axis], near[axis]
        for k in range(count):
            fetched[k] = numbers[np.uint32(row[k])]


@njit(cache=True)
def _squares_from(i: int, positions: Positions, near: Positions, box: Any, squares: Vector) -> None:
    """Squares of the distances of particle ``i`` to those ``near``."""
    x, y, z = positions[0, i], positions[1, i], positions[2, i]
    xs, ys, zs = near[0], near[1], near[2]
    for k in range(squares.size):
        dx, dy, dz = abs(x - xs[k]), abs(y - ys[k]), abs(z - zs[k])
        dx, dy, dz = min(dx, box - dx), min(dy, box - dy), min(dz, box - dz)
        squares[k] = dx * dx + dy * dy + dz * dz


@njit(cache=True)
def _keep(i: int, members: Cells, squares: Vector, limit: Any, row: Cells) -> int:
    """Those of the members whose square is below the limit, but not ``i``; then ``i`` itself."""
    count, last = 0, row.size - 1
    for k in range(members.size):
        row[min(count, last)] = members[k]  # stays if it counts: nothing for the processor to guess
        count += (squares[k] < limit) & (members[k] != i)
    count = min(count, last)
    row[count:] = i
    return count


@njit(cache=True)
def _list_cell(
    own: Cells, members: Cells, positions: Positions, box: Vector, rows: Cells, counts: Vector
) -> None:
    """Neighbours of a cell's ``own`` particles among the ``members`` of the cells around."""
    near, squares = np.empty((3, members.size), box.dtype), np.empty(members.size, box.dtype)
    fetch(near, positions, members, members.size)
    for i in own:
        _squares_from(i, positions, near, box[0], squares)
        counts[i] = _keep(i, members, squares, box.dtype.type(_REACH_SQUARED), rows[i])


@njit(parallel=True, cache=True)
def neighbour_list_parallel(
    positions: Positions,
    box: Vector,
    members: Cells,
    filled: Cells,
    neighbours: Neighbours,
    counts: Vector,
) -> None:
    """Do the same, cell by cell over the threads of the CPU: those around are fetched and sorted
    once for all of a cell's particles. The lists are made one by one and transposed in the end."""
    n, cells = counts.size, _cells_along(box)
    starts, order = np.empty(cells**3 + 2, np.int32), np.empty(n, np.int32)
    rows = np.empty((n, WIDTH + 1), np.int32)
    _sort_by_cell(positions, box, starts, order)
    for cell in prange(cells**3):
        own = order[starts[cell] : starts[cell + 1]]
        around = _members_around(cell, cells, starts, order)
        _list_cell(own, around, positions, box, rows, counts)
    for some in prange((n + LANES - 1) // LANES):
        first, end = some * LANES, min(n, some * LANES + LANES)
        for k in range(WIDTH):
            for i in range(first, end):
                neighbours[k, i] = rows[i, k]


@cuda.jit
def _clear(filled: Cells) -> None:
    for cell in range(cuda.grid(1), filled.size, cuda.gridsize(1)):
        filled[cell] = 0


# Numba's own target for CUDA does not compile ``min`` and ``max``.
@cuda.jit(device=True)
def _smaller(a: int, b: int) -> int:
    return a if a < b else b


@cuda.jit(device=True)
def _cells_on_device(box: Vector) -> int:
    cells = int(box[0] / box.dtype.type(REACH))
    return cells if cells > 0 else 1


@cuda.jit
def _fill_cells(positions: Positions, box: Vector, members: Cells, filled: Cells) -> None:
    """Give each particle a place in its cell, in the order in which threads come."""
    number = positions.dtype.type
    cells = _cells_on_device(box)
    scale = number(cells) / box[0]
    for i in range(cuda.grid(1), positions.shape[1], cuda.gridsize(1)):
        cell = 0
        for axis in range(3):
            cell = cell * cells + _smaller(int(positions[axis, i] * scale), cells - 1)
        place = cuda.atomic.add(filled, cell, 1)
        if place < CAPACITY:
            members[cell, place] = i


@cuda.jit(device=True)
def _insert(neighbours: Neighbours, i: int, j: int, count: int) -> Any:
    """Put ``j`` into column ``i`` where it belongs; most come in rising order."""
    k = _smaller(count, WIDTH - 1)
    while k > 0 and neighbours[k - 1, i] > j:
        neighbours[k, i] = neighbours[k - 1, i]
        k -= 1
    neighbours[k, i] = j
    return _smaller(count + 1, WIDTH)


@cuda.jit(device=True)
def _insert_near(
    i: int, positions: Positions, box: Vector, member: Any, neighbours: Neighbours, count: int
) -> int:
    """Insert those of a cell's members that are near particle ``i``."""
    side, half = box[0], box.dtype.type(0.5) * box[0]
    limit = box.dtype.type(_REACH_SQUARED)
    x, y, z = positions[0, i], positions[1, i], positions[2, i]
    for j in member:
        dx, dy, dz = abs(x - positions[0, j]), abs(y - positions[1, j]), abs(z - positions[2, j])
        dx = dx if dx < half else side - dx
        dy = dy if dy < half else side - dy
        dz = dz if dz < half else side - dz
        if j != i and dx * dx + dy * dy + dz * dz < limit:
            count = _insert(neighbours, i, j, count)
    return count


@cuda.jit
def _list_neighbours(
    positions: Positions, box: Vector, members: Cells, filled: Cells, neighbours: Neighbours,
    counts: Vector,
) -> None:  # fmt: skip
    """Have a thread for each particle go through the cells around its own."""
    number = positions.dtype.type
    cells = _cells_on_device(box)
    scale, around = number(cells) / box[0], _smaller(3, cells)
    for i in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        a = _smaller(int(positions[0, i] * scale), cells - 1) + cells - 1
        b = _smaller(int(positions[1, i] * scale), cells - 1) + cells - 1
        c = _smaller(int(positions[2, i] * scale), cells - 1) + cells - 1
        count = 0
        for step in range(around * around * around):
            x, y = (a + step // (around * around)) % cells, (b + step // around % around) % cells
            cell = (x * cells + y) * cells + (c + step % around) % cells
            member = members[cell, : _smaller(filled[cell], CAPACITY)]
            count = _insert_near(i, positions, box, member, neighbours, count)
        counts[i] = count
        for k in range(count, WIDTH):
            neighbours[k, i] = i


def neighbour_list_cuda(
    launch: Any,
    positions: Any,
    box: Any,
    members: Any,
    filled: Any,
    neighbours: Any,
    counts: Any,
) -> None:
    """Queue the list: clear the cells, fill them by atomic additions, look through those around.

    Members of a cell come in any order, and yet the list is the same every time, as it is sorted.
    """
    shape = launch.grid, launch.block, launch.stream
    _clear[shape](filled)
    _fill_cells[shape](positions, box, members, filled)
    _list_neighbours[shape](positions, box, members, filled, neighbours, counts)
