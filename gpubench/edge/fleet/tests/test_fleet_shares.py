"""Which machine measures what, and in which order."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from gpubench.edge.fleet.shares import Machine, Offer, Share, divide, next_share, offer_of
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

PLAIN = Offer("blur", "blur__plain", False, 2, {"suites.blur__plain.time_kernel": "1"})
CUDA = Offer("blur", "blur__cuda", True, 2, {"suites.blur__cuda.time_kernel": "1"})
LONG = Offer("sort", "sort__plain", False, 2, {"suites.sort__plain.time_kernel": "1"})


def titles(shares: list[Share]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(share.commit, share.suite, share.classes) for share in shares]


def test_the_longest_come_first_and_of_equal_ones_those_of_the_first_commit() -> None:
    durations = {"suites.blur__plain.time_kernel": 3.0, "suites.sort__plain.time_kernel": 70.0}
    shares = divide("alpha", [PLAIN, CUDA, LONG], ["new", "old"], {}, durations)
    assert titles(shares) == [
        ("new", "sort", ("sort__plain",)),
        ("old", "sort", ("sort__plain",)),
        ("new", "blur", ("blur__plain", "blur__cuda")),
        ("old", "blur", ("blur__plain", "blur__cuda")),
    ]
    assert [share.seconds for share in shares[1:3]] == [70.0, 5.0]


def test_what_is_there_already_is_in_no_share() -> None:
    one = {**PLAIN.versions, **CUDA.versions, **LONG.versions}
    other = {**one, "suites.blur__cuda.time_kernel": "of another version"}
    there = {"new": [one, {**PLAIN.versions, **CUDA.versions}], "old": [other, one]}
    shares = divide("alpha", [PLAIN, CUDA, LONG], ["new", "old"], there, {})
    assert titles(shares) == [("new", "sort", ("sort__plain",)), ("old", "blur", ("blur__cuda",))]
    assert all(share.skip_existing for share in shares)
    assert not any(share.skip_existing for share in divide("alpha", [PLAIN], ["new"], {}, {}))


def test_a_share_asks_asv_for_its_implementations_alone() -> None:
    pattern = Share("c", "blur", ("blur__plain", "blur__cuda"), "alpha", 0.0).pattern
    names = ["blur__plain", "blur__plain_twice", "unblur__plain", "blur__cuda"]
    asked = [n for n in names if re.search(pattern, f"suites.{n}.time_kernel('n=8')")]
    assert asked == ["blur__plain", "blur__cuda"]


def test_a_machine_goes_on_with_the_commit_that_it_has_installed() -> None:
    waiting = divide("alpha", [PLAIN, LONG], ["new", "old"], {}, {})
    others = [replace(share, keeper="beta") for share in waiting]
    assert next_share([*others, *waiting], "alpha", None) == waiting[0]
    assert next_share([*others, *waiting], "alpha", "old") == waiting[2]
    assert next_share(others, "alpha", None) is None


def test_machines_of_one_kind_differ_in_nothing_that_a_time_depends_on() -> None:
    facts = {"cpu": "A", "python": "3.11", "host": "a", "memory_bytes": 8 * 2**30 + 4096}
    one = Machine("a", "tcp://1", facts, (), ("env",))
    assert one.kind == Machine("b", "tcp://2", {**facts, "host": "b"}, (), ("env",)).kind
    for facts_of_other, gpus, environments in (
        ({**facts, "cpu": "B"}, (), ("env",)),
        ({**facts, "memory_bytes": 16 * 2**30}, (), ("env",)),
        (facts, ("GPU",), ("env",)),
        (facts, (), ("other",)),
    ):
        assert one.kind != Machine("b", "tcp://2", facts_of_other, gpus, environments).kind


SUITE = """\
version: 1
suite: blur
kernels:
  blur:
    sizes: {n: [8, 16]}
    devices: [cpu, "cuda:*"]
    measure: [kernel, end_to_end]
    arrays: {a: {shape: [n], dtype: float64, intent: inout}}
    call: [a]
    baseline: plain
    implementations:
      plain: {function: "numpy:negative", backend: numpy}
      cuda: {function: "numpy:negative", backend: numba_cuda, launch: {over: [n], block: [32]}}
"""


def test_what_a_suite_offers_says_what_needs_cuda(tmp_path: Path) -> None:
    (tmp_path / "blur.yaml").write_text(SUITE)
    plan = build_plan(load_suites([tmp_path / "blur.yaml"]), 2)
    offers = {offer.class_name: offer for offer in map(offer_of, plan.expansions())}
    assert {name: offer.needs_cuda for name, offer in offers.items()} == {
        "blur__plain": False,
        "blur__cuda": True,
    }
    assert offers["blur__plain"].cases == 2
    assert offers["blur__cuda"].cases == 4
    assert offers["blur__cuda"].versions.keys() == {
        "suites.blur__cuda.time_kernel",
        "suites.blur__cuda.time_end_to_end",
    }
