"""The server of ``gpubench serve``: what it answers, what it refuses, when it writes again."""

from __future__ import annotations

import http.client
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.errors import GpubenchError
from gpubench.report import serving
from gpubench.report.render import write_report
from gpubench.report.serving import ReportServer, Source, rewrite_on_change, stamp
from gpubench.results import Results

PAGE = "<!doctype html><body>hello</body>\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ReportServer]:
    folder = tmp_path / "html"
    (folder / "compare-data").mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "gpubench.css").write_text("body {}")
    (folder / "compare-data" / "index.js").write_text("gpubench.index();")
    (tmp_path / "secret.txt").write_text("secret")
    with ReportServer(folder, 0) as server, server.serving():
        yield server


def ask(
    server: ReportServer, path: str, method: str = "GET", host: str | None = None
) -> tuple[int, http.client.HTTPMessage, str]:
    connection = http.client.HTTPConnection(serving.ADDRESS, server.port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    for name in [host or f"127.0.0.1:{server.port}"] if host != "" else []:
        connection.putheader("Host", name)
    connection.endheaders()
    response = connection.getresponse()
    found = response.status, response.headers, response.read().decode()
    connection.close()
    return found


def test_pages_are_sent_with_a_script_that_the_files_do_not_have(server: ReportServer) -> None:
    status, headers, body = ask(server, "/")

    script = f'<script src="/~gpubench/reload.js" data-version="{server.version}"></script>'
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert body == f"<!doctype html><body>hello{script}\n</body>\n"
    assert headers["Cache-Control"] == "no-store"
    assert (server.folder / "index.html").read_text() == PAGE


@pytest.mark.parametrize(
    ("path", "kind", "content"),
    [
        ("/gpubench.css", "text/css; charset=utf-8", "body {}"),
        ("/compare-data/index.js?once", "text/javascript; charset=utf-8", "gpubench.index();"),
    ],
)
def test_other_files_are_sent_as_they_are(
    server: ReportServer, path: str, kind: str, content: str
) -> None:
    status, headers, body = ask(server, path)

    assert (status, headers["Content-Type"], body) == (200, kind, content)


def test_an_open_page_learns_that_it_is_outdated(server: ReportServer) -> None:
    before = ask(server, "/~gpubench/version.js")[2]

    server.outdate()

    assert ask(server, "/~gpubench/version.js")[2] != before
    served = f'document.documentElement.dataset.served = "{server.version}";\n'
    assert ask(server, "/~gpubench/version.js")[2] == served
    assert 'script.src = "/~gpubench/version.js";' in ask(server, "/~gpubench/reload.js")[2]


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/compare-data/../../secret.txt",
        "//etc/passwd",
        "/%00",
        "/link.txt",
        "/compare-data/",
        "/nothing.html",
    ],
)
def test_nothing_outside_the_folder_and_no_listing_is_sent(server: ReportServer, path: str) -> None:
    (server.folder / "link.txt").symlink_to(server.folder.parent / "secret.txt")

    status, _, body = ask(server, path)

    assert (status, body) == (404, "there is no such page\n")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1:1", ""])
def test_a_request_under_another_name_is_refused(server: ReportServer, host: str) -> None:
    status, _, body = ask(server, "/", host=host.format(port=server.port))

    assert (status, body) == (421, f"this is http://127.0.0.1:{server.port}/\n")


def test_localhost_is_a_name_of_this_machine(server: ReportServer) -> None:
    assert ask(server, "/", host=f"localhost:{server.port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_methods_that_could_change_something_are_refused(server: ReportServer, method: str) -> None:
    status, headers, body = ask(server, "/", method)

    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert body == "only GET and HEAD are answered\n"


def test_head_has_the_length_and_no_content(server: ReportServer) -> None:
    status, headers, body = ask(server, "/gpubench.css", "HEAD")

    assert (status, headers["Content-Length"], body) == (200, "7", "")


def test_it_listens_on_this_machine_only(server: ReportServer) -> None:
    assert server.server_address == ("127.0.0.1", server.port)


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(GpubenchError) as caught:
            ReportServer(tmp_path, port)

    assert str(caught.value) == (
        f"port {port} of 127.0.0.1 cannot be had: Address already in use; "
        "give another with --port, or --port 0 for any free one"
    )


def test_a_stamp_changes_with_every_file_that_is_written_added_or_removed(tmp_path: Path) -> None:
    sources = (Source(tmp_path, ("*.json", "*/*.json")),)
    (tmp_path / "box").mkdir()
    first = tmp_path / "box" / "a.json"
    stamps = [stamp(sources)]
    for content in ("1", "22"):
        first.write_text(content)
        stamps.append(stamp(sources))
    found = first.stat()
    os.utime(first, ns=(found.st_atime_ns, found.st_mtime_ns + 1))
    stamps.append(stamp(sources))
    (tmp_path / "b.txt").write_text("not looked at")
    assert stamp(sources) == stamps[-1]
    first.rename(tmp_path / "c.json")
    stamps.append(stamp(sources))

    assert len(set(stamps)) == len(stamps)


class Watching:
    """Looks that find what is given, then Ctrl-C; what is told and how often is written."""

    def __init__(self, *looks: str) -> None:
        self._looks = [frozenset({(text, 0, 0)}) for text in looks]
        self.told: list[str] = []
        self.fault: Exception | None = None
        self.written = 0

    def look(self) -> serving.Stamp:
        if not self._looks:
            raise KeyboardInterrupt
        return self._looks.pop(0)

    def rewrite(self) -> None:
        self.written += 1
        if self.fault:
            raise self.fault

    def watch(self, server: ReportServer) -> None:
        written = frozenset({("a", 0, 0)})
        with pytest.raises(KeyboardInterrupt):
            rewrite_on_change(server, self.look, self.rewrite, self.told.append, written)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "SECONDS", 0.0)


@pytest.mark.usefixtures("at_once")
def test_a_change_is_written_once_it_stands_still(server: ReportServer) -> None:
    version, watching = server.version, Watching("a", "b", "c", "c", "c", "d", "d")

    watching.watch(server)

    assert (watching.written, watching.told) == (2, ["written again", "written again"])
    assert server.version != version


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (GpubenchError("overview.html:3: unknown tag"), "overview.html:3: unknown tag"),
        (TypeError("'<' not supported"), "TypeError(\"'<' not supported\")"),
    ],
)
def test_a_fault_is_told_and_the_old_pages_stay(
    server: ReportServer, fault: Exception, words: str
) -> None:
    version, watching = server.version, Watching("b", "b", "b")
    watching.fault = fault

    watching.watch(server)

    assert watching.told == [f"the pages stay as they were: {words}"]
    assert (watching.written, server.version) == (1, version)


def test_a_real_page_gets_the_script_at_its_end(sample: Results, tmp_path: Path) -> None:
    index = write_report(sample, tmp_path / "html")
    with ReportServer(index.parent, 0) as server, server.serving():
        body = ask(server, "/index.html")[2]

    assert body.count("/~gpubench/reload.js") == 1
    assert body.endswith("</script>\n</body>\n</html>")
