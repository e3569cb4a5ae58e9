"""Particles against what is conserved, what is known in closed form, and a search of all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from gpubench.kernels import neighbours, particles

GENERATOR = np.random.default_rng
NBODY = [particles.nbody_numpy, pytest.param(particles.nbody_parallel, marks=pytest.mark.ci)]
FORCES = [
    particles.lennard_jones_numpy,
    pytest.param(particles.lennard_jones_parallel, marks=pytest.mark.ci),
]
LISTS = [
    neighbours.neighbour_list_numpy,
    pytest.param(neighbours.neighbour_list_parallel, marks=pytest.mark.ci),
]


@pytest.mark.parametrize("accelerate", NBODY)
def test_two_bodies_fall_towards_each_other_by_the_law_of_gravity(accelerate):
    positions, masses = np.array([[0.0, 3.0], [0.0, 4.0], [0.0, 0.0]]), np.array([2.0, 10.0])
    out = np.empty_like(positions)
    accelerate(positions, masses, out, 1e-12)
    np.testing.assert_allclose(out[:, 0], [10 * 3 / 125, 10 * 4 / 125, 0])
    np.testing.assert_allclose(out[:, 1], [-2 * 3 / 125, -2 * 4 / 125, 0])


@pytest.mark.parametrize("accelerate", NBODY)
@pytest.mark.parametrize("n", [1, 2, 181, 182, 400])
def test_forces_between_all_pairs_cancel(accelerate, n):
    generator = GENERATOR(n)
    positions, masses = generator.standard_normal((3, n)), generator.random(n)
    out = np.full_like(positions, np.nan)
    accelerate(positions, masses, out, 0.01)
    np.testing.assert_allclose(out @ masses, 0, atol=1e-10)


@pytest.mark.parametrize("n", [1, 31, 108, 109, 256, 257, 864])
def test_particles_of_the_melt_lie_in_their_box_and_apart(n):
    positions, box = neighbours.melt({"n": n, "dtype": "float64"}, GENERATOR(n))
    assert positions.shape == (3, n)
    assert positions.min() >= 0
    assert positions.max() < box[0]
    squares = squares_of(positions, box[0])
    assert (squares + np.eye(n)).min() > 0.7**2
    np.testing.assert_array_equal(positions, positions.astype("float32"))


@pytest.mark.parametrize("build", LISTS)
@pytest.mark.parametrize("n", [1, 2, 17, 109, 257, 500, 865])
def test_a_list_has_all_particles_within_reach_in_rising_order(build, n):
    positions, box = neighbours.melt({"n": n, "dtype": "float32"}, GENERATOR(n))
    listed, counts = np.full((neighbours.WIDTH, n), -1, np.int32), np.full(n, -1, np.int32)
    build(positions, box, listed, listed, listed, counts)
    near = squares_of(positions, box[0]) < neighbours.REACH**2
    np.fill_diagonal(near, False)
    for i in range(n):
        (expected,) = near[i].nonzero()
        assert counts[i] == expected.size
        assert listed[: counts[i], i].tolist() == expected.tolist()
        assert (listed[counts[i] :, i] == i).all()


def test_a_particle_of_the_melt_has_as_many_neighbours_as_the_suite_counts():
    *_, counts = particles.melt_with_neighbours({"n": 2048, "dtype": "float32"}, GENERATOR(1))
    assert counts.mean() == pytest.approx(76, abs=0.5)
    assert counts.max() < 85


@pytest.mark.parametrize("act", FORCES)
def test_two_particles_pull_each_other_as_the_slope_of_their_potential_says(act):
    for distance in (0.9, 2 ** (1 / 6), 1.5, 2.499, 2.501):
        positions = np.array([[0.1, 10.1 - distance], [5, 5], [5, 5]])  # nearest across the edge
        listed = np.tile(np.array([[1, 0]], np.int32), (neighbours.WIDTH, 1))
        listed[1:] = np.arange(2)
        out = np.empty_like(positions)
        act(positions, np.array([10.0]), listed, np.ones(2, np.int32), out)
        slope = 24 * (2 * distance**-13 - distance**-7) if distance < particles.CUTOFF else 0
        np.testing.assert_allclose(out[0], [slope, -slope], rtol=1e-12, atol=1e-12)
        assert (out[1:] == 0).all()


@pytest.mark.parametrize("act", FORCES)
@pytest.mark.parametrize("n", [500, 521])
def test_forces_between_neighbours_cancel(act, n):
    positions, box, listed, counts = particles.melt_with_neighbours(
        {"n": n, "dtype": "float64"}, GENERATOR(n)
    )
    out = np.full_like(positions, np.nan)
    act(positions, box, listed, counts, out)
    assert np.abs(out).max() > 10
    np.testing.assert_allclose(out.sum(axis=1), 0, atol=1e-10)


def squares_of(positions, box):
    """Squares of all distances to the nearest image."""
    apart = positions[:, :, None].astype("float64") - positions[:, None]
    apart -= box * np.rint(apart / box)
    return (apart**2).sum(axis=0)
