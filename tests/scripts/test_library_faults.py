"""``scripts/library_faults.py`` finds something where something was taken out, and only there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.gpu
def test_a_kernel_as_it_is_has_no_fault_even_where_a_size_proves_nothing() -> None:
    if os.environ.get("GPUBENCH_SOFTCUDA") != "1":
        pytest.skip("needs the sanitizer of the device in software")
    # One cell alone dies, so that the right result is what a kernel that does nothing leaves.
    command = [sys.executable, "scripts/library_faults.py", "--child", "stencils.game_of_life"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0)
