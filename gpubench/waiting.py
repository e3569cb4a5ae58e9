"""Tells whoever waits what long work does, and how far it is.

Any room says it by ``say`` or ``say_each``, and does not know who listens. Commands show the words
in one line that changes (``narrated`` of ``gpubench.cli.console``). Without a listener they are
lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

Listener = Callable[[str], object]

SECONDS_BETWEEN_WORDS = 0.1
"""Nobody reads faster, and a terminal takes some 0.1 ms for a line."""

SECONDS_BETWEEN_LOOKS = 0.5
"""Between two looks at how far other processes are."""

_listener: Listener | None = None


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Let a listener get all words inside the block; one that listens already gets none of them."""
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before


def is_heard() -> bool:
    """Return whether somebody listens."""
    return _listener is not None


def say(words: str) -> None:
    """Give words to whoever listens."""
    if _listener is not None:
        _listener(words)


def say_each(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Yield items, and say which of ``total`` is next: ``reading suites: 3 of 60``."""
    last = -SECONDS_BETWEEN_WORDS
    for number, item in enumerate(items, 1):
        if _listener is not None and monotonic() - last >= SECONDS_BETWEEN_WORDS:
            last = monotonic()
            say(progress_words(what, number, total))
        yield item


def progress_words(what: str, number: int, total: int) -> str:
    """Return in words how far something is."""
    return f"{what}: {number:,} of {total:,}"


@contextmanager
def looked_at(words: Callable[[], str]) -> Iterator[None]:
    """Say how far work inside the block is, which other processes may do: a thread asks ``words``,
    and says it where it is new."""
    if _listener is None:
        yield
        return
    is_over = threading.Event()

    def look() -> None:
        last = ""
        while not is_over.is_set():
            if (now := words()) != last:
                last = now
                say(now)
            is_over.wait(SECONDS_BETWEEN_LOOKS)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
