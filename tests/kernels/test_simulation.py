"""Steps of simulations against what is conserved and known of them."""

from __future__ import annotations

import numpy as np
import pytest

from gpubench.kernels import simulation

GENERATOR = np.random.default_rng
ODES = [simulation.ode_numpy, pytest.param(simulation.ode_parallel, marks=pytest.mark.ci)]
GATES = [simulation.gate_numpy, pytest.param(simulation.gate_parallel, marks=pytest.mark.ci)]
SWEEPS = [simulation.ising_numpy, pytest.param(simulation.ising_parallel, marks=pytest.mark.ci)]


@pytest.mark.parametrize("advance", ODES)
def test_a_system_at_rest_stays(advance):
    rest = np.array([[np.sqrt(72)], [np.sqrt(72)], [27.0]])  # (sqrt(b (r - 1)), same, r - 1)
    out = np.empty_like(rest)
    advance(rest, out, 0.005, 10)
    np.testing.assert_allclose(out, rest, rtol=1e-12)


@pytest.mark.parametrize("advance", ODES)
def test_half_the_step_has_a_sixteenth_of_the_error(advance):
    start = simulation.lorenz_states({"n": 5, "dtype": "float64"}, GENERATOR(1))
    coarse, fine, exact = np.empty((3, *start.shape))
    advance(start, coarse, 0.01, 10)
    advance(start, fine, 0.005, 20)
    advance(start, exact, 0.0001, 1000)
    shares = np.abs(fine - exact).max() / np.abs(coarse - exact).max()
    assert 1 / 24 < shares < 1 / 10


@pytest.mark.ci
@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_systems_are_advanced_alike_where_they_are_cut(n):
    start = simulation.lorenz_states({"n": n, "dtype": "float64"}, GENERATOR(n))
    found, expected = np.empty((2, *start.shape))
    simulation.ode_parallel(start, found, 0.005, 3)
    simulation.ode_numpy(start, expected, 0.005, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("apply", GATES)
@pytest.mark.parametrize("target", [0, 1, 3])
def test_a_gate_acts_on_its_qubit_alone(apply, target):
    values = {"qubits": 4, "dtype": "complex128"}
    state = simulation.unit_amplitudes(values, GENERATOR(1))
    gate = simulation.rotation(values, GENERATOR())
    whole = np.eye(1)
    for qubit in range(4):
        whole = np.kron(gate if qubit == target else np.eye(2), whole)
    expected = whole @ state
    apply(state, gate, target)
    np.testing.assert_allclose(state, expected, atol=1e-14)
    assert np.linalg.norm(state) == pytest.approx(1)


@pytest.mark.ci
@pytest.mark.parametrize("target", [0, 5, 11, 12, 13])
def test_both_forms_of_a_gate_agree_where_pieces_are_cut(target):
    values = {"qubits": 14, "dtype": "complex128"}
    one = simulation.unit_amplitudes(values, GENERATOR())
    other, gate = one.copy(), simulation.rotation(values, GENERATOR())
    simulation.gate_numpy(one, gate, target)
    simulation.gate_parallel(other, gate, target)
    np.testing.assert_allclose(other, one, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("sweep", SWEEPS)
def test_without_heat_no_spin_turns_against_its_neighbours(sweep):
    spins = simulation.spins({"n": 20}, GENERATOR(1))
    before = energy(spins)
    for seed in range(50):
        sweep(spins, np.zeros(5, np.uint32), np.uint64(seed))
        assert energy(spins) <= before
        before = energy(spins)


@pytest.mark.ci
def test_both_forms_turn_the_same_spins():
    limits = simulation.turning_limits({}, GENERATOR())
    one, other = (simulation.spins({"n": 37}, GENERATOR(1)) for _ in range(2))
    for seed in range(20):
        simulation.ising_numpy(one, limits, np.uint64(seed))
        simulation.ising_parallel(other, limits, np.uint64(seed))
        np.testing.assert_array_equal(one, other)
    assert abs(one.sum()) < one.size


@pytest.mark.ci
def test_an_order_that_is_there_survives_below_the_transition_and_not_above():
    """The magnetization per site of Onsager and Yang, (1 - sinh(2 K)**-4)**(1/8), at K = 0.6."""
    for coupling, low, high in ((0.6, 0.9, 1.0), (0.1, -0.1, 0.1)):
        limits = (np.exp(-2 * coupling * np.arange(5)) * (2.0**32 - 1)).astype(np.uint32)
        spins = np.ones((64, 64), np.int8)
        for seed in range(200):
            simulation.ising_parallel(spins, limits, np.uint64(seed))
        assert low < spins.mean() < high


def energy(spins):
    whole = spins.astype(int)
    return -(whole[1:] * whole[:-1]).sum() - (whole[:, 1:] * whole[:, :-1]).sum()
