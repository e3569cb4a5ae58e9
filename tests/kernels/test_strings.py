"""Checksums against zlib's, and distances against the table that defines them."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from gpubench.kernels import strings

CHECKSUMS = [strings.crc32_numpy, pytest.param(strings.crc32_parallel, marks=pytest.mark.ci)]
DISTANCES = [
    strings.edit_distance_numpy,
    pytest.param(strings.edit_distance_parallel, marks=pytest.mark.ci),
]
GENERATOR = np.random.default_rng


@pytest.mark.parametrize("checksum", CHECKSUMS)
@pytest.mark.parametrize("length", [1, 7, 8, 9, 16, 100])
def test_a_checksum_is_that_of_zlib(checksum, length):
    messages = GENERATOR(length).integers(0, 256, (5, length), np.uint8)
    out = np.zeros(5, np.uint32)
    checksum(messages, strings.crc_tables({}, GENERATOR()), out)
    assert out.tolist() == [zlib.crc32(message.tobytes()) for message in messages]


@pytest.mark.parametrize("distance", DISTANCES)
def test_kitten_is_three_changes_from_sitting(distance):
    a, b = (np.frombuffer(word, np.uint8).reshape(1, -1) for word in (b"kitten ", b"sitting"))
    out = np.zeros(1, np.int32)
    distance(a, b, out)
    assert out.tolist() == [3]


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("n", [1, 2, 5, 63, 64, 65, 130])
def test_a_distance_is_the_last_cell_of_the_table(distance, n):
    a, b = (strings.words({"pairs": 70, "n": n}, GENERATOR(seed)) for seed in (1, 2))
    b[-1] = a[-1]
    out = np.full(70, -1, np.int32)
    distance(a, b, out)
    assert out[-1] == 0
    assert out.tolist()[:3] == [levenshtein(*pair) for pair in zip(a[:3], b[:3], strict=True)]
    assert out[65] == levenshtein(a[65], b[65])


def levenshtein(a, b):
    """Row by row, as the distance is defined."""
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (letter != other))
    return row[-1]
