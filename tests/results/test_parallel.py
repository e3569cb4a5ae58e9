"""Work over many things in several processes: the same as in one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpubench import parallel
from gpubench.parallel import are_ready, in_processes, processes_kept


def fail(word: str) -> int:
    raise ValueError(f"{len(word)} letters")


def doer(_: str) -> int:
    return os.getpid()


def folder(_: str) -> Path:
    return Path.cwd()


def die_elsewhere(alive: int) -> int:
    if os.getpid() != alive:
        os._exit(1)
    return alive


def slow_elsewhere(part: tuple[Path, int]) -> None:
    """Fails in the process that asks; another writes a file, after that has failed."""
    path, asks = part
    if os.getpid() == asks:
        raise ValueError("here")
    time.sleep(0.3)
    path.touch()


WORDS = ["a" * n for n in range(11)]


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_found_keeps_the_order_of_the_things(processes: int) -> None:
    assert list(in_processes(len, iter(WORDS), processes)) == list(range(11))


def test_this_process_does_its_part_beside_one_other() -> None:
    assert {*in_processes(doer, WORDS, 2)} > {os.getpid()}
    assert {*in_processes(doer, WORDS, 1)} == {os.getpid()}


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


def test_of_two_parts_each_process_does_one() -> None:
    assert list(in_processes(doer, WORDS[:2], 2)).count(os.getpid()) == 1


def test_processes_that_are_kept_work_for_later_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with processes_kept():
        assert not are_ready()
        first = {*in_processes(doer, WORDS, 2)}
        assert are_ready()
        assert {*in_processes(doer, WORDS, 2)} == first
        assert {*in_processes(folder, WORDS, 2)} == {tmp_path}

    assert not are_ready()
    assert {*in_processes(doer, WORDS, 2)} & first == {os.getpid()}


def test_where_a_process_that_is_kept_died_the_work_is_done_here() -> None:
    with processes_kept():
        assert {*in_processes(die_elsewhere, [os.getpid()] * 4, 2)} == {os.getpid()}
        assert {*in_processes(doer, WORDS, 2)} == {os.getpid()}


KILLED = """\
import os, signal
from gpubench.parallel import in_processes, processes_kept
with processes_kept():
    print(*in_processes(len, ["a", "ab"], 2), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed otherwise there")
def test_other_processes_end_with_one_that_is_killed() -> None:
    # They have its output, which is read until all have closed it.
    ended = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, timeout=60)

    assert ended.stdout == b"1 2\n"
    assert ended.returncode == -signal.SIGKILL


def test_an_error_is_raised_when_no_process_works_on_it_any_more(tmp_path: Path) -> None:
    parts = [(tmp_path / f"part {number}", os.getpid()) for number in range(3)]
    with processes_kept():
        with pytest.raises(ValueError, match=r"^here$"):
            list(in_processes(slow_elsewhere, parts, 2))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["part 0", "part 1"]


def test_an_error_is_raised_here() -> None:
    with pytest.raises(ValueError, match=r"^\d+ letters$"):
        list(in_processes(fail, WORDS, 2))
