"""Work over many things in several processes: the same as in one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gpubench import parallel
from gpubench.parallel import WAITING, in_processes


def fail(word: str) -> int:
    raise ValueError(f"{len(word)} letters")


def doer(_: str) -> int:
    return os.getpid()


def folder(_: str) -> Path:
    return Path.cwd()


def variable(name: str) -> str | None:
    return os.environ.get(name)


def die_elsewhere(part: tuple[int, Path, bool]) -> Path:
    """Ends the process, unless it is the one that asks, or the part is one that survives."""
    asks, path, survives = part
    if os.getpid() != asks and not survives:
        os._exit(1)
    return path


def fail_or_write(part: tuple[Path, bool]) -> None:
    """One part fails at once; the others write a file later."""
    path, fails = part
    if fails:
        raise ValueError("at once")
    time.sleep(0.3)
    path.touch()


WORDS = ["a" * n for n in range(11)]


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_found_keeps_the_order_of_the_things(processes: int) -> None:
    assert list(in_processes(len, iter(WORDS), processes)) == list(range(11))


def test_other_processes_do_the_work_where_there_are_several_parts() -> None:
    assert os.getpid() not in {*in_processes(doer, WORDS, 2)}
    assert {*in_processes(doer, WORDS, 1)} == {os.getpid()}
    assert {*in_processes(doer, WORDS[:1], 2)} == {os.getpid()}


def test_nothing_gives_nothing() -> None:
    assert list(in_processes(len, [], 2)) == []


def test_without_processes_the_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no semaphores here")

    monkeypatch.setattr(parallel, "ProcessPoolExecutor", refuse)

    assert list(in_processes(len, iter(WORDS), 2)) == list(range(11))


def test_other_processes_work_in_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert {*in_processes(folder, WORDS, 2)} == {Path.cwd()}


def test_other_processes_have_the_environment_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    list(in_processes(variable, ["OF_TEST", "OF_TEST"], 2))  # whose fork server stays
    monkeypatch.setenv("OF_TEST", "now")

    assert list(in_processes(variable, ["OF_TEST", "OF_TEST"], 2)) == ["now", "now"]


@pytest.mark.parametrize("survivors", [0, 3, 10])
def test_where_a_process_dies_the_rest_is_done_here_each_part_once(
    tmp_path: Path, survivors: int
) -> None:
    parts = [(os.getpid(), tmp_path / f"{n:02}", n < survivors) for n in range(12)]

    assert list(in_processes(die_elsewhere, parts, 2)) == [path for _, path, _ in parts]


def test_no_more_parts_are_taken_than_processes_work_on_and_some_wait() -> None:
    taken: list[str] = []

    def parts() -> Iterator[str]:
        for word in WORDS * 10:
            taken.append(word)
            yield word

    results = in_processes(len, parts(), 2)
    next(results)
    assert len(taken) <= 2 * WAITING + 2
    results.close()


KILLED = """\
import os, signal
from gpubench.parallel import in_processes
results = in_processes(len, ["a", "ab", "abc"], 2)
print(next(results), next(results), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed otherwise there")
def test_other_processes_end_with_one_that_is_killed() -> None:
    # They have its output, which is read until all have closed it.
    ended = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, timeout=60)

    assert ended.stdout == b"1 2\n"
    assert ended.returncode == -signal.SIGKILL


INTERRUPTED = """\
import pathlib, sys, time
from gpubench.parallel import in_processes

def sleep(folder):
    (pathlib.Path(folder) / str(time.monotonic_ns())).touch()
    time.sleep(600)

def hang(folder):
    while True:
        try:
            sleep(folder)
        except KeyboardInterrupt:
            pass

if __name__ == "__main__":
    list(in_processes(globals()[sys.argv[1]], [sys.argv[2]] * 9, 2))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is another thing there")
@pytest.mark.parametrize(("what", "times"), [("sleep", 1), ("sleep", 2), ("hang", 1)])
def test_ctrl_c_ends_other_processes_with_this_one(tmp_path: Path, what: str, times: int) -> None:
    script, begun = tmp_path / "script.py", tmp_path / "begun"
    script.write_text(INTERRUPTED)
    begun.mkdir()
    command = [sys.executable, str(script), what, str(begun)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, process_group=0) as process:
        while len(list(begun.iterdir())) < 2:
            assert process.poll() is None
            time.sleep(0.02)
        for _ in range(times):
            os.killpg(process.pid, signal.SIGINT)
        try:
            _, said = process.communicate(timeout=60)  # closed when the last one has ended
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    assert process.returncode == -signal.SIGINT
    assert said.count("Traceback") == 1  # of the one that asked, in which nobody caught it
    assert what == "hang" or len(list(begun.iterdir())) == 2


def test_an_error_is_raised_when_no_process_works_on_it_any_more(tmp_path: Path) -> None:
    parts = [(tmp_path / f"part {number}", number == 0) for number in range(3)]
    with pytest.raises(ValueError, match=r"^at once$"):
        list(in_processes(fail_or_write, parts, 2))
    begun = sorted(path.name for path in tmp_path.iterdir())
    time.sleep(0.5)
    assert sorted(path.name for path in tmp_path.iterdir()) == begun


def test_an_error_is_raised_here() -> None:
    with pytest.raises(ValueError, match=r"^\d+ letters$"):
        list(in_processes(fail, WORDS, 2))
