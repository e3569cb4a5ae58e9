"""What all tests share: where tests run that need a device, and why they are skipped elsewhere.

Tests marked ``gpu`` run on a GPU, or on the CUDA device in software where GPUBENCH_SOFTCUDA=1 asks
for it. Those that judge times are marked ``gpu_time`` beside it and need a GPU.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpubench.backends import software
from gpubench.backends.devices import known_gpus, no_gpu_reason
from gpubench.backends.registry import get
from gpubench.cli.console import ERR, OUT
from scripts.costs_of_tests import read_costs

if TYPE_CHECKING:  # an environment without browsers has no playwright
    from playwright.sync_api import Browser

# Tests run side by side, and on busy machines. There a small parallel region of Numba's OpenMP took
# 25 ms while its threads waited by spinning, as libgomp's do at first, and 20 µs when they slept
# (two cores, ten other processes).
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
)  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Share one headless browser among all tests that open pages: playwright has one at a time."""
    if CHROMIUM is None:
        reason = "there is no chromium on this machine; install it: apt-get install chromium"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


os.environ.pop("COLUMNS", None)  # of the terminal that runs the tests: each sets its own
CONSOLES = OUT.rich, ERR.rich
"""Made here and not by the first test that prints: rich keeps the width that COLUMNS says then."""


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """Keep to a test what its commands set for processes that they start."""
    before = {**os.environ}
    yield
    if os.environ != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(autouse=True)
def own_import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep to a test what it puts on the path: a command puts the project's folder there."""
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture(scope="session", autouse=True)
def empty_table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Begin each table of results as a copy: its 170 statements cost more than most tests do."""
    from gpubench.results import store

    create, connect = store.create_tables, store.connect
    empty = tmp_path_factory.mktemp("table") / "empty"
    with closing(connect(empty, read_only=False)) as connection:
        create(connection)

    def connect_to_copy(path: Path, *, read_only: bool) -> Any:
        if not (read_only or path.exists()):
            shutil.copyfile(empty, path)
        return connect(path, read_only=read_only)

    def create_missing(connection: Any) -> None:
        if not connection.execute("from duckdb_tables()").fetchone():
            create(connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "connect", connect_to_copy)
        patch.setattr(store, "create_tables", create_missing)
        yield


def pytest_configure() -> None:
    # In the background a shell has them ignore Ctrl-C, and with them every process that they start.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):  # which nohup has them ignore; Windows has none
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # The device in software has to be there before a test's module imports Numba's CUDA target.
    if software.requested():
        no_gpu_reason()


_SELECTIVE_MARKS = ("gpu", "thorough", "ci")

MAX_QUICK_SECONDS = 2.0
"""Processor seconds of a file's tests, by ``tests/costs.txt``, from which ``-m "... and not slow"``
leaves the file out: all other files together take a minute on two cores."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a file of which ``-m`` selects nothing: importing all takes half a minute.

    ``-m "gpu and ..."`` needs files that name the mark ``gpu``; ``-m "... and not slow"``, as of
    ``make quick``, has no use for a file that takes long.
    """
    if not (collection_path.name.startswith("test_") and collection_path.suffix == ".py"):
        return None
    words = config.option.markexpr.split(" and ")
    if not all(re.fullmatch(r"(not )?\w+", word) for word in words):
        return None
    if "not slow" in words:  # a file that nobody has recorded may take long
        costs = config.stash.setdefault(_COSTS, read_costs())
        file = collection_path.relative_to(Path(__file__).parent).as_posix()
        if costs.get(file, MAX_QUICK_SECONDS) >= MAX_QUICK_SECONDS:
            return True
    needed = [word for word in words if word in _SELECTIVE_MARKS]
    text = collection_path.read_text(encoding="utf-8") if needed else ""
    return True if any(f"pytest.mark.{mark}" not in text for mark in needed) else None


_COSTS = pytest.StashKey[dict[str, float]]()


_TOGETHER = ("browser", "end_to_end", "histories", "kernels")
"""Folders whose files share what takes long to make: a browser, asv's environment, the library's
compiled code, which two processes should not write to the same files at once."""

_ALONE = (
    *("test_code_of_each_commit", "test_commands_in_software", "test_counts_under_asv"),
    *("test_cuda_faults", "test_distributions", "test_importing_benchmarks"),
    *("test_importing_for_one_case", "test_killed_within_a_commit", "test_publish_plugin"),
    *("test_adding_a_kernel", "test_hints_of_the_library", "test_library_compiles_for_cuda"),
    *("test_library_on_cuda", "test_library_suites", "test_kernels_page", "test_lazy_numba"),
)
"""Files of such a folder that share none of it."""

_WITH_RAY = re.compile(
    r"test_(clusters|modin)\.py|test_(conformance|what_is_left_behind)\.py::.*((?<!ar)ray|_of_the_head)"
)
"""Tests that start Ray: one on the machine at a time, as programs find one that runs already."""


def _scope(nodeid: str) -> str:
    """Return the name that tests have in common which run in one process, one after the other."""
    if _WITH_RAY.search(nodeid):
        return "ray"
    file = Path(nodeid.partition("::")[0])
    is_shared = file.parent.name in _TOGETHER and file.stem not in _ALONE
    return str(file.parent if is_shared else file)


@pytest.hookimpl(optionalhook=True)  # pytest works without pytest-xdist too
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Side by side, as ``make test`` runs them, tests of a file or of such a folder share a
    process, and with it what is made once. (xdist's marks for that do nothing under pytest 9.2.)"""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid)

    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin, side by side, with what costs most, as does what nobody has recorded."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    costs = read_costs()
    files = {item.nodeid.partition("::")[0]: _scope(item.nodeid) for item in items}
    seconds: defaultdict[str, float] = defaultdict(float)
    for file, scope in files.items():
        seconds[scope] += costs.get(file, inf)
    items.sort(key=lambda item: seconds[_scope(item.nodeid)], reverse=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and (reason := no_gpu_reason()):
        pytest.skip(reason)
    if item.get_closest_marker("gpu_time") and known_gpus()[0].name == software.NAME:
        pytest.skip(f"judges times, and {software.NAME} has none")
    if item.get_closest_marker("opencl") and (reason := get("pyopencl").unavailable("cl:0:0")):
        pytest.skip(reason)
