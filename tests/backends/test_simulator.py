"""Numba's simulator, in processes of its own: it is chosen when Numba is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

KERNELS = """
import numpy as np
from numba import cuda
from gpubench.backends.protocol import Launch, Target
from gpubench.backends.registry import get
from gpubench.errors import GpubenchError

backend = get("numba_cuda")

@cuda.jit
def double(a):
    a[cuda.grid(1)] *= 2

def refusal(launch, function=double):
    with backend.open("cudasim") as session:
        try:
            session.bind(Target(function=function), launch, [session.to_native(np.ones(4))])
        except GpubenchError as error:
            print(error)
"""


def simulated(program: str, switch: str = "1") -> subprocess.CompletedProcess[str]:
    """Run a program with the simulator's switch set."""
    return subprocess.run(
        [sys.executable, "-c", KERNELS + program],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": switch},
        capture_output=True,
        text=True,
        timeout=600,
    )


def said(program: str, switch: str = "1") -> list[str]:
    done = simulated(program, switch)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_simulator_keeps_the_protocol() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_conformance.py"],
        cwd=HERE,
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout
    assert "passed" in done.stdout


def test_the_simulator_is_never_given_a_launch_that_it_cannot_run() -> None:
    assert said(
        """
refusal(Launch((1024, 1, 1), (2**20, 1, 1)))
refusal(Launch((2048, 1, 1), (1, 1, 1)))
refusal(None)
refusal(Launch((1, 1, 1), (1, 1, 1)), function=print)
"""
    ) == [
        "launch of 1073741824 threads: the limit is 16384 threads (the simulator); "
        "use smaller sizes there",
        "block of 2048 threads: the limit is 1024 threads per block (the simulator); "
        "use a smaller block",
        "a CUDA kernel needs a 'launch' with its block; none is given",
        "<built-in function print> is no kernel of Numba's CUDA target; "
        "decorate it with numba.cuda.jit",
    ]


def test_a_process_is_either_simulated_or_not() -> None:
    devices = "print(backend.unavailable('cuda:0')); print(backend.unavailable('cudasim'))"
    assert said(devices) == [
        "cuda:0: this process runs the CUDA simulator (NUMBA_ENABLE_CUDASIM is set); "
        "unset it to run on a GPU, or use the device cudasim",
        "None",
    ]
    assert said(devices, switch="0")[1] == (
        "cudasim: this process does not run the CUDA simulator; "
        "set NUMBA_ENABLE_CUDASIM=1 in the environment before Python starts"
    )


def test_an_index_out_of_bounds_says_which_thread() -> None:
    assert said(
        """
with backend.open("cudasim") as session:
    a = session.to_native(np.ones(2))
    call = session.bind(Target(function=double), Launch((4, 1, 1), (1, 1, 1)), [a])
    try:
        call()
    except IndexError as error:
        print(str(error)[:20])
"""
    ) in (["tid=[2, 0, 0] ctaid="], ["tid=[3, 0, 0] ctaid="])
