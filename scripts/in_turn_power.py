"""How many pairs `gpubench compare --measure` and `gpubench since` need, and how often they err.

Runs the code that judges, with pairs of a script in place of processes: the noise is Student's t
with 4 degrees of freedom times a scatter.

1. `alone`: pairs that one named case needs at the median, for each factor and scatter; and how many
   unchanged cases are called within 40 pairs, also where processes have two levels.
2. `many`: 44 cases, of which 10 changed, in 226 pairs: found, falsely called, the same.
3. `stored`: the same with pairs of real processes of one commit, of `--results FOLDER...`: each
   pair draws two processes of a case, and changes are planted.
4. `since`: a line of 64 commits: pairs, and how often the named commit is right.

`--part many` and its like run one of them; `--repeat` sets how often.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
from figures import add_option, record, recording

from gpubench.analysis.bisection import Bisection
from gpubench.analysis.sequential import NU, CaseEvidence, Evidence
from gpubench.measure.in_turn import LIKELIEST_SHARE

FACTORS = (1.1, 1.2, 1.3, 1.5, 2.0, 3.0)
SCATTERS = (0.03, 0.05, 0.07, 0.2)
MAX_PAIRS = 400
GROUP = "in_turn"

Draw = Callable[[], float]


def noise(random: np.random.Generator, scatter: float) -> Draw:
    """Return what draws the logarithm of an unchanged pair."""
    return lambda: scatter * float(random.standard_t(NU))


def two_levels(random: np.random.Generator) -> Draw:
    """Return what draws pairs of processes of which every second is a fifth slower."""

    def draw() -> float:
        old, new = random.integers(0, 2, 2)
        return float((old - new) * math.log(1.2) + random.normal(0, 0.005))

    return draw


def measure_alone(draw: Draw, change: float, most: int) -> CaseEvidence:
    """Take pairs of one case until it is decided."""
    evidence = Evidence(1)
    while not evidence.is_decided(0) and len(evidence.cases[0].logs) < most:
        evidence.add(0, change + draw())
    return evidence.cases[0]


def measure_many(draws: Sequence[Draw], changes: Sequence[float], pairs: int) -> Evidence:
    """Take pairs as `measure_in_turn` does: the first of each, then the likeliest quarter."""
    evidence = Evidence(len(draws))
    left = pairs
    while left > 0:
        places = [place for place in range(len(draws)) if not evidence.is_decided(place)]
        places.sort(key=evidence.likelihood, reverse=True)
        few = [place for place in places if len(evidence.cases[place].logs) < 3]
        chosen = few or places[: math.ceil(len(places) * LIKELIEST_SHARE)]
        if not chosen:
            break
        for place in chosen[:left]:
            evidence.add(place, changes[place] + draws[place]())
        left -= len(chosen)
    return evidence


def find(
    random: np.random.Generator, factor: float, scatter: float, commits: int
) -> tuple[bool, int]:
    """Search a line of commits; return whether the right one was named, and the pairs taken."""
    changed = int(random.integers(commits))
    draw = noise(random, scatter)

    def take(place: int) -> float:
        return draw() - (math.log(factor) if place >= changed else 0.0)

    ends = CaseEvidence()
    while not ends.is_called and len(ends.logs) < MAX_PAIRS:
        ends.add(take(commits - 1))
    search = Bisection(commits, logs={commits - 1: [*ends.logs]})
    while search.pairs < MAX_PAIRS and (place := search.choose()) is not None:
        search.add(place, take(place))
    found = search.likeliest()
    return found.probability >= search.sure and found.last == changed, search.pairs


def print_row(what: str, figure: str) -> None:
    """Print a figure and keep it for ``--record``."""
    print(f"{what:72} {figure}", flush=True)
    record(GROUP, what, {"figure": figure})


def part_alone(random: np.random.Generator, repeat: int) -> None:
    """Print the pairs that a named case needs, and false calls."""
    for factor in FACTORS:
        for scatter in SCATTERS:
            cases = [
                measure_alone(noise(random, scatter), -math.log(factor), 200) for _ in range(repeat)
            ]
            slower = sum(case.verdict == "slower" for case in cases)
            figure = f"{median(len(case.logs) for case in cases):.0f}, found {slower / repeat:.0%}"
            print_row(f"one case, {factor}x slower, pairs scatter by {scatter:.0%}", figure)
    draws = {f"pairs scatter by {scatter:.0%}": noise(random, scatter) for scatter in SCATTERS}
    draws["every second process a fifth slower"] = two_levels(random)
    for name, draw in draws.items():
        cases = [measure_alone(draw, 0.0, 40) for _ in range(4 * repeat)]
        false = sum(case.verdict in ("slower", "faster") for case in cases) / len(cases)
        same = sum(case.verdict == "same" for case in cases) / len(cases)
        print_row(f"one case, unchanged, {name}, 40 pairs", f"false {false:.1%}, same {same:.0%}")
        cases = [measure_alone(draw, -math.log(1.1), 40) for _ in range(4 * repeat)]
        same = sum(case.verdict == "same" for case in cases) / len(cases)
        print_row(f"one case, 1.1x slower, {name}, 40 pairs", f"falsely the same {same:.1%}")


def count_many(
    what: str, draw_all: Callable[[], Sequence[Draw]], factors: Sequence[float], repeat: int
) -> None:
    """Print how many of 44 cases are found, falsely called, and the same."""
    for factor in factors:
        found = false = same = sure = 0
        for _ in range(repeat):
            evidence = measure_many(draw_all(), [-math.log(factor)] * 10 + [0.0] * 34, 226)
            verdicts = [case.verdict for case in evidence.cases]
            found += verdicts[:10].count("slower")
            sure += len(evidence.sure & {*range(10)})
            false += sum(verdict in ("slower", "faster") for verdict in verdicts[10:])
            same += verdicts[10:].count("same")
        figure = (
            f"found {found / repeat / 10:.0%}, sure {sure / repeat / 10:.0%}, "
            f"false {false / repeat / 34:.1%}, same {same / repeat / 34:.0%}"
        )
        print_row(f"44 cases, 10 of them {factor}x slower, 226 pairs, {what}", figure)


def part_many(random: np.random.Generator, repeat: int) -> None:
    """Print what 226 pairs find of 44 cases."""
    for scatter in SCATTERS:
        draw = noise(random, scatter)
        count_many(f"scatter {scatter:.0%}", lambda draw=draw: [draw] * 44, (1.1, 1.3, 2.0), repeat)  # type: ignore[misc]


def part_since(random: np.random.Generator, repeat: int) -> None:
    """Print the pairs that a search needs."""
    for factor in (1.1, 1.3, 2.0):
        for scatter in SCATTERS:
            if scatter == 0.2 and factor == 1.1:
                continue
            searches = [find(random, factor, scatter, 64) for _ in range(max(repeat // 2, 6))]
            right = sum(is_right for is_right, _ in searches) / len(searches)
            figure = f"{median(pairs for _, pairs in searches):.0f}, right {right:.0%}"
            print_row(f"since, 64 commits, {factor}x, pairs scatter by {scatter:.0%}", figure)


def read_processes(folders: Sequence[Path]) -> dict[tuple[str, str], list[float]]:
    """Return the logarithm of each process's time by benchmark and case, from records."""
    found: dict[tuple[str, str], list[float]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.gpubench.jsonl")):
            for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
                if line["kind"] == "rounds":
                    name = line["benchmark"], line["case"]
                    found.setdefault(name, []).append(math.log(median(line["rounds"])))
    return found


def part_stored(random: np.random.Generator, repeat: int, folders: Sequence[Path]) -> None:
    """Print what pairs of stored processes of one commit give."""
    found = {name: its for name, its in read_processes(folders).items() if len(its) > 1}
    processes = [np.asarray(its) for its in found.values()]
    print(f"{len(processes)} cases, {median(map(len, processes)):.0f} processes each")

    def pair_of(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Draw:
        def draw() -> float:
            old, new = random.choice(values, 2, replace=False)
            return float(old - new)

        return draw

    def draw_all() -> list[Draw]:
        chosen = random.choice(len(processes), 44, replace=False)
        return [pair_of(processes[place]) for place in chosen]

    names = " and ".join(folder.name for folder in folders)
    count_many(f"processes of {names}", draw_all, (1.1, 1.3, 1.5, 2.0, 3.0), repeat)


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("alone", "many", "stored", "since"), action="append")
    parser.add_argument("--repeat", type=int, default=30, help="how often each is simulated")
    parser.add_argument("--results", type=Path, nargs="*", default=[], help="of one commit")
    add_option(parser)
    given = parser.parse_args()
    parts = given.part or ["alone", "many", "since", *(["stored"] if given.results else [])]
    random = np.random.default_rng(44)
    with recording(given):
        if "alone" in parts:
            part_alone(random, given.repeat)
        if "many" in parts:
            part_many(random, given.repeat)
        if "stored" in parts:
            part_stored(random, given.repeat, given.results)
        if "since" in parts:
            part_since(random, given.repeat)


if __name__ == "__main__":
    main()
