"""Of a measuring worker: its own checkout, and the processes that it starts there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from runpy import run_module
from typing import Any

from gpubench.edge.fleet.shares import Share
from gpubench.errors import GpubenchError
from gpubench.processes import end_with_parent

OURS = "gpubench.edge.fleet"
"""Setting of git that marks a clone as made here: only such a one is brought to another commit."""

ASV_SHUTDOWN_SECONDS = 5.0
"""Seconds in which asv ends what it has started (``asv.util.check_output`` waits one for each),
before all of its session is killed."""

TAIL = 20
"""Lines of what a process said last that stand in its failure."""

ASV = "from gpubench.edge.fleet.checkout import asv; asv()"
ENVIRONMENTS = "from gpubench.edge.fleet.checkout import tell_environments; tell_environments()"


def asv() -> None:
    """asv's command line. It is interrupted when who started it ends: then it ends its own."""
    # A shell has background processes, and all that they start, ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    end_with_parent(signal.SIGINT)
    run_module("asv", run_name="__main__")


def tell_environments() -> None:
    """Tell asv the machine's name, the first argument, and print its folder of results and its
    names of the environments that the others describe."""
    from asv.machine import MachineCollection

    from gpubench.asv_code import Config, Machine, get_environments, plugin_manager, util

    keeper, *specification = sys.argv[1:]
    config = Config.load()
    for plugin in config.plugins:
        plugin_manager.import_plugin(plugin)
    try:
        MachineCollection.load(keeper)
    except util.UserError:
        MachineCollection.save(keeper, {**Machine.get_defaults(), "machine": keeper})
    names = [environment.name for environment in get_environments(config, specification)]
    print(json.dumps([config.results_dir, names]))


class Checkout:
    """A folder with the project, and what runs in it: one process at a time."""

    def __init__(self, folder: Path, machine: str, python: str | None = None) -> None:
        """``python``: one that measures in place of environments that asv makes."""
        self.folder, self.machine, self.python = folder, machine, python
        self.say: Callable[[str], object] = print
        """Called with each line that a process writes."""
        self._existing = [f"existing:{python}"] if python else []
        self._process: subprocess.Popen[str] | None = None
        self._ended, self._lock = False, threading.Lock()

    def update(self, repository: str, head: str) -> None:
        """Bring the folder to a commit, cloning where there is nothing; a checkout that somebody
        else made has to be there already. Raises ``GpubenchError``."""
        if not (self.folder / ".git").exists():
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            git(self.folder.parent, "clone", "--quiet", "--", repository, str(self.folder))
            git(self.folder, "config", OURS, "true")
        if git(self.folder, "config", "--default", "", "--get", OURS) == "true":
            if git(self.folder, "cat-file", "-t", head, ok=(0, 128)) != "commit":
                refs = "+refs/heads/*:refs/remotes/origin/*"
                git(self.folder, "fetch", "--quiet", "--tags", "--force", "--", repository, refs)
            git(self.folder, "checkout", "--quiet", "--force", "--detach", head)
        elif (at := git(self.folder, "rev-parse", "HEAD")) != head:
            raise GpubenchError(
                f"{self.folder} of {self.machine} is at {at[:8]}, and what is measured is as in "
                f"{head[:8]}: check that out there, or give another --checkout"
            )

    def environments(self, keeper: str) -> tuple[Path, tuple[str, ...]]:
        """Folder of asv's results, and its names of the environments; asv knows the machine
        ``keeper`` from now on."""
        lines = self.run([sys.executable, "-P", "-c", ENVIRONMENTS, keeper, *self._existing])
        results_dir, names = json.loads(lines[-1])
        return self.folder / results_dir, tuple(names)

    def measure(self, share: Share, variables: Mapping[str, str]) -> None:
        """``asv run`` of one share; raises ``GpubenchError`` where it does not come to its end."""
        options = ["--machine", share.keeper, "--bench", share.pattern, "--show-stderr"]
        options += ["--skip-existing"] if share.skip_existing else []
        if self.python:
            if share.commit != git(self.folder, "rev-parse", "HEAD"):
                raise GpubenchError("--python measures what is checked out: let asv make Pythons")
            options += ["--environment", *self._existing, "--set-commit-hash", share.commit]
        else:
            options += [f"{share.commit}^!"]
        # 2: a benchmark has failed, which its result tells.
        self.run([sys.executable, "-P", "-u", "-c", ASV, "run", *options], variables, ok=(0, 2))

    def times(self, command: Sequence[str], variables: Mapping[str, str]) -> list[dict[str, Any]]:
        """``gpubench time`` with these arguments: its cases."""
        python = self.python or sys.executable
        words = [python, "-P", "-m", "gpubench", "time", *command, "--json"]
        lines = self.run(words, variables, ok=(0, 1))
        cases: list[dict[str, Any]] = json.loads("\n".join(lines[lines.index("{") :]))["cases"]
        return cases

    def run(
        self,
        command: Sequence[str],
        variables: Mapping[str, str] | None = None,
        ok: Sequence[int] = (0,),
    ) -> list[str]:
        """Lines that a process writes; raises ``GpubenchError`` with the last ones where it ends
        with another code, or is ended."""
        # Dask that is measured is not to find the fleet, nor to encrypt as it does.
        inherited = {name: os.environ[name] for name in os.environ if not name.startswith("DASK_")}
        with self._lock:
            if self._ended:
                raise GpubenchError("ended before it began")
            process = self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**inherited, **(variables or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # by which all that it starts is found
            )
        lines = []
        for line in process.stdout or ():
            lines.append(line.rstrip())
            self.say(lines[-1])
        code = process.wait()
        with self._lock:
            self._process = None
        if code not in ok:
            raise GpubenchError("\n".join([f"ended with code {code}:", *lines[-TAIL:]]))
        return lines

    def begin(self) -> None:
        """Before the processes of a task: earlier ones may have been ended."""
        self._ended = False

    def end(self) -> None:
        """End what runs, and all that it has started; nothing begins before ``begin``."""
        with self._lock:
            self._ended, process = True, self._process
        if process is None:
            return
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(ASV_SHUTDOWN_SECONDS)
        for member in members(process.pid):
            with suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)


def members(session: int) -> list[int]:
    """Return the processes of a session: asv gives each that it starts a group of its own."""
    psutil = import_module("psutil")  # Dask has it; it has no types

    pids = []
    for pid in psutil.pids():
        with suppress(OSError):  # it has ended, or is somebody else's
            if os.getsid(pid) == session:
                pids.append(pid)
    return pids


def git(folder: Path, *arguments: str, ok: Sequence[int] = (0,)) -> str:
    """Return what git prints; raises ``GpubenchError`` with its own last words."""
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
    )
    if done.returncode not in ok:
        words = done.stderr.strip().splitlines() or [f"ended with code {done.returncode}"]
        raise GpubenchError(f"git {arguments[0]} in {folder.resolve()}: {words[-1]}")
    return done.stdout.rstrip()
