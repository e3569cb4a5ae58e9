"""Fourier transforms against their definition."""

from __future__ import annotations

import numpy as np
import pytest

from gpubench.kernels import signals

FORMS = [signals.fft_numpy, pytest.param(signals.fft_parallel, marks=pytest.mark.ci)]


def transformed(form, x):
    n = x.shape[1]
    twiddles = signals.roots_of_unity({"n": n, "dtype": x.dtype}, np.random.default_rng())
    out = np.full_like(x, np.nan)
    form(x, twiddles, np.empty_like(x), out)
    return out


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [1, 2, 4, 8, 16, 32, 64])
def test_a_transform_is_the_product_with_the_roots_of_unity(form, n):
    generator = np.random.default_rng(n)
    x = generator.standard_normal((3, n)) + 1j * generator.standard_normal((3, n))
    matrix = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    np.testing.assert_allclose(transformed(form, x), x @ matrix, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_wave_becomes_a_single_line(form):
    wave = np.exp(2j * np.pi * 5 * np.arange(2048) / 2048).reshape(1, -1)
    lines = transformed(form, wave)[0]
    assert lines[5] == pytest.approx(2048)
    assert np.abs(np.delete(lines, 5)).max() < 1e-9


@pytest.mark.parametrize("form", FORMS)
def test_a_transform_keeps_the_energy(form):
    x = np.random.default_rng(1).standard_normal((2, 512)).astype(np.complex64)
    found = transformed(form, x)
    assert found.dtype == np.complex64
    np.testing.assert_allclose(
        np.linalg.norm(found, axis=1), np.sqrt(512) * np.linalg.norm(x, axis=1), rtol=1e-5
    )
