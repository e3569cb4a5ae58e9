"""What goes wrong in kernels for CUDA is found on a machine without a GPU."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    done = subprocess.run(
        [sys.executable, "check_on_the_simulator.py", tmp_path_factory.mktemp("simulated")],
        cwd=HERE,
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_right_kernel_is_checked_and_has_no_time(outcomes):
    right = outcomes["in_bounds"]
    assert (right["status"], right["raised"]) == ("ok", "Skipped")
    assert right["reason"].startswith("checked on the simulator, which has no times")


def test_a_write_out_of_bounds_fails_with_its_thread_and_block(outcomes):
    wrong = outcomes["out_of_bounds"]
    assert wrong["status"] == "failed"
    place = (
        r"tid=\[\d+, 0, 0\] ctaid=\[2, 0, 0\]: index \d+ is out of bounds for axis 0 with size 37"
    )
    assert re.search(place, wrong["reason"])


@pytest.mark.parametrize(
    ("kernel", "fault"),
    [
        ("too_few_blocks", "out: 5 of 37 elements are NaN or infinite on one side only"),
        ("one_thread_for_all", "out: 36 of 37 elements are NaN or infinite on one side only"),
        ("in_wrong_place", "out: 21 of 37 elements are off by more than 1e-05"),
    ],
)
def test_a_kernel_that_misses_elements_is_wrong(outcomes, kernel, fault):
    wrong = outcomes[kernel]
    assert (wrong["status"], wrong["raised"]) == ("wrong", "WrongResult")
    assert wrong["reason"].startswith(f"differs from the baseline 'numpy': {fault}")
