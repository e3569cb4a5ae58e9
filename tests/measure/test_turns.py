"""Two living processes whose samples alternate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path
from typing import cast

import pytest

from gpubench.measure.case_run import CaseRun
from gpubench.measure.observers.turns import FIRST_FILE, PIPES, TURNS_VARIABLE, TurnsObserver

NO_RUN = cast(CaseRun, None)


def sample(pipe: Path, count: int) -> None:
    """Take samples in turn, and write down whose turn it was."""
    os.environ[TURNS_VARIABLE] = str(pipe)
    observer = TurnsObserver()
    log = os.open(pipe.with_name("log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for _ in range(count):
        observer.on_sample_begin(NO_RUN)
        os.write(log, pipe.name.encode())
    observer.on_finish(NO_RUN)


def sample_both(folder: Path, first: str, counts: Sequence[int]) -> str:
    """Return whose turn it was, sample by sample."""
    pipes = []
    for name in PIPES:
        os.mkfifo(folder / name)
        pipes.append(os.open(folder / name, os.O_RDWR))
    (folder / FIRST_FILE).write_text(first)
    context = get_context("fork")
    running = [
        context.Process(target=sample, args=(folder / name, count))
        for name, count in zip(PIPES, counts, strict=True)
    ]
    for process in running:
        process.start()
    (ended, *_) = wait([process.sentinel for process in running])
    for side, process in enumerate(running):
        if process.sentinel == ended:
            os.write(pipes[1 - side], b"." * 64)
    for process in running:
        process.join()
    for pipe in pipes:
        os.close(pipe)
    return (folder / "log").read_text()


@pytest.mark.parametrize(("first", "turns"), [("0", "01010101"), ("1", "10101010")])
def test_samples_of_two_processes_alternate(tmp_path: Path, first: str, turns: str) -> None:
    assert sample_both(tmp_path, first, (4, 4)) == turns


@pytest.mark.parametrize("counts", [(1, 5), (5, 1), (0, 3)])
def test_a_process_that_ends_leaves_its_turns_to_the_other(
    tmp_path: Path, counts: tuple[int, int]
) -> None:
    turns = sample_both(tmp_path, "0", counts)
    assert (turns.count("0"), turns.count("1")) == counts


def test_without_the_variable_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TURNS_VARIABLE, raising=False)
    TurnsObserver().on_sample_begin(NO_RUN)
