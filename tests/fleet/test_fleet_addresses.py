"""Who may be spoken to: with TLS everybody, without it this machine alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="make test-systems has it")

from click.testing import CliRunner

from gpubench.cli import main
from gpubench.errors import GpubenchError
from gpubench.fleet.addresses import listening_place, scheduler_address
from gpubench.fleet.cluster import security_for

pytestmark = pytest.mark.systems

NOTHING = (None, None, None)
FILES = ("ca.pem", "cert.pem", "key.pem")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "127.0.0.1:1", "tcp://[::1]:8786"])
def test_without_tls_this_machine_is_allowed(address: str) -> None:
    assert not security_for(address, *NOTHING).require_encryption


@pytest.mark.parametrize(
    "address",
    ["tcp://10.0.0.5:8786", "tcp://lab.example:8786", "tls://127.0.0.1:8786", "ws://[::1]:1"],
)
def test_without_tls_no_other_machine_is(address: str) -> None:
    with pytest.raises(GpubenchError, match="give --tls-ca-file, --tls-cert and --tls-key, or fo"):
        security_for(address, *NOTHING)


def test_with_tls_any_machine_is_allowed_and_both_sides_show_who_they_are() -> None:
    security = security_for("tls://lab.example:8786", *FILES)
    assert security.require_encryption
    for role in ("client", "worker"):
        assert security.get_tls_config_for_role(role) == {
            "ca_file": "ca.pem",
            "cert": "cert.pem",
            "key": "key.pem",
            "ciphers": None,
        }


def test_certificates_for_an_address_without_tls_are_refused() -> None:
    with pytest.raises(GpubenchError, match=r"tcp://lab:1 is without TLS.* write tls://lab:1"):
        security_for("tcp://lab:1", *FILES)


@pytest.mark.parametrize("command", [["run"], ["status"], ["worker"]])
def test_the_refusal_is_one_line(command: list[str]) -> None:
    address = "tcp://192.0.2.1:8786"
    where = [address] if command == ["worker"] else ["--scheduler", address]
    result = CliRunner().invoke(main, ["fleet", *command, *where])
    assert result.exit_code == 2
    assert result.output.startswith(f"gpubench: {address}: without TLS only addresses of the")
    assert result.output.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        # dask-kubernetes, dask-jobqueue and `dask ssh`; the first says the address by a variable.
        "--name a --dashboard --dashboard-address 8788",
        "tcp://192.0.2.2:1 --name a --nthreads 1 --memory-limit 0.93GiB --nanny --death-timeout 60",
        "--checkout here tcp://192.0.2.2:1 --nthreads 1 --host lab1 --local-directory /tmp",
    ],
)
def test_in_place_of_dasks_worker_it_finds_the_address_among_its_options(words: str) -> None:
    address = next((word for word in words.split() if "://" in word), "tcp://192.0.2.1:8786")
    done = subprocess.run(
        [sys.executable, "-m", "gpubench.fleet", *words.split()],
        env={**os.environ, "DASK_SCHEDULER_ADDRESS": "tcp://192.0.2.1:8786"},
        capture_output=True,
        text=True,
    )
    assert done.stderr.startswith(f"gpubench: {address}: without TLS only addresses of the"), done


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1:9001", "lab1"])
def test_without_tls_a_worker_listens_to_this_machine_alone(host: str, tmp_path: Path) -> None:
    where = ["tcp://127.0.0.1:1", "--host", host, "--checkout", str(tmp_path)]
    result = CliRunner().invoke(main, ["fleet", "worker", *where])
    assert result.exit_code == 2
    assert f"gpubench: --host {host}: without TLS a worker listens on" in result.output


def test_without_dask_it_says_what_to_install(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(sys.modules["gpubench.cli.fleet"], "find_spec", lambda name: None)
    result = CliRunner().invoke(main, ["fleet", "status", "--scheduler", "tcp://127.0.0.1:1"])
    assert (result.exit_code, result.output) == (
        2,
        "gpubench: a fleet needs Dask: pip install 'gpubench-suite[fleet]'\n",
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("tcp://127.0.0.1:8786/", "tcp://127.0.0.1:8786"),
        ("tcp://127.0.0.1:8786//", "tcp://127.0.0.1:8786"),
        (" tcp://lab1:1\n", "tcp://lab1:1"),
        ("lab1", "lab1:8786"),
        ("TLS://lab1", "tls://lab1:8786"),
        ("tcp://[::1]", "tcp://[::1]:8786"),
        ("[fe80::1%eth0]:9", "[fe80::1%eth0]:9"),
        ("tls://my_scheduler.lab.example:65535", "tls://my_scheduler.lab.example:65535"),
    ],
)
def test_addresses_are_taken_as_people_write_them(written: str, meant: str) -> None:
    assert scheduler_address(written) == meant


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", "it names no host"),
        ("tcp://", "it names no host"),
        ("tcp:///", "it names no host"),
        ("http://lab1:8787/status", "http:// is not one of tcp:// and tls://"),
        ("inproc://1", "inproc:// is not one of tcp:// and tls://"),
        ("tcp:/lab1:8786", "'/lab1:8786' is not a port"),
        ("tcp://lab1:8786/status", "'8786/status' is not a port"),
        ("tcp://lab1/8786", "a host is a name or an address"),
        ("tcp://lab 1:8786", "a host is a name or an address"),
        ("tcp://lab1 :8786", "a host is a name or an address"),
        ("tcp://lab1: 8786", "' 8786' is not a port"),
        ("lab1:", "'' is not a port"),
        ("lab1:0", "'0' is not a port"),
        ("lab1:65536", "'65536' is not a port"),
        ("lab1:-1", "'-1' is not a port"),
        ("lab1:\u0663", "is not a port"),
        ("::1", "write an IPv6 address in brackets"),
        ("tcp://::1:8786", "write an IPv6 address in brackets"),
        ("[::1", "a host is a name or an address"),
        ("[lab1]:8786", "[lab1] is not an IPv6 address"),
        ("[127.0.0.1]:8786", "[127.0.0.1] is not an IPv6 address"),
        ("ann@lab1:8786", "a host is a name or an address"),
    ],
)
def test_other_addresses_are_refused_in_one_line(written: str, why: str) -> None:
    for words in (["status", "--scheduler", written], ["worker", written]):
        result = CliRunner().invoke(main, ["fleet", *words])
        assert result.exit_code == 2, result.output
        assert result.output.startswith("gpubench: scheduler ")
        assert why in result.output
        assert result.output.count("\n") == 1


def test_where_a_worker_listens_is_checked_too() -> None:
    assert listening_place("127.0.0.1") == "127.0.0.1"
    assert listening_place("[::1]:9001") == "[::1]:9001"
    for written in ("127.0.0.1:9001/", "127.0.0.1:", "::1"):
        with pytest.raises(GpubenchError, match=r"^--host .* write it as 127\.0\.0\.1:9001"):
            listening_place(written)
