"""Filters of images against what is known of them, and where they meet an edge."""

from __future__ import annotations

import numpy as np
import pytest

from gpubench.kernels import images

CONVOLUTIONS = [
    images.convolution_numpy,
    pytest.param(images.convolution_parallel, marks=pytest.mark.ci),
]
MEDIANS = [images.median_numpy, pytest.param(images.median_parallel, marks=pytest.mark.ci)]
SHAPES = [(1, 1), (1, 6), (3, 2), (4, 5), (5, 4), (6, 9)]


def drawn(shape, dtype="float64"):
    return (255 * np.random.default_rng(1).random(shape)).astype(dtype)


@pytest.mark.parametrize("convolution", CONVOLUTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_convolution_sums_the_weighted_pixels_that_there_are(convolution, shape):
    image, weights, out = drawn(shape), drawn((5, 5)), np.full(shape, np.nan)
    convolution(image, weights, out)
    for y, x in np.ndindex(shape):
        around = [
            image[y + i, x + j] * weights[i + 2, j + 2]
            for i in range(-2, 3)
            for j in range(-2, 3)
            if 0 <= y + i < shape[0] and 0 <= x + j < shape[1]
        ]
        assert out[y, x] == pytest.approx(sum(around))


@pytest.mark.parametrize("convolution", CONVOLUTIONS)
def test_a_blur_leaves_an_even_surface_as_it_is(convolution):
    weights = images.gaussian({"dtype": "float64"}, np.random.default_rng())
    out = np.empty((9, 9))
    convolution(np.full((9, 9), 7.0), weights, out)
    assert out[2:-2, 2:-2] == pytest.approx(7.0)
    assert out[0, 0] < 7.0


@pytest.mark.parametrize("median", MEDIANS)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("shape", [*SHAPES, (20, 30)])
def test_a_median_is_the_fifth_of_the_nine_pixels_around(median, dtype, shape):
    image, out = drawn(shape, dtype), np.zeros(shape, dtype)
    median(image, out)
    padded = np.pad(image, 1, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3)).reshape(*shape, 9)
    np.testing.assert_array_equal(out, np.sort(windows, axis=-1)[..., 4])


@pytest.mark.parametrize("median", MEDIANS)
def test_a_single_bright_pixel_is_removed(median):
    image, out = np.zeros((7, 7), np.uint8), np.ones((7, 7), np.uint8)
    image[3, 3] = 255
    median(image, out)
    assert not out.any()
