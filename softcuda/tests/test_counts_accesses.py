"""Sectors, wavefronts and lanes on one address, of one request with the addresses given."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from counted_kernels import LOCAL_BYTES, OFF, SHARED_BYTES, Bench, access_kernels, count_all
from softcuda_process import on_softcuda

LANES = range(32)
PATTERNS: dict[str, list[int]] = {
    "consecutive": list(LANES),
    **{f"stride {step}": [step * i for i in LANES] for step in (2, 3, 4, 8, 9, 16, 17, 32, 33, 64)},
    "stride 128": [128 * i for i in LANES],
    "shifted 1": [i + 1 for i in LANES],
    "shifted 7": [i + 7 for i in LANES],
    "shifted 8": [i + 8 for i in LANES],
    "reversed": [31 - i for i in LANES],
    "one place": [0 for _ in LANES],
    "pairs": [i // 2 for i in LANES],
    "pairs two apart": [i & ~2 for i in LANES],
    "half": [i if i < 16 else OFF for i in LANES],
    "even lanes": [OFF if i % 2 else i for i in LANES],
    "one lane": [OFF if i != 5 else 5 for i in LANES],
    "no lane": [OFF for _ in LANES],
    "two rows": [i % 16 + i // 16 * 1000 for i in LANES],
    "two places": [i % 2 for i in LANES],
    "two places of a bank": [i % 2 * 32 for i in LANES],
    "rows of 8": [i % 8 * 4 for i in LANES],
}


@dataclass(frozen=True)
class Row:
    """A request, and what it takes by theory: sectors, or wavefronts of shared memory."""

    kernel: str
    width: int
    pattern: str
    passes: int
    ideal: int | None = None
    same: int = 0

    @property
    def id(self) -> str:
        return f"{self.kernel}, {self.width} bytes, {self.pattern}"

    @property
    def request(self) -> tuple[str, int, list[int]]:
        return self.kernel, self.width, PATTERNS[self.pattern]

    @property
    def expected(self) -> dict[str, int]:
        space, what = self.kernel.split("_")
        access = f"{space}_{'atomic' if what in ('atom', 'red') else what}"
        if not self.passes:
            return {}
        unit = "wavefronts" if space == "shared" else "sectors"
        expected = {f"{access}_requests": 1, f"{access}_{unit}": self.passes}
        if space != "local":
            expected[f"{access}_ideal_{unit}"] = self.passes if self.ideal is None else self.ideal
        if self.same:
            expected[f"{access}_same_address"] = self.same
        return expected


def rows(kernels: str, *of_widths: tuple[int, str, Any]) -> list[Row]:
    return [
        Row(kernel, width, pattern, *(numbers if isinstance(numbers, tuple) else (numbers,)))
        for kernel in kernels.split()
        for width, pattern, numbers in of_widths
    ]


# A full warp side by side takes 4, 8 and 16 sectors of 32 bytes for elements of 4, 8 and 16 bytes.
GLOBAL = rows(
    "global_load global_store",
    *((width, "consecutive", width) for width in (1, 2, 4, 8, 16)),
    (4, "stride 2", (8, 4)), (4, "stride 3", (12, 4)), (4, "stride 4", (16, 4)),
    (4, "stride 8", (32, 4)), (4, "stride 16", (32, 4)), (4, "stride 32", (32, 4)),
    (8, "stride 2", (16, 8)), (8, "stride 3", (24, 8)), (8, "stride 4", (32, 8)),
    (16, "stride 2", (32, 16)), (2, "stride 16", (32, 2)), (2, "stride 2", (4, 2)),
    (1, "stride 2", (2, 1)), (1, "stride 32", (32, 1)),
    (1, "shifted 1", (2, 1)), (2, "shifted 1", (3, 2)), (4, "shifted 1", (5, 4)),
    (4, "shifted 7", (5, 4)), (4, "shifted 8", 4), (8, "shifted 1", (9, 8)),
    (16, "shifted 1", (17, 16)),
    (4, "one place", 1), (8, "one place", 1), (16, "one place", 1),
    (4, "reversed", 4), (8, "reversed", 8), (16, "reversed", 16),
    (4, "pairs", 2), (8, "pairs", 4),
    (4, "half", 2), (4, "even lanes", (4, 2)), (8, "even lanes", (8, 4)),
    (4, "one lane", 1), (16, "one lane", 1), (4, "no lane", 0),
    (4, "two rows", 4), (4, "two places", 1), (4, "two places of a bank", 2),
)  # fmt: skip
GLOBAL_ATOMICS = rows(
    "global_atom global_red",
    (4, "consecutive", 4), (8, "consecutive", 8), (4, "stride 8", (32, 4)),
    (4, "one place", (32, 1, 31)), (8, "one place", (32, 1, 31)), (4, "pairs", (4, 2, 16)),
    (4, "two places", (16, 1, 30)), (4, "half", 2), (4, "one lane", 1),
)  # fmt: skip

# 32 banks of 4 bytes. Lanes of 8 bytes go by halves of a warp, lanes of 16 bytes by quarters.
SHARED = rows(
    "shared_load shared_store",
    (1, "consecutive", 1), (2, "consecutive", 1), (4, "consecutive", 1),
    (8, "consecutive", 2), (16, "consecutive", 4),
    (4, "stride 2", (2, 1)), (4, "stride 3", 1), (4, "stride 4", (4, 1)), (4, "stride 8", (8, 1)),
    (4, "stride 16", (16, 1)), (4, "stride 32", (32, 1)), (4, "stride 33", 1),
    (1, "stride 4", 1), (1, "stride 128", (32, 1)), (2, "stride 2", 1), (2, "stride 64", (32, 1)),
    (8, "stride 2", (4, 2)), (8, "stride 16", (32, 2)), (8, "stride 17", 2),
    (8, "stride 32", (32, 2)), (8, "stride 33", 2),
    (16, "stride 2", (8, 4)), (16, "stride 8", (32, 4)), (16, "stride 9", 4),
    (4, "shifted 1", 1), (4, "reversed", 1), (8, "reversed", 2),
    (4, "one place", 1), (4, "pairs", 1), (4, "even lanes", 1), (4, "half", 1), (8, "half", 1),
    (16, "half", 2), (4, "one lane", 1), (8, "one lane", 1), (16, "one lane", 1), (4, "no lane", 0),
    (4, "two places of a bank", (2, 1)), (4, "rows of 8", 1), (8, "rows of 8", (4, 2)),
)  # fmt: skip
SHARED_ATOMICS = rows(
    "shared_atom shared_red",
    (4, "consecutive", 1), (4, "one place", (32, 1, 31)), (4, "two places", (16, 1, 30)),
    (4, "two places of a bank", (32, 1, 30)), (4, "stride 2", (2, 1)), (4, "stride 33", 1),
    (4, "half", 1), (8, "consecutive", 2), (8, "one place", (32, 2, 31)),
)  # fmt: skip
# Pairs of lanes with one address are joined, in loads alone.
PAIRS = [
    *rows(
        "shared_store",
        *((width, pattern, width // 4) for pattern in ("one place", "pairs", "pairs two apart")
          for width in (8, 16)),
    ),
    *rows(
        "shared_load",
        (8, "one place", 1), (16, "one place", 2), (8, "pairs", 1), (16, "pairs", 2),
        (8, "pairs two apart", 2), (16, "pairs two apart", 4),
    ),
]  # fmt: skip

# Word w of lane l of local memory is the word w * 32 + l of its warp.
LOCAL = rows(
    "local_load local_store",
    (1, "one place", 4), (2, "one place", 4), (4, "one place", 4), (8, "one place", 8),
    (16, "one place", 16), (4, "consecutive", 32), (8, "consecutive", 64), (1, "consecutive", 8),
    (4, "pairs", 16), (4, "half", 16), (4, "no lane", 0),
)  # fmt: skip

REQUESTS = [*GLOBAL, *GLOBAL_ATOMICS, *SHARED, *SHARED_ATOMICS, *PAIRS, *LOCAL]


def _count_requests() -> Any:
    return count_all(row.request for row in REQUESTS)


@pytest.fixture(scope="module")
def counted() -> dict[Row, dict[str, int]]:
    return dict(zip(REQUESTS, on_softcuda(_count_requests), strict=True))


def accesses_alone(counts: dict[str, int]) -> dict[str, int]:
    return {
        name: number
        for name, number in counts.items()
        if not name.startswith("ptx_") and name != "guarded_off_lanes"
    }


@pytest.mark.parametrize("row", REQUESTS, ids=lambda row: row.id)
def test_a_request_takes_what_theory_says(row: Row, counted: dict[Row, Any]) -> None:
    assert accesses_alone(counted[row]) == row.expected


# ---- any addresses ------------------------------------------------------------------------------


def _random_requests() -> list[tuple[str, int, list[int]]]:
    """Draw addresses in clusters, some twice, with some lanes off: the same in every process."""
    draw = random.Random(1)
    requests = []
    rooms = {"global": 1 << 19, "shared": SHARED_BYTES, "local": LOCAL_BYTES}
    for space, width in [(s, w) for s in rooms for w in (1, 2, 4, 8, 16)] * 4:
        span = draw.choice([4, 40, rooms[space] // width])
        lanes = [draw.randrange(min(span, rooms[space] // width)) for _ in LANES]
        off = draw.choice([0, 0.2, 0.9])
        lanes = [OFF if draw.random() < off else index for index in lanes]
        requests.append((f"{space}_{draw.choice(['load', 'store'])}", width, lanes))
    return requests


def _count_random() -> Any:
    return count_all(_random_requests())


def pairs_agree(at: Mapping[int, int], step: int) -> bool:
    return all(at.get(lane ^ step, address) == address for lane, address in at.items())


def expected_passes(space: str, kind: str, width: int, lanes: Sequence[int]) -> int:
    """Return sectors or wavefronts, counted as the definitions say and without any shortcut."""
    at = {lane: index * width for lane, index in enumerate(lanes) if index != OFF}
    words = max(width // 4, 1)
    if space == "global":
        return len({address // 32 for address in at.values()})
    if space == "local":
        every = {(place // 4 + w) * 32 + lane for lane, place in at.items() for w in range(words)}
        return len({word // 8 for word in every})
    passes, together = 0, 32 // words
    if kind == "load" and words > 1 and any(pairs_agree(at, step) for step in (1, 2)):
        together *= 2
    for first in range(0, 32, together):
        mine = [a for lane, a in at.items() if first <= lane < first + together]
        wanted = {address // 4 + w for address in mine for w in range(words)}
        passes += max((sum(word % 32 == bank for word in wanted) for bank in range(32)), default=0)
    return passes


def test_random_requests_take_what_the_definitions_say() -> None:
    requests = _random_requests()
    for (kernel, width, lanes), counts in zip(requests, on_softcuda(_count_random), strict=True):
        space, kind = kernel.split("_")
        unit = "wavefronts" if space == "shared" else "sectors"
        assert counts.get(f"{kernel}_{unit}", 0) == expected_passes(space, kind, width, lanes), (
            lanes
        )


# ---- what hardware measured ---------------------------------------------------------------------

MEASURED = Path(__file__).with_name("requests_on_an_h100.txt")


def _measured() -> list[tuple[str, int, list[int], int, int]]:
    """Return kernel, width, indices, passes and ideal of each request."""
    found = []
    for line in MEASURED.read_text().splitlines():
        if not line.startswith("#"):
            numbers, _, lanes = line.partition(": ")
            kernel, *others = numbers.split()
            width, passes, ideal = map(int, others)
            indices = [OFF if lane == "." else int(lane) for lane in lanes.split()]
            found.append((kernel, width, indices, passes, ideal))
    return found


def _count_measured() -> Any:
    return count_all((kernel, width, lanes) for kernel, width, lanes, *_ in _measured())


def test_requests_take_what_hardware_measured() -> None:
    requests = _measured()
    assert len(requests) > 400
    for (kernel, width, lanes, passes, ideal), counts in zip(
        requests, on_softcuda(_count_measured), strict=True
    ):
        space, what = kernel.split("_")
        access = f"{space}_{'atomic' if what in ('atom', 'red') else what}"
        unit = "wavefronts" if space == "shared" else "sectors"
        found = counts.get(f"{access}_{unit}", 0), counts.get(f"{access}_ideal_{unit}", 0)
        assert found == (passes, ideal), (kernel, width, lanes)


STEPS = {
    "consecutive": [*range(32)],
    "rows of 16": [*range(16), *range(100, 116)],
    "rows of 8": [64 * (lane // 8) + lane % 8 for lane in range(32)],
    "from data": random.Random(3).sample(range(200), 32),
}


def _count_steps() -> Any:
    bench = Bench(access_kernels())
    answers = {}
    for name, lanes in STEPS.items():
        bench.fill(bench.b, lanes)
        (one,) = [one for one in bench.count("global_load_4").accesses if one.line == 2]
        answers[name] = [one.step_x, one.uneven]
    return answers


def test_rows_that_end_within_a_warp_are_told_from_an_index_of_data() -> None:
    assert on_softcuda(_count_steps) == {
        "consecutive": [4, 0],
        "rows of 16": ["varies", 0],
        "rows of 8": ["varies", 0],
        "from data": ["varies", 1],
    }
