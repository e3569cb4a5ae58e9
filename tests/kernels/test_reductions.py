"""Reductions on the CPU where pieces are cut, and what they do with numbers that are not."""

from __future__ import annotations

import numpy as np
import pytest

from gpubench.kernels import extremes, histograms, moments, reductions, scans, streaming

BEYOND_A_PIECE = (4095, 4097, 131_071, 131_073, 300_001)
"""One less and one more than the pieces that loops of the CPU work on, and many of them."""


def uniform(n, dtype="float64"):
    return np.random.default_rng(n).random(n).astype(dtype)


@pytest.mark.ci
@pytest.mark.parametrize("n", BEYOND_A_PIECE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_are_right_where_pieces_are_cut(n, dtype):
    x, y, out = uniform(n, dtype), uniform(n + 1, dtype)[1:].copy(), np.empty(1, dtype)
    tolerance = {"float32": 1e-6, "float64": 1e-13}[dtype]
    reductions.sum_parallel(x, x, out)
    assert out[0] == pytest.approx(x.sum(dtype="float64"), rel=tolerance)
    reductions.dot_parallel(x, y, x, out)
    assert out[0] == pytest.approx(x.astype("float64") @ y.astype("float64"), rel=tolerance)


@pytest.mark.ci
@pytest.mark.parametrize("n", BEYOND_A_PIECE)
def test_the_largest_number_is_found_where_pieces_are_cut(n):
    for place in (0, n // 2, n - 1):
        x, largest, found = uniform(n), np.empty(1), np.empty(1, np.int64)
        x[place] = 2.0
        extremes.maximum_parallel(x, x, found, largest)
        extremes.argmax_parallel(x, x, found, found)
        assert (largest[0], found[0]) == (2.0, place)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("numbers", "place"),
    [
        ([1.0, 3.0, 3.0, 2.0], 1),
        ([1.0, np.nan, 5.0, np.nan], 1),
        ([np.nan, 1.0], 0),
        ([1.0, np.inf, np.nan], 2),
    ],
)
@pytest.mark.parametrize("padding", [0, 200_000])
def test_the_first_of_equals_counts_and_what_is_no_number_is_largest(numbers, place, padding):
    x = np.concatenate([np.full(padding, -np.inf), numbers, np.full(padding, -np.inf)])
    largest, found = np.empty(1), np.empty(1, np.int64)
    extremes.maximum_parallel(x, x, found, largest)
    extremes.argmax_parallel(x, x, found, found)
    assert found[0] == x.argmax() == padding + place
    np.testing.assert_equal(largest[0], x.max())


@pytest.mark.ci
def test_of_infinitely_small_numbers_the_first_is_the_largest():
    x, found = np.full(200_000, -np.inf), np.empty(1, np.int64)
    extremes.argmax_parallel(x, x, found, found)
    assert found[0] == x.argmax() == 0


@pytest.mark.parametrize(
    "form",
    [
        moments.mean_variance_numpy,
        pytest.param(moments.mean_variance_parallel, marks=pytest.mark.ci),
    ],
)
@pytest.mark.parametrize("n", [*BEYOND_A_PIECE, 2**24])
def test_the_variance_of_numbers_far_from_zero_keeps_its_digits(form, n):
    x = moments.numbers_far_from_zero({"n": n, "dtype": "float32"}, np.random.default_rng(n))
    out = np.empty(2, np.float32)
    form(x, x, out)
    exact = x.astype("float64")
    assert out[0] == pytest.approx(exact.mean(), rel=1e-6)
    assert out[1] == pytest.approx(exact.var(), rel=1e-5)
    textbook = (x * x).mean() - x.mean() ** 2
    assert abs(textbook - exact.var()) > 1e-4


@pytest.mark.ci
@pytest.mark.parametrize("n", [*BEYOND_A_PIECE, 600_001])
def test_running_sums_go_on_where_pieces_and_chunks_are_cut(n):
    x = np.random.default_rng(n).integers(-100, 100, n, dtype=np.int32)
    out = np.empty_like(x)
    scans.inclusive_scan_parallel(x, x, out)
    np.testing.assert_array_equal(out, np.cumsum(x, dtype=np.int32))


@pytest.mark.ci
def test_running_sums_wrap_around_in_every_form():
    x = np.full(5000, 2**30, np.int32)
    found, expected = np.empty_like(x), np.empty_like(x)
    scans.inclusive_scan_parallel(x, x, found)
    scans.inclusive_scan_numpy(x, x, expected)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.ci
@pytest.mark.parametrize("bins", [1, 7, 64, 1000])
@pytest.mark.parametrize("n", [3, 4097, 300_001])
def test_every_number_is_counted_once(n, bins):
    x, counts, expected = uniform(n, "float32"), np.empty(bins, np.int32), np.empty(bins, np.int32)
    histograms.histogram_parallel(x, counts)
    histograms.histogram_numpy(x, expected)
    assert counts.sum() == n
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.ci
def test_the_largest_number_below_one_is_in_the_last_bin():
    x = np.full(5, np.nextafter(np.float32(1), np.float32(0)), np.float32)
    for bins in range(1, 2000):
        counts = np.empty(bins, np.int32)
        histograms.histogram_numpy(x, counts)
        assert counts[-1] == 5
    histograms.histogram_parallel(x, counts)
    assert counts[-1] == 5


@pytest.mark.ci
@pytest.mark.parametrize("kind", ["spread", "hot"])
def test_keys_are_hot_where_the_suite_says_so(kind):
    values = {"n": 300_001, "bins": 16, "keys": kind}
    keys, counts = histograms.keys(values, np.random.default_rng(1)), np.empty(16, np.int32)
    histograms.bincount_parallel(keys, counts)
    np.testing.assert_array_equal(counts, np.bincount(keys))
    assert (counts.max() > 0.9 * keys.size) == (kind == "hot")


def test_streams_compute_what_they_are_named_for():
    a, b, c = np.array([1.0, 2]), np.array([10.0, 20]), np.array([100.0, 200])
    scratch = np.empty(2)
    streaming.nstream_numpy(a, b, c, scratch, 3.0)
    assert a.tolist() == [311, 622]
    streaming.triad_numpy(a, b, c, 2.0)
    assert a.tolist() == [210, 420]
    streaming.saxpy_numpy(b, a, scratch, 0.5)
    assert a.tolist() == [215, 430]
    streaming.strided_copy_numpy(np.arange(6.0), a, 3)
    assert a.tolist() == [0, 3]
    streaming.misaligned_copy_numpy(np.arange(3.0), a, 1)
    assert a.tolist() == [1, 2]
