"""Clients of ``gpubench serve`` that wait, go away, or come by the hundred."""

from __future__ import annotations

import http.client
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpubench.report import serving
from gpubench.report.serving import ReportServer

PAGE = "<!doctype html><body>hello</body>\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ReportServer]:
    (tmp_path / "index.html").write_text(PAGE)
    with ReportServer(tmp_path, 0) as server, server.serving():
        yield server


def connected(server: ReportServer) -> socket.socket:
    return socket.create_connection((serving.LOCAL_ADDRESS, server.port), timeout=60)


def answering() -> list[str]:
    """Threads that answer a client."""
    names = (thread.name for thread in threading.enumerate())
    return [name for name in names if "process_request_thread" in name]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)


def body(server: ReportServer, path: str = "/") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(serving.LOCAL_ADDRESS, server.port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    status, content = response.status, response.read()
    connection.close()
    return status, content


def test_so_many_clients_are_answered_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "CLIENTS", 3)
    (tmp_path / "index.html").write_text(PAGE)
    with ReportServer(tmp_path, 0) as server, server.serving():
        waiting = [connected(server) for _ in range(3)]
        with connected(server) as refused:
            said = b"".join(iter(lambda: refused.recv(4096), b""))
        for client in waiting:  # which are still answered
            client.sendall(b"GET / HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port)
            assert client.recv(15) == b"HTTP/1.1 200 OK"
            client.close()

    assert said.startswith(b"HTTP/1.1 503 ")
    assert b"clients are answered at a time; close some pages" in said


def test_who_asks_for_nothing_is_sent_away(
    server: ReportServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert serving._Handler.timeout == serving.MAX_IDLE_SECONDS
    monkeypatch.setattr(serving._Handler, "timeout", 0.1)

    with connected(server) as client:
        client.sendall(b"GET / HTTP/1.1\r\n")  # and never the rest
        assert client.recv(1) == b""


def test_who_does_not_read_is_sent_away_and_needs_no_copy(
    server: ReportServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serving._Handler, "timeout", 0.2)
    large = server.folder / "large.bin"
    large.touch()
    with large.open("r+b") as file:
        file.truncate(2**33)  # more than the memory of many a machine

    with connected(server) as client:
        client.sendall(b"GET /large.bin HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port)
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        assert body(server)[0] == 200
        # Nothing is read until the server has given up: then an end comes, or a reset.
        until(lambda: not answering())
        received = 0
        try:
            while piece := client.recv(2**20):
                received += len(piece)
        except ConnectionResetError:
            pass

    assert received < 2**33
    assert "Traceback" not in capsys.readouterr().err


def test_a_client_that_goes_away_leaves_no_traceback(
    server: ReportServer, capfd: pytest.CaptureFixture[str]
) -> None:
    client = connected(server)
    client.sendall(b"GET / HTTP/1.1\r\n")
    # SO_LINGER of 0 seconds: close() sends a reset.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()

    assert body(server)[0] == 200
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET http://[ HTTP/1.1", 400),
        ("HEAD http://[ HTTP/1.1", 400),
        ("GET http://a:b@[1]:9/ HTTP/1.1", 400),
        ("GET /%00 HTTP/1.1", 404),
        ("GET /%ff%fe HTTP/1.1", 404),
        ("GET * HTTP/1.1", 404),
        ("GET /a b HTTP/1.1", 400),
        ("BREW / HTTP/1.1", 501),
        ("GET /?[ HTTP/1.1", 200),
    ],
)
def test_odd_requests_are_answered(
    server: ReportServer, capfd: pytest.CaptureFixture[str], line: str, status: int
) -> None:
    with connected(server) as client:
        host = f"Host: {serving.LOCAL_ADDRESS}:{server.port}"
        client.sendall(f"{line}\r\n{host}\r\nConnection: close\r\n\r\n".encode())
        answer = client.makefile("rb").readline().decode()

    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["loop", "loop/inside", "pipe"])
def test_links_in_a_circle_and_pipes_are_no_pages(server: ReportServer, name: str) -> None:
    (server.folder / "loop").symlink_to("loop")
    os.mkfifo(server.folder / "pipe")

    assert body(server, f"/{name}") == (404, b"there is no such page\n")


def test_a_page_too_large_to_change_is_sent_as_it_is(
    server: ReportServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "MOST_PAGE", 10)

    assert body(server) == (200, PAGE.encode())
