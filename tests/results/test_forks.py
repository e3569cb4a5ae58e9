"""Work that is shared among processes comes back as if one had done it."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import pytest

from gpubench.errors import GpubenchError
from gpubench.parallel import share

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

HERE = os.getpid()


def doubled(part: Sequence[int]) -> list[tuple[int, int]]:
    return [(2 * number, os.getpid()) for number in part]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_results_come_in_the_order_of_the_items(count: int) -> None:
    found = share(doubled, range(7), count)

    assert [number for number, _ in found] == [0, 2, 4, 6, 8, 10, 12]
    assert len({process for _, process in found}) == count


def test_nothing_needs_no_process() -> None:
    assert share(doubled, [], 3) == []


def test_the_work_may_use_what_cannot_be_pickled_and_results_may_be_large() -> None:
    sizes = {"a": 10**6}
    found = share(lambda part: ["x" * (sizes["a"] + each) for each in part], [0, 1, 2, 3], 2)

    assert list(map(len, found)) == [10**6 + each for each in range(4)]


def test_an_error_of_another_process_is_raised_here() -> None:
    def failing(part: Sequence[int]) -> list[int]:
        if os.getpid() != HERE:
            raise GpubenchError(f"{part[0]} is wrong")
        return list(part)

    with pytest.raises(GpubenchError, match=r"^1 is wrong$"):
        share(failing, [0, 1], 2)


def test_an_error_here_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    fork, started = os.fork, list[int]()

    def noted() -> int:
        started.append(fork())
        return started[-1]

    def failing(part: Sequence[int]) -> list[bytes]:
        if os.getpid() == HERE:
            raise GpubenchError("wrong")
        return [bytes(10**6)]

    monkeypatch.setattr(os, "fork", noted)
    with pytest.raises(GpubenchError, match=r"^wrong$"):
        share(failing, [0, 1, 2], 3)

    assert len(started) == 2
    for process in started:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)


def test_where_no_process_can_be_started_the_work_is_done_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refused)

    assert share(doubled, [0, 1, 2], 3) == [(0, HERE), (2, HERE), (4, HERE)]


class Unpicklable(Exception):
    """Cannot be made from its text."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


def test_work_of_a_process_that_dies_or_cannot_tell_is_done_here() -> None:
    def dying(part: Sequence[int]) -> list[int]:
        if os.getpid() != HERE and part[0] == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if os.getpid() != HERE:
            raise Unpicklable(1, 2)
        return list(part)

    assert share(dying, [0, 1, 2], 3) == [0, 1, 2]
