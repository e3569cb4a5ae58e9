"""PyCUDA on a CUDA device, a GPU or one in software: its session, its programs, the suite."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda_programs import LAUNCH, SCALED, N, cases_on_the_gpu, crash, program

from gpubench.backends.cuda_driver import driver
from gpubench.backends.cuda_sampling import PLAIN, REPLAY
from gpubench.backends.protocol import DeviceMemoryError, Target
from gpubench.backends.registry import get
from gpubench.edge.systems.pycuda import PycudaSession
from gpubench.errors import KernelError
from gpubench.measure.verify_cases import Manner, Verifier

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        importlib.util.find_spec("pycuda") is None, reason="PyCUDA is not installed"
    ),
]


@pytest.fixture
def session() -> Iterator[PycudaSession]:
    with get("pycuda").open("cuda:0") as opened:
        assert isinstance(opened, PycudaSession)
        yield opened


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_reach_a_program_in_the_types_that_it_declares(
    session: PycudaSession, dtype: str
) -> None:
    array = session.to_native(np.arange(N, dtype=dtype))
    session.bind(program(real=dtype), LAUNCH, [array, 1.5, N - 1])()
    expected = np.arange(N, dtype=dtype) * np.where(np.arange(N) < N - 1, 1.5, 1).astype(dtype)
    np.testing.assert_array_equal(session.to_host(array), expected)


def test_a_program_that_does_not_compile_shows_the_line(session: PycudaSession) -> None:
    broken = program(SCALED.replace("*= by", "*= bye"))
    call = session.bind(broken, LAUNCH, [session.to_native(np.ones(N)), 2.0, N])
    with pytest.raises(KernelError, match=r'(?s)scale does not compile.*"bye" is undefined'):
        call()


def test_a_kernel_that_is_not_there_is_refused(session: PycudaSession) -> None:
    call = session.bind(program(entry="scales"), LAUNCH, [session.to_native(np.ones(N)), 2.0, N])
    with pytest.raises(KernelError, match="no kernel 'scales'"):
        call()


def test_a_program_is_replayed_from_a_graph(session: PycudaSession) -> None:
    array = session.to_native(np.ones(N))
    sampler = session.sampler(session.bind(program(), LAUNCH, [array, 2.0, N]))
    session.restore(array, session.to_native(np.ones(N)))
    sampler.seconds(5)
    assert sampler.method == REPLAY
    np.testing.assert_array_equal(session.to_host(array), np.full(N, 32.0))


def test_pycudas_arrays_are_timed_between_plain_events(session: PycudaSession) -> None:
    """They queue on the default stream, which cannot be captured."""
    array = session.to_native(np.ones(N))

    def double(a: Any) -> None:
        a *= 2

    sampler = session.sampler(session.bind(Target(function=double), None, [array]))
    session.restore(array, session.to_native(np.ones(N)))
    sampler.seconds(5)
    assert sampler.method == PLAIN
    np.testing.assert_array_equal(session.to_host(array), np.full(N, 32.0))


def test_no_room_is_said_and_leaves_the_session_usable(session: PycudaSession) -> None:
    cuda: Any = importlib.import_module("pycuda.driver")
    _, total = cuda.mem_get_info()
    call = session.bind(Target(function=lambda: cuda.mem_alloc(2 * total)), None, [])
    with pytest.raises(DeviceMemoryError, match=r"^cuda:0 is out of memory: .*use smaller sizes"):
        call()
    np.testing.assert_array_equal(session.to_host(session.to_native(np.ones(N))), np.ones(N))


def test_closing_gives_back_the_context_and_pycudas_own_compiler() -> None:
    compiler: Any = importlib.import_module("pycuda.compiler")
    own, current = compiler.compile, driver().cuCtxGetCurrent
    before = int(current()[1])
    with get("pycuda").open("cuda:0") as session:
        assert int(current()[1]) != 0
        used = session.facts()["pycuda_compiler"]
        # softcuda's is there from the first import of PyCUDA on
        assert (compiler.compile is own) == (used == "nvcc" or session.simulated)
    assert compiler.compile is own
    assert int(current()[1]) == before


def test_an_illegal_access_loses_the_device_and_leaving_is_silent() -> None:
    assert crash("pycuda").startswith("lost: the work crashed on cuda:0: ")


@pytest.mark.parametrize("case", cases_on_the_gpu("cuda_libraries", "pycuda"))
def test_every_kernel_of_the_suite_is_right(case: Any) -> None:
    result = Verifier(Manner())((0, case))
    assert (result.status, result.reason) == ("right", None)
