"""How often steps are invented and found in the histories of asv stores.

Run ``python scripts/detection_rates.py STORE...``; a store is a folder of asv's result files. Of
each benchmark, windows of 100 commits (of shorter histories all, from 20 on) are shuffled, so that
every step in them is false. Then one step of three scatters, and at least 10 %, is planted at a
random place of each, five commits or more from its ends. It is found where a step lies within two
commits of it. A newest commit that is far from all others by itself is called a difference, and no
step: the column "newest" counts windows that have nothing else. The scatter of a window is half the
distance of its 16th and 84th percentiles. With ``--block 5`` runs of five commits stay together.

The last two columns ask the histories as they are: how many of the regressions that asv publishes
are real, and how many of those have a slower step of ours within ten commits. One is real where the
ten commits after it, and the newest ten, are slower than the ten before it by 1.1x and by three
scatters of these.

asv's ``detect_steps`` and Apache Otava, where it is installed, look at the same windows.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from asv.step_detect import detect_regressions, detect_steps
from figures import add_option, record, recording

from gpubench.analysis.changes import Change, changes_in
from gpubench.results import Times, open_table

COMMITS = 100
"""Of a window."""

MIN_COMMITS = 20
"""Of a history that is a window as a whole."""

EDGE = 5
"""Commits at either end of a window where nothing is planted."""

NEAR = 2
"""Commits that a step may be off."""

MIN_FACTOR = 1.1
SCATTERS = 3.0

REAL_COMMITS = 10
"""Commits of each level that are compared to see whether a regression is real."""

Windows = Sequence[Times]
"""Each of shape (3, commits): medians and the ends of their intervals."""

Detector = Callable[[Windows], list[list[int]]]
"""Returns where steps of each window begin."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stores", nargs="+", type=Path, metavar="STORE")
    parser.add_argument("--windows", type=int, default=600, help="of each store, at most")
    parser.add_argument("--block", type=int, default=1, help="commits that stay together")
    parser.add_argument("--seed", type=int, default=1)
    add_option(parser)
    given = parser.parse_args()
    with recording(given, "apache-otava"):
        detectors: dict[str, Detector] = {"gpubench": gpubench_steps, "asv": asv_steps}
        if otava := otava_steps():
            detectors["Otava"] = otava
        print(f"{'store':12} {'windows':>7}  ", end="")
        print("  ".join(f"{name + ' false, found %':>24}" for name in detectors), end="")
        print("  newest %  asv's, covered")
        for store in given.stores:
            name = store.parent.name if store.name == "results" else store.name
            histories = read_histories(store)
            chance = np.random.default_rng(given.seed)
            noise = [
                shuffle(window, given.block, chance)
                for window in choose_windows(histories, given.windows, chance)
            ]
            if not noise:
                print(f"{name}: no benchmark with {MIN_COMMITS} commits", file=sys.stderr)
                continue
            planted, places = zip(*(plant(window, chance) for window in noise), strict=True)
            cells, figures = [], dict[str, str]()
            for title, detector in detectors.items():
                false = 100 * np.mean([bool(steps) for steps in detector(noise)])
                hits = zip(detector(planted), places, strict=True)
                near = [any(abs(step - at) <= NEAR for step in steps) for steps, at in hits]
                found = 100 * np.mean(near)
                cells.append(f"{false:16.1f} {found:7.1f}")
                figures |= {
                    f"{title}: false, %": f"{false:.1f}",
                    f"{title}: found, %": f"{found:.1f}",
                }
            alone = 100 * np.mean([bool(of) and not _steps(of) for of in changes_of_windows(noise)])
            real, covered = coverage(histories)
            rest = f"{alone:8.1f} {real:6} {covered:7}"
            print(f"{name:12} {len(noise):7}  ", "  ".join(cells), rest)
            figures |= {"nothing but a newest commit, %": f"{alone:.1f}"}
            figures |= {"asv's real regressions": str(real), "covered": str(covered)}
            record("stores", name, figures)


def read_histories(store: Path) -> list[Times]:
    """Return each benchmark's times on each setup, shape (3, commits), oldest first."""
    table = open_table(store)
    histories = []
    for setup in table.setups:
        names = table.outline(setup).names
        times = table.history(setup, names).judged if names else np.empty((3, 0, 0))
        histories += [times[:, case, ~np.isnan(times[0, case])] for case in range(len(names))]
    table.close()
    return [times for times in histories if times.shape[1] >= MIN_COMMITS]


def choose_windows(
    histories: Sequence[Times], most: int, chance: np.random.Generator
) -> Iterator[Times]:
    windows = []
    longest = max((times.shape[1] for times in histories), default=0)
    for times in histories:
        if times.shape[1] < min(COMMITS, longest):
            continue
        length = min(times.shape[1], COMMITS)
        starts = range(0, times.shape[1] - length + 1, length)
        windows += [times[:, start : start + length] for start in starts]
    # Of few windows each is shuffled several times, so that 1 % can be told from 2 %.
    repeated = windows * math.ceil(most / max(len(windows), 1))
    chosen = chance.permutation(len(repeated))[:most]
    return (repeated[index] for index in chosen)


def shuffle(window: Times, block: int, chance: np.random.Generator) -> Times:
    """Return a window with its runs of ``block`` commits in another order."""
    length = window.shape[1]
    starts = chance.permutation(np.arange(0, length, block))
    order = np.concatenate([np.arange(at, min(at + block, length)) for at in starts])
    return window[:, order]


def scatter(values: np.ndarray) -> float:
    low, high = np.percentile(values, [15.87, 84.13])
    return float(high - low) / 2


def plant(window: Times, chance: np.random.Generator) -> tuple[Times, int]:
    """Return a window with a step, up or down, and where it begins."""
    size = max(SCATTERS * scatter(np.log(window[0])), math.log(MIN_FACTOR))
    place = int(chance.integers(EDGE, window.shape[1] - EDGE + 1))
    planted = window.copy()
    planted[:, place:] *= math.exp(size * chance.choice([-1, 1]))
    return planted, place


def changes_of_windows(windows: Windows) -> list[tuple[Change, ...]]:
    longest = max(window.shape[1] for window in windows)
    times = np.full((3, len(windows), longest), np.nan)
    for index, window in enumerate(windows):
        times[:, index, : window.shape[1]] = window
    return changes_in(times)


def gpubench_steps(windows: Windows) -> list[list[int]]:
    return [_steps(changes) for changes in changes_of_windows(windows)]


def _steps(changes: Sequence[Change]) -> list[int]:
    return [change.after for change in changes if change.kind == "step"]


def asv_steps(windows: Windows) -> list[list[int]]:
    """asv weighs times by their intervals where it has them; all weigh alike here, as in ours."""
    return [[step[0] for step in detect_steps(window[0].tolist())[1:]] for window in windows]


def otava_steps() -> Detector | None:
    """Return Otava's detector with the defaults of its command; ``None`` where it is missing."""
    try:
        from otava.analysis import compute_change_points
    except ImportError:
        print("Otava is not installed (pip install apache-otava)", file=sys.stderr)
        return None

    def detect(windows: Windows) -> list[list[int]]:
        random.seed(1)
        steps = []
        for window in windows:
            points, _ = compute_change_points(window[0].tolist(), window_len=50, max_pvalue=0.001)
            steps.append([point.index for point in points if point.stats.change_magnitude() > 0.05])
        return steps

    return detect


def coverage(histories: Sequence[Times]) -> tuple[int, int]:
    """Return how many real regressions asv publishes, and how many of them are covered."""
    real = covered = 0
    for times, changes in zip(histories, changes_of_windows(histories), strict=True):
        _, _, positions = detect_regressions(detect_steps(times[0].tolist()), threshold=0.05)
        for before, after, *_ in positions or []:
            if is_real(np.log(times[0]), before, after):
                real += 1
                near = range(before - REAL_COMMITS, after + REAL_COMMITS + 1)
                covered += any(change.slower and change.after in near for change in changes)
    return real, covered


def is_real(values: np.ndarray, before: int, after: int) -> bool:
    """Return whether a regression is seen in the ten commits before and after, and lasts."""
    old = values[max(before + 1 - REAL_COMMITS, 0) : before + 1]
    new = values[after : after + REAL_COMMITS]
    newest = values[-REAL_COMMITS:]
    if min(len(old), len(new)) < REAL_COMMITS:
        return False
    size = max(math.log(MIN_FACTOR), SCATTERS * max(scatter(old), scatter(new)))
    return all(float(np.median(level) - np.median(old)) >= size for level in (new, newest))


if __name__ == "__main__":
    main()
