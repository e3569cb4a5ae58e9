"""How near a case comes to what its device was measured to do."""

from __future__ import annotations

import pytest

from gpubench.analysis.roofline import MemoryCeiling, attained, memory_ceiling
from gpubench.names import Value
from gpubench.results import CaseName, Row


def case(
    kernel: str = "add",
    seconds: float = 1.0,
    nbytes: int | None = 100,
    flops: int | None = None,
    device: str = "cuda:0",
    conditions: dict[str, Value] | None = None,
    identity: str = "n=1",
) -> Row:
    name = CaseName("s", kernel, "numba", "kernel", identity)
    return Row(
        name, "ok", seconds=seconds, device=device, bytes=nbytes, flops=flops,
        bytes_per_second=nbytes / seconds if nbytes else None,
        flops_per_second=flops / seconds if flops else None,
        conditions=conditions or {},
    )  # fmt: skip


MEASURED: dict[str, Value] = {"copy_bytes_per_second": 180.0, "triad_bytes_per_second": 200.0}


def test_the_higher_of_copy_and_triad_is_the_bandwidth() -> None:
    found = memory_ceiling("cuda:0", [case(conditions=MEASURED)], {}, ())

    assert found == MemoryCeiling("cuda:0", 200.0, "triad measured on the device")


def test_facts_of_the_run_are_the_gpu_s_and_not_the_cpu_s() -> None:
    assert memory_ceiling("cuda:0", [], MEASURED, ()) is not None
    assert memory_ceiling("cpu", [], MEASURED, ()) is None


def test_kernels_that_only_move_data_give_the_cpu_a_ceiling() -> None:
    streams = [
        case("triad", 1.0, 800, device="cpu", identity="n=1"),
        case("triad", 5.0, 1000, device="cpu", identity="n=2"),
        case("copy", 4.0, 1000, device="cpu", identity="n=2"),
        case("copy", 1.0, 1000, device="cuda:0", identity="n=2"),
    ]

    found = memory_ceiling("cpu", [], {}, streams)

    assert found == MemoryCeiling("cpu", 250.0, "s.copy numba n=2")


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "fast", True, None])
def test_what_is_no_rate_is_no_ceiling(value: Value | None) -> None:
    assert memory_ceiling("cuda:0", [], {"copy_bytes_per_second": value}, ()) is None


def test_memory_bounds_a_case_of_few_operations() -> None:
    found = attained(case(seconds=1.0, nbytes=100, flops=10), MemoryCeiling("cuda:0", 200.0, ""))

    assert found is not None
    assert (found.share, found.intensity) == (0.5, 0.1)


def test_without_operations_the_share_is_of_the_bandwidth() -> None:
    found = attained(case(seconds=2.0, nbytes=100), MemoryCeiling("cuda:0", 200.0, ""))

    assert found is not None
    assert (found.share, found.intensity) == (0.25, None)


def test_a_case_without_bytes_has_no_share() -> None:
    assert attained(case(nbytes=None), MemoryCeiling("cuda:0", 200.0, "")) is None
