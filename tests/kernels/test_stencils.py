"""Stencils on the CPU against what is known of them, and where pieces are cut."""

from __future__ import annotations

import numpy as np
import pytest

from gpubench.kernels import cellular, stencils

LINES = [
    stencils.stencil_1d_numpy,
    pytest.param(stencils.stencil_1d_parallel, marks=pytest.mark.ci),
]
PLANES = [stencils.jacobi_2d_numpy, pytest.param(stencils.jacobi_2d_parallel, marks=pytest.mark.ci)]
SPACES = [stencils.heat_3d_numpy, pytest.param(stencils.heat_3d_parallel, marks=pytest.mark.ci)]
LIVES = [
    cellular.game_of_life_numpy,
    pytest.param(cellular.game_of_life_parallel, marks=pytest.mark.ci),
]


def line(stencil, a, side, middle):
    out = np.full_like(a, np.nan)
    stencil(a, np.empty_like(a), out, side, middle)
    return out


@pytest.mark.parametrize("stencil", LINES)
@pytest.mark.parametrize("n", [3, 100, 16_385, 16_386, 16_387, 40_000])
def test_the_second_difference_of_squares_is_two_where_pieces_are_cut(stencil, n):
    squares = np.arange(n, dtype="float64") ** 2
    out = line(stencil, squares, 1.0, -2.0)
    assert (out[1:-1] == 2).all()
    assert (out[0], out[-1]) == (0, squares[-1])


@pytest.mark.parametrize("stencil", LINES)
@pytest.mark.parametrize("k", [1, 5, 40])
def test_a_wave_shrinks_by_the_factor_of_its_frequency(stencil, k):
    wave = np.sin(np.pi * k * np.arange(65) / 64)
    factor = 1 - np.sin(np.pi * k / 128) ** 2
    np.testing.assert_allclose(line(stencil, wave, 0.25, 0.5), factor * wave, atol=1e-14)


@pytest.mark.parametrize("jacobi", PLANES)
@pytest.mark.parametrize("n", [1, 2, 3, 17, 66])
def test_a_harmonic_surface_stays_as_it_is(jacobi, n):
    y, x = np.mgrid[:n, :n].astype("float64")
    harmonic, out = x * x - y * y + 3 * x * y + x, np.full((n, n), np.nan)
    jacobi(harmonic, out)
    assert (out == harmonic).all()


@pytest.mark.parametrize("jacobi", PLANES)
def test_a_single_point_is_handed_to_its_four_neighbours_in_equal_parts(jacobi):
    point, out = np.zeros((5, 5)), np.empty((5, 5))
    point[2, 2] = 1
    jacobi(point, out)
    expected = np.zeros((5, 5))
    expected[[1, 3, 2, 2], [2, 2, 1, 3]] = 0.25
    assert (out == expected).all()


@pytest.mark.parametrize("heat", SPACES)
def test_heat_spreads_to_six_neighbours_and_none_is_lost(heat):
    point, out = np.zeros((6, 6, 6)), np.full((6, 6, 6), np.nan)
    point[2, 3, 3] = 16
    heat(point, np.empty_like(point), out, 0.125, 0.25)
    assert out.sum() == 16
    assert out[2, 3, 3] == 4
    around = [(1, 3, 3), (3, 3, 3), (2, 2, 3), (2, 4, 3), (2, 3, 2), (2, 3, 4)]
    assert [out[place] for place in around] == [2] * 6


@pytest.mark.parametrize("heat", SPACES)
def test_the_rim_of_a_space_keeps_its_heat(heat):
    a, out = np.random.default_rng(0).random((4, 4, 4)), np.full((4, 4, 4), np.nan)
    heat(a, np.empty_like(a), out, 0.125, 0.25)
    rim = np.ones((4, 4, 4), bool)
    rim[1:-1, 1:-1, 1:-1] = False
    assert (out[rim] == a[rim]).all()
    assert (out[~rim] != a[~rim]).all()


def steps(life, cells, count):
    n = len(cells)
    for _ in range(count):
        out = np.full_like(cells, 7)
        life(cells, np.empty((n + 2, n + 2), np.uint8), np.empty((n + 2, n), np.uint8), out)
        cells = out
    return cells


@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("n", [5, 8, 33])
def test_a_glider_comes_back_after_it_crossed_all_edges(life, n):
    cells = np.zeros((n, n), np.uint8)
    cells[[0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = 1
    assert (steps(life, cells, 4) == np.roll(cells, 1, axis=(0, 1))).all()
    assert (steps(life, cells, 4 * n) == cells).all()


@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("around", range(9))
def test_three_neighbours_wake_a_cell_and_two_keep_it(life, around):
    ring = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 2)]
    for cell in (0, 1):
        cells = np.zeros((6, 6), np.uint8)
        for place in ring[:around]:
            cells[place] = 1
        cells[1, 1] = cell
        assert steps(life, cells, 1)[1, 1] == (around == 3 or (around == 2 and cell))
