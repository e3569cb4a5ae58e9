"""Forces between particles: of all on all, or of each on those near it.

``positions`` has the shape ``[3, n]``: the x of all particles, then the y, then the z, so that what
neighbouring threads or lanes read lies side by side. Forces and accelerations lie alike. The box
and the lists of neighbours of ``lennard_jones`` are those of ``neighbours``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpubench.kernels.lazy_numba import cuda, njit, prange
from gpubench.kernels.neighbours import (
    LANES,
    WIDTH,
    Cells,
    Neighbours,
    Positions,
    Vector,
    fetch,
    melt,
    neighbour_list_numpy,
)

CUTOFF = 2.5
"""Distance at which forces end, in units of the particles' size."""
_ROOM = 2**15  # pairs that NumPy works on at a time, so that they stay in cache
_CUTOFF_SQUARED = CUTOFF**2


# All pairs. Nyland, Harris and Prins, "Fast N-body simulation with CUDA" (GPU Gems 3, chapter 31,
# 2007), where a block reads a tile of bodies into shared memory for all of its threads.


def nbody_numpy(positions: Positions, masses: Vector, out: Positions, softening: Any) -> None:
    """Gravity: ``out[:, i]`` is the sum of ``m[j] * d / (d @ d + softening)**1.5`` over all ``j``,
    where ``d`` goes from ``i`` to ``j`` and ``softening`` is above zero: a body pulls itself by
    nothing. Some rows of the table of pairs at a time, in cache."""
    n = masses.size
    rows = max(1, _ROOM // n)
    apart, squares = np.empty((3, rows, n), out.dtype), np.empty((rows, n), out.dtype)
    weights = np.empty_like(squares)
    for first in range(0, n, rows):
        some = positions[:, first : first + rows]
        d, square = apart[:, : some.shape[1]], squares[: some.shape[1]]
        weight = weights[: some.shape[1]]
        np.subtract(positions[:, None], some[:, :, None], out=d)
        np.einsum("kij,kij->ij", d, d, out=square)
        square += softening
        np.sqrt(square, out=weight)
        weight *= square
        np.divide(masses, weight, out=weight)
        for axis in range(3):
            np.einsum("ij,ij->i", d[axis], weight, out=out[axis, first : first + rows])


@njit(cache=True, fastmath={"reassoc", "nsz", "contract"}, error_model="numpy")
def _acceleration(positions: Positions, masses: Vector, i: int, softening: Any) -> Any:
    x, y, z = positions[0], positions[1], positions[2]
    here, there, above = x[i], y[i], z[i]
    ax = ay = az = masses.dtype.type(0)
    for j in range(masses.size):
        dx, dy, dz = x[j] - here, y[j] - there, z[j] - above
        square = dx * dx + dy * dy + dz * dz + softening
        weight = masses[j] / (square * math.sqrt(square))
        ax += weight * dx
        ay += weight * dy
        az += weight * dz
    return ax, ay, az


@njit(parallel=True, cache=True)
def nbody_parallel(positions: Positions, masses: Vector, out: Positions, softening: Any) -> None:
    """Take a body at a time over the threads of the CPU, nothing kept of the pairs."""
    for i in prange(masses.size):
        out[0, i], out[1, i], out[2, i] = _acceleration(positions, masses, i, softening)


@cuda.jit
def nbody_cuda(positions: Positions, masses: Vector, out: Positions, softening: Any) -> None:
    """Use a thread for each body, all others read from memory or cache; any launch is right."""
    n = masses.size
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        x, y, z = positions[0, i], positions[1, i], positions[2, i]
        ax = ay = az = masses.dtype.type(0)
        for j in range(n):
            dx, dy, dz = positions[0, j] - x, positions[1, j] - y, positions[2, j] - z
            square = dx * dx + dy * dy + dz * dz + softening
            weight = masses[j] / (square * math.sqrt(square))
            ax += weight * dx
            ay += weight * dy
            az += weight * dz
        out[0, i], out[1, i], out[2, i] = ax, ay, az


def make_nbody_tiled(*, tile: int) -> Any:
    """Return a CUDA kernel whose blocks of ``tile`` threads read ``tile`` bodies at a time for all
    of their threads; any one-dimensional grid is right."""

    @cuda.jit
    def nbody_tiled(positions: Positions, masses: Vector, out: Positions, softening: Any) -> None:
        bodies = cuda.shared.array((4, tile), dtype=masses.dtype)
        n, thread = masses.size, cuda.threadIdx.x
        zero = masses.dtype.type(0)
        for first in range(cuda.blockIdx.x * tile, n, cuda.gridsize(1)):
            i = first + thread
            here = i if i < n else 0  # every thread helps to read, also one without a body
            x, y, z = positions[0, here], positions[1, here], positions[2, here]
            ax = ay = az = zero
            for start in range(0, n, tile):
                j = start + thread
                for axis in range(3):
                    bodies[axis, thread] = positions[axis, j] if j < n else zero
                bodies[3, thread] = masses[j] if j < n else zero  # no mass, no pull
                cuda.syncthreads()
                for k in range(tile):
                    dx, dy, dz = bodies[0, k] - x, bodies[1, k] - y, bodies[2, k] - z
                    square = dx * dx + dy * dy + dz * dz + softening
                    weight = bodies[3, k] / (square * math.sqrt(square))
                    ax += weight * dx
                    ay += weight * dy
                    az += weight * dz
                cuda.syncthreads()
            if i < n:
                out[0, i], out[1, i], out[2, i] = ax, ay, az

    return nbody_tiled


# Particles near one another, with the potential of Lennard and Jones (1924), cut off as is usual
# ever since Verlet ("Computer experiments on classical fluids", Physical Review, 1967), whose idea
# the list of neighbours is: it lasts some steps.


def melt_with_neighbours(
    values: dict[str, Any], generator: np.random.Generator
) -> tuple[Positions, Vector, Neighbours, Vector]:
    """``melt`` and what ``neighbour_list_numpy`` makes of it."""
    positions, box = melt(values, generator)
    neighbours = np.empty((WIDTH, values["n"]), np.int32)
    counts = np.empty(values["n"], np.int32)
    neighbour_list_numpy(positions, box, neighbours, neighbours, neighbours, counts)
    return positions, box, neighbours, counts


def lennard_jones_numpy(
    positions: Positions, box: Vector, neighbours: Neighbours, counts: Vector, out: Positions
) -> None:
    """Write the forces between particles closer than ``CUTOFF``, with the potential
    ``4 * (r**-12 - r**-6)``: one neighbour of all particles at a time."""
    d, wrap = np.empty_like(out), np.empty_like(out)
    square, force = np.empty_like(out[0]), np.empty_like(out[0])
    limit = out.dtype.type(_CUTOFF_SQUARED)
    out[:] = 0
    for row in neighbours[: counts.max()]:
        np.take(positions, row, axis=1, out=d, mode="clip")
        np.subtract(positions, d, out=d)
        np.divide(d, box[0], out=wrap)
        np.rint(wrap, out=wrap)
        wrap *= box[0]
        d -= wrap
        np.einsum("ki,ki->i", d, d, out=square)
        outside = square >= limit
        outside |= square == 0  # the particle itself, where its neighbours have ended
        np.copyto(square, np.inf, where=outside)
        np.reciprocal(square, out=square)
        np.multiply(square, square, out=force)
        force *= square
        square *= 24
        square *= force
        force *= 2
        force -= 1
        force *= square
        d *= force
        out += d


@njit(cache=True)
def _turn(tile: Cells, neighbours: Neighbours) -> None:
    """Transpose some rows: one particle's neighbours lie together in ``tile``."""
    for k in range(neighbours.shape[0]):
        row = neighbours[k]
        for lane in range(row.size):
            tile[lane, k] = row[lane]


@njit(cache=True, fastmath={"reassoc", "nsz", "contract"}, error_model="numpy")
def _force(near: Positions, x: Any, y: Any, z: Any, box: Any, count: int) -> Any:
    """Sum of the forces of ``near`` particles on the one at ``x``, ``y``, ``z``."""
    xs, ys, zs = near[0], near[1], near[2]
    number = near.dtype.type
    zero, one, two, strength = number(0), number(1), number(2), number(24)
    limit, half, infinite = number(_CUTOFF_SQUARED), number(0.5) * box, number(np.inf)
    fx = fy = fz = zero
    for k in range(count):
        dx, dy, dz = x - xs[k], y - ys[k], z - zs[k]
        dx -= (box if dx > half else zero) - (box if dx < -half else zero)
        dy -= (box if dy > half else zero) - (box if dy < -half else zero)
        dz -= (box if dz > half else zero) - (box if dz < -half else zero)
        square = dx * dx + dy * dy + dz * dz
        square = square if square < limit else infinite
        square = square if square > zero else infinite  # the particle itself
        inverse = one / square
        cube = inverse * inverse * inverse
        force = strength * inverse * cube * (two * cube - one)
        fx += force * dx
        fy += force * dy
        fz += force * dz
    return fx, fy, fz


@njit(parallel=True, cache=True)
def lennard_jones_parallel(
    positions: Positions, box: Vector, neighbours: Neighbours, counts: Vector, out: Positions
) -> None:
    """Take some particles at a time over the threads of the CPU; their neighbours are fetched
    first.

    All of them go as far as the one with most, and to a multiple of the lanes: what is too much is
    the particle itself, and a rest of a few neighbours would cost more.
    """
    n = counts.size
    for some in prange((n + LANES - 1) // LANES):
        first, end = some * LANES, min(n, some * LANES + LANES)
        count = min((counts[first:end].max() + LANES - 1) // LANES * LANES, WIDTH)
        tile, near = np.empty((LANES, WIDTH), np.int32), np.empty((3, WIDTH), positions.dtype)
        _turn(tile, neighbours[:count, first:end])
        for i in range(first, end):
            fetch(near, positions, tile[i - first], count)
            x, y, z = positions[0, i], positions[1, i], positions[2, i]
            out[0, i], out[1, i], out[2, i] = _force(near, x, y, z, box[0], count)


@cuda.jit(device=True)
def _nearest(apart: Any, box: Any, half: Any) -> Any:
    """Return the way to the _nearest image of a particle."""
    if apart > half:
        return apart - box
    return apart + box if apart < -half else apart


@cuda.jit
def lennard_jones_cuda(
    positions: Positions, box: Vector, neighbours: Neighbours, counts: Vector, out: Positions
) -> None:
    """Use a thread for each particle; any one-dimensional launch is right."""
    number = positions.dtype.type
    zero, one, two, strength = number(0), number(1), number(2), number(24)
    limit, side, half = number(_CUTOFF_SQUARED), box[0], number(0.5) * box[0]
    for i in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        x, y, z = positions[0, i], positions[1, i], positions[2, i]
        fx = fy = fz = zero
        for k in range(counts[i]):
            j = neighbours[k, i]
            dx = _nearest(x - positions[0, j], side, half)
            dy = _nearest(y - positions[1, j], side, half)
            dz = _nearest(z - positions[2, j], side, half)
            square = dx * dx + dy * dy + dz * dz
            if square < limit:
                inverse = one / square
                cube = inverse * inverse * inverse
                force = strength * inverse * cube * (two * cube - one)
                fx += force * dx
                fy += force * dy
                fz += force * dz
        out[0, i], out[1, i], out[2, i] = fx, fy, fz
