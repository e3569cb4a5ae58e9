"""What asv has started ends with it, whoever ends asv and whenever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc of Linux")


def run(code: str, *, ignored: str = "") -> subprocess.CompletedProcess[str]:
    ignore = f"signal.signal(signal.{ignored}, signal.SIG_IGN)\n" if ignored else ""
    program = f"import os, signal, sys\n{ignore}{code}"
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


ENDING = """
sys.argv = ["asv"]  # no command of asv's
from gpubench.asv_plugin import end_as_by_ctrl_c
end_as_by_ctrl_c()
try:
    os.kill(os.getpid(), signal.{name})
    print("it goes on")
except KeyboardInterrupt:
    print("as by Ctrl-C")
"""


@pytest.mark.parametrize(
    ("name", "ignored", "said"),
    [
        ("SIGTERM", "", "as by Ctrl-C"),
        ("SIGHUP", "", "as by Ctrl-C"),
        ("SIGTERM", "SIGINT", "as by Ctrl-C"),
        pytest.param("SIGHUP", "SIGINT", "as by Ctrl-C", marks=pytest.mark.thorough),
        pytest.param("SIGHUP", "SIGHUP", "it goes on", marks=pytest.mark.thorough),
    ],
)
def test_asv_ends_as_by_ctrl_c(name: str, ignored: str, said: str) -> None:
    assert run(ENDING.format(name=name), ignored=ignored).stdout == f"{said}\n"


GONE = """
from gpubench.processes import end_with_parent
end_with_parent(root={root})
print("it goes on")
"""


def test_who_starts_after_asv_has_ended_ends_too() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert run(GONE.format(root=os.getpid())).stdout == "it goes on\n"
    assert run(GONE.format(root=None)).stdout == "it goes on\n"
    assert run(GONE.format(root=process.pid)).returncode == -signal.SIGKILL
