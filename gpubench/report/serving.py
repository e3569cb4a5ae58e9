"""The written pages on 127.0.0.1, written again when what they are made from changes.

The files on disk stay as they are. To a page that is sent, the server adds one script, which asks
it for the version of the report once a second and loads the page anew when that has changed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from watchfiles import Change as FileEvent
from watchfiles import watch

from gpubench.errors import GpubenchError
from gpubench.files import TooLarge, read_regular
from gpubench.report.freshness import packaged_templates

LOCAL_ADDRESS = "127.0.0.1"
"""Never another: results are not shown to the network."""

CLIENTS = 64
"""Connections that are answered at a time, each in a thread: a browser has six to a server."""

MAX_IDLE_SECONDS = 30.0
"""After which a connection is closed that asks for nothing, or does not take what it asked for."""

MAX_PAGE = 2**25
"""Bytes of a page that the script is added to in memory; a larger one is sent as it is. The largest
page of a history of 1,400 commits has some 5 MB."""

STILL = 200
"""Milliseconds without a change until the report is written: a file is seldom written at once."""

MAX_WAIT_MILLISECONDS = 10_000
"""Milliseconds after which it is written although files still change."""

SUFFIXES = (".json", ".jsonl", ".yaml", ".html", ".css", ".js")
"""Of results and records, suites and templates."""

_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n"
    b"%d clients are answered at a time; close some pages\n" % CLIENTS
)

_SCRIPT, _VERSION = "/~gpubench/reload.js", "/~gpubench/version.js"


def changes_of_files(sources: Iterable[Path], output: Path) -> Iterator[set[tuple[FileEvent, str]]]:
    """Return what changed in these files and folders, or nothing a few times a second; without end.

    What happens before the first ``next`` is not seen. ``output`` may lie within a source: pages
    are no source of themselves.
    """
    written = f"{output.resolve()}{os.sep}"

    def is_source(_: FileEvent, path: str) -> bool:
        return path.endswith(SUFFIXES) and not path.startswith(written)

    return watch(
        *(path.resolve() for path in sources if path.exists()),
        watch_filter=is_source,
        step=STILL,
        debounce=MAX_WAIT_MILLISECONDS,
        rust_timeout=STILL,
        yield_on_timeout=True,
    )


class ReportServer(ThreadingHTTPServer):
    """Serves one folder to this machine; a page learns from ``version`` that it is outdated."""

    daemon_threads = True
    request_queue_size = CLIENTS
    allow_reuse_address = os.name == "posix"
    """On Windows the option would let two programs have the same port."""

    def __init__(self, folder: Path, port: int) -> None:
        try:
            super().__init__((LOCAL_ADDRESS, port), _Handler)
        except OSError as error:
            raise GpubenchError(
                f"port {port} of {LOCAL_ADDRESS} cannot be had: {error.strerror or error}; "
                "give another with --port, or --port 0 for any free one"
            ) from error
        self.folder = Path(os.path.realpath(folder))
        self._free = threading.Semaphore(CLIENTS)
        self.outdate()

    @property
    def port(self) -> int:
        """The one that it listens on, also where it was asked for any."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{LOCAL_ADDRESS}:{self.port}/"

    def outdate(self) -> None:
        self.version = str(time.time_ns())

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers in a thread, as long as there are not too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            request.sendall(_TOO_MANY)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do not tell of a client that went away, or that took too long."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @contextmanager
    def serving(self) -> Iterator[ReportServer]:
        """Answers requests in a thread of its own while what is inside runs."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1})
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            thread.join()


@contextmanager
def ctrl_c_noted() -> Iterator[Callable[[], bool]]:
    """Give what tells whether Ctrl-C was pressed inside.

    It is raised too. Where a destructor or a callback runs at that moment, Python prints what is
    raised, and goes on.
    """
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        if callable(before):
            before(number, frame)

    is_ours = callable(before) and threading.current_thread() is threading.main_thread()
    if is_ours:  # in the background a shell has it ignored
        signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)


def rewrite_on_change(
    server: ReportServer,
    changes: Iterable[object],
    rewrite: Callable[[], object],
    tell: Callable[[str], None],
) -> None:
    """Write the report again at every one of ``changes`` that is not empty.

    What goes wrong is told, and the old pages stay.
    """
    for _ in filter(None, changes):
        try:
            rewrite()
        except Exception as error:  # a template under work can raise anything
            words = str(error) if isinstance(error, GpubenchError) else repr(error)
            tell(f"the pages stay as they were: {words}")
        else:
            server.outdate()
            tell("written again")


class _Handler(SimpleHTTPRequestHandler):
    """Answers GET and HEAD for files of the folder, asked for by this machine's own name."""

    server: ReportServer
    server_version, sys_version = "gpubench", ""
    timeout = MAX_IDLE_SECONDS
    protocol_version = "HTTP/1.1"

    def send_head(self) -> BinaryIO:
        """Send the headers; what is returned, the base class sends piece by piece: a hundred
        clients need no hundred copies of a file."""
        # Under another name it was asked by a page of another site (DNS rebinding).
        names = [[f"{name}:{self.server.port}"] for name in (LOCAL_ADDRESS, "localhost")]
        if self.headers.get_all("Host", []) not in names:
            return self._refuse(HTTPStatus.MISDIRECTED_REQUEST, f"this is {self.server.url}\n")
        try:
            path = unquote(urlsplit(self.path).path)
        except ValueError:  # brackets that hold no address, such as ``http://[``
            return self._refuse(HTTPStatus.BAD_REQUEST, "what is asked for is no address\n")
        if content := self._content(path):
            return self._head(HTTPStatus.OK, *content)
        return self._refuse(HTTPStatus.NOT_FOUND, "there is no such page\n")

    def _not_allowed(self) -> None:
        self.close_connection = True  # a body may follow, which nobody reads
        words = "only GET and HEAD are answered\n"
        self.copyfile(self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, words), self.wfile)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_CONNECT = do_TRACE = _not_allowed

    def _content(self, path: str) -> tuple[str, BinaryIO] | None:
        """Return what stands at a path, after its type; ``None`` where there is nothing to send."""
        if path == _SCRIPT:
            return "text/javascript", (packaged_templates() / "reload.js").open("rb")
        if path == _VERSION:
            served = f'document.documentElement.dataset.served = "{self.server.version}";\n'
            return "text/javascript", BytesIO(served.encode())
        if path == "/favicon.ico":  # browsers ask; the pages have none
            return "image/x-icon", BytesIO()
        version = self.server.version  # before the file: it may be written again meanwhile
        try:
            asked = self.server.folder / (path.lstrip("/") or "index.html")
            file = Path(os.path.realpath(asked))
            if not (file.is_relative_to(self.server.folder) and file.is_file()):
                return None
            kind = self.guess_type(file)
            if kind != "text/html":
                return kind, file.open("rb")
            try:
                content = read_regular(file, MAX_PAGE)
            except TooLarge:
                return kind, file.open("rb")
        except (OSError, ValueError):  # ValueError: a NUL in the path
            return None
        head, end, rest = content.rpartition(b"</body>")
        script = f'<script src="{_SCRIPT}" data-version="{version}"></script>\n'.encode()
        return kind, BytesIO(head + script + end + rest if end else content)

    def _refuse(self, status: HTTPStatus, words: str) -> BinaryIO:
        return self._head(status, "text/plain", BytesIO(words.encode()))

    def _head(self, status: HTTPStatus, kind: str, content: BinaryIO) -> BinaryIO:
        length = content.seek(0, os.SEEK_END)
        content.seek(0)
        text = kind.startswith("text/") or kind == "application/json"
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if text else kind)
        self.send_header("Content-Length", str(length))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        return content

    def log_message(self, format: str, *args: object) -> None:
        """Do not tell of requests."""
