"""Modin over workers of Dask and of Ray: in an environment of its own, for Modin pins pandas."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import frame_functions
import numpy as np
import pytest

from gpubench.backends.protocol import Session, Target
from gpubench.backends.registry import get
from gpubench.errors import BackendError, KernelError
from gpubench.measure.tables import comparable, fitted
from gpubench.measure.verify_cases import Manner, Verifier
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite

pytest.importorskip("modin")
pa = pytest.importorskip("pyarrow")

SUITE = Path(__file__).parents[1] / "suites/frames.yaml"
DEVICES = ("dask:2:1", "ray:2")


KERNELS = tuple(load_suite(SUITE).suite.kernels)


def case_of(kernel: str, device: str) -> Case:
    cases = build_plan([load_suite(SUITE, "smoke")], gpu_count=0).cases()
    of_modin = (case for case in cases if case.backend == "modin" and case.device == device)
    return next(case for case in of_modin if case.kernel_name == kernel)


@pytest.fixture(scope="module", params=DEVICES)
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """Kept open over the tests of a device, so that those of the suite find its workers."""
    with get("modin").open(request.param) as opened:
        yield opened


def table() -> Any:
    return pa.table(
        {
            "word": pa.array(["a", "b", None, "a"], pa.large_string()).dictionary_encode(),
            "v": pa.array([1.0, None, 3.0, 4.0]),
            "c": pa.array([1, 2, 3, 4], pa.int32()),
        }
    )


def test_a_table_comes_back_as_it_went(session: Session) -> None:
    sent = table()
    back = session.table_to_host(session.table_to_native(sent))
    expected = comparable("t", sent, ())
    for name, values in fitted(comparable("t", back, ()), expected).items():
        np.testing.assert_array_equal(values, expected[name], strict=True)


def test_the_workers_do_the_work(session: Session) -> None:
    native = session.table_to_native(table())
    seen = []

    def where(x: Any) -> Any:
        seen.append(type(x).__module__)
        return x.assign(pid=x["v"].map(lambda _: os.getpid()))

    answer = session.bind(Target(function=where), None, [native])()
    pids = set(session.table_to_host(answer)["pid"].to_pylist())
    assert seen == ["modin.pandas.dataframe"]
    assert pids and os.getpid() not in pids


def test_a_call_returns_when_its_work_is_done(session: Session) -> None:
    native = session.table_to_native(table())

    def slow(x: Any) -> Any:
        return x.assign(c=x["c"].map(lambda c: time.sleep(0.2) or c))

    call = session.bind(Target(function=slow), None, [native])
    start = time.perf_counter()
    answer = call()
    assert time.perf_counter() - start > 0.2  # what one row takes, in whichever worker
    assert session.table_to_host(answer)["c"].to_pylist() == [1, 2, 3, 4]


def test_what_is_no_frame_of_modin_is_refused(session: Session) -> None:
    native = session.table_to_native(table())

    def as_pandas(x: Any) -> Any:
        return frame_functions.sums(x.modin.to_pandas())

    answer = session.bind(Target(function=as_pandas), None, [native])()
    with pytest.raises(
        KernelError, match=r"^a table came as a pandas\.core\.frame\.DataFrame; all"
    ):
        session.table_to_host(answer)


def test_work_that_modin_does_not_share_out_carries_a_warning(session: Session) -> None:
    native = session.table_to_native(table())

    def shared(x: Any) -> Any:
        return x[["c"]] + 1

    def not_shared(x: Any) -> Any:
        return x[["c"]].ewm(2).mean()

    for function, warnings in ((shared, 0), (not_shared, 1)):
        sampler = session.sampler(session.bind(Target(function=function), None, [native]))
        assert len(sampler.warnings) == warnings, function


def test_a_second_session_beside_one_and_after_it_has_functions_of_its_own(
    session: Session,
) -> None:
    """Modin keeps references to functions that it has handed to workers."""
    device = "ray:2" if session.facts()["modin_engine"] == "ray" else "dask:2:1"

    def chosen(opened: Session) -> Any:
        native = opened.table_to_native(table())
        call = opened.bind(Target(function=lambda x: x[x["c"] > 2][["c"]]), None, [native])
        return opened.table_to_host(call())["c"].to_pylist()

    assert chosen(session) == [3, 4]
    with get("modin").open(device) as other:
        assert chosen(other) == [3, 4]
        assert chosen(session) == [3, 4]
    assert chosen(session) == [3, 4]


def test_facts_name_versions_and_workers(session: Session) -> None:
    facts = session.facts()
    assert facts["workers"] == 2
    assert {"modin", "pandas", "modin_engine", "pool_start_seconds"} <= facts.keys()


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_answer_of_the_suite_is_right(session: Session, kernel: str) -> None:
    device = "ray:2" if session.facts()["modin_engine"] == "ray" else "dask:2:1"
    result = Verifier(Manner())((0, case_of(kernel, device)))
    assert (result.status, result.reason) == ("right", None)


def test_devices_are_workers_of_dask_and_of_ray() -> None:
    serves = get("modin").serves
    assert [*map(serves, ("dask:2:1", "ray:4", "cpu", "ray:auto", "dask:tcp://a:1", "dask:2"))] == [
        *(True, True, False, False, False, False)
    ]


@pytest.mark.parametrize("device", DEVICES)
def test_threads_and_a_strange_memory_are_refused(device: str) -> None:
    with pytest.raises(BackendError, match=r"^threads of 3: workers are part of the device's name"):
        get("modin").open(device, 3)
    with pytest.raises(BackendError, match=r"^the option memory is 'much'"):
        get("modin").open(device, None, {"memory": "much"})
