"""The server of ``gpubench serve``: what it answers, what it refuses, when it writes again."""

from __future__ import annotations

import http.client
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubench.errors import GpubenchError
from gpubench.report import serving
from gpubench.report.render import write_report
from gpubench.report.serving import (
    ReportServer,
    changes_of_files,
    ctrl_c_noted,
    rewrite_on_change,
)
from gpubench.results import Table

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
    connection = http.client.HTTPConnection(serving.LOCAL_ADDRESS, server.port, timeout=10)
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


def seen(changes: Iterator[set[tuple[object, str]]]) -> set[str]:
    """Names of the next files that change."""
    return {Path(path).name for _, path in next(filter(None, changes))}


def test_a_file_that_is_written_added_or_removed_is_a_change(tmp_path: Path) -> None:
    box, output = tmp_path / "results" / "box", tmp_path / "reports" / "html"
    box.mkdir(parents=True)
    output.mkdir(parents=True)
    changes = changes_of_files([tmp_path / "results", tmp_path / "not there"], output)
    assert next(changes) == set()

    (box / "a.json").write_text("1")
    assert seen(changes) == {"a.json"}
    (box / "a.json").write_text("22")
    assert seen(changes) == {"a.json"}
    (box / "a.json").rename(box / "c.jsonl")
    assert seen(changes) == {"a.json", "c.jsonl"}
    (box / "c.jsonl").unlink()
    assert seen(changes) == {"c.jsonl"}


def test_pages_and_files_that_are_no_source_are_no_change(tmp_path: Path) -> None:
    output = tmp_path / "reports" / "html"
    output.mkdir(parents=True)
    changes = changes_of_files([tmp_path / "reports"], output)
    next(changes)

    (output / "index.html").write_text("a page")
    (tmp_path / "reports" / "notes.txt").write_text("not looked at")
    (tmp_path / "reports" / "overview.html").write_text("a template")

    assert seen(changes) == {"overview.html"}


class Rewriting:
    """Counts how often is written; what is told."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.told: list[str] = []
        self.written = 0
        self._fault = fault

    def rewrite(self) -> None:
        self.written += 1
        if self._fault:
            raise self._fault


def test_every_change_is_written_and_told(server: ReportServer) -> None:
    version, rewriting = server.version, Rewriting()

    changes = [set(), {"a"}, set(), set(), {"a", "b"}, set()]
    rewrite_on_change(server, changes, rewriting.rewrite, rewriting.told.append)

    assert (rewriting.written, rewriting.told) == (2, ["written again", "written again"])
    assert server.version != version


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
    version, rewriting = server.version, Rewriting(fault)

    rewrite_on_change(server, [{"a"}], rewriting.rewrite, rewriting.told.append)

    assert rewriting.told == [f"the pages stay as they were: {words}"]
    assert (rewriting.written, server.version) == (1, version)


def test_a_real_page_gets_the_script_at_its_end(sample: Table, tmp_path: Path) -> None:
    index = write_report(sample, tmp_path / "html")
    with ReportServer(index.parent, 0) as server, server.serving():
        body = ask(server, "/index.html")[2]

    assert body.count("/~gpubench/reload.js") == 1
    assert body.endswith("</script>\n</body>\n</html>")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_while_python_destroys_something_is_noted() -> None:
    class Interrupted:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with ctrl_c_noted() as is_over:
        assert not is_over()
        Interrupted()
        assert is_over()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == before
