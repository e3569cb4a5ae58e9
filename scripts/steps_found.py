"""How many planted steps the report finds, with which cause, and how many it invents.

Prints counts over generated histories: run ``python scripts/steps_found.py [HISTORIES]``.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "analysis"))

from scored_history import Score, score


def main(histories: int) -> None:
    started, total = time.perf_counter(), Counter[str]()
    for commits in (24, 60, 120, 500):
        found = [score(seed, commits=commits, kernels=40) for seed in range(histories)]
        total += _print(f"{commits} commits", found)
    print(f"{total['series']} series in {time.perf_counter() - started:.0f} s")


def _print(title: str, scores: list[Score]) -> Counter[str]:
    counts = sum((score.counts for score in scores), Counter[str]())
    print(title)
    for key, value in sorted(counts.items()):
        print(f"  {value:6} {key}")
    return counts


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
