"""Work over many things in several processes: the same as in one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpubench import parallel
from gpubench.parallel import in_processes


def fail(word: str) -> int:
    raise ValueError(f"{len(word)} letters")


def doer(_: str) -> int:
    return os.getpid()


def folder(_: str) -> Path:
    return Path.cwd()


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


def test_no_more_parts_are_given_away_than_asked_for() -> None:
    done_by = list(in_processes(doer, WORDS[:2], 2, ahead=1))

    assert done_by.count(os.getpid()) == 1


def test_an_error_is_raised_here() -> None:
    with pytest.raises(ValueError, match=r"^\d+ letters$"):
        list(in_processes(fail, WORDS, 2))
