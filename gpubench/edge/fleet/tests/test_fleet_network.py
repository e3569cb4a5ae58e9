"""Three machines with network interfaces of their own, on one bridge: network namespaces."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="make test-systems has it")

from fleet_project import PATIENCE, fleet_at, statuses, tls_options, wait_until

pytestmark = pytest.mark.systems

NETWORK = "192.0.2."
"""Addresses that RFC 5737 gives to nobody."""

NAMES = ("coordinator", "alpha", "beta", "gamma")


def why_not() -> str | None:
    """Why there can be no network namespaces here."""
    tools = ("unshare", "nsenter", "ip", "ss", "openssl")
    if missing := [tool for tool in tools if not shutil.which(tool)]:
        return f"needs {', '.join(missing)}"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True)
    return tried.stderr.strip() or None


@dataclass(frozen=True)
class Host:
    """A network namespace. It is there as long as a process in it, which ends with this one."""

    pid: int

    @property
    def enter(self) -> tuple[str, ...]:
        """What a command there begins with."""
        return ("nsenter", "--net", "--target", str(self.pid))

    def ip(self, words: str) -> None:
        self.run("ip", *words.split())

    def run(self, *command: str) -> str:
        done = subprocess.run([*self.enter, *command], capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def open_ports(self) -> set[str]:
        """Those that others reach."""
        lines = self.run("ss", "--no-header", "--listening", "--tcp", "--numeric").splitlines()
        places = [line.split()[3].rpartition(":") for line in lines]
        return {port for address, _, port in places if not address.startswith("127.")}


@contextmanager
def bridged() -> Iterator[dict[str, Host]]:
    """Hosts that reach each other, and nothing else. The first has the bridge."""
    with ExitStack() as stack:
        hosts = {}
        for number, name in enumerate(NAMES, 1):
            # It ends when nobody has its standard input any more.
            holding = subprocess.Popen(
                ["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            stack.enter_context(holding)
            assert holding.stdin and holding.stdout
            holding.stdin.write(b"\n")
            holding.stdin.flush()
            assert holding.stdout.readline()  # it is in its namespace
            host = hosts[name] = Host(holding.pid)
            host.ip("link set lo up")
            first = hosts[NAMES[0]]
            if host is first:
                host.ip("link add wire type bridge")
            else:
                first.ip(f"link add {name} type veth peer name wire netns {host.pid}")
                first.ip(f"link set {name} master wire up")
            host.ip(f"addr add {NETWORK}{number}/24 dev wire")
            host.ip("link set wire up")
        yield hosts


WHY_NOT = why_not()


@pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")
def test_machines_of_a_network_measure_over_tls_and_one_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP", "11s")  # the least that Dask takes
    tls_options(tmp_path, "ours", "ours")
    with (
        bridged() as hosts,
        fleet_at(
            tmp_path / "fleet",
            tls_options(tmp_path, "ours", "ours"),
            {name: host.enter for name, host in hosts.items()},
            f"{NETWORK}1",
        ) as fleet,
    ):
        hanging = tmp_path / "hanging"
        fleet.start("alpha", FLEET_HANGS=str(hanging))
        fleet.start("beta")
        fleet.start("gamma")
        told = {name: one["address"] for name, one in fleet.machines().items()}
        told["coordinator"] = fleet.address
        run = fleet.begin("--share", "lab", "--repository", str(fleet.project.path))
        fleet.wait_for_hanging(run, hanging)
        for number, name in enumerate(NAMES, 1):
            address, _, port = told[name].rpartition(":")
            assert (address, {port}) == (f"tls://{NETWORK}{number}", hosts[name].open_ports())
        hosts["coordinator"].ip("link set alpha down")
        said, _ = run.communicate(timeout=PATIENCE)

        assert run.returncode == 0, said + fleet.said()
        assert "alpha, beta, gamma divide the work: equal within 0.0%" in said
        assert re.search(r"^alpha: \w{8} \w+: it has vanished$", said, re.MULTILINE)
        assert "3 of 3 shares are measured and kept in .asv/results" in said
        assert len(statuses(fleet.project, "lab")) == 18
        # What was cut off ends by itself what it was doing.
        wait_until(lambda: not fleet.processes(), lambda: str(fleet.processes()))
