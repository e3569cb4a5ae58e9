"""The pytest plugin: ``pytest --softcuda`` runs tests that use CUDA on the device in software.

A fault of a kernel fails the test that ran it, with file and line. The device is in place before
any ``conftest.py`` or test module is imported, in the processes of pytest-xdist too.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import pytest

import softcuda
from softcuda.counts import LaunchCounts, format_table
from softcuda.hints import format_hints
from softcuda.reports import Report
from softcuda.switches import switch_on

MARKER = "softcuda"
_WORDS = {"skip", "faults"}
"""Keywords of the marker."""
_ELSEWHERE = "runs on softcuda only: pytest --softcuda"
_DEVICE = pytest.StashKey[softcuda.SoftwareDevice]()
_LAUNCHES = "softcuda_launches"
"""What a worker of pytest-xdist hands over when it ends."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("softcuda", "CUDA without a GPU, on a device in software")
    for name, meaning in (
        ("", "run CUDA on the CPU; a kernel that reads or writes out of bounds fails its test"),
        ("-sanitize", "the same, and races and reads of what nothing has written fail it too"),
        ("-count", "the same as --softcuda, and print at the end what the kernels did"),
        ("-hints", "the same, and print which lines cost more than they must, and what to change"),
    ):
        group.addoption(f"--softcuda{name}", action="store_true", help=meaning)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Put the device in place before any module of the tests is imported."""
    asked = early_config.known_args_namespace
    is_counting = asked.softcuda_count or asked.softcuda_hints
    if not (asked.softcuda or asked.softcuda_sanitize or is_counting):
        return
    switch_on(sanitize=asked.softcuda_sanitize, count=is_counting)
    try:
        device = softcuda.start()
    except softcuda.DriverLoadedError as error:
        raise pytest.UsageError(
            f"{error}; a plugin has loaded it before: run `softcuda -m pytest --softcuda ...`"
        ) from error
    except softcuda.UnavailableError as error:
        raise pytest.UsageError(str(error)) from error
    device.add_lines()
    early_config.stash[_DEVICE] = device


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(skip='', faults=True): the test is skipped where tests do not run on softcuda; "
        "with a reason for skip it is skipped where they do; with faults=False the faults of its "
        "kernels do not fail it there",
    )
    if _DEVICE in config.stash:
        config.pluginmanager.register(_OnSoftcuda(config, config.stash[_DEVICE]))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _check_markers(item)
    is_on_softcuda = _DEVICE in item.config.stash
    if is_on_softcuda and (reason := _marked(item, "skip")):
        pytest.skip(f"on softcuda: {reason}")
    if not is_on_softcuda and any(not one.kwargs for one in item.iter_markers(MARKER)):
        pytest.skip(_ELSEWHERE)


@pytest.fixture
def softcuda_device(request: pytest.FixtureRequest) -> softcuda.SoftwareDevice:
    """Return the device in software; skip the test where tests do not run on it.

    Its ``reports()`` and ``counts()`` tell what is new: what a test reads itself neither fails it
    nor is in the table at the end.
    """
    if _DEVICE not in request.config.stash:
        pytest.skip(_ELSEWHERE)
    return request.config.stash[_DEVICE]


def _marked(item: pytest.Item, word: str, absent: Any = None) -> Any:
    """Return what the closest marker says for a keyword."""
    given = (marker.kwargs[word] for marker in item.iter_markers(MARKER) if word in marker.kwargs)
    return next(given, absent)


def _check_markers(item: pytest.Item) -> None:
    """Fail the test where a marker of it says what nothing follows from."""
    for marker in item.iter_markers(MARKER):
        unknown = [*map(repr, marker.args), *sorted({*marker.kwargs} - _WORDS)]
        if unknown:
            pytest.fail(
                f"pytest.mark.{MARKER} takes skip='reason' or faults=False, not "
                f"{', '.join(unknown)}",
                pytrace=False,
            )


class _OnSoftcuda:
    """What pytest asks while tests run on the device."""

    def __init__(self, config: pytest.Config, device: softcuda.SoftwareDevice) -> None:
        self._device = device
        option = config.option
        self._is_counted, self._has_hints = option.softcuda_count, option.softcuda_hints
        self._is_sanitized = option.softcuda_sanitize
        self._launches: list[LaunchCounts] = []

    def pytest_report_header(self) -> str:
        sanitizer = ", sanitizer on" if self._is_sanitized else ""
        return f"softcuda: CUDA runs on a device in software, without times{sanitizer}"

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Fail a module that has a fault while it is imported."""
        report = yield
        if faults := self._take_faults():
            report.outcome, report.longrepr = "failed", _describe(faults)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Fail a test for the faults of its kernels; show them below what else failed in it."""
        faults = self._take_faults() if _marked(item, "faults", True) else self._forget_faults()
        said = _describe(faults)
        is_fine = call.excinfo is None or call.excinfo.errisinstance(pytest.skip.Exception)
        if faults and is_fine:
            call.excinfo = _failure(said)
        report = yield
        if faults and said not in report.longreprtext:
            report.sections.append(("softcuda", said))
        return report

    def _take_faults(self) -> Sequence[Report]:
        """Return the faults of all that was launched until now, and have the next test begin as if
        there were none."""
        self._device.wait()
        if self._is_counted or self._has_hints:
            self._launches += map(self._without_details, self._device.counts())
        faults = self._device.reports()
        self._device.recover()
        return faults

    def _forget_faults(self) -> Sequence[Report]:
        self._take_faults()
        return ()

    def _without_details(self, launch: LaunchCounts) -> LaunchCounts:
        """Return what the table needs of a launch: a session may have a million."""
        return launch if self._has_hints else replace(launch, lines=(), accesses=())

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_LAUNCHES] = pickle.dumps(self._launches)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker of pytest-xdist has counted; one that crashed hands nothing over."""
        if handed := getattr(node, "workeroutput", {}).get(_LAUNCHES):
            self._launches += pickle.loads(handed)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._is_counted:
            terminalreporter.section("softcuda: what the kernels did")
            for line in format_table(self._launches):
                terminalreporter.write_line(line)
        if self._has_hints:
            terminalreporter.section("softcuda: hints")
            for line in format_hints(self._launches):
                terminalreporter.write_line(line)


def _describe(faults: Sequence[Report]) -> str:
    return "\n".join(f"softcuda: {fault}" for fault in faults)


def _failure(said: str) -> pytest.ExceptionInfo[BaseException]:
    """Return what pytest makes of a test that fails with these words."""
    try:
        pytest.fail(said, pytrace=False)
    except pytest.fail.Exception as failure:
        return pytest.ExceptionInfo.from_exception(failure)
