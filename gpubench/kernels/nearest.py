"""The nearest of many points: to look up (k nearest neighbours), and to group by (k-means).

Coordinates are whole numbers from 0 to 255 in float32, as those of image descriptors are (Lowe,
"Distinctive image features from scale-invariant keypoints", 2004). With at most 128 of them every
squared distance, and every part of one, is a whole number below 2**24, which single precision
holds: all forms find the same distances whatever they add first, equal ones too. Of equal ones the
lower index counts.

``queries`` has the shape ``[m, d]``, ``points`` ``[n, d]`` and ``centres`` ``[k, d]``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange
from gpubench.kernels.panels import WIDTH, add_product, packed, panel_count

Points = NDArray[np.float32]
Numbers = NDArray[np.float32]
Indices = NDArray[np.int32]

_TOGETHER = 16  # queries that NumPy and a CPU thread take at once
_BLOCK = 2048  # points whose scores NumPy keeps at once
_TILE = 64  # points that a CUDA block keeps in shared memory
_SHARES = 16  # of the points of k-means: each has sums of its own
_ZERO, _FAR = np.float32(0), np.float32(math.inf)


def descriptors(values: dict[str, Any], generator: np.random.Generator, count: str) -> Points:
    numbers = generator.integers(0, 256, (values[count], values["d"]))
    return numbers.astype(np.float32)


def queries(values: dict[str, Any], generator: np.random.Generator) -> Points:
    """``m`` descriptors."""
    return descriptors(values, generator, "m")


def points(values: dict[str, Any], generator: np.random.Generator) -> Points:
    """``n`` descriptors."""
    return descriptors(values, generator, "n")


def centres(values: dict[str, Any], generator: np.random.Generator) -> Points:
    """``k`` descriptors."""
    return descriptors(values, generator, "k")


def k_nearest_numpy(queries: Points, points: Points, distances: Numbers, indices: Indices) -> None:
    """Squared distances and indices of the nearest points (both ``[m, k]``), nearest first.

    Distances are a matrix product of a BLAS and two sums of squares. With its index added, each is
    a number of its own, so that a partition finds the same ones always.
    """
    size, k = len(points), distances.shape[1]
    squares, places = np.einsum("ij,ij->i", points, points), np.arange(size)
    for first in range(0, len(queries), _TOGETHER):
        some = queries[first : first + _TOGETHER]
        apart = some @ points.T
        apart *= -2
        apart += squares
        apart += np.einsum("ij,ij->i", some, some)[:, np.newaxis]
        keys = apart.astype(np.int64)
        keys *= size
        keys += places
        keys.partition(k - 1, axis=1)
        nearest = np.sort(keys[:, :k], axis=1)
        distances[first : first + _TOGETHER] = nearest // size
        indices[first : first + _TOGETHER] = nearest % size


@njit(cache=True)
def _square(point: Numbers) -> Any:
    total = _ZERO
    for number in point:
        total += number * number
    return total


@njit(cache=True)
def _squares(points: Points) -> Any:
    """Sum of squares of each row, in panels of 64; rows that fill up the last are far away."""
    squares = np.full((panel_count(points.shape[0]), WIDTH), _FAR)
    for i in range(points.shape[0]):
        squares[i // WIDTH, i % WIDTH] = _square(points[i])
    return squares


@njit(cache=True)
def _weights(points: Points, depth: int) -> Any:
    """Weights that make of a product what is missing: ``|p - q|**2`` less the square of ``p`` is
    the square of ``q`` less two products. Filled up with zeros to an even number of rows."""
    weights = np.zeros((points.shape[0] + points.shape[0] % 2, depth), np.float32)
    for i in range(points.shape[0]):
        for c in range(points.shape[1]):
            weights[i, c] = np.float32(-2) * points[i, c]
    return weights


@njit(cache=True)
def _copy_to_rows(row: Numbers, rows: Any) -> None:
    """Written out, because compiling NumPy's broadcasting takes seconds."""
    for i in range(rows.shape[0]):
        for j in range(row.size):
            rows[i, j] = row[j]


@njit(cache=True)
def _any_below(numbers: Numbers, bound: Any) -> bool:
    """Ask in a loop that does nothing else, which becomes vector instructions."""
    found = False
    for number in numbers:
        found |= number < bound
    return found


@njit(cache=True)
def _insert(apart: Any, index: int, distances: Numbers, indices: Indices) -> None:
    """Put a point where it belongs among the nearest so far; the last one drops out."""
    place = distances.size - 1
    while place > 0 and distances[place - 1] > apart:
        distances[place], indices[place] = distances[place - 1], indices[place - 1]
        place -= 1
    distances[place], indices[place] = apart, index


@njit(cache=True)
def _insert_nearer(apart: Numbers, first: int, distances: Numbers, indices: Indices) -> None:
    """Insert those of some points, counted from ``first``, that are nearer than the last so far."""
    if _any_below(apart, distances[distances.size - 1]):
        for j in range(apart.size):
            if apart[j] < distances[distances.size - 1]:
                _insert(apart[j], first + j, distances, indices)


@njit(cache=True)
def _search(some: Points, panels: Any, squares: Any, distances: Numbers, indices: Indices) -> None:
    """Write the nearest points to some queries, panel by panel, each seen from all queries."""
    weights = _weights(some, panels.shape[1] // WIDTH)
    apart = np.empty((weights.shape[0], WIDTH), np.float32)
    distances[:] = _FAR
    for panel in range(panels.shape[0]):
        _copy_to_rows(squares[panel], apart)
        add_product(weights, panels[panel], apart)
        for query in range(some.shape[0]):
            _insert_nearer(apart[query], panel * WIDTH, distances[query], indices[query])
    for query in range(some.shape[0]):
        square = _square(some[query])
        for place in range(distances.shape[1]):
            distances[query, place] += square


@njit(parallel=True, cache=True)
def k_nearest_parallel(
    queries: Points, points: Points, distances: Numbers, indices: Indices
) -> None:
    """Take some queries at a time over the threads of the CPU; most points are only compared with
    the farthest of the nearest so far."""
    panels, squares = packed(points), _squares(points)
    for some in prange((queries.shape[0] + _TOGETHER - 1) // _TOGETHER):
        first, end = some * _TOGETHER, some * _TOGETHER + _TOGETHER
        _search(queries[first:end], panels, squares, distances[first:end], indices[first:end])


@cuda.jit(device=True)
def _insert_row(apart: Any, index: int, distances: Points, indices: Indices, row: int) -> Any:
    """Put a point among the nearest of ``row``; returns the distance of the last of them."""
    place = distances.shape[1] - 1
    while place > 0 and distances[row, place - 1] > apart:
        distances[row, place] = distances[row, place - 1]
        indices[row, place] = indices[row, place - 1]
        place -= 1
    distances[row, place], indices[row, place] = apart, index
    return distances[row, distances.shape[1] - 1]


@cuda.jit
def k_nearest_cuda(queries: Points, points: Points, distances: Points, indices: Indices) -> None:
    """Use a thread for each query, through all points; any one-dimensional launch is right."""
    for query in range(cuda.grid(1), queries.shape[0], cuda.gridsize(1)):
        for place in range(distances.shape[1]):
            distances[query, place] = _FAR
        last = _FAR
        for point in range(points.shape[0]):
            apart = _ZERO
            for c in range(points.shape[1]):
                one = queries[query, c] - points[point, c]
                apart += one * one
            if apart < last:
                last = _insert_row(apart, point, distances, indices, query)


def make_k_nearest_tiled(*, d: int) -> Any:
    """Return a CUDA kernel for points of ``d`` coordinates: a query in a thread's registers, and
    points that a block's threads load together and share.

    Any one-dimensional launch that gives every query a thread is right.
    """

    @cuda.jit
    def k_nearest_tiled(
        queries: Points, points: Points, distances: Points, indices: Indices
    ) -> None:
        tile = cuda.shared.array((_TILE, d), dtype=np.float32)
        own = cuda.local.array(d, dtype=np.float32)
        thread, threads, query = cuda.threadIdx.x, cuda.blockDim.x, cuda.grid(1)
        inside = query < queries.shape[0]
        last = _FAR
        for c in range(d):
            own[c] = queries[query, c] if inside else _ZERO
        for place in range(distances.shape[1] if inside else 0):
            distances[query, place] = _FAR
        for start in range(0, points.shape[0], _TILE):
            count = points.shape[0] - start
            count = count if count < _TILE else _TILE
            for i in range(thread, count * d, threads):
                tile[i // d, i % d] = points[start + i // d, i % d]
            cuda.syncthreads()
            for j in range(count if inside else 0):
                apart = _ZERO
                for c in range(d):
                    one = own[c] - tile[j, c]
                    apart += one * one
                if apart < last:
                    last = _insert_row(apart, start + j, distances, indices, query)
            cuda.syncthreads()

    return k_nearest_tiled


def kmeans_step_numpy(
    points: Points, centres: Points, sums: Any, counts: Any, labels: Indices, means: Points
) -> None:
    """Write the nearest centre of every point into ``labels`` (``[n]``), and the means of the
    points of each centre into ``means`` (``[k, d]``); a centre without points stays where it is.

    The square of a point is the same for all centres and left out. ``sums`` (``[k, d]``) and
    ``counts`` (``[k]``) are room, of int32.
    """
    squares, k = np.einsum("ij,ij->i", centres, centres), len(centres)
    twice = -2 * centres.T
    for first in range(0, len(points), _BLOCK):
        scores = points[first : first + _BLOCK] @ twice
        scores += squares
        labels[first : first + _BLOCK] = scores.argmin(axis=1)
    counts[:] = np.bincount(labels, minlength=k)
    for column in range(points.shape[1]):
        sums[:, column] = np.bincount(labels, points[:, column], k)
    means[:] = centres
    np.divide(sums, counts[:, np.newaxis], out=means, where=counts[:, np.newaxis] > 0)


# There is no NaN among distances; without leave to forget it, they are compared one by one.
@njit(cache=True, fastmath={"nnan", "nsz"})
def _least(numbers: Numbers) -> Any:
    least = numbers[0]
    for number in numbers:
        least = number if number < least else least
    return least


@njit(cache=True)
def _first(numbers: Numbers, wanted: Any) -> Any:
    """Index of the first of 64 numbers that is ``wanted``, by vector instructions."""
    first = np.int32(WIDTH)
    for i in range(WIDTH):
        place = np.int32(i) if numbers[i] == wanted else np.int32(WIDTH)
        first = min(first, place)
    return first


@njit(cache=True)
def _label_some(weights: Points, panels: Any, squares: Any, labels: Indices) -> None:
    """Nearest centre of some points, panel by panel."""
    apart = np.empty((weights.shape[0], WIDTH), np.float32)
    best = np.full(labels.size, _FAR)
    for panel in range(panels.shape[0]):
        _copy_to_rows(squares[panel], apart)
        add_product(weights, panels[panel], apart)
        for i in range(labels.size):
            least = _least(apart[i])
            if least < best[i]:
                best[i], labels[i] = least, panel * WIDTH + _first(apart[i], least)


@njit(cache=True)
def _group(
    points: Points, panels: Any, squares: Any, labels: Indices, sums: Any, counts: Any
) -> None:
    """Labels of a share of the points, whose coordinates are added up by label."""
    for first in range(0, labels.size, _TOGETHER):
        some = points[first : first + _TOGETHER]
        weights = _weights(some, panels.shape[1] // WIDTH)
        _label_some(weights, panels, squares, labels[first : first + _TOGETHER])
        for i in range(some.shape[0]):
            label = labels[first + i]
            counts[label] += 1
            for c in range(some.shape[1]):
                sums[label, c] += np.int32(some[i, c])


@njit(cache=True)
def _join_shares(sums: Any, counts: Any) -> None:
    """Add those of all other shares to the first's."""
    for share in range(1, _SHARES):
        for k in range(counts.shape[1]):
            counts[0, k] += counts[share, k]
            for c in range(sums.shape[2]):
                sums[0, k, c] += sums[share, k, c]


@njit(cache=True)
def _means(centres: Points, sums: Any, counts: Any, means: Points) -> None:
    for k in range(counts.size):
        for c in range(means.shape[1]):
            mean = centres[k, c]
            if counts[k] > 0:
                mean = np.float32(sums[k, c]) / np.float32(counts[k])
            means[k, c] = mean


@njit(cache=True)
def _room(k: int, d: int) -> Any:
    """Return sums and counts of each share, from zero."""
    return np.zeros((_SHARES, k, d), np.int32), np.zeros((_SHARES, k), np.int32)


@njit(parallel=True, cache=True)
def kmeans_step_parallel(
    points: Points, centres: Points, sums: Any, counts: Any, labels: Indices, means: Points
) -> None:
    """Take a share of the points at a time over the threads of the CPU, each with its own sums."""
    panels, squares = packed(centres), _squares(centres)
    length = (labels.size + _SHARES - 1) // _SHARES
    part_sums, part_counts = _room(centres.shape[0], centres.shape[1])
    for share in prange(_SHARES):
        first, end = share * length, (share + 1) * length
        _group(
            points[first:end],
            panels,
            squares,
            labels[first:end],
            part_sums[share],
            part_counts[share],
        )
    _join_shares(part_sums, part_counts)
    _means(centres, part_sums[0], part_counts[0], means)


@cuda.jit
def _clear(sums: Any, counts: Any) -> None:
    for k in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        counts[k] = 0
        for c in range(sums.shape[1]):
            sums[k, c] = 0


@cuda.jit(device=True)
def _label(point: Numbers, centres: Points) -> Any:
    """Index of the centre that is nearest to a point."""
    best, nearest = _FAR, 0
    for k in range(centres.shape[0]):
        apart = _ZERO
        for c in range(centres.shape[1]):
            one = point[c] - centres[k, c]
            apart += one * one
        if apart < best:
            best, nearest = apart, k
    return nearest


@cuda.jit
def _group_globally(points: Points, centres: Points, sums: Any, counts: Any, labels: Any) -> None:
    """Use a thread for each point; all threads of the device add to the same sums."""
    for i in range(cuda.grid(1), labels.size, cuda.gridsize(1)):
        label = _label(points[i], centres)
        labels[i] = label
        cuda.atomic.add(counts, label, 1)
        for c in range(points.shape[1]):
            cuda.atomic.add(sums, (label, c), np.int32(points[i, c]))


@cuda.jit
def _group_by_block(points: Points, centres: Points, sums: Any, counts: Any, labels: Any) -> None:
    """Use a thread for each point, which the block brings to shared memory; a block adds there too,
    and its sums to those of the device in the end.

    Shared memory holds ``k * (d + 1)`` whole numbers, and for each thread a point of ``d`` numbers,
    and one more where ``d`` is even: so 32 points begin in 32 banks.
    """
    room = cuda.shared.array(0, dtype=sums.dtype)
    near = cuda.shared.array(0, dtype=points.dtype)
    thread, threads, d = cuda.threadIdx.x, cuda.blockDim.x, points.shape[1]
    before_counts = counts.size * d
    before_points, pitch = before_counts + counts.size, d + 1 - d % 2
    for i in range(thread, before_points, threads):
        room[i] = 0
    for first in range(cuda.blockIdx.x * threads, labels.size, cuda.gridDim.x * threads):
        cuda.syncthreads()  # the sums are clear, and the points before were used by all
        for i in range(thread, min(threads, labels.size - first) * d, threads):
            near[before_points + i // d * pitch + i % d] = points[first + i // d, i % d]
        cuda.syncthreads()
        if first + thread < labels.size:
            mine = before_points + thread * pitch
            point = near[mine : mine + d]
            label = _label(point, centres)
            labels[first + thread] = label
            cuda.atomic.add(room, before_counts + label, 1)
            for c in range(d):
                cuda.atomic.add(room, label * d + c, np.int32(point[c]))
    cuda.syncthreads()
    for i in range(thread, before_counts, threads):
        cuda.atomic.add(sums, (i // d, i % d), room[i])
    for i in range(thread, counts.size, threads):
        cuda.atomic.add(counts, i, room[before_counts + i])


@cuda.jit
def _divide(centres: Points, sums: Any, counts: Any, means: Points) -> None:
    for k in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        for c in range(means.shape[1]):
            mean = centres[k, c]
            if counts[k] > 0:
                mean = np.float32(sums[k, c]) / np.float32(counts[k])
            means[k, c] = mean


def kmeans_step_cuda_global(
    launch: Any, points: Any, centres: Any, sums: Any, counts: Any, labels: Any, means: Any
) -> None:
    """Queue a step: clear, label and add to the sums of the device, divide."""
    _clear[1, launch.block, launch.stream](sums, counts)
    _group_globally[launch.grid, launch.block, launch.stream](points, centres, sums, counts, labels)
    _divide[1, launch.block, launch.stream](centres, sums, counts, means)


def kmeans_step_cuda_shared(
    launch: Any, points: Any, centres: Any, sums: Any, counts: Any, labels: Any, means: Any
) -> None:
    """Queue a step: clear, label and add within blocks first, divide."""
    _clear[1, launch.block, launch.stream](sums, counts)
    _group_by_block[launch.grid, launch.block, launch.stream, launch.shared_bytes](
        points, centres, sums, counts, labels
    )
    _divide[1, launch.block, launch.stream](centres, sums, counts, means)
