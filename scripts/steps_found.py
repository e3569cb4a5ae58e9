"""How many planted steps the report finds, with which cause, and how many it invents.

Prints counts over generated histories: run
``python scripts/steps_found.py [HISTORIES] [CONSTANT=VALUE ...]``. Constants are those of
``gpubench.analysis.changes``, to see what depends on them.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "analysis"))

from scored_history import Score, score

from gpubench.analysis import changes


def main(histories: int, constants: Sequence[str]) -> None:
    for name, _, value in (setting.partition("=") for setting in constants):
        setattr(changes, name, type(getattr(changes, name))(value))
    started, total = time.perf_counter(), Counter[str]()
    for commits in (24, 60, 120, 500):
        scores = [score(seed, commits=commits, kernels=40) for seed in range(histories)]
        total += _print(f"{commits} commits", scores)
    print(f"{total['series']} series in {time.perf_counter() - started:.0f} s")


def _print(title: str, scores: list[Score]) -> Counter[str]:
    counts = sum((score.counts for score in scores), Counter[str]())
    print(title)
    for key, value in sorted(counts.items()):
        print(f"  {value:6} {key}")
    return counts


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2:])
