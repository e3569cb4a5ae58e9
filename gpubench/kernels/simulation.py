"""One step of a simulation, or a few: the work that a program repeats thousands of times.

Random numbers come from a counter: every site has its own, whichever thread asks, and every form
draws the same.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpubench.kernels.lazy_numba import cuda, njit, prange
from gpubench.kernels.random_numbers import bits_numpy, bits_on_cpu, bits_on_device

States = NDArray[Any]
"""Shape ``[3, n]``: x, y and z of every system, one dtype."""
Amplitudes = NDArray[Any]
"""Shape ``[2**qubits]``, complex; the bits of an index are the qubits, the lowest is qubit 0."""
Gate = NDArray[Any]
"""Shape ``[2, 2]``, unitary, of the amplitudes' dtype."""
Spins = NDArray[np.int8]
"""Shape ``[n, n]``, 1 or -1."""
Limits = NDArray[np.uint32]
"""Shape ``[5]``: 2**32 times the probability to turn against 0 to 4 neighbours."""

_LANES = 64  # systems that a CPU thread advances together
_PAIRS = 4096  # of amplitudes that a CPU thread takes at once; a power of two
_CRITICAL = 0.44  # coupling over temperature, close to the phase transition at log(1 + sqrt(2)) / 2

_HIGH = np.uint64(32)  # of 64 random bits, the 32 that are looked at


def lorenz_states(values: dict[str, Any], generator: np.random.Generator) -> States:
    """Return starts around the middle of the attractor."""
    states = generator.standard_normal((3, values["n"])) + np.array([[0.0], [0.0], [25.0]])
    return np.asarray(states, values["dtype"])


def ode_numpy(states: States, out: States, step: Any, steps: int) -> None:
    """Make ``steps`` steps of length ``step`` of every Lorenz system, from ``states`` into ``out``,
    by the Runge-Kutta method of fourth order: a pass over all systems for each operation."""
    number = states.dtype.type
    half, sixth = number(step / 2), number(step / 6)
    out[:] = states
    for _ in range(steps):
        k1 = _slopes_of_all(out)
        k2 = _slopes_of_all(out + half * k1)
        k3 = _slopes_of_all(out + half * k2)
        k4 = _slopes_of_all(out + step * k3)
        k2 += k3
        k2 *= 2
        k1 += k2
        k1 += k4
        k1 *= sixth
        out += k1


def _slopes_of_all(states: States) -> States:
    """Lorenz's equations with his parameters 10, 28 and 8/3."""
    x, y, z = states
    slopes = np.empty_like(states)
    np.multiply(y - x, 10, out=slopes[0])
    np.subtract(x * (28 - z), y, out=slopes[1])
    np.subtract(x * y, z * (8 / 3), out=slopes[2])
    return slopes


def _advance(x: Any, y: Any, z: Any, step: Any, numbers: Any) -> Any:
    """One step of one system. ``numbers`` are 10, 28, 8/3, 1/2, 1/6 and 2 in the dtype of the rest:
    literals would be doubles."""
    sigma, rho, beta, half, sixth, two = numbers
    k, l, m = sigma * (y - x), x * (rho - z) - y, x * y - beta * z  # noqa: E741
    h = half * step
    x2, y2, z2 = x + h * k, y + h * l, z + h * m
    k2, l2, m2 = sigma * (y2 - x2), x2 * (rho - z2) - y2, x2 * y2 - beta * z2
    x3, y3, z3 = x + h * k2, y + h * l2, z + h * m2
    k3, l3, m3 = sigma * (y3 - x3), x3 * (rho - z3) - y3, x3 * y3 - beta * z3
    x4, y4, z4 = x + step * k3, y + step * l3, z + step * m3
    k4, l4, m4 = sigma * (y4 - x4), x4 * (rho - z4) - y4, x4 * y4 - beta * z4
    h = sixth * step
    x += h * (k + two * (k2 + k3) + k4)
    y += h * (l + two * (l2 + l3) + l4)
    return x, y, z + h * (m + two * (m2 + m3) + m4)


_advance_on_cpu = njit(cache=True)(_advance)
_advance_on_device = cuda.jit(device=True)(_advance)


@njit(cache=True)
def _step_together(x: Any, y: Any, z: Any, step: Any, numbers: Any) -> None:
    """One step of neighbouring systems, by vector instructions."""
    for lane in range(x.size):
        x[lane], y[lane], z[lane] = _advance_on_cpu(x[lane], y[lane], z[lane], step, numbers)


@njit(parallel=True, cache=True)
def ode_parallel(states: States, out: States, step: Any, steps: int) -> None:
    """Take some systems at a time through all steps, in a core's L1 cache."""
    number = states.dtype.type
    numbers = (number(10), number(28), number(8 / 3), number(0.5), number(1 / 6), number(2))
    size = out.shape[1]
    for some in prange((size + _LANES - 1) // _LANES):
        first, end = some * _LANES, min(size, some * _LANES + _LANES)
        x, y, z = (
            states[0, first:end].copy(),
            states[1, first:end].copy(),
            states[2, first:end].copy(),
        )
        for _ in range(steps):
            _step_together(x, y, z, step, numbers)
        out[0, first:end], out[1, first:end], out[2, first:end] = x, y, z


@cuda.jit
def ode_cuda(states: States, out: States, step: Any, steps: int) -> None:
    """Use a thread for each system, its state in registers; any one-dimensional launch is right."""
    number = states.dtype.type
    numbers = (number(10), number(28), number(8 / 3), number(0.5), number(1 / 6), number(2))
    for i in range(cuda.grid(1), out.shape[1], cuda.gridsize(1)):
        x, y, z = states[0, i], states[1, i], states[2, i]
        for _ in range(steps):
            x, y, z = _advance_on_device(x, y, z, step, numbers)
        out[0, i], out[1, i], out[2, i] = x, y, z


def unit_amplitudes(values: dict[str, Any], generator: np.random.Generator) -> Amplitudes:
    """Return a state of length 1."""
    parts = generator.standard_normal((2, 2 ** values["qubits"]))
    state = parts[0] + 1j * parts[1]
    return np.asarray(state / np.linalg.norm(state), values["dtype"])


def rotation(values: dict[str, Any], generator: np.random.Generator) -> Gate:
    """Return a turn about the axis between x and y, so that all four elements are complex or
    real."""
    c, s = math.cos(0.3), math.sin(0.3)
    turn = np.exp(0.25j * math.pi)
    return np.array([[c, -1j * s * turn.conjugate()], [-1j * s * turn, c]], values["dtype"])


def gate_numpy(state: Amplitudes, gate: Gate, target: int) -> None:
    """Apply ``gate`` to the qubit ``target`` of ``state``, in place."""
    pairs = state.reshape(-1, 2, 1 << target)
    zero, one = pairs[:, 0].copy(), pairs[:, 1].copy()
    np.multiply(zero, gate[0, 0], out=pairs[:, 0])
    pairs[:, 0] += gate[0, 1] * one
    np.multiply(one, gate[1, 1], out=pairs[:, 1])
    pairs[:, 1] += gate[1, 0] * zero


@njit(cache=True)
def _gate_on_halves(zero: Amplitudes, one: Amplitudes, gate: Gate) -> None:
    """Pairs that lie in two arrays: a loop of vector instructions."""
    a, b, c, d = gate[0, 0], gate[0, 1], gate[1, 0], gate[1, 1]
    for i in range(zero.size):
        low, high = zero[i], one[i]
        zero[i], one[i] = a * low + b * high, c * low + d * high


@njit(cache=True)
def _gate_on_pairs(state: Amplitudes, gate: Gate, target: int) -> None:
    """Pairs that lie near each other."""
    a, b, c, d = gate[0, 0], gate[0, 1], gate[1, 0], gate[1, 1]
    apart = 1 << target
    for pair in range(state.size // 2):
        i = (pair >> target << (target + 1)) | (pair & (apart - 1))
        low, high = state[i], state[i + apart]
        state[i], state[i + apart] = a * low + b * high, c * low + d * high


@njit(parallel=True, cache=True)
def gate_parallel(state: Amplitudes, gate: Gate, target: int) -> None:
    """Do the same in one pass, over the threads of the CPU."""
    apart = 1 << target
    piece = min(_PAIRS, state.size // 2)
    for some in prange(state.size // 2 // piece):
        first = some * piece
        if apart < piece:
            _gate_on_pairs(state[2 * first : 2 * (first + piece)], gate, target)
        else:
            i = (first >> target << (target + 1)) | (first & (apart - 1))
            _gate_on_halves(state[i : i + piece], state[i + apart : i + apart + piece], gate)


@cuda.jit
def gate_cuda(state: Amplitudes, gate: Gate, target: int) -> None:
    """Use a thread for each pair of amplitudes; any one-dimensional launch is right."""
    a, b, c, d = gate[0, 0], gate[0, 1], gate[1, 0], gate[1, 1]
    apart = 1 << target
    for pair in range(cuda.grid(1), state.size // 2, cuda.gridsize(1)):
        i = (pair >> target << (target + 1)) | (pair & (apart - 1))
        zero, one = state[i], state[i + apart]
        state[i], state[i + apart] = a * zero + b * one, c * zero + d * one


def spins(values: dict[str, Any], generator: np.random.Generator) -> Spins:
    """Return a hot start: up or down by chance."""
    up = generator.random((values["n"], values["n"])) < 0.5
    return np.where(up, 1, -1).astype(np.int8)


def turning_limits(values: dict[str, Any], generator: np.random.Generator) -> Limits:
    """Return probabilities: to turn when ``k`` more neighbours agree than do not is exp(-2 k J /
    T)."""
    probability = np.exp(-2 * _CRITICAL * np.arange(5))
    return np.asarray(np.minimum(probability * 2.0**32, 2.0**32 - 1), np.uint32)


def ising_numpy(spins: Spins, limits: Limits, seed: Any) -> None:
    """Make a Metropolis sweep, in place: the black squares of a checkerboard, then the white ones.

    Spins beyond an edge count as none. A colour is two lattices of every second row and column.
    """
    n = spins.shape[0]
    padded = np.pad(spins, 1)
    sites = np.arange(n * n, dtype=np.uint64).reshape(n, n)
    for row, column in ((0, 0), (1, 1), (0, 1), (1, 0)):
        here = padded[1 + row : n + 1 : 2, 1 + column : n + 1 : 2]
        around = (
            padded[row:n:2, 1 + column : n + 1 : 2] + padded[2 + row :: 2, 1 + column : n + 1 : 2]
        )
        around += padded[1 + row : n + 1 : 2, column:n:2]
        around += padded[1 + row : n + 1 : 2, 2 + column :: 2]
        around *= here
        drawn = bits_numpy(sites[row::2, column::2], seed) >> _HIGH
        turned = drawn < limits[np.maximum(around, 0)]
        turned |= around <= 0
        np.negative(here, out=here, where=turned)
    spins[:] = padded[1:-1, 1:-1]


@njit(cache=True)
def _sweep_row(spins: Spins, limits: Limits, seed: Any, row: int, colour: int) -> None:
    """Go through the squares of one colour in a row."""
    n = spins.shape[0]
    for column in range((row + colour) % 2, n, 2):
        around = 0
        if row > 0:
            around += spins[row - 1, column]
        if row + 1 < n:
            around += spins[row + 1, column]
        if column > 0:
            around += spins[row, column - 1]
        if column + 1 < n:
            around += spins[row, column + 1]
        around *= spins[row, column]
        if around <= 0 or bits_on_cpu(row * n + column, seed) >> _HIGH < limits[around]:
            spins[row, column] = -spins[row, column]


@njit(parallel=True, cache=True)
def ising_parallel(spins: Spins, limits: Limits, seed: Any) -> None:
    """Do the same row by row, each colour over the threads of the CPU."""
    for colour in range(2):
        for row in prange(spins.shape[0]):
            _sweep_row(spins, limits, seed, row, colour)


@cuda.jit
def _turn_colour(spins: Spins, limits: Limits, seed: Any, colour: int) -> None:
    """Use a thread for each square of one colour: half as many along x as there are columns."""
    half, row = cuda.grid(2)
    n = spins.shape[0]
    column = 2 * half + (row + colour) % 2
    if row < n and column < n:
        around = 0
        if row > 0:
            around += spins[row - 1, column]
        if row + 1 < n:
            around += spins[row + 1, column]
        if column > 0:
            around += spins[row, column - 1]
        if column + 1 < n:
            around += spins[row, column + 1]
        around *= spins[row, column]
        if around <= 0 or bits_on_device(row * n + column, seed) >> _HIGH < limits[around]:
            spins[row, column] = -spins[row, column]


def ising_cuda(launch: Any, spins: Any, limits: Any, seed: Any) -> None:
    """Queue a sweep: one launch for each colour, of ``cdiv(n, 2)`` threads by ``n`` or more."""
    for colour in range(2):
        _turn_colour[launch.grid, launch.block, launch.stream](spins, limits, seed, colour)
