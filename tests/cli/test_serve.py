"""``gpubench serve`` as a process: its address, a change on disk, and Ctrl-C."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from result_files import CommitFiles

from gpubench.cli import main

Served = tuple[subprocess.Popen[str], str]


def write_commit(directory: Path, digit: str, seconds: float) -> None:
    files = CommitFiles(directory / ".asv" / "results", digit * 40, 86_400 * int(digit))
    files.time("suites.add__numpy.time_kernel", "n=4", seconds).write()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A running server of one commit, and its address."""
    write_commit(tmp_path, "1", 1.0)
    command = [sys.executable, "-u", "-m", "gpubench", "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        line = process.stdout.readline()
        address = re.fullmatch(r"(http://127\.0\.0\.1:\d+/) \(Ctrl-C ends it\)\n", line)
        assert address, (line, process.stderr and process.stderr.read())
        yield process, address[1]
        process.kill()


def fetch(address: str) -> str:
    with urllib.request.urlopen(address, timeout=10) as response:
        return str(response.read().decode())


def test_it_shows_pages_and_rewrites_them_until_ctrl_c(served: Served, tmp_path: Path) -> None:
    process, address = served
    assert "11111111" in fetch(address)
    assert process.stderr

    write_commit(tmp_path, "2", 2.0)

    assert re.fullmatch(r"\d\d:\d\d:\d\d written again\n", process.stderr.readline())
    assert "22222222" in fetch(address)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in errors


def test_a_template_with_a_fault_is_told_and_the_old_pages_stay(
    served: Served, tmp_path: Path
) -> None:
    process, address = served
    (tmp_path / "reports" / "overview.html").write_text("{% nonsense %}")
    assert process.stderr

    told = process.stderr.readline()

    assert re.match(r"\d\d:\d\d:\d\d the pages stay as they were: \S*overview\.html:1: ", told)
    assert "11111111" in fetch(address)


def test_a_port_in_use_ends_it_with_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["serve", "--port", str(port)])

    assert result.exit_code == 2
    assert result.stderr == (
        f"gpubench: port {port} of 127.0.0.1 cannot be had: Address already in use; "
        "give another with --port, or --port 0 for any free one\n"
    )


def test_a_port_that_is_none_is_refused() -> None:
    result = CliRunner().invoke(main, ["serve", "--port", "65536"])

    assert result.exit_code == 2
    assert "65536 is not in the range 0<=x<=65535" in result.stderr
