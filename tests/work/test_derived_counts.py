"""What follows from counts, by hand."""

from __future__ import annotations

import pytest

from gpubench.work import derived

COUNTS = {
    "ptx_instructions": 100,
    "ptx_thread_instructions": 2400,
    "global_load_requests": 4,
    "global_load_sectors": 16,
    "global_load_ideal_sectors": 12,
    "global_store_requests": 2,
    "global_store_sectors": 64,
    "global_store_ideal_sectors": 8,
    "shared_load_wavefronts": 33,
    "shared_load_ideal_wavefronts": 3,
    "flops_float16": 1,
    "flops_float32": 20,
    "flops_float64": 300,
}


def test_sectors_are_divided_by_the_requests_of_their_kind() -> None:
    assert derived.sectors_per_load(COUNTS) == 4.0
    assert derived.sectors_per_store(COUNTS) == 32.0
    assert derived.sectors_per_request(COUNTS) == pytest.approx(80 / 6)


def test_excess_is_what_goes_beyond_the_ideal() -> None:
    assert derived.excess_sectors(COUNTS) == 60
    assert derived.excess_wavefronts(COUNTS) == 30


def test_inactive_lanes_are_a_share_of_all_lanes() -> None:
    assert derived.inactive_lanes(COUNTS) == 0.25


def test_operations_of_all_types_add_up() -> None:
    assert derived.counted_flops(COUNTS) == 321
    assert derived.accessed_bytes(COUNTS) == 80 * 32


def test_what_did_not_happen_has_no_ratio() -> None:
    assert derived.sectors_per_load({}) is None
    assert derived.sectors_per_request({}) is None
    assert derived.inactive_lanes({}) is None
    assert derived.excess_sectors({}) == 0
