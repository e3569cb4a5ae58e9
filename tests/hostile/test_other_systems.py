"""What Linux alone has is asked for before it is used: nobody has run gpubench on Windows or macOS.

In a process that has lost what those lack, every module is imported and every command that reads is
run. Libraries are imported before, as they have builds of their own for each system.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from small_project import make_small_project

LOST = """
import builtins, io, multiprocessing.connection, os, pkgutil, signal, subprocess, sys, sysconfig
import asv.main, asv.step_detect, click.testing, duckdb, http.server, jinja2.sandbox, msgspec
import numba, numpy, pydantic, rich.console, rich.progress, threadpoolctl, watchfiles
import webbrowser, yaml
from importlib import import_module
sysconfig.get_config_vars()  # read once, of this system

def only_elsewhere(opened):
    def checked(path, *arguments, **options):
        if str(path).startswith(("/proc", "/sys")):
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return opened(path, *arguments, **options)
    return checked

builtins.open = io.open = only_elsewhere(open)
for name in ("scandir", "listdir", "stat"):
    setattr(os, name, only_elsewhere(getattr(os, name)))
for module in {modules}:
    sys.modules[module] = None
for holder, names in ((os, {of_os}), (signal, {of_signal})):
    for name in names:
        delattr(holder, name)
sys.platform = {platform!r}
"""
WINDOWS = LOST.format(
    modules=("fcntl", "resource", "pwd", "grp", "termios", "pty"),
    of_os=(
        *("fork", "killpg", "setsid", "getpgid", "getuid", "sched_getaffinity", "posix_fallocate"),
        *("mkfifo", "O_NOFOLLOW", "O_DIRECTORY", "getloadavg", "sysconf", "memfd_create"),
    ),
    of_signal=("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGPIPE", "SIGXFSZ", "setitimer"),
    platform="win32",
)
MACOS = LOST.format(
    modules=(),
    of_os=("sched_getaffinity", "posix_fallocate", "memfd_create"),
    of_signal=(),
    platform="darwin",
)
IMPORTED = """
import gpubench
for module in pkgutil.walk_packages(gpubench.__path__, "gpubench."):
    # The plugin is imported in asv, which asks the system for its processor.
    if not module.name.endswith(("__main__", "asv_plugin")) and ".kernels" not in module.name:
        try:
            import_module(module.name)
        except ModuleNotFoundError as missing:  # a system that is not installed
            assert "gpubench" not in str(missing), missing
"""
RUN = """
from gpubench.cli import main
for command in (
    ["check"], ["plan"], ["devices"], ["report"], ["report"], ["choose"],
    ["compare", "aaaa", "bbbb"], ["query", "select count(*) from results"],
):
    done = click.testing.CliRunner().invoke(main, command)
    assert done.exit_code == 0, (command, done.output, done.exception)
"""


@pytest.mark.parametrize("system", [WINDOWS, MACOS], ids=["windows", "macos"])
@pytest.mark.parametrize("used", [IMPORTED, RUN], ids=["imported", "run"])
def test_nothing_that_only_linux_has_is_needed_to_read(
    tmp_path: Path, system: str, used: str
) -> None:
    project = make_small_project(tmp_path / "project")

    done = subprocess.run(
        [sys.executable, "-c", f"{system}{used}"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_the_processes_that_lost_it_do_fail_where_it_is_used() -> None:
    used = ("import fcntl", "os.sched_getaffinity(0)", "open('/proc/stat')", "signal.SIGKILL")
    done = subprocess.run(
        [sys.executable, "-c", f"{WINDOWS}{TRIED}", *used],
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "ModuleNotFoundError", "AttributeError", "FileNotFoundError", "AttributeError",
    ]  # fmt: skip


TRIED = """
for used in sys.argv[1:]:
    try:
        exec(used)
    except Exception as error:
        print(type(error).__name__)
"""
