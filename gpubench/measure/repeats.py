"""How often is measured: asv's rule, for what is measured without asv and for pairs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from gpubench.collecting import without_collecting

if TYPE_CHECKING:
    from gpubench.suite.model import Sampling

T = TypeVar("T")

ROUNDS = 2
PAIRED_ROUNDS = 8
"""The fewest whose medians have an interval; see ``gpubench.analysis.paired``."""
MOST = 10
"""Samples in one round where there is no other; asv shares them among the rounds."""
EACH = 5
"""Samples of a round where a person asks for many: more would tell little more of it."""
SECONDS = 20.0
"""Most seconds for these, shared among the rounds too."""
WARM_UP = 0.1
TIMEOUT = 60.0
COMPILATIONS = (2, 3, 10.0)
"""Fewest and most samples of ``compile``, and seconds after which the fewest are enough."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """Samples of one round: as many as ``most``, fewer (``least``) when ``seconds`` are over."""

    rounds: int
    least: int
    most: int
    seconds: float
    warm_up: float = WARM_UP
    """Seconds before the first sample in which samples are taken and dropped."""

    def with_samples(self, samples: int) -> Repeats:
        """So many samples over all rounds, however long they take; many of them in more rounds."""
        rounds = min(max(self.rounds, samples // EACH), samples)
        each = -(-samples // rounds)
        return replace(self, rounds=rounds, least=each, most=each)

    def spread(self, rounds: int) -> Repeats:
        """The same samples and seconds shared among more rounds."""
        if self.rounds >= rounds:
            return self
        share = self.rounds / rounds
        return Repeats(
            rounds,
            math.ceil(self.least * share),
            math.ceil(self.most * share),
            self.seconds * share,
            self.warm_up * share,
        )


def repeats(sampling: Sampling, time: str = "kernel") -> Repeats:
    """What asv does with this ``sampling`` (``asv_runner.benchmarks.time``), its defaults too.

    Each sample of ``compile`` is a process, which nothing warms up.
    """
    if time == "compile":
        return Repeats(1, *COMPILATIONS, warm_up=0.0)
    rounds = sampling.rounds or default_rounds(sampling)
    warm_up = WARM_UP if sampling.warmup_time is None else sampling.warmup_time
    least, most, seconds = _of_a_round(sampling, rounds)
    return Repeats(rounds, least, most, seconds, warm_up)


def with_attributes(sampling: Sampling, attributes: Mapping[str, Any]) -> Sampling:
    """The same with what asv's command line sets (``-a sample_time=0.1``).

    Not its ``number``: of asv's calls each is a sample of ours, and ``--quick`` asks for one call.
    """
    set_ = {name: attributes[name] for name in _OF_ASV & attributes.keys()}
    if isinstance(set_.get("repeat"), list):
        set_["repeat"] = tuple(set_["repeat"])
    changed: Any = SimpleNamespace(**{**vars(sampling), **set_})
    found: Sampling = changed
    return found


_OF_ASV = {"rounds", "repeat", "sample_time", "warmup_time"}


def default_rounds(sampling: Sampling) -> int:
    """Rounds where the suite names none: asv's number, more where cases are paired."""
    return PAIRED_ROUNDS if sampling.paired else ROUNDS


def _of_a_round(sampling: Sampling, rounds: int) -> tuple[int, int, float]:
    given = sampling.repeat
    if isinstance(given, tuple):
        return given
    if given is not None:
        return given, given, sampling.timeout or TIMEOUT
    share = 2 if rounds > 1 else 1
    return 1, MOST // share, SECONDS / share


def repeated(
    turn: Callable[[int], T], plan: Repeats, now: Callable[[], float] = time.perf_counter
) -> list[T]:
    """What ``turn`` returns for 0, 1 ... of one round, after a warm-up of which nothing is kept.

    Garbage is not collected meanwhile, as in ``timeit``.
    """
    kept: list[T] = []
    with without_collecting():
        begin = now()
        turns = 0
        while now() < begin + plan.warm_up:
            turn(turns)
            turns += 1
        start = now()
        while len(kept) < plan.most:
            kept.append(turn(len(kept)))
            if len(kept) >= plan.least and now() > start + plan.seconds:
                break
    return kept
