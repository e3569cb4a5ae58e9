"""Some tries at random in every run of the tests; `make fuzz` makes more, in as much time as it is
given. What one finds becomes a test of its own."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from kernels_in_ptx import KERNELS

from softcuda.translation.translate import TranslationError, translate

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from hostile_files import KINDS, SLOW, all_tried, suspicious  # noqa: E402

TRIES = 8


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_escapes(kind: str) -> None:
    seeds = [f"{kind}-tests-{number}" for number in range(TRIES)]
    outcomes = dict(all_tried(seeds))

    found = {
        seed: outcome
        for seed, outcome in outcomes.items()
        # On a busy machine processor time doubles.
        if suspicious(outcome) and (outcome.how == "escaped" or outcome.seconds > 2 * SLOW)
    }
    assert found == {}
    assert [*outcomes] == seeds  # each told as its own
    assert {outcome.how for outcome in outcomes.values()} & {"refused", "named"}


def broken(rng: random.Random, text: str) -> str:
    """With a word gone, twice, or in another's place."""
    words = text.split(" ")
    for _ in range(rng.randint(1, 3)):
        place, other = rng.randrange(len(words)), rng.randrange(len(words))
        words[place] = rng.choice(("", words[other], words[place] * 2, words[place][:-1], "{", ";"))
    return " ".join(words)


def test_of_broken_ptx_the_first_fault_is_named() -> None:
    ended = {True: 0, False: 0}
    for seed in range(400):
        try:
            translate(broken(random.Random(seed), KERNELS))
            ended[True] += 1
        except TranslationError as error:
            assert str(error)
            ended[False] += 1

    assert min(ended.values()) > 20
