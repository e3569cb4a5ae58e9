"""How near a case comes to what its device was measured to do."""

from __future__ import annotations

import pytest

from gpubench.analysis.baseline import Compared
from gpubench.analysis.roofline import Ceilings, attained, find_ceilings
from gpubench.names import Value
from gpubench.record import CaseRecord
from gpubench.results import CaseName, Outcome, Timing


def case(
    kernel: str = "add",
    seconds: float = 1.0,
    nbytes: int | None = 100,
    flops: int | None = None,
    device: str = "cuda:0",
    conditions: dict[str, Value] | None = None,
    identity: str = "n=1",
) -> Compared:
    name = CaseName("s", kernel, "numba", "kernel", identity)
    record = CaseRecord(
        name.benchmark.asv_name, identity, "ok", "", device=device, bytes=nbytes, flops=flops,
        conditions=conditions or {},
    )  # fmt: skip
    found = Outcome(name, "ok", timing=Timing(seconds, seconds, seconds), record=record)
    return Compared(found, True, None, None, identity)


MEASURED: dict[str, Value] = {"copy_bytes_per_second": 180.0, "triad_bytes_per_second": 200.0}


def test_the_higher_of_copy_and_triad_is_the_bandwidth() -> None:
    found = find_ceilings("cuda:0", [case(conditions=MEASURED)], {}, ())

    assert found == Ceilings("cuda:0", 200.0, "triad measured on the device")


def test_facts_of_the_run_are_the_gpu_s_and_not_the_cpu_s() -> None:
    assert find_ceilings("cuda:0", [], MEASURED, ()) is not None
    assert find_ceilings("cpu", [], MEASURED, ()) is None


def test_kernels_that_only_move_data_give_the_cpu_a_ceiling() -> None:
    streams = [
        case("triad", 1.0, 800, device="cpu", identity="n=1"),
        case("triad", 5.0, 1000, device="cpu", identity="n=2"),
        case("copy", 4.0, 1000, device="cpu", identity="n=2"),
        case("copy", 1.0, 1000, device="cuda:0", identity="n=2"),
    ]

    found = find_ceilings("cpu", [], {}, streams)

    assert found == Ceilings("cpu", 250.0, "s.copy numba n=2")


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "fast", True, None])
def test_what_is_no_rate_is_no_ceiling(value: Value | None) -> None:
    assert find_ceilings("cuda:0", [], {"copy_bytes_per_second": value}, ()) is None


def test_memory_bounds_a_case_of_few_operations() -> None:
    found = attained(case(seconds=1.0, nbytes=100, flops=10), Ceilings("cuda:0", 200.0, ""))

    assert found is not None
    assert (found.share, found.intensity) == (0.5, 0.1)


def test_arithmetic_bounds_a_case_of_many() -> None:
    ceilings = Ceilings("cuda:0", 200.0, "", flops_per_second=1000.0)

    found = attained(case(seconds=1.0, nbytes=10, flops=500), ceilings)

    assert found is not None
    assert found.share == 0.5


def test_without_operations_the_share_is_of_the_bandwidth() -> None:
    found = attained(case(seconds=2.0, nbytes=100), Ceilings("cuda:0", 200.0, ""))

    assert found is not None
    assert (found.share, found.intensity) == (0.25, None)


def test_a_case_without_bytes_has_no_share() -> None:
    assert attained(case(nbytes=None), Ceilings("cuda:0", 200.0, "")) is None
